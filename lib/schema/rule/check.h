/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that the rules of a kind may apply to parts of a spec, in addition to those that
 * stw_kind_validate makes of all of it. */
#ifndef STW_SCHEMA_CHECK_H
#define STW_SCHEMA_CHECK_H

#include "schema/field/path.h"
#include "schema/kind.h"

/* The integer that a value is; 3.0 is one, as in the API server.  -1: it is not an integer. */
int stw_field_int(struct stw_json value, int64_t *ret);
/* Checks types, ranges, enums, required and unknown members of `object` against its table. */
void stw_check_fields(const struct stw_path *at, const struct stw_field *rows,
                      struct stw_json object, struct stw_arena *arena, struct stw_findings *f);
/* Reports immutable fields of `now` that differ from `old`. */
void stw_check_immutable(const struct stw_path *at, const struct stw_field *rows,
                         struct stw_json now, struct stw_json old, struct stw_findings *f);
/* On CREATE: warns when an object of another kind, whose children have the same names, has this
 * name. */
void stw_warn_of_namesake(const struct stw_admission *a, const char *plural, const char *kind,
                          struct stw_findings *f);

#endif
