/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a mark on a server is of an object that still wants what it stands for. */
#include "base/util.h"
#include "kinds/databaseuser/end/stray.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char configured[] =
    "{\"targets\":[{\"name\":\"main\",\"engine\":\"mariadb\",\"host\":\"db\",\"admin\":{\"user\":"
    "\"a\","
    "\"passwordFile\":\"/"
    "p\"}},{\"name\":\"alias\",\"engine\":\"mariadb\",\"host\":\"DB\",\"admin\":{"
    "\"user\":\"b\",\"passwordFile\":\"/p\"}},{\"name\":\"other\",\"engine\":\"mariadb\",\"host\":"
    "\"db2\",\"admin\":{\"user\":\"a\",\"passwordFile\":\"/p\"}},{\"name\":\"pg\",\"engine\":"
    "\"postgresql\",\"host\":\"db\",\"admin\":{\"user\":\"a\",\"passwordFile\":\"/p\"}}]}";

static struct stw_targets *targets;

static int set_up(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_findings f = {0};
    (void)state;
    return stw_json_scan(&doc, configured, strlen(configured), NULL) != 0
               ? -1
               : stw_targets_parse(stw_json_get(stw_json_root(&doc), "targets"), &targets, &f);
}

static int tear_down(void **state)
{
    (void)state;
    stw_targets_unref(targets);
    return 0;
}

#define OBJECT(labels, spec, status)                                                               \
    "{\"metadata\":{\"uid\":\"u-1\",\"labels\":{" labels "}},\"spec\":{" spec                      \
    "},\"status\":{" status "}}"
#define ON(target) "\"target\":\"" target "\""
#define APP "\"user\":\"app\""
#define MADE(target) "\"account\":\"app@%\",\"target\":\"" target "\""

static const struct {
    const char *object, *name;
    bool database;
    const char *swept;
    enum dbu_stray expected;
} cases[] = {
    {"", "app", false, "main", DBU_STRAY_GONE},
    {"{\"metadata\":{\"uid\":\"u-2\"}}", "app", false, "main", DBU_STRAY_GONE},
    {"{\"metadata\":{}}", "app", false, "main", DBU_STRAY_GONE},
    {"{\"metadata\":{\"uid\":\"u-1\"},\"stub\":{}}", "x", false, "main", DBU_STRAY_NOT},
    {OBJECT(ON("main"), APP, ""), "app", false, "main", DBU_STRAY_NOT},
    {OBJECT(ON("MAIN"), APP, ""), "app_b", false, "main", DBU_STRAY_NOT},
    {OBJECT(ON("alias"), APP, ""), "app", false, "main", DBU_STRAY_NOT},
    {OBJECT(ON("other"), APP, ""), "app", false, "main", DBU_STRAY_MOVED},
    {OBJECT(ON("pg"), APP, ""), "app", false, "main", DBU_STRAY_MOVED},
    {OBJECT(ON("unknown"), APP, ""), "app", false, "main", DBU_STRAY_MOVED},
    {OBJECT("", APP, ""), "app", false, "main", DBU_STRAY_NOT},
    /* The label moved, which the status of an account forbids. */
    {OBJECT(ON("other"), APP, MADE("main")), "app", false, "main", DBU_STRAY_NOT},
    {OBJECT(ON("main"), APP, MADE("other")), "app", false, "main", DBU_STRAY_MOVED},
    {OBJECT(ON("main"), "\"user\":\"new\"", ""), "app", false, "main", DBU_STRAY_UNWANTED},
    {OBJECT(ON("main"), "\"user\":\"new\"", MADE("main")), "app", false, "main", DBU_STRAY_NOT},
    {OBJECT(ON("main"), "\"user\":\"new\"", MADE("main")), "ap", false, "main", DBU_STRAY_UNWANTED},
    {OBJECT(ON("main"), APP, ""), "d", true, "main", DBU_STRAY_UNWANTED},
    {OBJECT(ON("main"), APP ",\"databases\":[{\"name\":\"D\"}]", ""), "d", true, "main",
     DBU_STRAY_NOT},
    {OBJECT(ON("pg"), APP ",\"databases\":[{\"name\":\"D\"}]", ""), "d", true, "pg",
     DBU_STRAY_UNWANTED},
    {OBJECT(ON("pg"), APP, "\"databases\":[{\"name\":\"d\"}]"), "d", true, "pg", DBU_STRAY_NOT},
    {OBJECT(ON("pg"), APP, ""), "steward_new_00", true, "pg", DBU_STRAY_NOT},
};

static void test_stray_accounts_are_those_without_an_object(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autojson struct stw_json_doc doc = {0};
        struct stw_found_mark m = {.database = cases[i].database,
                                   .name = cases[i].name,
                                   .host = "",
                                   .owner = "shop/app",
                                   .uid = "u-1"};
        struct stw_json object = {0};
        if (*cases[i].object) {
            assert_int_equal(stw_json_scan(&doc, cases[i].object, strlen(cases[i].object), NULL),
                             0);
            object = stw_json_root(&doc);
        }
        if (dbu_stray_judge(&m, object, targets, stw_targets_find(targets, cases[i].swept)) !=
            cases[i].expected)
            fail_msg("%zu: %s", i, cases[i].object);
    }
}

/* Names that need quotation marks stay names. */
static void test_advice_quotes_names(void **state)
{
    static const struct {
        struct stw_found_mark mark;
        const char *target, *expected;
    } advice[] = {
        {{.name = "a'b`", .host = "10.%"},
         "main",
         "DROP USER IF EXISTS `a'b```@`10.%`; DELETE FROM steward.accounts WHERE user='a''b`' AND "
         "host='10.%'"},
        {{.database = true, .name = "d", .host = ""},
         "main",
         "DROP DATABASE IF EXISTS `d`; DELETE FROM steward.databases WHERE name='d'"},
        {{.name = "a\"b", .host = ""},
         "pg",
         "in each database: REASSIGN OWNED BY \"a\"\"b\" TO another role; DROP OWNED BY "
         "\"a\"\"b\"; then DROP ROLE \"a\"\"b\""},
        {{.database = true, .name = "d", .host = ""}, "pg", "DROP DATABASE \"d\""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(advice); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
        dbu_stray_advise(&advice[i].mark, stw_targets_find(targets, advice[i].target), &out);
        assert_string_equal(stw_buf_str(&out), advice[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stray_accounts_are_those_without_an_object),
        cmocka_unit_test(test_advice_quotes_names),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
