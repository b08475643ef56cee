/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches of objects that custom objects own in any number and under any names, such as Jobs.
 * (Children that each object of a kind has once, under its own name, are rows: reconcile.h.)
 *
 * A kind writes a projection of its own that begins with stw_dependent_project, and uses the other
 * functions as they are:
 *
 *     static void project_job(const struct stw_operator *op, struct stw_json job,
 *                             struct stw_buf *out)
 *     {
 *         if (!stw_dependent_project(op, job, out))
 *             return;
 *         ... members of the kind ...
 *         stw_buf_addc(out, '}');
 *     }
 *     static const struct stw_watch jobs = {.resource = &job, .project = project_job,
 *         .index = stw_dependent_index, .changed = stw_dependent_changed}; */
#ifndef STW_CONTROLLER_DEPENDENT_H
#define STW_CONTROLLER_DEPENDENT_H

#include "controller/controller.h"

/* Writes {"owner":[kind, name, uid],"name":...,"uid":... of the object, "gone":true if it is being
 * deleted, without the closing brace.  False, and nothing is written: no kind of these controllers
 * is its controller.  Kinds are compared with their groups. */
bool stw_dependent_project(const struct stw_operator *op, struct stw_json object,
                           struct stw_buf *out);
/* Index "owner": the uid of the owner.  A name can be used again, a uid is not. */
void stw_dependent_index(void *ctx, struct stw_json projected, struct stw_buf *out);
/* Whether this owner has the object of a cached text. */
bool stw_dependent_is_of(struct stw_json projected, const char *owner_uid);
/* Enqueues the owner.  When an object is gone, it also enqueues its former owner. */
void stw_dependent_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                           const char *old_text, const char *new_text);
/* The keys of the objects that this owner has, for stw_keys_next. */
void stw_dependent_keys(const struct stw_run *run, const struct stw_watch *w, const char *owner_uid,
                        struct stw_buf *out);

#endif
