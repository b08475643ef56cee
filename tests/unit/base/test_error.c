/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_fail_sets_code_and_text(void **state)
{
    (void)state;
    struct stw_error err = {.http = 404, .retry_after_ms = 7};
    assert_int_equal(stw_fail(&err, STW_ERR_CONFLICT, "configmap %s/%s", "a", "b"), -1);
    assert_int_equal(err.code, STW_ERR_CONFLICT);
    assert_int_equal(err.http, 0);
    assert_int_equal(err.retry_after_ms, 0);
    assert_string_equal(err.text, "configmap a/b");
    assert_int_equal(stw_fail(NULL, STW_ERR_GONE, "nobody listens"), -1);
}

static void test_wrap_keeps_the_error_code(void **state)
{
    (void)state;
    struct stw_error err;
    (void)stw_fail(&err, STW_ERR_NOT_FOUND, "inner");
    err.http = 404;
    err.retry_after_ms = 9;
    assert_int_equal(stw_error_wrap(&err, "outer %d", 1), -1);
    assert_string_equal(err.text, "outer 1: inner");
    assert_int_equal(err.code, STW_ERR_NOT_FOUND);
    assert_int_equal(err.http, 404);
    assert_int_equal(err.retry_after_ms, 9);
    assert_int_equal(stw_error_wrap(NULL, "x"), -1);
}

/* Long messages are truncated, never written past the end. */
static void test_long_error_texts_are_truncated(void **state)
{
    (void)state;
    struct stw_error err;
    char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    (void)stw_fail(&err, STW_ERR_INVALID, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    (void)stw_error_wrap(&err, "head");
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
    assert_memory_equal(err.text, "head: xxx", 9);
    (void)stw_error_wrap(&err, "%s", text);
    assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

static void test_ignored_error_code_is_success(void **state)
{
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_error_pass_over(0, STW_ERR_EXISTS, &err), 0);
    int rc = stw_fail(&err, STW_ERR_NOT_FOUND, "gone");
    assert_int_equal(stw_error_pass_over(rc, STW_ERR_EXISTS, &err), -1);
    assert_int_equal(err.code, STW_ERR_NOT_FOUND);
    assert_int_equal(stw_error_pass_over(rc, STW_ERR_NOT_FOUND, &err), 0);
    assert_int_equal(err.code, STW_OK);
    assert_string_equal(err.text, "");
}

static void test_error_codes_have_distinct_names(void **state)
{
    (void)state;
    for (enum stw_err c = STW_OK; c <= STW_ERR_CANCELLED; c++) {
        assert_non_null(stw_err_name(c));
        for (enum stw_err d = STW_OK; d < c; d++)
            assert_string_not_equal(stw_err_name(c), stw_err_name(d));
    }
    assert_string_equal(stw_err_name(STW_ERR_EXISTS), "AlreadyExists");
    assert_string_equal(stw_err_name((enum stw_err)99), "Unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fail_sets_code_and_text),
        cmocka_unit_test(test_wrap_keeps_the_error_code),
        cmocka_unit_test(test_long_error_texts_are_truncated),
        cmocka_unit_test(test_ignored_error_code_is_success),
        cmocka_unit_test(test_error_codes_have_distinct_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
