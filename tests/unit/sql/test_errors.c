/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/mysql/mysql_priv.h"
#include "sql/postgresql/postgresql_priv.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
    unsigned number;
    const char *message;
    enum stw_sql_step step;
    enum stw_sql_trouble trouble;
    bool lost;
} mysql_rows[] = {
    {1045, "Access denied", STW_SQL_STEP_CONNECT, STW_SQL_AUTH, false},
    {1045, "Access denied", STW_SQL_STEP_GRANT, STW_SQL_DENIED, false},
    {1044, "Access denied", STW_SQL_STEP_GRANT, STW_SQL_DENIED, false},
    {1049, "Unknown database", STW_SQL_STEP_GRANT, STW_SQL_NO_OBJECT, false},
    {1146, "Table 'a.b' doesn't exist", STW_SQL_STEP_GRANT, STW_SQL_NO_OBJECT, false},
    {1205, "Lock wait timeout", STW_SQL_STEP_DROP, STW_SQL_LOCKED, false},
    {1213, "Deadlock found", STW_SQL_STEP_GRANT, STW_SQL_LOCKED, false},
    {1969, "max_statement_time", STW_SQL_STEP_LOOKUP, STW_SQL_LOCKED, false},
    {3024, "maximum statement execution time", STW_SQL_STEP_LOOKUP, STW_SQL_LOCKED, false},
    {1227, "you need SUPER", STW_SQL_STEP_CREATE, STW_SQL_DENIED, false},
    {1290, "running with the --read-only option", STW_SQL_STEP_CREATE, STW_SQL_READ_ONLY, false},
    {1290, "with the --super-read-only option", STW_SQL_STEP_CREATE, STW_SQL_READ_ONLY, false},
    {1290, "--strict-password-validation option", STW_SQL_STEP_CREATE, STW_SQL_CONNECT, true},
    {1290, "--skip-grant-tables option", STW_SQL_STEP_CREATE, STW_SQL_UNSUPPORTED, false},
    {1396, "Operation CREATE USER failed", STW_SQL_STEP_CREATE, STW_SQL_EXISTS, false},
    {4006, "Operation CREATE USER failed", STW_SQL_STEP_CREATE, STW_SQL_NOT_OURS, false},
    {4006, "Operation DROP USER failed", STW_SQL_STEP_DROP, STW_SQL_OWNS_OBJECTS, false},
    {1396, "Operation ALTER USER failed", STW_SQL_STEP_ALTER, STW_SQL_LOOKUP, false},
    {1524, "Plugin 'x' is not loaded", STW_SQL_STEP_ALTER, STW_SQL_NO_PLUGIN, false},
    {1524, "Plugin 'x' is not loaded", STW_SQL_STEP_CREATE, STW_SQL_NO_PLUGIN, false},
    {1524, "Plugin 'x' is not loaded", STW_SQL_STEP_CONNECT, STW_SQL_UNSUPPORTED, false},
    {1819, "Your password", STW_SQL_STEP_ALTER, STW_SQL_POLICY, false},
    {3638, "Cannot use these credentials for 'u'@'%'", STW_SQL_STEP_ALTER, STW_SQL_POLICY, false},
    {1836, "Running in read-only mode", STW_SQL_STEP_GRANT, STW_SQL_READ_ONLY, false},
    {2003, "Can't connect", STW_SQL_STEP_CONNECT, STW_SQL_CONNECT, true},
    {2006, "gone away", STW_SQL_STEP_GRANT, STW_SQL_CONNECT, true},
    {2026, "TLS/SSL error: certificate verify failed", STW_SQL_STEP_CONNECT, STW_SQL_TLS, true},
    {2026, "TLS/SSL error: unexpected eof", STW_SQL_STEP_GRANT, STW_SQL_CONNECT, true},
    {9999, "something", STW_SQL_STEP_GRANT, STW_SQL_FAILED, false},
};

static void test_mysql_errors_are_classified(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(mysql_rows); i++) {
        struct stw_fault f = {0};
        stw_mysql_fault(&f, mysql_rows[i].number, "HY000", mysql_rows[i].message,
                        mysql_rows[i].step);
        if (f.trouble != mysql_rows[i].trouble || f.lost != mysql_rows[i].lost)
            fail_msg("row %zu: %s", i, f.err.text);
        assert_int_equal(f.step, mysql_rows[i].step);
    }
}

static void test_postgresql_errors_are_classified(void **state)
{
    static const struct {
        const char *code, *message;
        enum stw_sql_trouble trouble;
        bool lost, again;
    } rows[] = {
        {"28P01", "m", STW_SQL_AUTH, false, false},
        {"28000", "m", STW_SQL_AUTH, false, false},
        {"25006", "m", STW_SQL_READ_ONLY, false, false},
        {"3D000", "m", STW_SQL_NO_OBJECT, false, false},
        {"3F000", "m", STW_SQL_NO_OBJECT, false, false},
        {"42P01", "m", STW_SQL_NO_OBJECT, false, false},
        {"42501", "m", STW_SQL_DENIED, false, false},
        {"42710", "m", STW_SQL_EXISTS, false, false},
        {"2BP01", "m", STW_SQL_OWNS_OBJECTS, false, false},
        {"0LP01", "m", STW_SQL_UNSUPPORTED, false, false},
        {"42601", "syntax error", STW_SQL_FAILED, false, false},
        {"22023", "password is too short", STW_SQL_POLICY, false, false},
        {"53300", "m", STW_SQL_BUSY, false, false},
        {"53200", "m", STW_SQL_FAILED, false, false},
        {"53100", "m", STW_SQL_FAILED, false, false},
        {"57P01", "m", STW_SQL_CONNECT, true, false},
        {"57014", "m", STW_SQL_LOCKED, false, false},
        {"55P03", "m", STW_SQL_LOCKED, false, false},
        {"08006", "m", STW_SQL_CONNECT, true, false},
        {"40P01", "m", STW_SQL_LOCKED, false, true},
        {"XX000", "tuple concurrently updated", STW_SQL_FAILED, false, true},
        {"XX000", "other", STW_SQL_FAILED, false, false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_fault f = {0};
        stw_pg_fault(&f, rows[i].code, rows[i].message, NULL, STW_SQL_STEP_GRANT);
        if (f.trouble != rows[i].trouble || f.lost != rows[i].lost || f.again != rows[i].again)
            fail_msg("%s: %s", rows[i].code, f.err.text);
    }
}

static void test_postgresql_connection_errors_are_classified(void **state)
{
    static const struct {
        const char *message;
        enum stw_sql_trouble trouble;
    } rows[] = {
        {"connection to server at \"h\", port 1 failed: FATAL:  28P01\n", STW_SQL_AUTH},
        {"connection to server at \"h\", port 1 failed: FATAL:  3D000\n", STW_SQL_NO_OBJECT},
        {"connection to server at \"h\", port 1 failed: FATAL:  57P03\n", STW_SQL_CONNECT},
        {"connection to server at \"h\", port 1 failed: SSL error: certificate verify failed\n",
         STW_SQL_TLS},
        {"server certificate for \"a\" does not match host name \"b\"\n", STW_SQL_TLS},
        {"connection to server at \"h\", port 1 failed: Connection refused\n", STW_SQL_CONNECT},
        {"", STW_SQL_CONNECT},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_fault f = {0};
        stw_pg_connect_fault(&f, rows[i].message);
        if (f.trouble != rows[i].trouble)
            fail_msg("row %zu: %s", i, f.err.text);
    }
}

/* No part of a statement that a server quotes is shown. */
static void test_error_texts_contain_no_statement(void **state)
{
    static const struct {
        const char *message, *clean;
    } rows[] = {
        {"You have an error in your SQL syntax near 's3cret' at line 1",
         "You have an error in your SQL syntax ..."},
        {"syntax error at or near \"s3cret\"", "syntax error at or ..."},
        {"Password 's3'cret' is weak: s3cret'", "Password ..."},
        {"`s3cret`", " ..."},
        {"no quotes at all", "no quotes at all"},
        {"Can't connect to server on 'db' (115)", "Can't connect to server on ..."},
        {"n't", "n ..."},
        {"'n't s3cret", " ..."},
        {"bell\a\n", "bell??"},
        {"", ""},
    };
    char clean[256], small[8];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_clean_message(rows[i].message, clean, sizeof(clean));
        assert_string_equal(clean, rows[i].clean);
    }
    stw_clean_message("a long message 'quoted'", small, sizeof(small));
    assert_true(strlen(small) < sizeof(small));
}

/* The message names the objects that block a drop. */
static void test_drop_error_names_the_blocking_objects(void **state)
{
    struct stw_fault f = {0};
    (void)state;
    stw_pg_fault(&f, "2BP01", "role \"bob\" cannot be dropped", "owner of table t\nowner of view v",
                 STW_SQL_STEP_DROP);
    assert_non_null(strstr(f.err.text, "owner of table t;owner of view v"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mysql_errors_are_classified),
        cmocka_unit_test(test_postgresql_errors_are_classified),
        cmocka_unit_test(test_postgresql_connection_errors_are_classified),
        cmocka_unit_test(test_error_texts_contain_no_statement),
        cmocka_unit_test(test_drop_error_names_the_blocking_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
