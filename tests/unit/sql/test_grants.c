/* SPDX-License-Identifier: Apache-2.0
 *
 * Rights are written as "SELECT app" here, with one blank between privilege and database, and "+"
 * after a privilege with grant option. */
#include "sql/core/grants.h"
#include "sql/mysql/privileges.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void read_set(const char *text, struct stw_rights *ret)
{
    char *copy = strdup(text), *rest = copy;
    for (char *one; (one = strtok_r(rest, ",", &rest));) {
        char *space = strchr(one, ' ');
        *space = '\0';
        size_t len = strlen(one);
        bool option = one[len - 1] == '+';
        if (option)
            one[len - 1] = '\0';
        stw_rights_add(ret, &(struct stw_right){.level = STW_LEVEL_DATABASE,
                                                .database = space + 1,
                                                .privilege = one,
                                                .option = option});
    }
    free(copy);
    stw_rights_sort(ret);
}

static void is_set(const struct stw_rights *s, const char *expected, size_t row)
{
    stw_autorights struct stw_rights e = {0};
    stw_autobuf struct stw_buf a = STW_BUF_INIT(4096), b = STW_BUF_INIT(4096);
    read_set(expected, &e);
    stw_rights_json(s, &a);
    stw_rights_json(&e, &b);
    if (!stw_rights_equal(s, &e))
        fail_msg("row %zu: %s is not %s", row, stw_buf_str(&a), stw_buf_str(&b));
}

static const struct {
    const char *want, *have, *recorded;
    enum stw_grants_policy policy;
    const char *give, *take, *before, *after;
} rows[] = {
    {"S a,I a", "", "", STW_GRANTS_MANAGED, "S a,I a", "", "S a,I a", "S a,I a"},
    /* settled */
    {"S a", "S a", "S a", STW_GRANTS_MANAGED, "", "", "S a", "S a"},
    /* shrinks: in the mark until it is revoked */
    {"S a", "S a,I a", "S a,I a", STW_GRANTS_MANAGED, "", "I a", "S a,I a", "S a"},
    /* grows: in the mark before it is granted */
    {"S a,I a", "S a", "S a", STW_GRANTS_MANAGED, "I a", "", "S a,I a", "S a,I a"},
    /* both at once */
    {"I b", "S a", "S a", STW_GRANTS_MANAGED, "I b", "S a", "S a,I b", "I b"},
    /* interrupted before the grant: granted; before the mark was written: only forgotten */
    {"S a", "", "S a", STW_GRANTS_MANAGED, "S a", "", "S a", "S a"},
    {"", "", "S a", STW_GRANTS_MANAGED, "", "", "S a", ""},
    /* existing rights are not ours, whether requested or not */
    {"S a", "S a,D a", "", STW_GRANTS_MANAGED, "", "", "", ""},
    {"", "S a", "", STW_GRANTS_MANAGED, "", "", "", ""},
    {"", "S a", "", STW_GRANTS_EXACT, "", "S a", "", ""},
    {"S a", "S a,D a", "S a", STW_GRANTS_EXACT, "", "D a", "S a", "S a"},
    /* Additive revokes nothing, and forgets only rights that are gone */
    {"", "S a,D a", "S a", STW_GRANTS_ADDITIVE, "", "", "S a", "S a"},
    {"I a", "S a", "S a", STW_GRANTS_ADDITIVE, "I a", "", "S a,I a", "S a,I a"},
    {"", "", "S a", STW_GRANTS_ADDITIVE, "", "", "S a", ""},
    /* the option is revoked alone, or together with its right */
    {"S a", "S a,S+ a", "S a,S+ a", STW_GRANTS_MANAGED, "", "S+ a", "S a,S+ a", "S a"},
    {"", "S a,S+ a", "S a,S+ a", STW_GRANTS_MANAGED, "", "S a", "S a,S+ a", ""},
    {"S a,S+ a", "S a", "S a", STW_GRANTS_MANAGED, "S+ a", "", "S a,S+ a", "S a,S+ a"},
};

static void test_grant_plan_has_the_differences(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_grants_plan p = {0};
        stw_autorights struct stw_rights want = {0}, have = {0}, recorded = {0};
        read_set(rows[i].want, &want);
        read_set(rows[i].have, &have);
        read_set(rows[i].recorded, &recorded);
        assert_int_equal(stw_grants_plan_make(&want, &have, &recorded, rows[i].policy, &p), 0);
        is_set(&p.give, rows[i].give, i);
        is_set(&p.take, rows[i].take, i);
        is_set(&p.before, rows[i].before, i);
        is_set(&p.after, rows[i].after, i);
        assert_int_equal(p.write_before, !stw_rights_equal(&p.before, &recorded));
        assert_int_equal(p.write_after, !stw_rights_equal(&p.after, &p.before));
        stw_grants_plan_done(&p);
    }
}

static void expand_is(struct stw_facts k, struct stw_grant g, const char *expected)
{
    struct stw_error err = {0};
    struct stw_account a = {.grants = &g, .grant_count = 1};
    stw_autorights struct stw_rights ret = {0};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
    int r = stw_mysql_expand(&k, &a, NULL, &ret, &err);
    if (r == 0)
        stw_rights_json(&ret, &text);
    else
        stw_buf_adds(&text, err.text);
    assert_string_equal(stw_buf_str(&text), expected);
}

#define P(...)                                                                                     \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static void test_mysql_grants_are_expanded(void **state)
{
    struct stw_facts maria = {.mariadb = true, .number = 101119}, eight = {.number = 80036};
    struct stw_facts folded = {.number = 80036, .fold_names = true, .literal_names = true};
    (void)state;
    expand_is(maria, (struct stw_grant){"a_b%\\", NULL, NULL, P("SELECT"), true},
              "[[\"a\\\\_b\\\\%\\\\\\\\\",null,null,[\"GRANT OPTION\",\"SELECT\"],[]]]");
    expand_is(folded, (struct stw_grant){"A_b", NULL, "*", P("SELECT"), false},
              "[[\"a_b\",null,null,[\"SELECT\"],[]]]");
    expand_is(maria, (struct stw_grant){"a_b", NULL, "T_1", P("UPDATE", "USAGE"), false},
              "[[\"a_b\",null,\"T_1\",[\"UPDATE\"],[]]]");
    expand_is(maria, (struct stw_grant){"*", NULL, NULL, P("BINLOG MONITOR"), false},
              "[[\"*\",null,null,[\"REPLICATION CLIENT\"],[]]]");
    expand_is(eight, (struct stw_grant){"*", NULL, NULL, P("BACKUP_ADMIN"), false},
              "[[\"*\",null,null,[\"BACKUP_ADMIN\"],[]]]");
    expand_is(maria, (struct stw_grant){"*", NULL, NULL, P("BACKUP_ADMIN"), false},
              "BACKUP_ADMIN is not a right on all databases of this server");
    expand_is(maria, (struct stw_grant){"a", NULL, "t", P("EXECUTE"), false},
              "EXECUTE is not a right on a table of this server");
    expand_is(eight, (struct stw_grant){"a", NULL, NULL, P("X ON *.* TO b; --"), false},
              "X ON *.* TO b; -- is not a right on a database of this server");
    expand_is(eight, (struct stw_grant){"a", NULL, "t", P("ALL"), false},
              "[[\"a\",null,\"t\",[\"ALTER\",\"CREATE\",\"CREATE VIEW\",\"DELETE\",\"DROP\","
              "\"INDEX\",\"INSERT\",\"REFERENCES\",\"SELECT\",\"SHOW VIEW\",\"TRIGGER\","
              "\"UPDATE\"],[]]]");
}

/* ALL on a database means the privileges that the server has there, not those that this program
 * knows. */
static void test_mysql_all_expands_to_server_privileges(void **state)
{
    static const char *const columns[] = {
        "Select_priv", "Show_create_routine_priv", "priv",
        "_priv",       "Delete_history_priv",      "New_one_privy",
        "X;--_priv",   "Something_else_priv"};
    struct stw_facts maria = {.mariadb = true, .number = 110809};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(columns); i++)
        stw_mysql_privilege_learn(&maria, &(struct stw_cell){columns[i], strlen(columns[i])});
    stw_mysql_privilege_learn(&maria, &(struct stw_cell){NULL, 0});
    assert_int_equal(maria.more_count, 2);
    assert_string_equal(maria.more[0].name, "SHOW CREATE ROUTINE");
    assert_string_equal(maria.more[1].column, "Something_else");
    expand_is(maria, (struct stw_grant){"a", NULL, NULL, P("ALL"), false},
              "[[\"a\",null,null,[\"ALTER\",\"ALTER ROUTINE\",\"CREATE\",\"CREATE ROUTINE\","
              "\"CREATE TEMPORARY TABLES\",\"CREATE VIEW\",\"DELETE\",\"DELETE HISTORY\","
              "\"DROP\",\"EVENT\",\"EXECUTE\",\"INDEX\",\"INSERT\",\"LOCK TABLES\","
              "\"REFERENCES\",\"SELECT\",\"SHOW CREATE ROUTINE\",\"SHOW VIEW\","
              "\"SOMETHING ELSE\",\"TRIGGER\",\"UPDATE\"],[]]]");
    expand_is(maria, (struct stw_grant){"a", NULL, NULL, P("SOMETHING ELSE"), false},
              "[[\"a\",null,null,[\"SOMETHING ELSE\"],[]]]");
    expand_is(maria, (struct stw_grant){"a", NULL, "t", P("SOMETHING ELSE"), false},
              "SOMETHING ELSE is not a right on a table of this server");
    expand_is(maria, (struct stw_grant){"a", NULL, "t", P("ALL"), false},
              "[[\"a\",null,\"t\",[\"ALTER\",\"CREATE\",\"CREATE VIEW\",\"DELETE\","
              "\"DELETE HISTORY\",\"DROP\",\"INDEX\",\"INSERT\",\"REFERENCES\",\"SELECT\","
              "\"SHOW VIEW\",\"TRIGGER\",\"UPDATE\"],[]]]");
    for (int i = 0; i < 100; i++)
        stw_mysql_privilege_learn(&maria, &(struct stw_cell){"Many_priv", 9});
    assert_int_equal(maria.more_count, STW_MYSQL_MORE_MAX);
}

static void test_rights_are_written_as_text(void **state)
{
    static const struct {
        struct stw_right right;
        bool patterns;
        const char *text;
    } cases[] = {
        {{.level = STW_LEVEL_GLOBAL, .privilege = "S"}, true, "S ON *.*\n"},
        {{.level = STW_LEVEL_DATABASE, .database = "a\\_b", .privilege = "S"},
         true,
         "S ON a_b.*\n"},
        {{.level = STW_LEVEL_DATABASE, .database = "a_b", .privilege = "S"}, true, "S ON a_b.*\n"},
        {{.level = STW_LEVEL_DATABASE, .database = "a\\_%", .privilege = "S"},
         true,
         "S ON a\\_%.*\n"},
        {{.level = STW_LEVEL_DATABASE, .database = "a\\_b", .privilege = "S"},
         false,
         "S ON a\\_b.*\n"},
        {{.level = STW_LEVEL_TABLE, .database = "d", .schema = "s", .name = "t", .privilege = "S"},
         false,
         "S ON d.s.t\n"},
        {{.level = STW_LEVEL_COLUMN, .database = "d", .name = "t", .column = "c", .privilege = "S"},
         true,
         "S ON d.t(c)\n"},
        {{.level = STW_LEVEL_ROUTINE,
          .database = "d",
          .name = "p",
          .column = "PROCEDURE",
          .privilege = "X"},
         true,
         "X ON PROCEDURE d.p\n"},
        {{.level = STW_LEVEL_ROLE, .name = "r", .privilege = "MEMBER"}, true, "MEMBER ON role r\n"},
        {{.level = STW_LEVEL_SCHEMA,
          .database = "d",
          .schema = "s",
          .privilege = "U",
          .option = true},
         false,
         "U WITH GRANT OPTION ON d.s.*\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autorights struct stw_rights s = {0};
        stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
        stw_rights_add(&s, &cases[i].right);
        stw_rights_text(&s, cases[i].patterns, &out);
        assert_string_equal(stw_buf_str(&out), cases[i].text);
    }
}

static void add_tables(struct stw_rights *s, size_t count, const char *schema)
{
    char name[32];
    for (size_t i = 0; i < count; i++) {
        stw_format(name, sizeof(name), "table%zu", i);
        stw_rights_add(s, &(struct stw_right){.level = STW_LEVEL_TABLE,
                                              .database = "app",
                                              .schema = schema,
                                              .name = name,
                                              .privilege = "SELECT"});
    }
}

static void test_set_of_rights_has_a_limit(void **state)
{
    stw_autorights struct stw_rights most = {0}, more = {0}, copy = {0}, wide = {0};
    char schema[2048];
    (void)state;
    stw_memory_budget_set((uint64_t)4 << 30);
    add_tables(&most, STW_RIGHTS_MAX, "public");
    assert_false(most.failed);
    add_tables(&more, STW_RIGHTS_MAX + 1, "public");
    assert_true(more.failed && more.too_large);
    assert_int_equal(more.count, STW_RIGHTS_MAX);
    stw_rights_minus(&more, &(struct stw_rights){0}, &copy);
    assert_true(copy.failed && copy.too_large); /* it is as incomplete */
    memset(schema, 's', sizeof(schema) - 1);
    schema[sizeof(schema) - 1] = '\0';
    add_tables(&wide, STW_RIGHTS_MAX_BYTES / sizeof(schema), schema);
    assert_true(wide.failed && wide.too_large);
    assert_true(wide.bytes <= STW_RIGHTS_MAX_BYTES);
}

/* As many runs at once have them: those that find no memory fail alone, and are tried again. */
static void test_sets_of_rights_have_a_limit_together(void **state)
{
    stw_autorights struct stw_rights first = {0}, second = {0}, small = {0};
    struct stw_grants_plan plan = {0};
    const struct stw_rights none = {0};
    (void)state;
    stw_memory_budget_set((uint64_t)128 << 20);
    add_tables(&first, 40000, "public");
    assert_false(first.failed);
    add_tables(&second, 40000, "public");
    assert_true(second.failed && !second.too_large);
    assert_true(stw_share_facts(STW_SHARE_ANSWERS).used <= stw_share_limit(STW_SHARE_ANSWERS));
    assert_int_not_equal(stw_grants_plan_make(&first, &none, &none, STW_GRANTS_EXACT, &plan), 0);
    stw_grants_plan_done(&plan);
    add_tables(&small, 500, "public");
    assert_false(small.failed);
    stw_rights_done(&second);
    stw_rights_done(&first);
    add_tables(&second, 40000, "public");
    assert_false(second.failed);
    stw_rights_done(&second);
    assert_int_equal(stw_share_facts(STW_SHARE_ANSWERS).used, 0);
    stw_memory_budget_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_of_rights_has_a_limit),
        cmocka_unit_test(test_sets_of_rights_have_a_limit_together),
        cmocka_unit_test(test_grant_plan_has_the_differences),
        cmocka_unit_test(test_mysql_grants_are_expanded),
        cmocka_unit_test(test_mysql_all_expands_to_server_privileges),
        cmocka_unit_test(test_rights_are_written_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
