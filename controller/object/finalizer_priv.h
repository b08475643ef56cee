/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of finalizers of an object (finalizer_list.c). */
#ifndef STW_CONTROLLER_FINALIZER_PRIV_H
#define STW_CONTROLLER_FINALIZER_PRIV_H

#include "controller/object.h"

#include <stdbool.h>

struct stw_json stw_finalizer_list(const struct stw_object *o);

/* Whether the last text of the cache, of an object that is gone, has this finalizer, and its deletion had
 * not begun. */
bool stw_finalizer_overtaken(const char *text, const char *finalizer);

#endif
