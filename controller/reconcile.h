/* SPDX-License-Identifier: Apache-2.0
 *
 * The head of every reconcile: loads the object of a run, handles what is the same for all kinds
 * (missing, being deleted, paused, invalid, undecodable), and calls the kind for the rest.  For
 * kinds that state their children as rows it also ensures the children, and derives conditions,
 * verdict and status from them. */
#ifndef STW_CONTROLLER_RECONCILE_H
#define STW_CONTROLLER_RECONCILE_H

#include "controller/child.h"
#include "controller/object.h"
#include "controller/verdict.h"
#include "schema/kind.h"

#include <stddef.h>

/* What every run over an object has.  All of it is freed after the run. */
#define STW_SUBJECT_MEMBERS                                                                        \
    struct stw_run *run;                                                                           \
    struct stw_object object;                                                                      \
    struct stw_owner owner; /* of the children: the object */                                      \
    char uid[64];           /* what owner.uid points to, also when the object is read again */     \
    struct stw_arena *arena;                                                                       \
    json_t *selector;           /* what owner.selector points to, or NULL */                       \
    bool adoption_checked;      /* of all children */                                              \
    struct stw_child *children; /* child_count of them, in the order of the rows */                \
    size_t child_count

/* One run over one object: the object, its owner reference and its children. */
struct stw_subject {
    STW_SUBJECT_MEMBERS;
};

/* The first member of a kind's struct for one run: `subject`, and its members by their own names. */
#define STW_SUBJECT                                                                                \
    union {                                                                                        \
        struct stw_subject subject;                                                                \
        struct {                                                                                   \
            STW_SUBJECT_MEMBERS;                                                                   \
        };                                                                                         \
    }

/* In a controller: what follows from its kind.  `name_` is the kind's singular, a literal. */
#define STW_CONTROLLER_OF(name_, kind_)                                                            \
    .name = (name_), .kind = &(kind_), .resource = &(kind_).resource
/* In a controller whose objects need no index and no projection of their own. */
#define STW_OWN_WATCH(kind_)                                                                       \
    .own = &(const struct stw_watch)                                                               \
    {                                                                                              \
        .resource = &(kind_).resource, .project = stw_object_project, .for_admission = true,       \
        .changed = stw_watch_own_changed                                                           \
    }

/* In a controller: the struct of one run, and the member that gets the decoded spec. */
#define STW_RUN_STATE(type, member) .run_size = sizeof(type), .spec_offset = offsetof(type, member)

/* A child that the objects of the kind have, under the object's name. */
struct stw_child_row {
    const char *condition; /* its type: "ConfigMapSynced" */
    const struct stw_watch *watch;
    /* The desired object (manifest.h); owned by the caller, NULL if out of memory.  `subject` is the
     * kind's struct of this run. */
    json_t *(*make)(const void *subject);
    /* Whether this object wants the child; if not, it is removed and has no condition.  NULL: always. */
    bool (*wanted)(const void *subject);
    /* Of a Deployment: how many replicas are wanted; or NULL: its rollout is not judged. */
    int64_t (*replicas)(const void *subject);
    /* From which fields of the object its parts come, for refusals of the API server (origin.h); or
     * NULL: they name the fields of the child. */
    const struct stw_origin *origins;
    /* While it is not NULL, an object of a user that is to be adopted stays as it is: what must come
     * first ("the new pods are ready"); a constant, or in the kind's struct of this run.  The kind is
     * woken by what it waits for.  NULL: nothing but the pods of the kind's Deployment, for a Service,
     * an Ingress and an HTTPRoute. */
    const char *(*adopt_after)(const void *subject);
    /* Reasons of `condition` that mean that the child was not applied, besides those of failures;
     * ended by NULL; or NULL. */
    const char *const *not_applied;
    /* Of a child with a pod template: members of the spec that do not change the template; ended by
     * NULL.  NULL: unknown, so that a new version of the program applies its template (template.h) at
     * the first change of any member of the spec. */
    const char *const *outside_template;
};

/* The status of a run that checked nothing, if the kind adds nothing.  NULL if out of memory. */
json_t *stw_status_unchecked(const struct stw_subject *s, enum stw_unchecked why,
                             const char *findings);

/* One run.  Called by the workers. */
void stw_reconcile(struct stw_run *run, struct stw_result *result);

/* --- for kinds with rows */

/* Prepares child `i`.  `input`: what its desired object depends on besides uid and generation. */
void stw_children_begin(struct stw_subject *s, size_t i, int64_t input);
/* Of an object that adopts: checks all children, all or nothing (stw_children_check_adoption), once in a
 * run.  stw_children_ensure() does it; call it before any other write of a child. */
void stw_children_check(struct stw_subject *s);
/* Prepares it and makes it so: at most one write, none when the cache shows that nothing differs.
 * What was found or failed is in s->children[i] until the end of the run, and stw_children_judge()
 * reports it.  Blocks for one request; on the worker of the run. */
void stw_children_ensure(struct stw_subject *s, size_t i);
/* Computes the verdict and the status.  The caller owns *ret_status; NULL: out of memory, and the
 * verdict may then be unset. */
void stw_children_judge(struct stw_subject *s, struct stw_verdict *v, json_t **ret_status);

#endif
