/* SPDX-License-Identifier: Apache-2.0
 *
 * How a run ends: what people are told by events, the status written, and when the key comes again.
 */
#ifndef STW_CONTROLLER_ENDING_H
#define STW_CONTROLLER_ENDING_H

#include "controller/child.h"
#include "controller/object.h"
#include "controller/verdict.h"

/* Events Created, Updated and DriftRepaired of what was done to the children of `name`. */
void stw_tell_children(const struct stw_run *run, const struct stw_object *o, const char *name,
                       const struct stw_child *children, size_t count);

/* A conflict or a cancelled call of a child: the run ends by it and no status is written.  True:
 * `result` is set. */
bool stw_run_interrupted(struct stw_run *run, const struct stw_child *children, size_t count,
                         struct stw_result *result);

/* Ends the run by its verdict: status.retry, the status when it is news, a warning event when the
 * trouble is a new one.  Takes over `status` (NULL: no memory).  `numbers` (ended by NULL, or
 * NULL): members of the status and types of conditions whose news alone can wait while a rollout
 * goes on. */
void stw_run_end(struct stw_run *run, const struct stw_object *o, const struct stw_verdict *v,
                 json_t *status, const char *const *numbers, struct stw_result *result);

/* The object breaks the rules of its kind.  `status` as above, made by stw_status_invalid(). */
void stw_run_end_invalid(struct stw_run *run, const struct stw_object *o, json_t *status,
                         const char *findings, struct stw_result *result);

/* Writes the status and is done.  1: written, 0: nothing to write, -1: `result` says why. */
int stw_run_write(struct stw_run *run, const struct stw_object *o, json_t *status,
                  struct stw_result *result);

/* An error of the way, not of the object: told by the log and the queue's backoff. */
void stw_run_fail(struct stw_run *run, const struct stw_error *err, struct stw_result *result);

#endif
