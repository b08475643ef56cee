/* SPDX-License-Identifier: Apache-2.0
 *
 * What is done with a child, for every combination of facts. */
#include "controller/child/decide.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define FACTS 13

/* The facts whose bits are set in `bits`, in the order of the struct. */
static struct stw_child_facts facts_of(unsigned bits)
{
    bool b[FACTS];
    for (unsigned i = 0; i < FACTS; i++)
        b[i] = bits >> i & 1;
    return (struct stw_child_facts){.answered = b[0],
                                    .ours = b[1],
                                    .controlled = b[2],
                                    .left_behind = b[3],
                                    .terminating = b[4],
                                    .may_adopt = b[5],
                                    .refused = b[6],
                                    .applied_before = b[7],
                                    .as_wanted = b[8],
                                    .template_waits = b[9],
                                    .template_left = b[10],
                                    .pods_foreign = b[11],
                                    .pods_start = b[12]};
}

static bool writes(enum stw_child_step step)
{
    return step == STW_STEP_CREATE || step == STW_STEP_REWRITE || step == STW_STEP_ADOPT ||
           step == STW_STEP_KEEP_TEMPLATE;
}

static void test_every_fact_combination_keeps_the_rules(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 1u << FACTS; bits++) {
        struct stw_child_facts f = facts_of(bits);
        enum stw_child_step step = stw_child_decide(&f);
        /* An object that another controller has is never written. */
        assert_false(f.answered && !f.ours && f.controlled && writes(step));
        /* One without a controller is taken over only where the owner asks for it. */
        assert_int_equal(step == STW_STEP_ADOPT, f.answered && !f.ours && !f.controlled &&
                                                     !f.left_behind && f.may_adopt &&
                                                     !f.terminating);
        /* What an owner of the same name left is never written, and neither is what is being deleted. */
        assert_false(!f.ours && f.left_behind && writes(step));
        assert_false(f.terminating && (f.ours || f.answered) && writes(step));
        /* A creation follows only from the cache's not having an object of ours. */
        assert_int_equal(step == STW_STEP_CREATE,
                         !f.answered && !f.ours && !f.left_behind && !f.refused);
        /* Whatever is rewritten is ours, and differs. */
        if (step == STW_STEP_REWRITE || step == STW_STEP_KEEP_TEMPLATE || step == STW_STEP_LOOK ||
            step == STW_STEP_HOLD || step == STW_STEP_WAIT_FOR_PODS)
            assert_true(f.ours && !f.as_wanted);
        /* A Service that would lose its pods is left as it is. */
        assert_false(f.ours && (f.pods_foreign || f.pods_start) && writes(step));
        /* It waits only if the server's object shows that its selector changes. */
        if (step == STW_STEP_WAIT_FOR_PODS)
            assert_true(f.answered && f.pods_start && !f.pods_foreign);
        /* A settled child causes no request. */
        if (f.ours && f.as_wanted && !f.terminating)
            assert_int_equal(step, STW_STEP_KEEP);
        /* A template that waits is never written with the rest. */
        assert_false(step == STW_STEP_REWRITE && f.template_waits);
        /* After an answer of the server nothing asks it again. */
        assert_false(f.answered && (step == STW_STEP_LOOK || step == STW_STEP_CHECK_TEMPLATE ||
                                    step == STW_STEP_CREATE || step == STW_STEP_REFUSE));
    }
}

static void test_repair_reads_the_server_first(void **state)
{
    (void)state;
    struct stw_child_facts f = {.ours = true, .applied_before = true};
    assert_int_equal(stw_child_decide(&f), STW_STEP_LOOK);
    f.template_left = true; /* a new template of ours is not a repair */
    assert_int_equal(stw_child_decide(&f), STW_STEP_REWRITE);
    f = (struct stw_child_facts){.ours = true};
    assert_int_equal(stw_child_decide(&f), STW_STEP_REWRITE);
}

static void test_refusal_has_its_reason(void **state)
{
    (void)state;
    struct stw_child_facts f = {.refused = true};
    assert_int_equal(stw_child_decide(&f), STW_STEP_REFUSE);
    f = (struct stw_child_facts){.answered = true, .controlled = true, .may_adopt = true};
    assert_int_equal(stw_child_decide(&f), STW_STEP_NAME_HOLDER);
    f = (struct stw_child_facts){.answered = true};
    assert_int_equal(stw_child_decide(&f), STW_STEP_NAME_HOLDER);
}

static void test_waiting_template_is_checked_once(void **state)
{
    (void)state;
    struct stw_child_facts f = {.ours = true, .template_waits = true, .applied_before = true};
    assert_int_equal(stw_child_decide(&f), STW_STEP_CHECK_TEMPLATE);
    f.answered = true;
    assert_int_equal(stw_child_decide(&f), STW_STEP_KEEP_TEMPLATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_fact_combination_keeps_the_rules),
        cmocka_unit_test(test_repair_reads_the_server_first),
        cmocka_unit_test(test_refusal_has_its_reason),
        cmocka_unit_test(test_waiting_template_is_checked_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
