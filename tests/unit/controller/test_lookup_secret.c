/* SPDX-License-Identifier: Apache-2.0
 *
 * The facts about a value in a Secret, and about one that cannot be read. */
#include "controller/manager/manager_priv.h"

#include "base/util.h"
#include "fake.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_secret_facts_are_read(void **state)
{
    static const struct {
        const char *secret;
        struct stw_secret_facts want;
    } cases[] = {
        {"{}", {.secret_there = true}},
        {"{\"data\":null}", {.secret_there = true}},
        {"{\"data\":{\"other\":\"YQ==\"}}", {.secret_there = true}},
        {"{\"data\":{\"k\":\"\"}}", {.secret_there = true, .key_there = true, .is_text = true}},
        {"{\"data\":{\"k\":\"c2VjcmV0\"}}",
         {.secret_there = true, .key_there = true, .is_text = true, .len = 6, .bare_len = 6}},
        {"{\"data\":{\"k\":\"c2VjcmV0Cg==\"}}", /* \n */
         {.secret_there = true,
          .key_there = true,
          .is_text = true,
          .ends_in_newline = true,
          .len = 7,
          .bare_len = 6}},
        {"{\"data\":{\"k\":\"c2VjcmV0DQo=\"}}", /* \r\n */
         {.secret_there = true,
          .key_there = true,
          .is_text = true,
          .ends_in_newline = true,
          .len = 8,
          .bare_len = 6}},
        {"{\"data\":{\"k\":\"YQpi\"}}",
         {.secret_there = true, .key_there = true, .len = 3, .bare_len = 3}},
        {"{\"data\":{\"k\":\"AAE=\"}}",
         {.secret_there = true, .key_there = true, .len = 2, .bare_len = 2}},
        {"{\"data\":{\"k\":\"!\"}}", {.secret_there = true, .key_there = true}},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autojson struct stw_json_doc doc = {0};
        struct stw_secret_facts got;
        assert_int_equal(stw_json_scan(&doc, cases[i].secret, strlen(cases[i].secret), NULL), 0);
        stw_secret_describe(stw_json_root(&doc), "k", &got);
        assert_int_equal(got.secret_there, cases[i].want.secret_there);
        assert_int_equal(got.key_there, cases[i].want.key_there);
        assert_int_equal(got.is_text, cases[i].want.is_text);
        assert_int_equal(got.ends_in_newline, cases[i].want.ends_in_newline);
        assert_int_equal(got.len, cases[i].want.len);
        assert_int_equal(got.bare_len, cases[i].want.bare_len);
    }
}

struct look {
    const char *step;
    int rc;
    struct stw_secret_facts want;
};

static void test_server_answers_become_secret_facts(void **state)
{
    static const struct look looks[] = {
        {"[{'match':'/namespaces/ns/secrets/s','body':{'data':{'k':'c2VjcmV0'}}}]",
         0,
         {.secret_there = true, .key_there = true, .is_text = true, .len = 6, .bare_len = 6}},
        {"[]", 0, {.secret_there = false}}, /* 404 */
        {"[{'match':'/secrets/s','status':403,'body':{'kind':'Status','message':'no'}}]", -1, {0}},
        {"[{'match':'/secrets/s','status':429,'headers':{'Retry-After':'1'}}]", -1, {0}},
        {"[{'match':'/secrets/s','status':500}]", -1, {0}},
        {"[{'match':'/secrets/s','body':'{'}]", -1, {0}},
        {"[{'match':'/secrets/s','then':'reset','status':0}]", -1, {0}},
        {"[{'match':'/secrets/s','then':'stall'}]", -1, {0}},
    };
    (void)state;
    struct stw_manager m = {.config.client = fake.client};
    for (size_t i = 0; i < STW_COUNT(looks); i++) {
        struct stw_secret_facts got = {0};
        uint64_t begin = stw_now_ms(&stw_clock_system);
        fake_steps(&fake, looks[i].step);
        int rc = stw_manager_secret(&m, "ns", "s", "k", &got);
        if (rc != looks[i].rc)
            fail_msg("%s: %d", looks[i].step, rc);
        assert_int_equal(got.secret_there, looks[i].want.secret_there);
        assert_int_equal(got.len, looks[i].want.len);
        /* the API server waits 3 s for the whole verdict */
        assert_true(stw_now_ms(&stw_clock_system) - begin < 3000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secret_facts_are_read),
        cmocka_unit_test_setup_teardown(test_server_answers_become_secret_facts, fake_set_up,
                                        fake_tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
