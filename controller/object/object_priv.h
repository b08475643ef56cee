/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of object.c, for manager/reconcile.c. */
#ifndef STW_CONTROLLER_OBJECT_PRIV_H
#define STW_CONTROLLER_OBJECT_PRIV_H

#include "controller/object.h"

/* stw_object_load() from a text of the cache.  The object has no resourceVersion that a write could
 * succeed with. */
int stw_object_load_text(const struct stw_run *run, const struct stw_buf *text,
                         struct stw_object *ret);

#endif
