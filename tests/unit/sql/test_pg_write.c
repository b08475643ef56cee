/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct stw_account bob = {
    .user = "b\"ob", .ns = "shop", .owner = "shop/bob", .owner_uid = "u-1", .cluster = "c-1"};
static const struct stw_facts fifteen = {.number = 150018, .superuser = true};

static void wrote(struct stw_script *s, size_t count, const char *last)
{
    assert_true(stw_script_complete(s));
    assert_int_equal(s->count, count);
    assert_string_equal(stw_buf_str(&s->items[count - 1].text), last);
}

static void test_postgresql_role_is_created_and_marked(void **state)
{
    struct stw_login l = {.exists = false};
    struct stw_verifier v = {.text = STW_BUF_INIT(100)};
    struct stw_rights none = {0};
    stw_autoscript struct stw_script s = {0}, bad = {0};
    (void)state;
    stw_pg_create(&fifteen, &bob, &l, &v, &bad); /* D10 */
    assert_false(stw_script_complete(&bad));
    stw_buf_adds(&v.text, "SCRAM$x");
    stw_pg_create(&fifteen, &bob, &l, &v, &s);
    wrote(&s, 1, "CREATE ROLE \"b\"\"ob\" LOGIN CONNECTION LIMIT -1 PASSWORD 'SCRAM$x'");
    stw_pg_mark(&fifteen, &bob, &l, STW_MARK_OWNED, "", &none, &s);
    wrote(&s, 2,
          "COMMENT ON ROLE \"b\"\"ob\" IS "
          "'{\"steward\":1,\"cluster\":\"c-1\",\"owner\":\"shop/bob\",\"uid\":"
          "\"u-1\",\"rights\":[]}'");
    l.exists = true;
    stw_pg_unmark(&fifteen, &bob, &l, &s);
    wrote(&s, 3, "COMMENT ON ROLE \"b\"\"ob\" IS NULL");
    stw_pg_alter(&fifteen, &bob, &l, NULL, true, &s);
    wrote(&s, 4, "ALTER ROLE \"b\"\"ob\" LOGIN CONNECTION LIMIT -1");
    struct stw_account until = bob;
    until.valid_until = "2030-01-31T12:00:00Z";
    stw_pg_alter(&fifteen, &until, &l, NULL, true, &s);
    wrote(&s, 5,
          "ALTER ROLE \"b\"\"ob\" LOGIN CONNECTION LIMIT -1 VALID UNTIL '2030-01-31T12:00:00Z'");
    struct stw_account iam = bob;
    iam.iam = true;
    stw_pg_create(&fifteen, &iam, &l, &v, &s);
    wrote(&s, 6, "CREATE ROLE \"b\"\"ob\" LOGIN CONNECTION LIMIT -1 PASSWORD NULL");
    stw_pg_alter(&fifteen, &iam, &l, &v, false, &s);
    wrote(&s, 7, "ALTER ROLE \"b\"\"ob\" PASSWORD NULL");
    stw_buf_done(&v.text);
}

#define FUTURE "ALTER DEFAULT PRIVILEGES"

/* Revoked on all tables, granted again on the one that keeps it; rights of the server come
 * first. */
static void test_postgresql_rights_are_granted_and_revoked(void **state)
{
    static const struct stw_right all = {.level = STW_LEVEL_TABLE,
                                         .database = "d",
                                         .schema = "s",
                                         .name = "*",
                                         .privilege = "SELECT"};
    static const struct stw_right one = {.level = STW_LEVEL_TABLE,
                                         .database = "d",
                                         .schema = "s",
                                         .name = "t",
                                         .privilege = "SELECT"};
    static const struct stw_right give[] = {
        {.level = STW_LEVEL_DATABASE, .database = "d", .privilege = "CONNECT"},
        {.level = STW_LEVEL_TABLE,
         .database = "e",
         .schema = "s",
         .name = "*",
         .privilege = "USAGE"},
        {.level = STW_LEVEL_TABLE,
         .database = "e",
         .schema = "s",
         .name = "*",
         .privilege = "INSERT",
         .option = true},
    };
    static const struct {
        const char *database, *text;
    } expected[] = {
        {NULL, "GRANT CONNECT ON DATABASE \"d\" TO \"b\"\"ob\""},
        {"d", "REVOKE SELECT ON ALL TABLES IN SCHEMA \"s\" FROM \"b\"\"ob\" CASCADE"},
        {"d", FUTURE},
        {"d", "GRANT SELECT ON TABLE \"s\".\"t\" TO \"b\"\"ob\""},
        {"e", "GRANT INSERT ON ALL TABLES IN SCHEMA \"s\" TO \"b\"\"ob\" WITH GRANT OPTION"},
        {"e", FUTURE},
        {"e", "GRANT USAGE ON ALL SEQUENCES IN SCHEMA \"s\" TO \"b\"\"ob\""},
        {"e", FUTURE},
    };
    struct stw_grants_plan p = {0};
    stw_autorights struct stw_rights want = {0};
    stw_autoscript struct stw_script s = {0};
    (void)state;
    stw_rights_add(&p.take, &all);
    stw_rights_add(&want, &one);
    for (size_t i = 0; i < STW_COUNT(give); i++)
        stw_rights_add(&p.give, &give[i]);
    stw_rights_sort(&p.take);
    stw_rights_sort(&p.give);
    stw_rights_sort(&want);
    stw_pg_rights(&fifteen, &bob, &(struct stw_login){0}, &want, &p, &s);
    assert_int_equal(s.count, STW_COUNT(expected));
    for (size_t i = 0; i < s.count; i++) {
        if (stw_streq(expected[i].text, FUTURE))
            assert_non_null(strstr(stw_buf_str(&s.items[i].text), FUTURE));
        else
            assert_string_equal(stw_buf_str(&s.items[i].text), expected[i].text);
        if (expected[i].database)
            assert_string_equal(s.items[i].database, expected[i].database);
        else
            assert_null(s.items[i].database);
    }
    stw_grants_plan_done(&p);
}

static void expand_fails(struct stw_grant g, const char *expected)
{
    struct stw_error err = {0};
    struct stw_account a = {.grants = &g, .grant_count = 1};
    stw_autorights struct stw_rights ret = {0};
    assert_int_equal(stw_pg_expand(&fifteen, &a, &(struct stw_seen){0}, &ret, &err), -1);
    assert_string_equal(err.text, expected);
}

#define P(...)                                                                                     \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void test_postgresql_grants_are_expanded(void **state)
{
    struct stw_error err;
    struct stw_grant g = {"d", NULL, "t", P("ALL"), false};
    struct stw_account a = {.grants = &g, .grant_count = 1};
    stw_autorights struct stw_rights ret = {0};
    stw_autobuf struct stw_buf json = STW_BUF_INIT(4096);
    (void)state;
    assert_int_equal(stw_pg_expand(&fifteen, &a, &(struct stw_seen){0}, &ret, &err), 0);
    stw_rights_json(&ret, &json);
    assert_string_equal(stw_buf_str(&json),
                        "[[\"d\",\"public\",\"t\",[\"DELETE\",\"INSERT\",\"REFERENCES\",\"SELECT\","
                        "\"TRIGGER\",\"TRUNCATE\",\"UPDATE\"],[]]]");
    expand_fails((struct stw_grant){"d", NULL, NULL, P("SELECT"), false},
                 "SELECT is not a right on a database of PostgreSQL");
    expand_fails((struct stw_grant){"d", "s", NULL, P("CONNECT"), false},
                 "CONNECT is not a right on a schema of PostgreSQL");
    expand_fails((struct stw_grant){"d", "s", "t", P("x; DROP"), false},
                 "x; DROP is not a right on a table or sequence of PostgreSQL");
    expand_fails((struct stw_grant){"d", "s", "t", P("MAINTAIN"), false},
                 "MAINTAIN needs PostgreSQL 17 or newer");
}

static void test_postgresql_role_is_dropped(void **state)
{
    char first[] = "one", *databases[] = {first};
    const struct stw_seen seen = {
        .databases = databases, .database_count = 1, .owns = true, .heir = "he\"ir"};
    static const struct stw_login l = {.exists = true};
    struct stw_account a = bob;
    stw_autoscript struct stw_script s = {0};
    (void)state;
    a.reassign_owned_to = "he\"ir";
    stw_pg_drop(&(struct stw_facts){.number = 150018}, &a, &l, &seen, "admin", &s);
    wrote(&s, 5, "DROP ROLE \"b\"\"ob\"");
    assert_string_equal(s.items[0].database, "one");
    const char *reassign = stw_buf_str(&s.items[0].text);
    assert_ptr_equal(strstr(reassign, "DO 'DECLARE me name := current_user; "), reassign);
    const char *lent = strstr(reassign, "GRANT %I TO %I'', ''b\"ob'', me)");
    const char *run = strstr(reassign, "REASSIGN OWNED BY \"b\"\"ob\" TO \"he\"\"ir\"");
    const char *ended = strstr(reassign, "REVOKE %I FROM %I'', ''b\"ob'', me)");
    assert_true(lent && run && ended && lent < run && run < ended);
    assert_non_null(strstr(stw_buf_str(&s.items[1].text), "DROP OWNED BY \"b\"\"ob\""));
}

/* Never reassigned to the admin, but to a role of steward's, which is created if it is missing. */
static void test_postgresql_objects_are_reassigned_to_the_heir(void **state)
{
    struct stw_seen seen = {.owns = true, .heir = "steward_heir_shop"};
    static const struct stw_login l = {.exists = true};
    stw_autoscript struct stw_script s = {0}, nothing = {0};
    (void)state;
    stw_pg_drop(&(struct stw_facts){.superuser = true}, &bob, &l, &seen, "admin", &s);
    wrote(&s, 5, "DROP ROLE \"b\"\"ob\"");
    assert_string_equal(stw_buf_str(&s.items[0].text),
                        "CREATE ROLE \"steward_heir_shop\" NOLOGIN NOSUPERUSER NOINHERIT "
                        "NOCREATEDB NOCREATEROLE NOREPLICATION");
    assert_true(s.items[0].may_fail && s.items[1].may_fail);
    assert_string_equal(stw_buf_str(&s.items[2].text),
                        "REASSIGN OWNED BY \"b\"\"ob\" TO \"steward_heir_shop\"");
    seen.owns = false;
    stw_pg_drop(&(struct stw_facts){.superuser = true}, &bob, &l, &seen, "admin", &nothing);
    wrote(&nothing, 2, "DROP ROLE \"b\"\"ob\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_postgresql_role_is_created_and_marked),
        cmocka_unit_test(test_postgresql_rights_are_granted_and_revoked),
        cmocka_unit_test(test_postgresql_grants_are_expanded),
        cmocka_unit_test(test_postgresql_role_is_dropped),
        cmocka_unit_test(test_postgresql_objects_are_reassigned_to_the_heir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
