/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "etcd/etcd_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define HEADER "\"header\":{\"cluster_id\":\"17286054605986868326\",\"member_id\":\"3\"}"

/* As 3.4.23 wrote it; 3.5 adds blanks. */
static void test_member_status_is_read(void **state)
{
    static const char text[] =
        "{\"header\":{\"cluster_id\":\"17286054605986868326\", \"member_id\":\"16016643125142260217"
        "\",\"revision\":\"61\",\"raft_term\":\"2\"},\"version\":\"3.4.23\",\"dbSize\":\"20480\","
        "\"leader\":\"16016643125142260217\",\"raftIndex\":\"4\",\"raftTerm\":\"2\","
        "\"raftAppliedIndex\":\"3\",\"dbSizeInUse\":\"16384\",\"isLearner\":true,\"new\":{}}";
    struct stw_etcd_health h;
    (void)state;
    assert_int_equal(stw_etcd_read_status(text, strlen(text), &h, NULL), 0);
    assert_true(h.answers && h.learner && !h.linearizable);
    assert_true(h.cluster_id == UINT64_C(17286054605986868326));
    assert_true(h.member_id == UINT64_C(16016643125142260217) && h.leader_id == h.member_id);
    assert_int_equal(h.raft_term, 2);
    assert_int_equal(h.raft_index, 4);
    assert_int_equal(h.raft_applied_index, 3);
    assert_int_equal(h.db_size, 20480);
    assert_int_equal(h.db_size_in_use, 16384);
    assert_int_equal(h.revision, 61);
    assert_int_equal(h.version.major * 10000 + h.version.minor * 100 + h.version.patch, 30423);
}

static void test_downgrade_info_is_read(void **state)
{
    static const char head[] = "{\"header\":{\"cluster_id\":\"1\",\"member_id\":\"2\"},\"version\":"
                               "\"3.6.16\",\"storageVersion\":\"3.5.0\",\"downgradeInfo\":{";
    static const struct {
        const char *info;
        unsigned minor; /* 0: none */
    } rows[] = {{"\"enabled\":true,\"targetVersion\":\"3.5.0\"", 5},
                {"\"enabled\":false,\"targetVersion\":\"3.5.0\"", 0},
                {"", 0}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_etcd_health h;
        char text[512];
        (void)snprintf(text, sizeof(text), "%s%s}}", head, rows[i].info);
        assert_int_equal(stw_etcd_read_status(text, strlen(text), &h, NULL), 0);
        assert_int_equal(h.storage_version.minor, 5);
        assert_int_equal(h.downgrade_to.minor, rows[i].minor);
    }
}

static void test_member_versions_are_read(void **state)
{
    static const struct {
        const char *text;
        struct stw_semver is;
    } rows[] = {
        {"\"3.6.0-rc.1\"", {3, 6, 0}},
        {"\"3.5.16+git\"", {3, 5, 16}},
        {"\"not decided\"", {0, 0, 0}},
        {"7", {0, 0, 0}},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char text[256];
        struct stw_etcd_health h;
        (void)snprintf(text, sizeof(text), "{" HEADER ",\"version\":%s}", rows[i].text);
        assert_int_equal(stw_etcd_read_status(text, strlen(text), &h, NULL), 0);
        assert_int_equal(stw_semver_compare(h.version, rows[i].is), 0);
    }
}

/* The result is not touched. */
static void test_malformed_status_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "[]",
        "{}",
        "{\"header\":{}}",
        "{\"header\":{\"cluster_id\":\"1\"}}",
        "{\"header\":{\"cluster_id\":\"x\",\"member_id\":\"1\"}}",
        "{\"header\":{\"cluster_id\":\"18446744073709551616\",\"member_id\":\"1\"}}",
        "{\"header\":{\"cluster_id\":\"-1\",\"member_id\":\"1\"}}",
        "{\"header\":{\"cluster_id\":-1,\"member_id\":\"1\"}}",
        "{\"header\":{\"cluster_id\":\"\",\"member_id\":\"1\"}}",
        "{" HEADER ",\"dbSize\":\"9223372036854775808\"}",
        "{" HEADER ",\"dbSize\":\"-1\"}",
        "{" HEADER ",\"dbSizeInUse\":-1}",
        "{" HEADER ",\"leader\":[]}",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        struct stw_etcd_health h, before;
        struct stw_error err = {0};
        memset(&h, 0x55, sizeof(h));
        memcpy(&before, &h, sizeof(h));
        if (stw_etcd_read_status(texts[i], strlen(texts[i]), &h, &err) != -1)
            fail_msg("%s was taken", texts[i]);
        assert_memory_equal(&h, &before, sizeof(h));
        assert_int_equal(err.code, STW_ERR_INVALID);
        assert_non_null(strstr(err.text, "not understood"));
    }
}

static void test_member_list_is_read(void **state)
{
    static const char text[] =
        "{" HEADER ",\"members\":[{\"ID\":\"18446744073709551615\",\"name\":\"a-b\",\"peerURLs\":"
        "[\"https://a-b.a.ns.svc:2380\"],\"clientURLs\":[]},{\"ID\":\"2\",\"peerURLs\":[\"http:"
        "\\/\\/x:2380\",\"http://y\"],\"isLearner\":true}]}";
    struct stw_etcd_members m;
    (void)state;
    assert_int_equal(stw_etcd_read_members(text, strlen(text), &m, NULL), 0);
    assert_int_equal(m.count, 2);
    assert_true(m.all[0].id == UINT64_MAX && !m.all[0].learner && m.all[1].learner);
    assert_string_equal(m.all[0].name, "a-b");
    assert_string_equal(m.all[0].peer_url, "https://a-b.a.ns.svc:2380");
    assert_string_equal(m.all[1].name, "");
    assert_string_equal(m.all[1].peer_url, "http://x:2380");
}

static void members_text(unsigned count, const char *member, struct stw_buf *out)
{
    stw_buf_clear(out);
    stw_buf_adds(out, "{" HEADER ",\"members\":[");
    for (unsigned i = 0; i < count; i++)
        stw_buf_addf(out, "%s{%s}", i > 0 ? "," : "", member);
    stw_buf_adds(out, "]}");
}

/* Values that are too long are refused, not truncated: a truncated URL would be a different one. */
static void test_malformed_member_list_is_refused(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1u << 16), long_one = STW_BUF_INIT(4096);
    struct stw_etcd_members m = {.count = 77};
    struct stw_error err = {0};
    char url[STW_ETCD_URL_MAX + 1];
    (void)state;
    static const struct {
        unsigned count;
        const char *member;
    } rows[] = {{0, ""},
                {1, ""},
                {1, "\"ID\":\"0\""},
                {1, "\"ID\":\"1\",\"name\":7"},
                {1, "\"ID\":\"1\",\"peerURLs\":[7]"},
                {STW_ETCD_MEMBERS_MAX + 1, "\"ID\":\"1\""}};
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        members_text(rows[i].count, rows[i].member, &text);
        if (stw_etcd_read_members(text.data, text.len, &m, &err) != -1)
            fail_msg("row %zu was taken", i);
    }
    memset(url, 'u', sizeof(url) - 1);
    url[sizeof(url) - 1] = '\0';
    stw_buf_addf(&long_one, "\"ID\":\"1\",\"peerURLs\":[\"%s\"]", url);
    members_text(1, long_one.data, &text);
    assert_int_equal(stw_etcd_read_members(text.data, text.len, &m, &err), -1);
    members_text(STW_ETCD_MEMBERS_MAX, "\"ID\":\"1\"", &text);
    assert_int_equal(m.count, 77);
    assert_int_equal(stw_etcd_read_members(text.data, text.len, &m, &err), 0);
    assert_int_equal(m.count, STW_ETCD_MEMBERS_MAX);
}

/* A member could send a MiB of them: 14 MiB of memory, and many are asked at the same time. */
static void test_member_list_with_too_many_values_is_refused(void **state)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1u << 16);
    struct stw_etcd_members m = {.count = 77};
    struct stw_error err = {0};
    (void)state;
    for (unsigned count = 5000; count <= 10000; count += 5000) {
        stw_buf_clear(&text);
        stw_buf_adds(&text, "{" HEADER ",\"x\":[1");
        for (unsigned i = 0; i < count; i++)
            stw_buf_adds(&text, ",1");
        stw_buf_adds(&text, "],\"members\":[{\"ID\":\"1\"}]}");
        assert_int_equal(stw_etcd_read_members(text.data, text.len, &m, &err),
                         count == 5000 ? 0 : -1);
    }
    assert_non_null(strstr(err.text, "too many values"));
    assert_int_equal(m.count, 1);
}

static void test_added_member_id_is_read(void **state)
{
    static const char good[] = "{" HEADER ",\"member\":{\"ID\":\"12\"},\"members\":[]}";
    static const char *const bad[] = {"{}", "{\"member\":{}}", "{\"member\":{\"ID\":\"0\"}}", "1"};
    uint64_t id = 5;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(bad); i++)
        assert_int_equal(stw_etcd_read_added(bad[i], strlen(bad[i]), &id, NULL), -1);
    assert_int_equal(id, 5);
    assert_int_equal(stw_etcd_read_added(good, strlen(good), &id, NULL), 0);
    assert_int_equal(id, 12);
}

/* 3.4 returns {} if there are none; unknown kinds of alarms are skipped. */
static void test_alarms_are_read(void **state)
{
    static const char text[] =
        "{" HEADER ",\"alarms\":[{\"memberID\":\"9\",\"alarm\":\"NOSPACE\"},{\"memberID\":\"8\","
        "\"alarm\":\"FUTURE\"},{\"memberID\":\"7\",\"alarm\":\"CORRUPT\"},{\"memberID\":\"6\"}]}";
    struct stw_etcd_alarms alarms;
    (void)state;
    assert_int_equal(stw_etcd_read_alarms(text, strlen(text), &alarms, NULL), 0);
    assert_int_equal(alarms.count, 2);
    assert_int_equal(alarms.all[0].member_id, 9);
    assert_int_equal(alarms.all[0].alarm, STW_ETCD_ALARM_NOSPACE);
    assert_int_equal(alarms.all[1].member_id, 7);
    assert_int_equal(alarms.all[1].alarm, STW_ETCD_ALARM_CORRUPT);
    assert_int_equal(stw_etcd_read_alarms("{}", 2, &alarms, NULL), 0);
    assert_int_equal(alarms.count, 0);
    assert_int_equal(stw_etcd_read_alarms("{\"alarms\":7}", 12, &alarms, NULL), -1);
    assert_int_equal(stw_etcd_read_alarms("[]", 2, &alarms, NULL), -1);
}

/* A token goes into a header, and must not end it. */
static void test_token_is_read_and_validated(void **state)
{
    static const char good[] = "{" HEADER ",\"token\":\"abc.12\"}";
    static const char *const bad[] = {"{}", "{\"token\":\"\"}", "{\"token\":\"a\\r\\nHost: x\"}",
                                      "{\"token\":7}"};
    char token[STW_ETCD_TOKEN_MAX] = "old";
    (void)state;
    for (size_t i = 0; i < STW_COUNT(bad); i++)
        assert_int_equal(stw_etcd_read_token(bad[i], strlen(bad[i]), token, NULL), -1);
    assert_string_equal(token, "old");
    assert_int_equal(stw_etcd_read_token(good, strlen(good), token, NULL), 0);
    assert_string_equal(token, "abc.12");
}

static void test_revision_is_read(void **state)
{
    static const char good[] = "{\"header\":{\"revision\":\"44\"}}";
    uint64_t revision = 1;
    (void)state;
    assert_int_equal(stw_etcd_read_revision("{}", 2, &revision, NULL), -1);
    assert_int_equal(revision, 1);
    assert_int_equal(stw_etcd_read_revision(good, strlen(good), &revision, NULL), 0);
    assert_int_equal(revision, 44);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_member_status_is_read),
        cmocka_unit_test(test_downgrade_info_is_read),
        cmocka_unit_test(test_member_versions_are_read),
        cmocka_unit_test(test_malformed_status_is_refused),
        cmocka_unit_test(test_member_list_is_read),
        cmocka_unit_test(test_malformed_member_list_is_refused),
        cmocka_unit_test(test_member_list_with_too_many_values_is_refused),
        cmocka_unit_test(test_added_member_id_is_read),
        cmocka_unit_test(test_alarms_are_read),
        cmocka_unit_test(test_token_is_read_and_validated),
        cmocka_unit_test(test_revision_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
