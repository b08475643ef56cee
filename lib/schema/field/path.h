/* SPDX-License-Identifier: Apache-2.0
 *
 * Paths of values in an object. */
#ifndef STW_SCHEMA_PATH_H
#define STW_SCHEMA_PATH_H

#include "base/buf.h"
#include "base/json.h"

#include <stdint.h>

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

#endif
