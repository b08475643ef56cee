/* SPDX-License-Identifier: Apache-2.0
 *
 * A cache of results computed from an object, valid while its inputs stay the same.  A new object
 * is reconciled several times within seconds, and mostly with the same children each time.  The
 * table has a fixed size: a new entry replaces the one in its slot.  Any thread. */
#ifndef STW_CONTROLLER_MEMO_H
#define STW_CONTROLLER_MEMO_H

#include "base/util.h"

#include <stdbool.h>

struct stw_memo;

struct stw_memo *stw_memo_create(void) STW_MUST_CHECK; /* NULL: no memory */
void stw_memo_destroy(struct stw_memo *m);

/* Digests of a desired object and of its pod template (zero: it has none). */
struct stw_digests {
    struct stw_hash whole, template;
};

/* `what` names the result, such as "configmaps/ns/name"; `inputs` is a hash of all that it depends
 * on. */
bool stw_memo_get(struct stw_memo *m, const char *what, struct stw_hash inputs,
                  struct stw_digests *ret);
void stw_memo_put(struct stw_memo *m, const char *what, struct stw_hash inputs,
                  struct stw_digests result);

#endif
