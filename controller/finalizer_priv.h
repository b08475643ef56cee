/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of finalizer.c, for lookup.c. */
#ifndef STW_CONTROLLER_FINALIZER_PRIV_H
#define STW_CONTROLLER_FINALIZER_PRIV_H

#include <stdbool.h>

/* Whether the last text of the cache, of an object that is gone, has this finalizer, and its deletion had
 * not begun. */
bool stw_finalizer_overtaken(const char *text, const char *finalizer);

#endif
