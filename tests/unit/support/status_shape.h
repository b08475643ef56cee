/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading a status in tests, and checks that hold for the status of every kind. */
#ifndef STW_TESTS_SUPPORT_STATUS_SHAPE_H
#define STW_TESTS_SUPPORT_STATUS_SHAPE_H

#include "base/util.h"
#include "controller/condition.h"
#include "support/status_note.h"

#include <ctype.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static inline const json_t *condition(const json_t *status, const char *type)
{
    return stw_condition_find(json_object_get(status, "conditions"), type);
}

/* "" if it is absent. */
static inline const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* The reason is one CamelCase word; the message is not empty, and within its limit. */
static inline void check_condition(const json_t *c)
{
    const char *reason = text(c, "reason");
    assert_true(isupper((unsigned char)reason[0]));
    for (const char *r = reason; *r; r++)
        assert_true(isalnum((unsigned char)*r));
    assert_in_range(strlen(text(c, "message")), 1, STW_CONDITION_MESSAGE_MAX);
}

/* kstatus: only conditions of `order`, which NULL ends, in that order; never both Reconciling and
 * Stalled; all of one generation. */
static inline void check_conditions(const json_t *status, const char *const *order,
                                    int64_t generation)
{
    const json_t *list = json_object_get(status, "conditions"), *c;
    size_t i;
    json_array_foreach ((json_t *)(uintptr_t)list, i, c) {
        while (*order && !stw_streq(*order, text(c, "type")))
            order++;
        assert_non_null(*order);
        check_condition(c);
        assert_int_equal(json_integer_value(json_object_get(c, "observedGeneration")), generation);
    }
    assert_false(condition(status, "Reconciling") && condition(status, "Stalled"));
    assert_int_equal(json_integer_value(json_object_get(status, "observedGeneration")), generation);
}

#endif
