/* SPDX-License-Identifier: Apache-2.0
 *
 * jansson trees: reads and sets members, and writes compact JSON text, the same as
 * json_dumps(tree, JSON_COMPACT) does, with a quarter of the instructions: a reconcile writes each
 * of its manifests. */
#ifndef STW_KUBE_TREE_H
#define STW_KUBE_TREE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "base/util.h"

#include <jansson.h>
#include <stdint.h>

/* The tree of a value, as text that is read back: what other JSON readers refuse, NUL in a string and
 * an integer outside of int64, is in it.  NULL: no memory, STW_JSON_DEEP or a key with NUL is in it, or
 * `v` is absent. */
json_t *stw_tree_read(struct stw_json v);

/* As json_pack() of jansson.  If it returns NULL because of an argument that is NULL, the path of that
 * member is kept for stw_tree_take_missing(): trees that are packed into others need it, too.  On any
 * thread. */
json_t *stw_tree_pack(const char *format, ...);
/* What the last stw_tree_pack() of this thread that returned NULL lacked ("metadata.labels.app"), and
 * forgets it; "": nothing is known.  `out` may be NULL. */
#define STW_TREE_PATH_LEN 200
void stw_tree_take_missing(char out[STW_TREE_PATH_LEN]);
/* There is no tree of `what`, "the manifest of Service": says what it lacks, or that there is no memory.
 * Always returns -1. */
int stw_tree_fail(const char *what, struct stw_error *err);

/* A part of a tree that is being made could not be read: memory ran out, or a key has NUL.  On any
 * thread. */
void stw_tree_note_unread(void);
/* `tree`; or NULL, and it is freed, if that was noted since the last call on this thread: what was made
 * lacks a part.  The children of rows are asked about; other manifests pass it.  `tree` may be NULL:
 * forgets what was before. */
json_t *stw_tree_whole(json_t *tree);

/* "" if the member is not there or not a string; borrowed from `object`, which may be NULL. */
const char *stw_tree_text(const json_t *object, const char *key);
void stw_tree_copy(const json_t *object, const char *key, char *out, size_t size); /* cut */
/* A time in seconds since the epoch; `none` if the member is not there or not a time. */
int64_t stw_tree_time(const json_t *object, const char *key, int64_t none);

/* Sets a string member; NULL or "" leaves the object as it is. */
void stw_tree_set_text(json_t *object, const char *key, const char *text);
/* Sets a time, in seconds since the epoch; `none` leaves the object as it is. */
void stw_tree_set_time(json_t *object, const char *key, int64_t at, int64_t none);

/* Appends the text.  Returns 0, or -1: out of memory, `out` is full, or nested too deeply. */
int stw_tree_write(const json_t *tree, struct stw_buf *out) STW_MUST_CHECK;

/* A count: any client that may write the status can put any number there, so it is taken as at least
 * 0 and at most 2^53, with which arithmetic does not overflow.  0: the member is not an integer. */
#define STW_TREE_COUNT_MAX (INT64_C(1) << 53)
static inline int64_t stw_tree_count(const json_t *object, const char *key)
{
    json_int_t n = json_integer_value(json_object_get(object, key));
    return n < 0 ? 0 : n > STW_TREE_COUNT_MAX ? STW_TREE_COUNT_MAX : (int64_t)n;
}

#endif
