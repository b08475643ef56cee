/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/footprint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Resident file-backed memory, in KiB. */
static long resident_file_kib(void)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "re");
    assert_non_null(f);
    while (kib < 0 && fgets(line, sizeof(line), f))
        (void)sscanf(line, "RssFile: %ld", &kib);
    (void)fclose(f);
    return kib;
}

static const char *const words[] = {"relocated", "constants", "stay"};
static int (*volatile compare)(const char *, const char *) = strcmp;

static void assert_drops(void (*drop)(void))
{
    static int counter = 7;
    char *heap = strdup("heap");
    long before = resident_file_kib();
    drop();
    long after = resident_file_kib();
    assert_true(before > 0 && after > 0 && after < before);
    assert_string_equal(words[1], "constants");
    assert_int_equal(compare(heap, "heap"), 0);
    assert_int_equal(counter, 7);
    free(heap);
}

static void test_footprint_drops_code_and_keeps_written_data(void **state)
{
    (void)state;
    assert_drops(stw_footprint_shrink);
    assert_drops(stw_footprint_drop_code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_footprint_drops_code_and_keeps_written_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
