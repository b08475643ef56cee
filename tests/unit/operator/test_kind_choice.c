/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/installed/kind_choice.h"

#include "controller/controller.h"
#include "schema/kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct stw_kind lamp = {.resource = {.kind = "Lamp", .plural = "lamps"}};
static const struct stw_kind bulb = {.resource = {.kind = "LightBulb", .plural = "lightbulbs"}};
static const struct stw_kind wire = {.resource = {.kind = "Wire", .plural = "wires"}};
static const struct stw_controller lamps = {.kind = &lamp};
static const struct stw_controller bulbs = {.kind = &bulb,
                                            .needs = (const struct stw_kind *const[]){&wire, NULL}};
static const struct stw_controller wires = {.kind = &wire};

static const struct stw_operator op = {
    .name = "lamps",
    .kinds = (const struct stw_kind *const[]){&lamp, &bulb, &wire, NULL},
    .controllers = (const struct stw_controller *const[]){&lamps, &bulbs, &wires, NULL},
};

static void test_chosen_kinds_keep_the_program_order(void **state)
{
    static const char *const same[] = {"Wire,Lamp", "lamp,WIRES", "wires,lamps,Lamp"};
    struct stw_kind_choice c;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(same); i++) {
        assert_int_equal(stw_kinds_choose(&op, same[i], &c, NULL), 0);
        assert_ptr_equal(c.op.kinds[0], &lamp);
        assert_ptr_equal(c.op.kinds[1], &wire);
        assert_null(c.op.kinds[2]);
        assert_ptr_equal(c.op.controllers[0], &lamps);
        assert_ptr_equal(c.op.controllers[1], &wires);
        assert_null(c.op.controllers[2]);
        assert_ptr_equal(c.op.others[0], &bulb);
        assert_null(c.op.others[1]);
        assert_true(stw_kinds_are_some(&c.op));
    }
}

static void test_all_kinds_are_the_default(void **state)
{
    struct stw_kind_choice c;
    (void)state;
    assert_int_equal(stw_kinds_choose(&op, NULL, &c, NULL), 0);
    assert_ptr_equal(c.op.kinds[2], &wire);
    assert_false(stw_kinds_are_some(&c.op));
    assert_int_equal(stw_kinds_choose(&op, "", &c, NULL), 0);
    assert_ptr_equal(c.op.controllers[2], &wires);
    assert_false(stw_kinds_are_some(&op)); /* has no list of others at all */
}

static void test_invalid_kind_choice_is_named(void **state)
{
    static const struct {
        const char *names, *error;
    } all[] = {
        {"Lamb", "--kinds: \"Lamb\" is not a kind; did you mean \"Lamp\"?"},
        {"Lamp,", "--kinds: \"\" is not a kind of lamps; it has Lamp,LightBulb,Wire"},
        {"Lamp, Wire", "--kinds: \" Wire\" is not a kind; did you mean \"Wire\"?"},
        {"Elephant", "--kinds: \"Elephant\" is not a kind of lamps; it has Lamp,LightBulb,Wire"},
        {"Lamp,LightBulb",
         "--kinds: LightBulb needs Wire, whose objects it creates: choose it too"},
    };
    struct stw_kind_choice c;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(all); i++) {
        struct stw_error err = {0};
        assert_int_equal(stw_kinds_choose(&op, all[i].names, &c, &err), -1);
        assert_string_equal(err.text, all[i].error);
    }
}

static void test_long_kind_names_are_refused(void **state)
{
    char names[70000];
    struct stw_kind_choice c;
    struct stw_error err = {0};
    (void)state;
    memset(names, 'L', sizeof(names) - 1);
    names[sizeof(names) - 1] = '\0';
    assert_int_equal(stw_kinds_choose(&op, names, &c, &err), -1);
    names[128] = ','; /* a long name that begins like a kind */
    memcpy(names, "Lamp", 4);
    assert_int_equal(stw_kinds_choose(&op, names, &c, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chosen_kinds_keep_the_program_order),
        cmocka_unit_test(test_all_kinds_are_the_default),
        cmocka_unit_test(test_invalid_kind_choice_is_named),
        cmocka_unit_test(test_long_kind_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
