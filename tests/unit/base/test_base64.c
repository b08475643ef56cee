/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_base64_encodes_and_decodes(void **state)
{
    /* RFC 4648, section 10 */
    static const char *const rows[][2] = {{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"},
                                          {"\xff\xfe", "//4="}};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stw_buf out = STW_BUF_INIT(100), back = STW_BUF_INIT(100);
        stw_base64_encode(rows[i][0], strlen(rows[i][0]), &out);
        assert_string_equal(stw_buf_str(&out), rows[i][1]);
        assert_int_equal(stw_base64_decode(rows[i][1], strlen(rows[i][1]), &back), 0);
        assert_string_equal(stw_buf_str(&back), rows[i][0]);
        stw_buf_done(&out);
        stw_buf_done(&back);
    }
}

static void test_invalid_base64_is_refused(void **state)
{
    static const char *const rows[] = {
        "Z", "Zg", "Zg=", "Zg===", "Zm9v=", "Z=g=", "Zm-v", "Zm 9v", "====", "Zg==Zg=="};
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct stw_buf out = STW_BUF_INIT(100);
        if (stw_base64_decode(rows[i], strlen(rows[i]), &out) == 0)
            fail_msg("%s was taken", rows[i]);
        stw_buf_done(&out);
    }
}

static void test_base64_accepts_line_breaks_and_has_a_cap(void **state)
{
    struct stw_buf out = STW_BUF_INIT(100), small = STW_BUF_INIT(3);
    (void)state;
    assert_int_equal(stw_base64_decode("Zm9v\r\nYmFy\n", 11, &out), 0);
    assert_string_equal(stw_buf_str(&out), "foobar");
    assert_int_equal(stw_base64_decode("Zm9vYmFy", 8, &small), -1);
    stw_buf_done(&out);
    stw_buf_done(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64_encodes_and_decodes),
        cmocka_unit_test(test_invalid_base64_is_refused),
        cmocka_unit_test(test_base64_accepts_line_breaks_and_has_a_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
