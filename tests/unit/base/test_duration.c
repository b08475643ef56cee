/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Go's time.ParseDuration accepts the same texts, except that it also takes a sign and up to 290
 * years.  Beside a row: what Go returns, where that is not the same. */
static const struct {
    const char *text;
    int64_t ms; /* -1: refused */
} cases[] = {
    {"0", 0},
    {"0s", 0},
    {"500ms", 500},
    {"10s", 10000},
    {"1h5m", 3900000},
    {"5s1h", 3605000}, /* any order, and again */
    {"1s1s", 2000},
    {"1.5s", 1500},
    {".5s", 500},
    {"5.s", 5000},
    {"012m", 720000},
    {"1500us", 1},
    {"2000000ns", 2},
    {"3000\xc2\xb5s", 3},
    {"3000\xce\xbcs", 3},
    {"10.5s4m", 250500},
    {"2m3.4s", 123400},
    {"1h2m3s4ms5us6ns", 3723004},
    {"39h9m14.425s", 140954425},

    /* a fraction is exact */
    {"1.4733m", 88398},
    {"0.1h", 360000},
    {"0.7m", 42000},
    {"4.35s", 4350},
    {"1.001s", 1001},
    {"8.41m", 504600},
    {"0.100000000000000000000h", 360000},
    {"0.83333333333333333333m", 49999},  /* 49.9999999999 s; Go: 50 s */
    {"0.3333333333333333333h", 1199999}, /* Go: 20 min */
    {"0.33333333333333333333333334h", 1200000},
    {"0.99999999999999999999999999999999999999999999999999h", 3599999}, /* Go: 1 h */

    /* below a millisecond: rounded down, once, after the sum */
    {"0.9999ms", 0},
    {"1.9999999ms", 1},
    {"999999ns", 0},
    {"600us600us", 1},
    {"0.9995s", 999},
    {"0.9999995s", 999},
    {"1.0009999s", 1000},
    {"999999.9ns0.9ns", 0}, /* and each number to nanoseconds */

    {"87840h", INT64_C(316224000000)}, /* 10 years of 366 days */
    {"316224000000ms", INT64_C(316224000000)},
    {"87840h1ns", -1},
    {"87840.0000000000001h", INT64_C(316224000000)}, /* 0.36 ns more */
    {"87840.000000000001h", -1},
    {"316224000000000001us", -1},
    {"87839h60m", INT64_C(316224000000)},
    {"87839h3601s", -1},
    {"99999999999h", -1},
    {"9223372036854775807ns", -1}, /* at the limits of integers of 64 bits; Go takes this one */
    {"9223372036854775808ns", -1},
    {"18446744073709551615h", -1},
    {"18446744073709551617ns", -1},
    {"36893488147419103233ns", -1},
    {"99999999999999999999999999999999999999s", -1},
    {"5124095576030431h", -1}, /* this many hours are 2^64 nanoseconds, and less than one more */

    {"", -1},
    {".", -1},
    {"10", -1}, /* a unit is needed */
    {"1.5", -1},
    {"00", -1},
    {"s", -1}, /* and a number */
    {"3 s", -1},
    {"-1s", -1}, /* never negative */
    {"+1s", -1}, /* Go takes a plus */
    {"1s-1s", -1},
    {"1e3s", -1}, /* no exponents */
    {"1s ", -1},  /* no trailing characters */
    {" 1s", -1},
    {"1d", -1}, /* Go has no days */
    {"1S", -1},
    {".s", -1}, /* a point alone is not a number */
    {"1.2.3s", -1},
    {"1..2s", -1},
    {"1s.", -1},
    {"0x1s", -1},
    {"nans", -1},
    {"1\xc2s", -1},
};

static void test_durations_are_parsed_as_in_go(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t ms = 77;
        int r = stw_duration_parse(cases[i].text, &ms);
        if (r != (cases[i].ms < 0 ? -1 : 0) || (r == 0 && ms != cases[i].ms))
            fail_msg("\"%s\": %d, %lld ms", cases[i].text, r, (long long)ms);
        if (cases[i].ms < 0)
            assert_int_equal(ms, 77); /* written only on success */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_durations_are_parsed_as_in_go)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
