/* SPDX-License-Identifier: Apache-2.0
 *
 * Sets of rights, one element per privilege, in a form that both engines share, and their form in a
 * mark.  Pure. */
#ifndef STW_SQL_RIGHTS_H
#define STW_SQL_RIGHTS_H

#include "base/buf.h"
#include "base/json.h"
#include "base/process/memory_budget.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a right is on. */
enum stw_right_level {
    STW_LEVEL_GLOBAL,   /* MySQL *.* */
    STW_LEVEL_DATABASE, /* MySQL db.*; PostgreSQL DATABASE db */
    STW_LEVEL_SCHEMA,   /* PostgreSQL SCHEMA */
    STW_LEVEL_TABLE,    /* PostgreSQL: name "*" is all tables in the schema */
    STW_LEVEL_COLUMN,
    STW_LEVEL_ROUTINE, /* `column` is its type: FUNCTION, PROCEDURE, ... */
    STW_LEVEL_ROLE,    /* `name` is the role, on MySQL `column` its host */
    STW_LEVELS,
};

/* Strings are never NULL; those that do not apply are "". */
struct stw_right {
    const char *database, *schema, *name, *column;
    const char *privilege;
    const char
        *grantor; /* PostgreSQL: a role other than the object's owner that gave it; not compared */
    uint8_t level;
    bool option; /* PostgreSQL: with grant option; a separate element from the one without */
    char *block; /* the memory of the strings; owned by the set */
};

/* Zero-initialised is empty.  Owns its strings. */
struct stw_rights {
    struct stw_right *items;
    size_t count, cap;
    size_t bytes;   /* of the elements and their strings, with malloc's overhead */
    bool too_large; /* over STW_RIGHTS_MAX or STW_RIGHTS_MAX_BYTES: `failed` is set, too */
    bool failed;    /* out of memory, or too large */
    struct stw_kept held;
};
/* Of a set that failed and is not too large. */
#define STW_RIGHTS_NO_MEMORY                                                                       \
    "there is no memory now for all of its rights; it is tried again, and a larger memory limit "  \
    "helps"
/* A run has up to five sets of what its account has. */
#define STW_RIGHTS_MAX ((size_t)50000)
#define STW_RIGHTS_MAX_BYTES ((size_t)8 << 20)
/* How many rights of other clients are read, beside those that are wanted or in the mark: anybody on the server
 * may give an account any number. */
#define STW_RIGHTS_SAMPLE ((size_t)5000)
#define stw_autorights __attribute__((cleanup(stw_rights_done)))

void stw_rights_done(struct stw_rights *s);
/* Copies `r`; NULL strings count as "".  Unsorted until stw_rights_sort. */
void stw_rights_add(struct stw_rights *s, const struct stw_right *r);
/* A set that was computed from another is as incomplete as that one. */
void stw_rights_inherit(struct stw_rights *s, const struct stw_rights *from);
void stw_rights_add_all(struct stw_rights *s, const struct stw_rights *more);
void stw_rights_sort(struct stw_rights *s); /* and removes duplicates */
int stw_right_cmp(const struct stw_right *a, const struct stw_right *b);
bool stw_right_same_scope(const struct stw_right *a, const struct stw_right *b);
bool stw_rights_has(const struct stw_rights *s, const struct stw_right *r);
bool stw_rights_equal(const struct stw_rights *a, const struct stw_rights *b);
/* The number of elements from `at` on that have the same scope. */
size_t stw_rights_scope(const struct stw_rights *s, size_t at);
/* Both inputs must be sorted and `ret` empty; the result is sorted. */
void stw_rights_minus(const struct stw_rights *a, const struct stw_rights *b,
                      struct stw_rights *ret);
void stw_rights_both(const struct stw_rights *a, const struct stw_rights *b,
                     struct stw_rights *ret);
void stw_rights_union(const struct stw_rights *a, const struct stw_rights *b,
                      struct stw_rights *ret);

/* In a mark: [[database, schema, table, [privileges], [those with grant option]], ...]; schema and
 * table are null where they do not apply, and "*" as a MySQL database is *.*.  The membership of a
 * role is [null, null, role, ["MEMBER"], [], "role", host], that on a column [database, schema, table,
 * [privileges], [], "column", name], that on a routine of MySQL [database, null, name, ["EXECUTE"], [],
 * "routine", type]. */
void stw_rights_json(const struct stw_rights *s, struct stw_buf *out);
/* 0, or -1 when `list` is not in the form above.  A set that is too large, or for which there is no memory, has
 * failed (above). */
int stw_rights_parse(struct stw_json list, struct stw_rights *ret);

/* For messages, one line per scope: "SELECT, INSERT ON app.*".  `patterns`: databases are MySQL's
 * patterns; one that matches a single name is shown as that name. */
void stw_rights_text(const struct stw_rights *s, bool patterns, struct stw_buf *out);

#endif
