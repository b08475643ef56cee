/* SPDX-License-Identifier: Apache-2.0
 *
 * The decisions of Secret mode, as a table. */
#include "certs/decide_priv.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define DAY ((int64_t)86400 * 1000000)
#define NOW (1000 * DAY)
#define SETTLE (DAY / 8640)
#define OVERLAP (DAY / 24)

static const struct stw_rotation_times times = {.settle_us = SETTLE, .overlap_us = OVERLAP};

#define CA(from, to)                                                                               \
    {                                                                                              \
        .cert = true, .key = true, .not_before_us = NOW + (from)*DAY,                              \
        .not_after_us = NOW + (to)*DAY                                                             \
    }
#define LEAF(from, to)                                                                             \
    {                                                                                              \
        .pair = true, .covers = true, .by_ca = true, .not_before_us = NOW + (from)*DAY,            \
        .not_after_us = NOW + (to)*DAY                                                             \
    }
#define YOUNG CA(-100, 3550)
#define NEXT CA(0, 3650)
#define GOOD LEAF(-10, 80)
#define HELD                                                                                       \
    {                                                                                              \
        {STW_HOOK_FOUND, true},                                                                    \
        {                                                                                          \
            STW_HOOK_FOUND, true                                                                   \
        }                                                                                          \
    }

static const struct {
    const char *name;
    struct stw_rotation_facts facts;
    enum stw_rotation_action want;
} rows[] = {
    {"an empty cluster", {.ca = {0}}, STW_ROTATION_STAGE},
    {"the first CA waits for nobody where no configuration is",
     {.rescued = true, .next = NEXT},
     STW_ROTATION_PROMOTE},
    {"the first CA goes into the configurations first",
     {.rescued = true, .next = NEXT, .hooks = {{STW_HOOK_FOUND, true}, {STW_HOOK_FOUND, false}}},
     STW_ROTATION_WRITE},
    {"the first CA needs no settling",
     {.rescued = true, .next = NEXT, .hooks = HELD},
     STW_ROTATION_PROMOTE},
    {"the first CA of a lost Secret does: somebody may serve a leaf of the old one",
     {.rescued = true, .next = NEXT, .old = true, .hooks = HELD, .exact_for_us = SETTLE - 1},
     STW_ROTATION_NONE},
    {"and then goes on",
     {.rescued = true, .next = NEXT, .old = true, .hooks = HELD, .exact_for_us = SETTLE},
     STW_ROTATION_PROMOTE},
    {"the CA was taken out of the Secret while its successor waited",
     {.next = NEXT, .hooks = HELD, .exact_for_us = SETTLE},
     STW_ROTATION_STAGE},
    {"a settled Secret", {.ca = YOUNG, .leaf = GOOD, .hooks = HELD}, STW_ROTATION_NONE},
    {"a settled Secret without configurations", {.ca = YOUNG, .leaf = GOOD}, STW_ROTATION_NONE},
    {"a caBundle that was wiped",
     {.ca = YOUNG, .leaf = GOOD, .hooks = {{STW_HOOK_FOUND, false}, {STW_HOOK_FOUND, true}}},
     STW_ROTATION_WRITE},
    {"what can be read is written although the other cannot",
     {.ca = YOUNG, .leaf = GOOD, .hooks = {{STW_HOOK_UNKNOWN, false}, {STW_HOOK_FOUND, false}}},
     STW_ROTATION_WRITE},
    {"no leaf", {.ca = YOUNG, .hooks = HELD}, STW_ROTATION_ISSUE},
    {"a leaf is issued although configurations cannot be read",
     {.ca = YOUNG, .hooks = {{STW_HOOK_UNKNOWN, false}, {STW_HOOK_UNKNOWN, false}}},
     STW_ROTATION_ISSUE},
    {"a leaf with a third left", {.ca = YOUNG, .leaf = LEAF(-60, 30)}, STW_ROTATION_ISSUE},
    {"a leaf with a little more left", {.ca = YOUNG, .leaf = LEAF(-59, 31)}, STW_ROTATION_NONE},
    {"a leaf that ends with its CA cannot be made longer",
     {.ca = CA(-1, 20), .leaf = LEAF(-60, 20), .hooks = HELD},
     STW_ROTATION_NONE},
    {"a leaf without a name that is asked for",
     {.ca = YOUNG, .leaf = {.pair = true, .by_ca = true, .not_after_us = NOW + 80 * DAY}},
     STW_ROTATION_ISSUE},
    {"a leaf of another CA",
     {.ca = YOUNG, .leaf = {.pair = true, .covers = true, .not_after_us = NOW + 80 * DAY}},
     STW_ROTATION_ISSUE},
    {"a CA with a third left",
     {.ca = CA(-2000, 1000), .leaf = GOOD, .hooks = HELD},
     STW_ROTATION_STAGE},
    {"a CA without its key",
     {.ca = {.cert = true, .not_before_us = NOW - DAY, .not_after_us = NOW + 1000 * DAY},
      .leaf = GOOD,
      .hooks = HELD},
     STW_ROTATION_STAGE},
    {"a successor that has lost its key is made anew",
     {.ca = CA(-2000, 1000), .next = {.cert = true}, .leaf = GOOD, .hooks = HELD},
     STW_ROTATION_STAGE},
    {"a successor that has grown old while waiting",
     {.ca = CA(-2000, 1000), .next = CA(-900, 100), .leaf = GOOD, .hooks = HELD},
     STW_ROTATION_STAGE},
    {"the successor goes into the configurations",
     {.ca = CA(-2000, 1000),
      .next = NEXT,
      .leaf = GOOD,
      .hooks = {{STW_HOOK_FOUND, false}, {STW_HOOK_FOUND, false}}},
     STW_ROTATION_WRITE},
    {"the successor settles",
     {.ca = CA(-2000, 1000), .next = NEXT, .leaf = GOOD, .hooks = HELD},
     STW_ROTATION_NONE},
    {"the successor takes over",
     {.ca = CA(-2000, 1000), .next = NEXT, .leaf = GOOD, .hooks = HELD, .exact_for_us = SETTLE},
     STW_ROTATION_PROMOTE},
    {"never while a configuration cannot be read",
     {.ca = CA(-2000, 1000),
      .next = NEXT,
      .leaf = GOOD,
      .hooks = {{STW_HOOK_FOUND, true}, {STW_HOOK_UNKNOWN, false}},
      .exact_for_us = SETTLE},
     STW_ROTATION_NONE},
    {"a leaf is renewed by the old CA meanwhile",
     {.ca = CA(-2000, 1000), .next = NEXT, .leaf = LEAF(-70, 20), .hooks = HELD},
     STW_ROTATION_ISSUE},
    {"the former CA stays for the overlap",
     {.ca = YOUNG, .leaf = GOOD, .hooks = HELD, .old = true, .old_until_us = NOW + 1},
     STW_ROTATION_NONE},
    {"and goes after it",
     {.ca = YOUNG, .leaf = GOOD, .hooks = HELD, .old = true, .old_until_us = NOW},
     STW_ROTATION_RETIRE},
    {"not while a configuration lacks the new one",
     {.ca = YOUNG,
      .leaf = GOOD,
      .hooks = {{STW_HOOK_FOUND, false}, {STW_HOOK_NONE, false}},
      .old = true,
      .old_until_us = NOW},
     STW_ROTATION_WRITE},
    {"nobody noted until when", {.ca = YOUNG, .leaf = GOOD, .old = true}, STW_ROTATION_STAMP},
    {"a note of a clock that was ahead",
     {.ca = YOUNG, .leaf = GOOD, .old = true, .old_until_us = NOW + OVERLAP + 1},
     STW_ROTATION_STAMP},
};

static void test_rotation_action_follows_the_facts(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        enum stw_rotation_action got = stw_rotation_decide(&rows[i].facts, NOW, &times);
        if (got != rows[i].want)
            fail_msg("%s: %s, wanted %s", rows[i].name, stw_rotation_action_names[got],
                     stw_rotation_action_names[rows[i].want]);
    }
}

static void test_rotation_wait_follows_the_facts(void **state)
{
    (void)state;
    struct stw_rotation_facts f = {.ca = CA(-2000, 1000), .next = NEXT, .exact_for_us = SETTLE - 7};
    assert_int_equal(stw_rotation_wait_us(&f, &times, DAY), 7);
    assert_int_equal(stw_rotation_wait_us(&f, &times, 3), 3);
    f.next.key = false;
    assert_int_equal(stw_rotation_wait_us(&f, &times, DAY), DAY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rotation_action_follows_the_facts),
        cmocka_unit_test(test_rotation_wait_follows_the_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
