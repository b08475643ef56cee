/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void test_merge_patch_contains_the_differences(void **state)
{
    static const char *const rows[][3] = {
        /* from, to, patch (NULL: none) */
        {"{}", "{}", NULL},
        {"{\"a\":1,\"b\":[1]}", "{\"b\":[1],\"a\":1}", NULL},
        {"{}", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}"},
        {"{\"a\":1}", "{}", "{\"a\":null}"},
        {"{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"b\":3}}", "{\"a\":{\"b\":3,\"c\":null}}"},
        {"{\"a\":[1,2]}", "{\"a\":[1]}", "{\"a\":[1]}"},
        {"{\"a\":1}", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}"},
        {"{\"a\":{\"b\":1}}", "{\"a\":1}", "{\"a\":1}"},
        {"{\"a\":{\"b\":1}}", "{\"a\":{}}", "{\"a\":{\"b\":null}}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        json_auto_t *from = json_loads(rows[i][0], 0, NULL), *to = json_loads(rows[i][1], 0, NULL),
                    *want = rows[i][2] ? json_loads(rows[i][2], 0, NULL) : NULL,
                    *patch = stw_merge_diff(from, to);
        if (!(want ? json_equal(patch, want) : patch == NULL))
            fail_msg("row %zu", i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_merge_patch_contains_the_differences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
