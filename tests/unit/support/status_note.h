/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the statuses of unit tests for kstatus. */
#ifndef STW_TESTS_SUPPORT_STATUS_NOTE_H
#define STW_TESTS_SUPPORT_STATUS_NOTE_H

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Adds an object with this status to the file that STEWARD_STATUSES names, one a line:
 * tests/integration/test_kstatus.py asks kstatus about them. */
static inline void note_status(const char *kind, const json_t *status, int64_t generation)
{
    const char *path = getenv("STEWARD_STATUSES");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    json_t *object =
        json_pack("{s:s, s:s, s:{s:s, s:s, s:I}, s:O}", "apiVersion", "example.com/v1", "kind",
                  kind, "metadata", "name", "a", "namespace", "b", "generation",
                  (json_int_t)generation, "status", (json_t *)(uintptr_t)status);
    assert_non_null(object);
    assert_int_equal(json_dumpf(object, file, JSON_COMPACT), 0);
    assert_int_equal(fputc('\n', file), '\n');
    assert_int_equal(fclose(file), 0);
    json_decref(object);
}

#endif
