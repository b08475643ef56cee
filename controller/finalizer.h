/* SPDX-License-Identifier: Apache-2.0
 *
 * Finalizers: an object with ours is kept until we have removed it.  For kinds that create things
 * that the garbage collector does not know.
 *
 * The webhook adds the finalizer of a kind to new objects.  Those that were created without the webhook
 * have none: call stw_finalizer_add() before anything is made for an object.
 *
 * The API server can delete an object although it has accepted a finalizer meanwhile.  Then `deleting` is
 * run all the same, with the last state of the object; what it writes to the object is not found. */
#ifndef STW_CONTROLLER_FINALIZER_H
#define STW_CONTROLLER_FINALIZER_H

#include "base/util.h"
#include "controller/object.h"

/* The projection of the watch must keep metadata.finalizers, as stw_object_project and its variants do. */
bool stw_finalizer_has(const struct stw_object *o, const char *finalizer);
/* Whether there are others than this one. */
bool stw_finalizer_has_others(const struct stw_object *o, const char *finalizer);

/* Adds it under the resourceVersion that was read; `o` gets the new one.  Returns 1: written, 0: it
 * was there, -1: a conflict (read again) or another error.  Blocks for at most one request; on the
 * worker of the run. */
int stw_finalizer_add(struct stw_run *run, struct stw_object *o, const char *finalizer,
                      struct stw_error *err) STW_MUST_CHECK;
/* Removes it; with the last finalizer the object is gone.  It is not an error if the object is gone
 * already.  Returns 1: written, 0: it was not there, -1: error.  Blocks for at most one request; on
 * the worker of the run. */
int stw_finalizer_remove(struct stw_run *run, struct stw_object *o, const char *finalizer,
                         struct stw_error *err) STW_MUST_CHECK;

#endif
