/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/mark.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char good[] =
    "{\"steward\":1,\"cluster\":\"c-1\",\"owner\":\"shop/app\",\"uid\":\"u-1\",\"rights\":[[\"d\","
    "null,null,[\"CONNECT\"],[]],[\"d\",\"s\",\"t\",[\"SELECT\",\"UPDATE\"],[\"UPDATE\"]]],"
    "\"comment\":"
    "\"by \\\"hand\\\"\"}";

static void test_mark_is_written_and_read_back(void **state)
{
    struct stw_mark m = {0};
    stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
    (void)state;
    assert_int_equal(stw_mark_parse(good, strlen(good), &m), 0);
    assert_int_equal(m.state, STW_MARK_OWNED);
    assert_string_equal(m.owner, "shop/app");
    assert_string_equal(m.comment, "by \"hand\"");
    assert_int_equal(m.rights.count, 4);
    assert_string_equal(m.cluster, "c-1");
    struct stw_mark_id id = {.cluster = m.cluster, .owner = m.owner, .uid = m.uid};
    stw_mark_json(&m, &id, false, &m.rights, &out);
    assert_string_equal(stw_buf_str(&out), good);
    stw_mark_done(&m);
}

static void test_mark_owner_is_recognised(void **state)
{
    static const struct {
        const char *mark;
        enum stw_mark_whose whose;
    } cases[] = {
        {"", STW_MARK_NOBODYS},
        {"\"cluster\":\"c-1\",\"owner\":\"shop/app\",\"uid\":\"u-1\"", STW_MARK_OURS},
        {"\"owner\":\"shop/app\",\"uid\":\"u-1\"", STW_MARK_OURS},
        {"\"cluster\":\"c-2\",\"owner\":\"shop/app\",\"uid\":\"u-1\"", STW_MARK_ELSEWHERE},
        {"\"cluster\":\"c-1\",\"owner\":\"shop/app\",\"uid\":\"u-2\"", STW_MARK_FORMER},
        {"\"owner\":\"shop/app\",\"uid\":\"u-2\"", STW_MARK_ELSEWHERE},
        {"\"cluster\":\"c-2\",\"owner\":\"shop/app\",\"uid\":\"u-2\"", STW_MARK_ELSEWHERE},
        {"\"cluster\":\"c-1\",\"owner\":\"shop/new\",\"uid\":\"u-1\"", STW_MARK_OURS},
        {"\"cluster\":\"c-1\",\"owner\":\"shop/b\",\"uid\":\"u-2\"", STW_MARK_OTHERS},
        {"\"cluster\":\"c-2\",\"owner\":\"shop/b\",\"uid\":\"u-1\"", STW_MARK_OTHERS},
        {"\"owner\":\"shop/b\",\"uid\":\"u-2\"", STW_MARK_OTHERS},
    };
    const struct stw_mark_id id = {.cluster = "c-1", .owner = "shop/app", .uid = "u-1"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_mark m = {0};
        char text[256] = "";
        if (*cases[i].mark)
            stw_format(text, sizeof(text), "{\"steward\":1,%s,\"rights\":[]}", cases[i].mark);
        assert_int_equal(stw_mark_parse(text, strlen(text), &m), 0);
        if (stw_mark_whose(&m, &id) != cases[i].whose)
            fail_msg("%s", text);
        stw_mark_done(&m);
    }
    assert_true(stw_mark_id_complete(&id));
    assert_false(stw_mark_id_complete(&(struct stw_mark_id){.owner = "shop/app", .uid = "u-1"}));
    assert_false(stw_mark_id_complete(
        &(struct stw_mark_id){.cluster = "", .owner = "shop/app", .uid = "u-1"}));
}

/* A comment written by a person is kept, and restored when the account is released. */
static void test_foreign_comment_is_kept_and_restored(void **state)
{
    static const char *const texts[] = {"made by hand", "{\"note\":\"json too\"}", "{broken",
                                        "[1]"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        struct stw_mark m = {0};
        assert_int_equal(stw_mark_parse(texts[i], strlen(texts[i]), &m), 0);
        assert_int_equal(m.state, STW_MARK_NONE);
        assert_string_equal(m.comment, texts[i]);
        stw_mark_done(&m);
    }
    struct stw_mark m = {0};
    assert_int_equal(stw_mark_parse("", 0, &m), 0);
    assert_null(m.comment);
    stw_mark_done(&m);
}

/* Our marks, but not as we write them: such an account must not be touched. */
static void test_unreadable_mark_is_not_touched(void **state)
{
    static const char *const texts[] = {
        "{\"steward\":2,\"owner\":\"a/b\",\"uid\":\"u\",\"rights\":[]}",
        "{\"steward\":1,\"uid\":\"u\",\"rights\":[]}",
        "{\"steward\":1,\"owner\":\"a/b\",\"rights\":[]}",
        "{\"steward\":1,\"owner\":\"a/b\",\"uid\":\"u\"}",
        "{\"steward\":1,\"owner\":\"a/b\",\"uid\":\"u\",\"rights\":{}}",
        "{\"steward\":1,\"cluster\":5,\"owner\":\"a/b\",\"uid\":\"u\",\"rights\":[]}",
        "{\"steward\":1,\"owner\":\"a/b\",\"uid\":\"u\",\"rights\":[[]]}",
        "{\"steward\":1,\"owner\":\"a/b\",\"uid\":\"u\",\"rights\":[[\"\",null,null,[\"S\"],[]]]}",
        "{\"steward\":1,\"owner\":\"a/b\",\"uid\":\"u\",\"rights\":[[\"d\",null,null,[\"\"],[]]]}",
        "{\"steward\":1,\"owner\":\"a/b\",\"uid\":\"u\",\"rights\":[[\"d\",1,null,[\"S\"],[]]]}",
        "{\"steward\":1,\"owner\":\"a/b\",\"uid\":\"u\",\"rights\":[[\"d\",null,null,[\"S\"]]]}",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        struct stw_mark m = {0};
        if (stw_mark_parse(texts[i], strlen(texts[i]), &m) != -1)
            fail_msg("%s", texts[i]);
        stw_mark_done(&m);
    }
}

static void test_mark_rights_are_read_as_rows(void **state)
{
    struct stw_mark m = {0};
    static const char text[] = "[[\"*\",null,null,[\"PROCESS\"],[]],[\"a\",null,\"t\",[\"S\"],[]],"
                               "[\"a\",\"s\",\"t\",[\"S\"],[],\"column\",\"c\"],"
                               "[\"a\",null,\"f\",[\"EXECUTE\"],[],\"routine\",\"FUNCTION\"],"
                               "[null,null,\"r\",[\"MEMBER\"],[],\"role\",null],"
                               "[null,null,\"r\",[\"MEMBER\"],[],\"role\",\"%\"]]";
    static const char *const bad[] = {"[[null,null,\"r\",[\"MEMBER\"],[]]]",
                                      "[[null,null,null,[\"MEMBER\"],[],\"role\"]]",
                                      "[[\"d\",null,\"r\",[\"MEMBER\"],[],\"role\"]]",
                                      "[[\"d\",null,\"r\",[\"MEMBER\"],[],\"other\"]]",
                                      "[[\"d\",null,\"t\",[\"S\"],[],\"column\"]]",
                                      "[[\"d\",null,null,[\"S\"],[],\"column\",\"c\"]]",
                                      "[[null,null,\"f\",[\"S\"],[],\"routine\",\"FUNCTION\"]]",
                                      "[[\"d\",null,\"t\",[\"S\"],[],\"table\",\"c\"]]",
                                      "[[null,null,\"r\",[\"MEMBER\"],[],\"role\",5]]"};
    stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
    (void)state;
    assert_int_equal(stw_mark_parse_rights(text, strlen(text), &m), 0);
    assert_int_equal(m.rights.items[0].level, STW_LEVEL_GLOBAL);
    assert_int_equal(m.rights.items[1].level, STW_LEVEL_TABLE);
    assert_int_equal(m.rights.items[2].level, STW_LEVEL_COLUMN);
    assert_int_equal(m.rights.items[3].level, STW_LEVEL_ROUTINE);
    assert_int_equal(m.rights.items[4].level, STW_LEVEL_ROLE);
    assert_string_equal(m.rights.items[5].column, "%");
    stw_rights_json(&m.rights, &out);
    assert_string_equal(stw_buf_str(&out), text);
    assert_int_equal(stw_mark_parse_rights("{}", 2, &m), -1);
    assert_int_equal(stw_mark_parse_rights("", 0, &m), -1);
    stw_mark_done(&m);
    for (size_t i = 0; i < STW_COUNT(bad); i++) {
        assert_int_equal(stw_mark_parse_rights(bad[i], strlen(bad[i]), &m), -1);
        stw_mark_done(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mark_is_written_and_read_back),
        cmocka_unit_test(test_mark_owner_is_recognised),
        cmocka_unit_test(test_foreign_comment_is_kept_and_restored),
        cmocka_unit_test(test_unreadable_mark_is_not_touched),
        cmocka_unit_test(test_mark_rights_are_read_as_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
