/* SPDX-License-Identifier: Apache-2.0
 *
 * What is told of a value in a Secret. */
#include "controller/manager_priv.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void facts(void **state)
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
         {.secret_there = true, .key_there = true, .is_text = true, .len = 6}},
        {"{\"data\":{\"k\":\"c2VjcmV0Cg==\"}}", /* \n */
         {.secret_there = true,
          .key_there = true,
          .is_text = true,
          .ends_in_newline = true,
          .len = 7}},
        {"{\"data\":{\"k\":\"c2VjcmV0DQo=\"}}", /* \r\n */
         {.secret_there = true,
          .key_there = true,
          .is_text = true,
          .ends_in_newline = true,
          .len = 8}},
        {"{\"data\":{\"k\":\"YQpi\"}}", {.secret_there = true, .key_there = true, .len = 3}},
        {"{\"data\":{\"k\":\"AAE=\"}}", {.secret_there = true, .key_there = true, .len = 2}},
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
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(facts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
