/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of an operator as its author writes them with <steward/test.h>. */
#include "greeting.h"

#include "base/util.h"
#include "testing/test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HELLO "default/hello"

static jmp_buf on_failure;
static char failure[8192];

static void fail_test(const char *text)
{
    fail_msg("%s", text);
}

static void note_failure(const char *text)
{
    stw_format(failure, sizeof(failure), "%s", text);
}

static void jump(const char *text)
{
    note_failure(text);
    longjmp(on_failure, 1);
}

static struct stw_test *begin(void)
{
    greeting_looks = 0;
    return stw_test_begin(&(struct stw_test_config){.op = &greeter, .fail = fail_test});
}

static const char *message(struct stw_test *t)
{
    return stw_test_text(t, &stw_res_configmap, HELLO, "data.message");
}

static size_t writes(struct stw_test *t, const char *verb, const struct stw_resource *r)
{
    return stw_test_count(t, &(struct stw_test_request){.verb = verb, .resource = r});
}

static void test_child(void **state)
{
    (void)state;
    struct stw_test *t = begin();
    stw_test_put(t, greeting_of("hello", "hello, world"));
    assert_string_equal(message(t), "");
    stw_test_settle(t);
    assert_string_equal(message(t), "hello, world");
    assert_string_equal(stw_test_condition(t, greeting, HELLO, "Ready"), "True");
    assert_string_equal(stw_test_condition(t, greeting, HELLO, "ConfigMapSynced"), "True");
    assert_string_equal(stw_test_text(t, greeting, HELLO, "status.observedGeneration"), "1");
    assert_string_equal(stw_test_text(t, greeting, HELLO, "spec.minutes"), "60");
    assert_string_equal(stw_test_text(t, greeting, HELLO, "metadata.finalizers"),
                        "[\"greeter.example.org/greeting\"]");
    stw_test_end(t);
}

static void test_nothing_is_written_twice(void **state)
{
    (void)state;
    struct stw_test *t = begin();
    stw_test_put(t, greeting_of("hello", "hello"));
    stw_test_settle(t);
    assert_int_equal(writes(t, "write", &stw_res_configmap), 1);
    stw_test_forget(t);
    stw_test_restart(t);
    stw_test_settle(t);
    assert_int_equal(writes(t, "write", NULL), 0);
    stw_test_end(t);
}

static void test_a_change_and_drift(void **state)
{
    (void)state;
    struct stw_test *t = begin();
    stw_test_put(t, greeting_of("hello", "hello"));
    stw_test_settle(t);
    stw_test_put(t, greeting_of("hello", "good bye"));
    stw_test_settle(t);
    assert_string_equal(message(t), "good bye");
    assert_string_equal(stw_test_text(t, greeting, HELLO, "metadata.generation"), "2");
    stw_test_put(t, json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:s}}", "apiVersion", "v1", "kind",
                              "ConfigMap", "metadata", "name", "hello", "namespace", "default",
                              "data", "message", "rubbish"));
    stw_test_settle(t);
    assert_string_equal(stw_test_condition(t, greeting, HELLO, "ConfigMapSynced"), "False");
    stw_test_end(t);
}

static void test_the_child_is_made_again(void **state)
{
    (void)state;
    struct stw_test *t = begin();
    stw_test_put(t, greeting_of("hello", "hello"));
    stw_test_settle(t);
    stw_test_delete(t, &stw_res_configmap, HELLO);
    assert_null(stw_test_get(t, &stw_res_configmap, HELLO));
    stw_test_settle(t);
    assert_string_equal(message(t), "hello");
    assert_string_not_equal(stw_test_event(t, "hello", "DriftRepaired"), "");
    stw_test_end(t);
}

static void test_deletion(void **state)
{
    (void)state;
    struct stw_test *t = begin();
    stw_test_put(t, greeting_of("hello", "hello"));
    stw_test_settle(t);
    stw_test_delete(t, greeting, HELLO);
    assert_non_null(stw_test_get(t, greeting, HELLO)); /* it has a finalizer */
    stw_test_settle(t);
    assert_null(stw_test_get(t, greeting, HELLO));
    assert_null(stw_test_get(t, &stw_res_configmap, HELLO)); /* by the garbage collector */
    stw_test_end(t);
}

static void test_refused(void **state)
{
    (void)state;
    struct stw_test *t = begin();
    assert_non_null(strstr(stw_test_refused(t, greeting_of("hello", "")), "spec.message"));
    assert_null(stw_test_get(t, greeting, HELLO));
    stw_test_end(t);
}

/* Each with what the operator is to do about it: the child comes in the end. */
static const struct {
    const char *what;
    struct stw_test_fault fault;
    bool waits; /* for a retry that is due later */
} faults[] = {
    {"a conflict", {.at = {.verb = "apply"}, .status = 409}, false},
    {"a missing right", {.at = {.verb = "apply"}, .status = 403}, true},
    {"a server in trouble", {.at = {.verb = "apply"}, .status = 500, .times = 2}, true},
    {"a lost answer", {.at = {.verb = "apply"}, .done = true}, false},
    {"a lost request", {.at = {.verb = "apply"}, .times = 2}, true},
    {"a status that cannot be written", {.at = {.sub = "status"}, .status = 500}, false},
    {"a list that fails", {.at = {.verb = "list"}, .status = 500, .times = 2}, false},
    {"a watch that fails", {.at = {.verb = "watch"}, .status = 503}, false},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(faults); i++) {
        struct stw_test *t = begin();
        stw_test_fail(t, &faults[i].fault);
        stw_test_put(t, greeting_of("hello", "hello"));
        stw_test_settle(t);
        if (faults[i].waits)
            stw_test_advance(t, (uint64_t)20 * 60000);
        if (stw_test_server_faults_left(stw_test_server(t)) != 0)
            fail_msg("%s did not happen", faults[i].what);
        if (!stw_streq(message(t), "hello") ||
            !stw_streq(stw_test_condition(t, greeting, HELLO, "Ready"), "True"))
            fail_msg("after %s the object is not as it should be", faults[i].what);
        stw_test_end(t);
    }
}

static void test_broken_watches(void **state)
{
    (void)state;
    struct stw_test *t = begin();
    stw_test_put(t, greeting_of("hello", "hello"));
    stw_test_settle(t);
    for (int expired = 0; expired < 2; expired++) {
        stw_test_forget(t);
        stw_test_server_break_watches(stw_test_server(t), NULL, expired == 1);
        stw_test_delete(t, &stw_res_configmap, HELLO);
        stw_test_settle(t);
        assert_string_equal(message(t), "hello");
        assert_true(writes(t, "watch", NULL) > 0);
        assert_int_equal(writes(t, "list", &stw_res_configmap) > 0, expired);
    }
    stw_test_end(t);
}

static void test_time(void **state)
{
    (void)state;
    struct stw_test *t = begin();
    stw_test_put(t, greeting_of("hello", "hello"));
    stw_test_settle(t);
    unsigned before = greeting_looks;
    int64_t wall_us = stw_wall_us(stw_test_clock(t));
    stw_test_advance(t, (uint64_t)50 * 60000);
    assert_int_equal(greeting_looks, before);
    stw_test_advance(t, (uint64_t)24 * 3600000);
    assert_in_range(greeting_looks - before, 22, 25);
    assert_true(stw_wall_us(stw_test_clock(t)) - wall_us >= INT64_C(24) * 3600000000);
    stw_test_end(t);
}

/* --- what a failure says */

static void test_a_wait_that_ends(void **state)
{
    (void)state;
    failure[0] = '\0';
    struct stw_test *t = stw_test_begin(
        &(struct stw_test_config){.op = &greeter, .fail = note_failure, .wait_ms = 300});
    stw_test_fail(t,
                  &(struct stw_test_fault){.at = {.verb = "list", .resource = &stw_res_configmap},
                                           .status = 403,
                                           .times = 1000});
    stw_test_put(t, greeting_of("hello", "hello"));
    assert_false(stw_test_settle(t));
    assert_non_null(strstr(failure,
                           "not settled after 300 ms: the cache of configmaps has not seen "
                           "all changes: "));
    assert_non_null(strstr(failure, "writes so far:"));
    stw_test_end(t);
}

static void test_mistakes(void **state)
{
    (void)state;
    struct stw_test *t =
        stw_test_begin(&(struct stw_test_config){.op = &greeter, .fail = note_failure});
    assert_false(stw_test_put(t, NULL));
    assert_non_null(strstr(failure, "the object is NULL"));
    assert_false(stw_test_put(t, json_pack("{s:s,s:s}", "apiVersion", "v9", "kind", "Nothing")));
    assert_non_null(strstr(failure, "no resource for v9 Nothing"));
    assert_false(stw_test_delete(t, greeting, HELLO));
    assert_non_null(strstr(failure, "greetings.example.org \"hello\" not found"));
    (void)stw_test_refused(t, greeting_of("hello", "hello"));
    assert_non_null(strstr(failure, "the object was accepted"));
    stw_test_end(t);
}

/* As cmocka's fail_msg(): nothing is left behind, and the test can still be ended. */
static void test_a_failure_that_does_not_return(void **state)
{
    (void)state;
    struct stw_test *volatile t =
        stw_test_begin(&(struct stw_test_config){.op = &greeter, .fail = jump});
    if (setjmp(on_failure) == 0)
        stw_test_delete(t, greeting, HELLO);
    assert_non_null(strstr(failure, "not found"));
    stw_test_end(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_child),
        cmocka_unit_test(test_nothing_is_written_twice),
        cmocka_unit_test(test_a_change_and_drift),
        cmocka_unit_test(test_the_child_is_made_again),
        cmocka_unit_test(test_deletion),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_broken_watches),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_a_wait_that_ends),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_a_failure_that_does_not_return),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
