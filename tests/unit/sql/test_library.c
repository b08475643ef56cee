/* SPDX-License-Identifier: Apache-2.0
 *
 * Client libraries that exist, are missing, or are too old. */
#include "sql/core/engine.h"
#include "sql/target/library.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

int no_such_function(void);

#define OF_LIBC(F) F(strlen) F(strcmp)
#define TOO_NEW(F) F(strlen) F(no_such_function)
STW_LIBRARY(libc, c, "libc.so.6", "libc6", OF_LIBC);
STW_LIBRARY(absent, a, "libnowhere.so.7", "libnowhere7", OF_LIBC);
STW_LIBRARY(old, o, "libc.so.6", "libc6", TOO_NEW);

static void test_library_functions_are_loaded(void **state)
{
    struct stw_error err = {0};
    (void)state;
    assert_null(c.strlen);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stw_library_load(&libc, &err), 0);
        assert_int_equal(c.strlen("four"), 4);
        assert_true(c.strcmp("a", "b") < 0);
    }
}

static void test_missing_library_is_an_error(void **state)
{
    struct stw_error err = {0};
    (void)state;
    for (int i = 0; i < 2; i++) { /* the second error is as clear as the first */
        err = (struct stw_error){0};
        assert_int_equal(stw_library_load(&absent, &err), -1);
        assert_int_equal(err.code, STW_ERR_INVALID);
        assert_non_null(strstr(err.text, "the library libnowhere.so.7 cannot be loaded ("));
        assert_non_null(strstr(err.text, "): install the package libnowhere7"));
    }
    assert_null(a.strlen);
}

static void test_library_without_a_function_is_an_error(void **state)
{
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_library_load(&old, &err), -1);
    assert_int_equal(err.code, STW_ERR_INVALID);
    assert_string_equal(err.text, "the library libc.so.6 has no function no_such_function: install "
                                  "a newer libc6");
}

/* Every function that an engine calls is in the library that is installed with its header. */
static void test_engine_libraries_have_all_functions(void **state)
{
    struct stw_error err = {0};
    (void)state;
    (void)err;
#ifdef STW_WITH_MYSQL
    assert_int_equal(stw_engine_mysql.load(&err), 0);
#endif
#ifdef STW_WITH_POSTGRESQL
    assert_int_equal(stw_engine_postgresql.load(&err), 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library_functions_are_loaded),
        cmocka_unit_test(test_missing_library_is_an_error),
        cmocka_unit_test(test_library_without_a_function_is_an_error),
        cmocka_unit_test(test_engine_libraries_have_all_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
