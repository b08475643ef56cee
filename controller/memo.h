/* SPDX-License-Identifier: Apache-2.0
 *
 * What was worked out of an object, for as long as what it was worked out of stays the same.  A new
 * object is looked at several times within seconds, and most of the time its children are the same
 * each time.  The table has a fixed size: of two that meet in a place, the later one stays.  Any
 * thread. */
#ifndef STW_CONTROLLER_MEMO_H
#define STW_CONTROLLER_MEMO_H

#include "base/util.h"

#include <stdbool.h>

struct stw_memo;

struct stw_memo *stw_memo_create(void); /* NULL: no memory */
void stw_memo_destroy(struct stw_memo *m);

/* `what` names the result, such as "configmaps/ns/name"; `inputs` is a hash of all that it depends
 * on. */
bool stw_memo_get(struct stw_memo *m, const char *what, struct stw_hash inputs,
                  struct stw_hash *ret);
void stw_memo_put(struct stw_memo *m, const char *what, struct stw_hash inputs,
                  struct stw_hash result);

#endif
