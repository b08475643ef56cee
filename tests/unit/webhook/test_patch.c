/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/patch.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static char *encoded(const struct stw_patch *p)
{
    struct stw_buf out = STW_BUF_INIT(65536);
    stw_patch_base64(p, &out);
    assert_false(out.failed);
    return stw_buf_take(&out);
}

static void test_empty_patch_has_no_text(void **state)
{
    struct stw_patch p;
    (void)state;
    stw_patch_init(&p);
    stw_autofree char *text = encoded(&p);
    assert_string_equal(text, "");
    stw_patch_done(&p);
}

/* Values of one, two and three bytes bring the array to each length modulo three. */
static void test_patch_base64_of_every_length(void **state)
{
    static const struct {
        const char *value, *base64;
    } cases[] = {
        {"1", "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MX1d"},
        {"12", "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MTJ9XQ=="},
        {"123", "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2EiLCJ2YWx1ZSI6MTIzfV0="},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_patch p;
        stw_patch_init(&p);
        stw_patch_add(&p, "/a", cases[i].value);
        stw_autofree char *text = encoded(&p);
        assert_string_equal(text, cases[i].base64);
        stw_patch_done(&p);
    }
}

static void test_patch_operations_keep_their_order(void **state)
{
    struct stw_patch p;
    (void)state;
    stw_patch_init(&p);
    stw_patch_add(&p, "/spec", "{}");
    stw_patch_add(&p, "/spec/a~1b\"c", "\"x\"");
    assert_int_equal(p.count, 2);
    assert_string_equal(stw_buf_str(&p.ops),
                        "[{\"op\":\"add\",\"path\":\"/spec\",\"value\":{}},"
                        "{\"op\":\"add\",\"path\":\"/spec/a~1b\\\"c\",\"value\":\"x\"}");
    stw_patch_done(&p);
}

/* A patch that does not fit must not be sent truncated. */
static void test_failed_patch_is_not_sent(void **state)
{
    struct stw_patch p;
    struct stw_buf out = STW_BUF_INIT(65536);
    (void)state;
    stw_patch_init(&p);
    stw_patch_add(&p, "/a", "1");
    p.ops.failed = true;
    stw_patch_base64(&p, &out);
    assert_true(out.failed);
    stw_patch_done(&p);
    stw_buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_patch_has_no_text),
        cmocka_unit_test(test_patch_base64_of_every_length),
        cmocka_unit_test(test_patch_operations_keep_their_order),
        cmocka_unit_test(test_failed_patch_is_not_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
