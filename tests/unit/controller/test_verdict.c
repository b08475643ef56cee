/* SPDX-License-Identifier: Apache-2.0
 *
 * The verdict of several aspects: which is the worst, and when the object is checked again. */
#include "controller/verdict.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_soonest_check_of_all_aspects_counts(void **state)
{
    static const struct {
        struct stw_aspect first, second;
        enum stw_level level;
        uint64_t again_ms;
    } rows[] = {
        {{.level = STW_LEVEL_FINE}, {.level = STW_LEVEL_FINE}, STW_LEVEL_FINE, 0},
        {{.level = STW_LEVEL_FINE}, {.level = STW_LEVEL_FINE, .again_ms = 7}, STW_LEVEL_FINE, 7},
        {{.level = STW_LEVEL_FINE, .again_ms = 9},
         {.level = STW_LEVEL_FINE, .again_ms = 7},
         STW_LEVEL_FINE,
         7},
        {{.level = STW_LEVEL_FINE, .again_ms = 7},
         {.level = STW_LEVEL_WAITING, .again_ms = 9},
         STW_LEVEL_WAITING,
         7},
        {{.level = STW_LEVEL_WAITING},
         {.level = STW_LEVEL_WAITING, .again_ms = 9},
         STW_LEVEL_WAITING,
         9},
        {{.level = STW_LEVEL_STALLED, .again_ms = 9},
         {.level = STW_LEVEL_STALLED, .again_ms = 7},
         STW_LEVEL_STALLED,
         7},
        {{.level = STW_LEVEL_STALLED, .again_ms = 9},
         {.level = STW_LEVEL_WAITING, .again_ms = 7},
         STW_LEVEL_STALLED,
         9},
        {{.level = STW_LEVEL_RETRYING},
         {.level = STW_LEVEL_WAITING, .again_ms = 7},
         STW_LEVEL_RETRYING,
         0},
        {{.level = STW_LEVEL_PROGRESSING},
         {.level = STW_LEVEL_FINE, .again_ms = 7},
         STW_LEVEL_PROGRESSING,
         7},
    };
    (void)state;
    for (size_t i = 0; i < 2 * STW_COUNT(rows); i++) { /* in both orders */
        struct stw_aspect all[2] = {rows[i / 2].first, rows[i / 2].second}, swapped = all[0];
        struct stw_verdict v;
        if (i % 2) {
            all[0] = all[1];
            all[1] = swapped;
        }
        stw_verdict_of(all, 2, &v);
        if (v.level != rows[i / 2].level || v.again_ms != rows[i / 2].again_ms)
            fail_msg("row %zu, order %zu: level %d, again in %llu ms", i / 2, i % 2, (int)v.level,
                     (unsigned long long)v.again_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_soonest_check_of_all_aspects_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
