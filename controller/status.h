/* SPDX-License-Identifier: Apache-2.0
 *
 * Building an object's status.  No I/O; stw_object_write_status() writes it. */
#ifndef STW_CONTROLLER_STATUS_H
#define STW_CONTROLLER_STATUS_H

#include "controller/child.h"
#include "controller/condition.h"
#include "controller/object.h"
#include "controller/verdict.h"

/* A status in the making. */
struct stw_status {
    const struct stw_object *object;
    struct stw_conditions conditions; /* set in the order in which they shall stand */
    json_t *tree;                     /* NULL without memory, which json_object_set takes */
    char now[STW_TIME_LEN];
};

/* Begins with what of the old status stays as it is: `keep`, ended by NULL; NULL: nothing. */
void stw_status_begin(struct stw_status *s, const struct stw_run *run, const struct stw_object *o,
                      const char *const *keep);
/* With conditions and observedGeneration; the caller's.  NULL without memory. */
json_t *stw_status_end(struct stw_status *s);

/* Statuses of passes that looked at nothing: all stays, but for Ready, Reconciling, Stalled and
 * retry.  NULL without memory. */
json_t *stw_status_invalid(const struct stw_run *run, const struct stw_object *o,
                           const char *findings);
json_t *stw_status_paused(const struct stw_run *run, const struct stw_object *o);

/* The old status told, by the condition `type`, that a child was once as this generation wants it.
 * `not_applied` (ended by NULL, or NULL): reasons of the kind that say it was not. */
bool stw_status_was_applied(const struct stw_object *o, const char *type,
                            const char *const *not_applied);

/* The rollout of the Deployment `c`, for stw_aspect_rollout.  An annotation that somebody sets
 * moves a Deployment's generation as well (its strategy's PrepareForUpdate), and for a moment its
 * status looks old.  What was Ready at this generation, and was not written just now, goes on to
 * be: when more than an annotation has changed, the numbers of the status will tell. */
struct stw_rollout stw_status_rollout(const struct stw_object *o, const struct stw_child *c);

/* Adds up status.repairs and status.lastRepair. */
void stw_status_add_repairs(struct stw_status *s, const struct stw_child *children, size_t count);

/* The only news are `numbers` (members of the status and types of conditions, ended by NULL),
 * messages and retry. */
bool stw_status_is_minor(const json_t *old_status, const json_t *new_status,
                         const char *const *numbers);

#endif
