/* SPDX-License-Identifier: Apache-2.0
 *
 * What remains of objects that the API server deleted in spite of our finalizer.
 *
 * A DELETE reads the object first.  A finalizer that another request adds before the DELETE is done is
 * accepted, and the object is gone all the same (1.20 to 1.37, see tests/contract/test_guards.py).
 * By then something may have been made for it outside the cluster.  So the last text of such an object
 * is kept, and its deletion is run with that.
 *
 * The texts are those of the cache.  At most STW_REMAINS_MAX are kept: a further one is lost, with a
 * line in the log.  Any thread. */
#ifndef STW_CONTROLLER_REMAINS_H
#define STW_CONTROLLER_REMAINS_H

#include "base/buf.h"
#include "base/util.h"

#include <stdbool.h>

#define STW_REMAINS_MAX 1000U
/* A deletion that cannot be ended is tried as often, and then given up with a line in the log. */
#define STW_REMAINS_TRIES_MAX 1000U

struct stw_remains;

struct stw_remains *stw_remains_create(void) STW_MUST_CHECK; /* NULL: no memory */
void stw_remains_destroy(struct stw_remains *r);             /* NULL is allowed */

/* Keeps a copy of the text; `key` is "KIND NAMESPACE/NAME". */
void stw_remains_keep(struct stw_remains *r, const char *key, const char *text);
/* Appends the text.  -1: there is none. */
int stw_remains_get(struct stw_remains *r, const char *key, struct stw_buf *out);
/* After each try: `done` or too many tries forget it.  False: it is kept for another one. */
bool stw_remains_tried(struct stw_remains *r, const char *key, bool done);

#endif
