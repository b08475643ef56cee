/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/mysql/mysql_priv.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct stw_account bob = {.user = "b`ob",
                                       .ns = "shop",
                                       .owner = "shop/b'ob",
                                       .owner_uid = "u-1",
                                       .cluster = "c-1",
                                       .max_user_connections = 3};
static const struct stw_facts maria = {.mariadb = true, .number = 101119};
static const struct stw_facts old = {.number = 50744, .native_default = true};
static const struct stw_facts eight = {.number = 80036, .no_backslash = true};

static void wrote(struct stw_script *s, size_t count, const char *last)
{
    assert_true(stw_script_complete(s));
    assert_int_equal(s->count, count);
    assert_string_equal(stw_buf_str(&s->items[count - 1].text), last);
}

static void test_mysql_account_is_created(void **state)
{
    static const struct stw_login l = {.host = "%"};
    struct stw_verifier v = {.text = STW_BUF_INIT(100)}, plain = {.text = STW_BUF_INIT(100)};
    stw_autoscript struct stw_script s = {0};
#define LIMITS                                                                                     \
    " REQUIRE NONE WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 "                            \
    "MAX_CONNECTIONS_PER_HOUR 0 MAX_USER_CONNECTIONS 3"
    (void)state;
    stw_buf_adds(&v.text, "*AB");
    stw_buf_adds(&plain.text, "p'\\");
    plain.plain = true;
    stw_mysql_create(&maria, &bob, &l, &v, &s);
    wrote(&s, 1,
          "CREATE USER `b``ob`@`%` IDENTIFIED VIA `mysql_native_password` USING '*AB'" LIMITS);
    stw_mysql_create(&old, &bob, &l, &v, &s);
    wrote(&s, 2, "CREATE USER `b``ob`@`%` IDENTIFIED WITH `mysql_native_password` AS '*AB'" LIMITS);
    stw_mysql_create(&eight, &bob, &l, &v, &s);
    wrote(&s, 3, "CREATE USER `b``ob`@`%` IDENTIFIED WITH `caching_sha2_password` AS '*AB'" LIMITS);
    stw_mysql_create(&eight, &bob, &l, &plain, &s);
    wrote(&s, 4, "CREATE USER `b``ob`@`%` IDENTIFIED BY 'p''\\'" LIMITS);
    stw_mysql_alter(&maria, &bob, &l, &plain, false, &s);
    wrote(&s, 5, "ALTER USER `b``ob`@`%` IDENTIFIED BY 'p''\\\\'");
    stw_mysql_alter(&maria, &bob, &l, NULL, true, &s);
    wrote(&s, 6, "ALTER USER `b``ob`@`%`" LIMITS " ACCOUNT UNLOCK");
    static const struct stw_login ed = {.host = "%", .plugin = "ed25519"};
    struct stw_account known = bob;
    known.password = (struct stw_sql_secret){"secret", 6};
    stw_mysql_alter(&maria, &known, &ed, &v, false, &s);
    wrote(&s, 7,
          "ALTER USER `b``ob`@`%` IDENTIFIED VIA `ed25519` USING "
          "'ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY'");
    stw_mysql_alter(&maria, &known, &ed, &plain, false, &s);
    wrote(&s, 8, "ALTER USER `b``ob`@`%` IDENTIFIED VIA `ed25519` USING PASSWORD('p''\\\\')");
    static const struct stw_login keeps = {.host = "%", .keep_old = true};
    stw_mysql_alter(&eight, &bob, &keeps, &v, true, &s);
    wrote(&s, 9,
          "ALTER USER `b``ob`@`%` IDENTIFIED WITH `caching_sha2_password` AS '*AB' RETAIN CURRENT "
          "PASSWORD" LIMITS " ACCOUNT UNLOCK");
    stw_mysql_alter(&eight, &bob, &keeps, NULL, true, &s);
    wrote(&s, 10, "ALTER USER `b``ob`@`%`" LIMITS " ACCOUNT UNLOCK");
    stw_mysql_discard(&bob, &keeps, &s);
    wrote(&s, 11, "ALTER USER `b``ob`@`%` DISCARD OLD PASSWORD");
    struct stw_account iam = bob;
    iam.iam = true;
    stw_mysql_create(&eight, &iam, &l, &v, &s);
    wrote(&s, 12,
          "CREATE USER `b``ob`@`%` IDENTIFIED WITH AWSAuthenticationPlugin AS 'RDS'" LIMITS);
    stw_mysql_alter(&maria, &iam, &l, &v, false, &s);
    wrote(&s, 13, "ALTER USER `b``ob`@`%` IDENTIFIED WITH AWSAuthenticationPlugin AS 'RDS'");
    stw_buf_done(&v.text);
    stw_buf_done(&plain.text);
}

/* The plugin of spec.authPlugin is named, and quoted, whether the verifier or the password is sent. */
static void test_mysql_auth_plugin_is_named_and_quoted(void **state)
{
    static const struct stw_login new = {.host = "%"}, ed = {.host = "%", .plugin = "ed25519"};
    static const struct stw_login parsec = {.host = "%", .plugin = "parsec"};
    struct stw_verifier v = {.text = STW_BUF_INIT(100)}, plain = {.text = STW_BUF_INIT(100)};
    struct stw_account a = bob;
    stw_autoscript struct stw_script s = {0};
    (void)state;
    stw_buf_adds(&v.text, "*AB");
    stw_buf_adds(&plain.text, "p'");
    plain.plain = true;
    a.auth_plugin = "sha256_password";
    stw_mysql_create(&eight, &a, &new, &v, &s);
    wrote(&s, 1, "CREATE USER `b``ob`@`%` IDENTIFIED WITH `sha256_password` AS '*AB'" LIMITS);
    stw_mysql_alter(&eight, &a, &new, &plain, false, &s);
    wrote(&s, 2, "ALTER USER `b``ob`@`%` IDENTIFIED WITH `sha256_password` BY 'p'''");
    a.auth_plugin = "mysql_native_password";
    stw_mysql_alter(&maria, &a, &ed, &v, false, &s);
    wrote(&s, 3, "ALTER USER `b``ob`@`%` IDENTIFIED VIA `mysql_native_password` USING '*AB'");
    stw_mysql_alter(&maria, &a, &ed, &plain, false, &s);
    wrote(&s, 4,
          "ALTER USER `b``ob`@`%` IDENTIFIED VIA `mysql_native_password` USING PASSWORD('p''')");
    a.auth_plugin = "no`t";
    stw_mysql_alter(&maria, &a, &ed, &v, false, &s);
    wrote(&s, 5, "ALTER USER `b``ob`@`%` IDENTIFIED VIA `no``t` USING '*AB'");
    a.auth_plugin = NULL; /* it keeps its own */
    stw_mysql_alter(&maria, &a, &parsec, &plain, false, &s);
    wrote(&s, 6, "ALTER USER `b``ob`@`%` IDENTIFIED VIA `parsec` USING PASSWORD('p''')");
    assert_string_equal(stw_mysql_plugin(&eight, &a, &parsec), "caching_sha2_password");
    stw_buf_done(&v.text);
    stw_buf_done(&plain.text);
}

/* The sessions end afterwards, those at all hosts; of a host that is removed, in the same script. */
static void test_mysql_account_is_locked_and_dropped(void **state)
{
    static const struct stw_login l = {.exists = true, .wanted = true, .host = "10.%"};
    static const struct stw_login removed = {.exists = true, .host = "%"}, gone = {.host = "%"};
    static const struct stw_seen seen = {0};
    stw_autoscript struct stw_script s = {0};
    (void)state;
    stw_mysql_lock(&eight, &bob, &l, &s);
    wrote(&s, 1, "ALTER USER `b``ob`@`10.%` ACCOUNT LOCK");
    stw_mysql_lock(&maria, &bob, &l, &s);
    wrote(&s, 2, "ALTER USER `b``ob`@`10.%` ACCOUNT LOCK");
    stw_mysql_drop(&maria, &bob, &l, &seen, "admin", &s);
    wrote(&s, 3, "DROP USER `b``ob`@`10.%`");
    stw_mysql_drop(&maria, &bob, &gone, &seen, "admin", &s);
    stw_mysql_drop(&eight, &bob, &removed, &seen, "admin", &s);
    wrote(&s, 4, "DROP USER `b``ob`@`%`");
    stw_mysql_drop(&maria, &bob, &removed, &seen, "admin", &s);
    wrote(&s, 6, "KILL CONNECTION USER `b``ob`@`%`");
    assert_true(s.items[5].may_fail);
}

/* D10: a script with a statement that lacks its password is not sent. */
static void test_mysql_script_without_password_is_not_sent(void **state)
{
    static const struct stw_login l = {.host = "%"};
    struct stw_verifier v = {.text = STW_BUF_INIT(100)};
    (void)state;
    for (int i = 0; i < 4; i++) {
        stw_autoscript struct stw_script s = {0};
        v.plain = i & 1;
        if (i < 2)
            stw_mysql_create(&maria, &bob, &l, &v, &s);
        else
            stw_mysql_alter(&maria, &bob, &l, &v, false, &s);
        assert_false(stw_script_complete(&s));
    }
}

static void test_mysql_marks_are_written(void **state)
{
    struct stw_login l = {.host = "%"};
    struct stw_rights none = {0};
    stw_autoscript struct stw_script s = {0};
    (void)state;
    stw_mysql_mark(&maria, &bob, &l, STW_MARK_CREATING, "f00", &none, &s);
    wrote(&s, 1,
          "INSERT INTO steward.accounts (user, host, owner, owner_uid, state, made, rights, "
          "cluster) SELECT 'b`ob', '%', 'shop/b''ob', 'u-1', 'creating', 'f00', '[]', 'c-1' FROM "
          "DUAL WHERE NOT "
          "EXISTS (SELECT 1 FROM steward.accounts AS others WHERE others.user='b`ob' AND "
          "(others.owner_uid<>'u-1' OR others.cluster NOT IN ('','c-1')) AND "
          "(others.owner<>'shop/b''ob' OR others.cluster<>'c-1')) AND (EXISTS (SELECT 1 FROM "
          "steward.accounts AS own WHERE own.user='b`ob') OR NOT EXISTS (SELECT 1 FROM "
          "steward.dropped WHERE dropped.user='b`ob' AND NOT (dropped.namespace='shop' AND "
          "dropped.cluster='c-1')))");
    assert_true(s.items[0].must_match);
    l.mark_written = true;
    stw_mysql_mark(&maria, &bob, &l, STW_MARK_OWNED, "f00", &none, &s);
    wrote(&s, 2,
          "UPDATE steward.accounts SET owner='shop/b''ob', owner_uid='u-1', cluster='c-1', "
          "state='owned', made='', rights='[]' WHERE user='b`ob' AND host='%' AND owner_uid='u-1' "
          "AND cluster='c-1'");
    assert_true(s.items[1].must_match);
    /* Taken over: found by the UID and the cluster that were seen, later by ours. */
    l = (struct stw_login){.host = "%",
                           .mark = {.state = STW_MARK_OWNED, .uid = "former", .cluster = "c-0"}};
    stw_mysql_mark(&maria, &bob, &l, STW_MARK_OWNED, "", &none, &s);
    assert_non_null(strstr(s.items[2].text.data, "owner_uid='u-1', cluster='c-1', state"));
    assert_non_null(strstr(s.items[2].text.data, "AND owner_uid='former' AND cluster='c-0'"));
}

static void test_mysql_rights_are_granted_and_revoked(void **state)
{
    static const struct stw_right list[] = {
        {.level = STW_LEVEL_GLOBAL, .privilege = "PROCESS"},
        {.level = STW_LEVEL_DATABASE, .database = "a\\_b", .privilege = "SELECT"},
        {.level = STW_LEVEL_DATABASE, .database = "a\\_b", .privilege = "INSERT"},
        {.level = STW_LEVEL_TABLE, .database = "a", .name = "t`", .privilege = "GRANT OPTION"},
        {.level = STW_LEVEL_COLUMN,
         .database = "a",
         .name = "t",
         .column = "c",
         .privilege = "UPDATE"},
        {.level = STW_LEVEL_ROUTINE,
         .database = "a",
         .name = "f",
         .column = "FUNCTION",
         .privilege = "EXECUTE"},
        {.level = STW_LEVEL_ROLE, .name = "r", .privilege = "MEMBER"},
    };
    static const char *const expected[] = {
        "REVOKE PROCESS ON *.* FROM `b``ob`@`%`",
        "REVOKE INSERT, SELECT ON `a\\_b`.* FROM `b``ob`@`%`",
        "REVOKE GRANT OPTION ON `a`.`t``` FROM `b``ob`@`%`",
        "REVOKE UPDATE (`c`) ON `a`.`t` FROM `b``ob`@`%`",
        "REVOKE EXECUTE ON FUNCTION `a`.`f` FROM `b``ob`@`%`",
        "REVOKE `r` FROM `b``ob`@`%`",
        "GRANT PROCESS ON *.* TO `b``ob`@`%`",
    };
    static const struct stw_login l = {.host = "%"};
    struct stw_grants_plan p = {0};
    stw_autoscript struct stw_script s = {0};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(list); i++)
        stw_rights_add(&p.take, &list[i]);
    stw_rights_sort(&p.take);
    stw_rights_add(&p.give, &list[0]);
    stw_mysql_rights(&maria, &bob, &l, &(struct stw_rights){0}, &p, &s);
    assert_int_equal(s.count, STW_COUNT(expected));
    for (size_t i = 0; i < s.count; i++)
        assert_string_equal(stw_buf_str(&s.items[i].text), expected[i]);
    stw_grants_plan_done(&p);
}

static void test_mysql_names_are_checked(void **state)
{
    static const char *const percent[] = {"%", NULL};
    static const struct {
        const char *user;
        int result;
    } rows[] = {{"bob", 0},
                {"", -1},
                {"bob ", -1},
                {"\xf0\x9f\x98\x80", -1},
                {"\xff", -1},
                {"12345678901234567890123456789012", 0},
                {"123456789012345678901234567890123", -1}};
    struct stw_error err;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_account a = {.user = rows[i].user, .hosts = percent};
        assert_int_equal(stw_mysql_check(&eight, &a, &err), rows[i].result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mysql_account_is_created),
        cmocka_unit_test(test_mysql_auth_plugin_is_named_and_quoted),
        cmocka_unit_test(test_mysql_account_is_locked_and_dropped),
        cmocka_unit_test(test_mysql_script_without_password_is_not_sent),
        cmocka_unit_test(test_mysql_marks_are_written),
        cmocka_unit_test(test_mysql_rights_are_granted_and_revoked),
        cmocka_unit_test(test_mysql_names_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
