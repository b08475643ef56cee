/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct {
    const char *text;
    int64_t ms; /* -1: refused */
} cases[] = {
    {"0", 0},
    {"500ms", 500},
    {"10s", 10000},
    {"1h5m", 3900000},
    {"1.5s", 1500},
    {".5s", 500},
    {"1500us", 1},
    {"2000000ns", 2},
    {"3000\xc2\xb5s", 3},
    {"", -1},
    {"10", -1},   /* a unit is needed */
    {"s", -1},    /* and a number */
    {"-1s", -1},  /* never negative */
    {"1e3s", -1}, /* no exponents */
    {"1s ", -1},  /* no trailing characters */
    {"1d", -1},   /* Go has no days */
    {".s", -1},   /* a point alone is not a number */
    {"99999999999h", -1},
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ms = 77;
        int r = stw_duration_parse(cases[i].text, &ms);
        if (cases[i].ms < 0) {
            assert_int_equal(r, -1);
            assert_int_equal(ms, 77); /* written only on success */
        } else {
            assert_int_equal(r, 0);
            assert_int_equal(ms, cases[i].ms);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
