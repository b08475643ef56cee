/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds an object's status.  No I/O; stw_object_write_status() writes it. */
#ifndef STW_CONTROLLER_STATUS_H
#define STW_CONTROLLER_STATUS_H

#include "controller/child.h"
#include "controller/condition.h"
#include "controller/object.h"
#include "controller/verdict.h"

/* A status under construction. */
struct stw_status {
    const struct stw_object *object;
    struct stw_conditions conditions; /* in the order in which they are set */
    json_t *tree;                     /* NULL if out of memory; json_object_set accepts that */
    char now[STW_TIME_LEN];
};

/* Begins with the members of the old status that are listed in `keep` (ended by NULL; NULL:
 * none). */
void stw_status_begin(struct stw_status *s, const struct stw_run *run, const struct stw_object *o,
                      const char *const *keep);
/* Adds the conditions and observedGeneration.  The caller owns the result; NULL if out of
 * memory. */
json_t *stw_status_end(struct stw_status *s);

/* Statuses of runs that checked nothing: everything stays except Ready, Reconciling, Stalled and
 * retry.  NULL if out of memory. */
json_t *stw_status_invalid(const struct stw_run *run, const struct stw_object *o,
                           const char *findings);
json_t *stw_status_paused(const struct stw_run *run, const struct stw_object *o);

/* Whether, by the condition `type` of the old status, a child was once as this generation wants it.
 * `not_applied` (ended by NULL, or NULL): reasons of the kind that mean it was not. */
bool stw_status_was_applied(const struct stw_object *o, const char *type,
                            const char *const *not_applied);

/* The rollout of the Deployment `c`, for stw_aspect_rollout.  Setting an annotation also increments
 * a Deployment's generation (PrepareForUpdate in its strategy), so for a moment its status looks
 * outdated.  A Deployment that was Ready at this generation of the object and was not written in
 * this run stays so: if more than an annotation has changed, the numbers of its status will show
 * it. */
struct stw_rollout stw_status_rollout(const struct stw_object *o, const struct stw_child *c);

/* Updates status.repairs and status.lastRepair. */
void stw_status_add_repairs(struct stw_status *s, const struct stw_child *children, size_t count);

/* True if only `numbers` (members of the status and types of conditions, ended by NULL), messages
 * and retry differ. */
bool stw_status_is_minor(const json_t *old_status, const json_t *new_status,
                         const char *const *numbers);

#endif
