/* SPDX-License-Identifier: Apache-2.0
 *
 * Hostile values of a field: JSON texts, and texts that are none. */
#ifndef STW_TESTS_HOSTILE_VALUES_H
#define STW_TESTS_HOSTILE_VALUES_H

#include "base/buf.h"
#include "schema/field.h"

/* Values that every field gets; they do not depend on its type. */
extern const char *const hostile_texts[];
extern const uint32_t hostile_text_count;

/* How many values a field has: those above, then its limits, enums and sizes. */
uint32_t hostile_value_count(const struct stw_field *row);
void hostile_value(const struct stw_field *row, uint32_t index, struct stw_buf *out);
/* A value that the type and the range of the row allow; `variant` chooses among words. */
void hostile_example(const struct stw_field *row, uint32_t variant, struct stw_buf *out);
extern const uint32_t hostile_example_count;
/* The rows below a row, or NULL. */
const struct stw_field *hostile_rows_below(const struct stw_field *row);

#endif
