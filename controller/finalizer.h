/* SPDX-License-Identifier: Apache-2.0
 *
 * Finalizers: an object that has ours stays until we have taken it away.  For kinds that make
 * things which no garbage collector finds. */
#ifndef STW_CONTROLLER_FINALIZER_H
#define STW_CONTROLLER_FINALIZER_H

#include "controller/object.h"

/* The projection of the watch keeps metadata.finalizers: stw_object_project_packed. */
bool stw_finalizer_has(const struct stw_object *o, const char *finalizer);
/* Any but this one. */
bool stw_finalizer_has_others(const struct stw_object *o, const char *finalizer);

/* Adds it, under the resourceVersion that was read; `o` gets the new one.  1: written, 0: it was
 * there, -1: a conflict (read again) or another error. */
int stw_finalizer_add(struct stw_run *run, struct stw_object *o, const char *finalizer,
                      struct stw_error *err);
/* Takes it away, and with the last one the object is gone.  An object that is gone already is fine.
 * As above. */
int stw_finalizer_remove(struct stw_run *run, struct stw_object *o, const char *finalizer,
                         struct stw_error *err);

#endif
