/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "kinds/databaseuser/account.h"

#include "base/base64.h"
#include "base/util.h"
#include "controller/secret_watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Takes `value` as a Secret stores it. */
static void take(const char *value, size_t len, bool trim, struct dbu_secret *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1 << 20);
    stw_autojson struct stw_json_doc doc = {0};
    stw_buf_adds(&text, "{\"metadata\":{\"resourceVersion\":\"12\"},\"data\":{\"other\":\"eA==\","
                        "\"a.b-c_d\":\"");
    stw_base64_encode(value, len, &text);
    stw_buf_adds(&text, "\"}}");
    assert_int_equal(stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL), 0);
    *ret = (struct dbu_secret){0};
    dbu_secret_take(stw_json_root(&doc), "a.b-c_d", trim, ret);
}

static void test_password_is_read_with_or_without_its_newline(void **state)
{
    static const struct {
        const char *value;
        bool trim;
        enum dbu_secret_state state;
        const char *password;
        bool newline;
    } rows[] = {
        {"pa'ss\"\\\xc3\xa4", false, DBU_SECRET_FOUND, "pa'ss\"\\\xc3\xa4", false},
        {"pass\n", false, DBU_SECRET_FOUND, "pass\n", true},
        {"pass\n", true, DBU_SECRET_FOUND, "pass", false},
        {"pass\r\n", false, DBU_SECRET_FOUND, "pass\r\n", true},
        {"pass\r\n", true, DBU_SECRET_FOUND, "pass", false},
        {"pass\n\n", true, DBU_SECRET_FOUND, "pass\n", false}, /* only one */
        {"pass\r", true, DBU_SECRET_FOUND, "pass\r", false},
        {"\npass", true, DBU_SECRET_FOUND, "\npass", false},
        {"", false, DBU_SECRET_EMPTY, NULL, false},
        {"\n", true, DBU_SECRET_EMPTY, NULL, false},
        {"\n", false, DBU_SECRET_EMPTY, NULL, false}, /* never intended */
        {"\r\n", false, DBU_SECRET_EMPTY, NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct dbu_secret s;
        take(rows[i].value, strlen(rows[i].value), rows[i].trim, &s);
        assert_int_equal(s.state, rows[i].state);
        assert_true(s.value.secret);
        assert_string_equal(s.resource_version, "12");
        if (rows[i].password) {
            assert_int_equal(s.value.len, strlen(rows[i].password));
            assert_string_equal(s.value.data, rows[i].password); /* nothing is left after it */
            assert_int_equal(s.newline, rows[i].newline);
        }
        dbu_secret_done(&s);
    }
}

static void test_secret_without_a_value_says_why(void **state)
{
    static const struct {
        const char *secret;
        enum dbu_secret_state state;
    } rows[] = {
        {"{\"metadata\":{},\"data\":{\"x\":\"eA==\"}}", DBU_SECRET_NO_KEY},
        {"{\"metadata\":{}}", DBU_SECRET_NO_KEY},
        {"{\"metadata\":{},\"data\":{\"password\":null}}", DBU_SECRET_NO_KEY},
        {"{\"metadata\":{},\"data\":{\"password\":\"\"}}", DBU_SECRET_EMPTY},
        {"{\"metadata\":{},\"data\":{\"password\":\"*\"}}", DBU_SECRET_ERROR},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autojson struct stw_json_doc doc = {0};
        struct dbu_secret s = {0};
        assert_int_equal(stw_json_scan(&doc, rows[i].secret, strlen(rows[i].secret), NULL), 0);
        dbu_secret_take(stw_json_root(&doc), "password", false, &s);
        assert_int_equal(s.state, rows[i].state);
        dbu_secret_done(&s);
    }
}

/* The cache of all Secrets of a cluster has only their versions. */
static void test_cache_of_secrets_has_only_versions(void **state)
{
    static const char secret[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
                                 "\"resourceVersion\":\"4711\",\"labels\":{\"l\":\"v\"}}}";
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1024);
    (void)state;
    assert_true(stw_watch_secrets.metadata_only);
    assert_int_equal(stw_json_scan(&doc, secret, strlen(secret), NULL), 0);
    stw_watch_secrets.project(NULL, stw_json_root(&doc), &out);
    assert_string_equal(stw_buf_str(&out), "[\"4711\"]");
}

/* The key is not a published test vector; the value was computed with openssl dgst -mac HMAC. */
static void test_fingerprint_depends_on_key_object_and_password(void **state)
{
    unsigned char key[DBU_FINGERPRINT_KEY_BYTES], other[DBU_FINGERPRINT_KEY_BYTES] = {1};
    char a[DBU_FINGERPRINT_LEN], b[DBU_FINGERPRINT_LEN];
    (void)state;
    for (size_t i = 0; i < sizeof(key); i++)
        key[i] = (unsigned char)i;
    assert_int_equal(dbu_fingerprint_under(key, "u-1", "s3cret", 6, a), 0);
    assert_string_equal(a, "a363a9f5966743f9347ed2036c5e4be3");
    assert_int_equal(dbu_fingerprint_under(key, "u-1", "s3cret", 6, b), 0);
    assert_string_equal(a, b);
    assert_int_equal(dbu_fingerprint_under(key, "u-1", "s3creT", 6, b), 0);
    assert_string_not_equal(a, b);
    assert_int_equal(dbu_fingerprint_under(key, "u-2", "s3cret", 6, b), 0);
    assert_string_not_equal(a, b);
    assert_int_equal(dbu_fingerprint_under(other, "u-1", "s3cret", 6, b), 0);
    assert_string_not_equal(a, b);
}

/* --- the requested account */

#define FULL_SPEC                                                                                  \
    "{\"user\":\"a'pp\",\"password\":{\"name\":\"app-db\"},\"hosts\":[\"10.%\",\"web\\u00e4\"],"   \
    "\"grants\":[{\"database\":\"shop\",\"privileges\":[\"SELECT\",\"INSERT\"]},"                  \
    "{\"database\":\"*\",\"schema\":\"s\",\"table\":\"t\",\"privileges\":[\"ALL\"],"               \
    "\"grantOption\":true}],\"grantsPolicy\":\"Exact\",\"requireTLS\":\"X509\","                   \
    "\"requireCertificate\":{\"subject\":\"/CN=app\"},"                                            \
    "\"limits\":{\"maxUserConnections\":1,\"maxQueriesPerHour\":2,\"maxUpdatesPerHour\":3,"        \
    "\"maxConnectionsPerHour\":4},\"adoptionPolicy\":\"Adopt\",\"reassignOwnedTo\":\"boss\"}"

static void test_account_has_what_the_spec_says(void **state)
{
    struct fixture f;
    struct dbu_desired w;
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(fixture_init(&f, FULL_SPEC, ""), 0);
    fixture_secret(&f, "s3cret");
    assert_int_equal(dbu_desired_make(&f.d, &w, &err), 0);
    const struct stw_account *a = &w.account;
    assert_string_equal(a->user, "a'pp");
    assert_string_equal(a->hosts[0], "10.%");
    assert_string_equal(a->hosts[1], "web\xc3\xa4");
    assert_null(a->hosts[2]);
    assert_int_equal(a->password.len, 6);
    assert_memory_equal(a->password.data, "s3cret", 6);
    assert_int_equal(a->grant_count, 2);
    assert_string_equal(a->grants[0].database, "shop");
    assert_null(a->grants[0].schema);
    assert_null(a->grants[0].table);
    assert_string_equal(a->grants[0].privileges[1], "INSERT");
    assert_null(a->grants[0].privileges[2]);
    assert_false(a->grants[0].grant_option);
    assert_string_equal(a->grants[1].schema, "s");
    assert_string_equal(a->grants[1].table, "t");
    assert_string_equal(a->grants[1].privileges[0], "ALL");
    assert_true(a->grants[1].grant_option);
    assert_int_equal(a->grants_policy, STW_GRANTS_EXACT);
    assert_int_equal(a->require_tls, STW_ACCOUNT_TLS_X509);
    assert_true(a->certificate.given);
    assert_string_equal(a->certificate.subject, "/CN=app");
    assert_null(a->certificate.issuer);
    assert_int_equal(a->max_user_connections, 1);
    assert_int_equal(a->max_queries_per_hour, 2);
    assert_int_equal(a->max_updates_per_hour, 3);
    assert_int_equal(a->max_connections_per_hour, 4);
    assert_true(a->adopt);
    assert_string_equal(a->reassign_owned_to, "boss");
    assert_string_equal(a->owner, "shop/app");
    assert_string_equal(a->owner_uid, "u-1");
    dbu_desired_done(&w);
    fixture_done(&f);
}

/* On PostgreSQL the role of such logins is one of its roles. */
static void test_account_of_iam_has_no_password(void **state)
{
    struct fixture f;
    struct dbu_desired w;
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(
        fixture_init(&f, "{\"user\":\"app\",\"authentication\":\"IAM\",\"roles\":[\"r\"]}", ""), 0);
    fixture_secret(&f, "s3cret");
    assert_int_equal(dbu_desired_make(&f.d, &w, &err), 0);
    assert_true(w.account.iam);
    assert_null(w.account.password.data);
    assert_string_equal(w.account.roles[0], "r");
    dbu_desired_done(&w);
    f.target.engine = STW_ENGINE_POSTGRESQL;
    assert_int_equal(dbu_desired_make(&f.d, &w, &err), 0);
    assert_string_equal(w.account.roles[0], "rds_iam");
    assert_string_equal(w.account.roles[1], "r");
    assert_null(w.account.roles[2]);
    dbu_desired_done(&w);
    fixture_done(&f);
}

static void test_account_of_a_small_spec_has_the_defaults(void **state)
{
    struct fixture f;
    struct dbu_desired w;
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(fixture_init(&f, "{\"user\":\"app\",\"password\":{\"name\":\"x\"}}", ""), 0);
    assert_int_equal(dbu_desired_make(&f.d, &w, &err), 0);
    assert_string_equal(w.account.hosts[0], "%");
    assert_null(w.account.hosts[1]);
    assert_int_equal(w.account.grant_count, 0);
    assert_int_equal(w.account.grants_policy, STW_GRANTS_MANAGED);
    assert_int_equal(w.account.require_tls, STW_ACCOUNT_TLS_NONE);
    assert_false(w.account.certificate.given);
    assert_null(w.account.password.data); /* D10: never one of length 0 */
    assert_false(w.account.adopt);
    assert_false(w.account.iam);
    dbu_desired_done(&w);
    f.d.object.adopt = true;
    assert_int_equal(dbu_desired_make(&f.d, &w, &err), 0);
    assert_true(w.account.adopt);
    dbu_desired_done(&w);
    fixture_done(&f);
}

/* The account to drop is read from the status, not from the current spec. */
static void test_account_to_drop_is_that_of_the_status(void **state)
{
    static const struct {
        const char *status, *user;
    } rows[] = {
        {"{}", ""},
        {"{\"account\":\"app@%\",\"hosts\":[\"%\"]}", "app"},
        {"{\"account\":\"a@b@10.%\",\"hosts\":[\"10.%\",\"x\"]}", "a@b"},
        {"{\"account\":\"a@b\"}", "a@b"}, /* PostgreSQL */
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char user[DBU_NAME_MAX];
        struct stw_object o = {.status = json_loads(rows[i].status, 0, NULL)};
        dbu_made_user(&o, user);
        assert_string_equal(user, rows[i].user);
        assert_int_equal(dbu_is_created(&o), *user != '\0');
        json_decref(o.status);
    }
}

static void test_account_text_has_a_host_on_mysql_only(void **state)
{
    struct fixture f;
    stw_autobuf struct stw_buf a = STW_BUF_INIT(1024), b = STW_BUF_INIT(1024);
    (void)state;
    assert_int_equal(fixture_init(&f, FULL_SPEC, ""), 0);
    dbu_account_text(&f.d, &a);
    assert_string_equal(stw_buf_str(&a), "a'pp@10.%");
    f.target.engine = STW_ENGINE_POSTGRESQL;
    dbu_account_text(&f.d, &b);
    assert_string_equal(stw_buf_str(&b), "a'pp");
    fixture_done(&f);
}

/* Which Secret was compared with which password of the server's. */
static void test_comparison_is_forgotten_when_the_secret_changes(void **state)
{
    const struct stw_hash one = {1, 2}, two = {3, 4}, stored = {5, 6}, newer = {7, 8}, none = {0};
    struct dbu_compared *c = dbu_compared_create();
    (void)state;
    assert_true(stw_hash_equal(dbu_compared_get(c, "shop/a", one), none));
    dbu_compared_put(c, "shop/a", one, stored);
    dbu_compared_put(c, "shop/b", one, newer);
    assert_true(stw_hash_equal(dbu_compared_get(c, "shop/a", one), stored));
    assert_true(stw_hash_equal(dbu_compared_get(c, "shop/b", one), newer));
    assert_true(stw_hash_equal(dbu_compared_get(c, "shop/a", two), none)); /* the Secret changed */
    dbu_compared_put(c, "shop/a", two, newer);
    assert_true(stw_hash_equal(dbu_compared_get(c, "shop/a", one), none));
    assert_true(stw_hash_equal(dbu_compared_get(c, "shop/a", two), newer));
    dbu_compared_forget(c, "shop/a");
    dbu_compared_forget(c, "shop/elsewhere");
    assert_true(stw_hash_equal(dbu_compared_get(c, "shop/a", two), none));
    dbu_compared_destroy(c);
    dbu_compared_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_password_is_read_with_or_without_its_newline),
        cmocka_unit_test(test_secret_without_a_value_says_why),
        cmocka_unit_test(test_cache_of_secrets_has_only_versions),
        cmocka_unit_test(test_fingerprint_depends_on_key_object_and_password),
        cmocka_unit_test(test_account_has_what_the_spec_says),
        cmocka_unit_test(test_account_of_a_small_spec_has_the_defaults),
        cmocka_unit_test(test_account_of_iam_has_no_password),
        cmocka_unit_test(test_account_to_drop_is_that_of_the_status),
        cmocka_unit_test(test_account_text_has_a_host_on_mysql_only),
        cmocka_unit_test(test_comparison_is_forgotten_when_the_secret_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
