/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of a run: records events, writes the status and decides when the key is run again. */
#ifndef STW_CONTROLLER_OUTCOME_H
#define STW_CONTROLLER_OUTCOME_H

#include "controller/child.h"
#include "controller/object.h"
#include "controller/verdict.h"

/* Records the events Created, Updated, Deleted and DriftRepaired for the children of `name`. */
void stw_tell_children(const struct stw_run *run, const struct stw_object *o, const char *name,
                       const struct stw_child *children, size_t count);

/* A conflict or a cancelled call for a child ends the run, without writing a status.  True:
 * `result` is set. */
bool stw_run_interrupted(struct stw_run *run, const struct stw_child *children, size_t count,
                         struct stw_result *result);

/* Ends the run with its verdict: sets status.retry, writes the status if it has changed, and
 * records a warning event for a new problem.  Takes ownership of `status` (NULL: no memory).
 * `numbers` (ended by NULL, or NULL): members of the status and types of conditions.  If only these
 * change, the write can wait while a rollout is in progress. */
void stw_run_end(struct stw_run *run, const struct stw_object *o, const struct stw_verdict *v,
                 json_t *status, const char *const *numbers, struct stw_result *result);

/* Records the warning event of a verdict whose status was written by other means, if the status of `o`
 * does not have this problem yet.  `failed`: the worker logs it. */
void stw_run_tell(const struct stw_run *run, const struct stw_object *o,
                  const struct stw_verdict *v, bool failed);

/* The whole end of a run that checked `all` (at least one aspect): verdict, conditions, status.
 * `members` are added to the status; takes ownership of them, NULL: none.  `all` and its errors are
 * borrowed.  If the error of an aspect is a conflict or a cancelled call, the run ends without
 * writing a status.  `result` has how the run ended, and when the next one is due.  Blocks for at most
 * one write; on the worker of the run. */
void stw_run_report(struct stw_run *run, const struct stw_object *o, const struct stw_aspect *all,
                    size_t count, json_t *members, struct stw_result *result);

/* The object is invalid under the rules of its kind.  `status` as above, from
 * stw_status_invalid(). */
void stw_run_end_invalid(struct stw_run *run, const struct stw_object *o, json_t *status,
                         const char *findings, struct stw_result *result);

/* Writes the status; takes ownership of it.  1: written, 0: nothing to write, -1: `result` has the
 * error. */
int stw_run_write(struct stw_run *run, const struct stw_object *o, json_t *status,
                  struct stw_result *result);

/* Ends a run with an error that is not the object's fault: sets `result`, which the worker reports to
 * the log and the queue.  After a conflict the object is soon read and reconciled again.  If it is
 * gone, its watch says so.  After any other error the wait grows with each failure, from 1 s to
 * 5 min, and is at least what Retry-After asked for.  `err` is copied.  No I/O; on the worker of the
 * run. */
void stw_run_fail(struct stw_run *run, const struct stw_error *err, struct stw_result *result);

#endif
