/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this module: the arena's internals, paths, and the walkers over field
 * tables. */
#ifndef STW_KINDS_KIND_PRIV_H
#define STW_KINDS_KIND_PRIV_H

#include "kinds/kind.h"

#include <stdalign.h>

/* The first block is embedded, so that an arena on the stack needs no allocation for a usual
 * object. */
struct stw_arena {
    struct stw_arena_block *blocks;
    char *at;
    size_t left;
    alignas(16) char first[4096];
};

void stw_arena_init(struct stw_arena *a);
void stw_arena_done(struct stw_arena *a);
void *stw_arena_alloc(struct stw_arena *a, size_t size); /* NULL: no memory */
/* Decoded, NUL-terminated copy of a string; NULL when it is not a string or there is no memory. */
const char *stw_arena_str(struct stw_arena *a, struct stw_json string);

/* The position of a walker: a chain of steps on the stack, formatted only when something is
 * found. */
struct stw_path {
    const struct stw_path *up; /* NULL: the object */
    const char *name;          /* a field; NULL: `key`, or `index` when that is absent */
    struct stw_json key;       /* of a map */
    uint32_t index;            /* of a list */
};

void stw_path_text(const struct stw_path *p, struct stw_buf *out);    /* spec.x[key].y[0] */
void stw_path_pointer(const struct stw_path *p, struct stw_buf *out); /* RFC 6901 */
/* The value at a path as stw_path_text wrote it, absent when there is none. */
struct stw_json stw_path_find(struct stw_json object, const char *text);

/* Whether a present value has the type of its row, and its integer (3.0 is one, as in the API
 * server). */
bool stw_field_fits(const struct stw_field *row, struct stw_json value);
int stw_field_int(struct stw_json value, int64_t *ret);
const char *stw_field_type_text(enum stw_field_type type); /* "an integer" */

/* Maximums: entries of a list or map whose row states none, members of an object that has a table,
 * values in an object that has none, and values in a spec. */
#define STW_ENTRIES_MAX 1000
#define STW_MEMBERS_MAX 1000
#define STW_RAW_VALUES_MAX 4096
#define STW_SPEC_VALUES_MAX 32768

/* The most entries that a LIST or MAP may have. */
static inline int64_t stw_field_entries_max(const struct stw_field *row)
{
    return row->has_range ? row->max : STW_ENTRIES_MAX;
}

/* Checks types, ranges, enums, required and unknown members of `object` against its table. */
void stw_check_fields(const struct stw_path *at, const struct stw_field *rows,
                      struct stw_json object, struct stw_arena *arena, struct stw_findings *f);
/* Reports a member that is in no table. */
void stw_check_unknown(const struct stw_path *at, struct stw_json key, struct stw_findings *f);
/* Reports immutable fields of `now` that differ from `old`. */
void stw_check_immutable(const struct stw_path *at, const struct stw_field *rows,
                         struct stw_json now, struct stw_json old, struct stw_findings *f);
/* Checks metadata.name and steward's annotations. */
void stw_check_metadata(const struct stw_admission *a, struct stw_findings *f);

/* On CREATE: warns when an object of another kind, whose children have the same names, has this
 * name. */
void stw_warn_of_namesake(const struct stw_admission *a, const char *plural, const char *kind,
                          struct stw_findings *f);

/* Turns errors from `first` on that existed before this UPDATE into warnings. */
void stw_ratchet(const struct stw_admission *a, size_t first, struct stw_findings *f);
/* Reports everything that is wrong with a->object, regardless of the old object. */
void stw_kind_judge(const struct stw_admission *a, struct stw_findings *f);

void stw_findings_drop(struct stw_findings *f, size_t index); /* removes one error */

/* The status fields that every kind has. */
extern const struct stw_field stw_status_common[];

#endif
