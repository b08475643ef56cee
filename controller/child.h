/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that a custom object owns: how they are cached (as a digest instead of the object) and
 * how they are created and corrected.  An object with another controller is never written to. */
#ifndef STW_CONTROLLER_CHILD_H
#define STW_CONTROLLER_CHILD_H

#include "base/util.h"
#include "controller/controller.h"
#include "controller/origin.h"
#include "controller/template.h"
#include "kube/owned.h"

#include <jansson.h>

/* The built-in kinds that steward creates.  ConfigMaps, Deployments and Ingresses are watched by the label
 * app.kubernetes.io/managed-by=NAME.  All Services are watched, but only ours and those with a
 * node port are cached, so that a taken port can be traced to its holder (index
 * "services.nodePort"). */
extern const struct stw_watch stw_watch_configmaps, stw_watch_deployments, stw_watch_services,
    stw_watch_ingresses;
/* In the version that the server has: v2, v2beta2 or v1 of autoscalers; v1 or v1beta1 of disruption
 * budgets. */
extern const struct stw_watch stw_watch_autoscalers, stw_watch_disruption_budgets;
/* Of the Prometheus operator and the Gateway API: optional. */
extern const struct stw_watch stw_watch_pod_monitors, stw_watch_http_routes;

/* A watch for children of any other kind, in a row and wherever else the kind names it:
 *
 *     static const struct stw_resource job = {"batch", "v1", "Job", "jobs", true};
 *     static const struct stw_watch jobs = STW_CHILD_WATCH(&job);
 *
 * One of a CustomResourceDefinition that the server may lack needs `.optional = true` besides: use
 * STW_CHILD_WATCH_MEMBERS then. */
#define STW_CHILD_WATCH(resource_)                                                                 \
    {                                                                                              \
        STW_CHILD_WATCH_MEMBERS(resource_)                                                         \
    }
#define STW_CHILD_WATCH_MEMBERS(resource_)                                                         \
    .resource = (resource_), .managed = true, .project = stw_child_project,                        \
    .changed = stw_child_changed
void stw_child_project(const struct stw_operator *op, struct stw_json object, struct stw_buf *out);
void stw_child_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                       const char *old_text, const char *new_text);

/* The fields that `kubectl rollout status` uses. */
struct stw_rollout {
    int64_t generation, observed_generation;
    int64_t replicas, updated, available; /* of the status */
    /* For controllers whose Deployments other clients may scale: */
    int64_t wanted, ready; /* spec.replicas; of the status */
    bool scaled_by_us;     /* our field manager owns spec.replicas */
    bool to_zero;          /* spec.replicas is 0 */
    char stuck_reason[64]; /* "ProgressDeadlineExceeded", "ReplicaFailure" or "" */
    char stuck_message[256];
    /* While the API server refuses its pods (ReplicaFailure, FailedCreate): */
    int64_t refused_us; /* since when, or the latest retry by us; 0: it does not */
    struct stw_hash
        retried_for;   /* what the user had asked for at that retry; zero: there was none */
    uint64_t retry_ms; /* after stw_child_ensure(): until the next one; 0: none is due */
};

/* What its controller reports of a child: ScalingActive of a HorizontalPodAutoscaler; of an Ingress
 * that it has an address; of an HTTPRoute that its Gateways accept it and that what it refers to is there. */
struct stw_child_report {
    bool reported, active;         /* there is a report; it is true */
    char reason[64], message[256]; /* why it is not */
};

/* A cached child, decoded. */
struct stw_child_live {
    bool terminating;
    bool unserved; /* its controller is named with a version that the kind does not have */
    char uid[64], resource_version[STW_RV_LEN];
    char owner_kind[64], owner_name[254], owner_uid[64]; /* its controller; "" for none */
    struct stw_hash digest;     /* of the fields that the controller's field manager owns */
    struct stw_hash template;   /* the part of it from the pod template; zero: it has none */
    int64_t node_port;          /* of a Service: the first; 0 for none */
    struct stw_rollout rollout; /* of a Deployment */
    struct stw_child_report report;
    bool
        adopted; /* it was there before its owner, which it names in an annotation: see child/adopt.c */
};

/* Decodes a cached text of these watches.  -1: the text is invalid. */
int stw_child_read(const char *text, size_t len, struct stw_child_live *ret);

enum stw_child_state {
    STW_CHILD_SYNCED,  /* as wanted; nothing was written */
    STW_CHILD_ABSENT,  /* as wanted: it does not exist */
    STW_CHILD_REMOVED, /* deleted by this call */
    STW_CHILD_CREATED,
    STW_CHILD_UPDATED,
    STW_CHILD_REPAIRED,    /* another client had changed or deleted it; see `fields` */
    STW_CHILD_TERMINATING, /* one of this name is being deleted: wait; see also `err` */
    STW_CHILD_FOREIGN,     /* another owner's; `err` names the owner */
    STW_CHILD_HOT_LOOP,    /* written too often */
    STW_CHILD_NOT_SERVED,  /* of an optional watch: the server lacks the resource; see `err` */
    STW_CHILD_NOT_ALLOWED, /* of an optional watch: it may not be listed; see `err` */
    STW_CHILD_FAILED,      /* `err` */
    STW_CHILD_UNREADABLE,  /* the server has one that cannot be read; `err` says why */
    STW_CHILD_NOT_ADOPTED, /* it, or another child, cannot be adopted: nothing was; see `err` */
    STW_CHILD_HELD, /* it is adopted later: see stw_adoption_waits(); or `err` says what it waits for */
};

/* The custom object. */
struct stw_owner {
    const char *kind, *ns, *name, *uid;
    bool adopt; /* take over an object without a controller */
    /* Changes with what a user asks for: the generation and the annotation reconcile-at.  Then a
     * child that another client kept changing is written again. */
    uint64_t asked;
    /* The selector of the pods that the kind's Deployment had when it was adopted, which cannot be
     * changed; NULL: the usual one.  Borrowed. */
    const json_t *selector;
    struct stw_json
        object; /* the whole object, whose fields a refusal names (origin.h), or absent */
};

/* What is known of a child that is not ours, before anything is written. */
struct stw_adoption {
    enum {
        STW_ADOPTION_UNKNOWN,
        STW_ADOPTION_NOT_NEEDED, /* it is ours, or not wanted */
        STW_ADOPTION_MISSING,    /* it will be created */
        STW_ADOPTION_FOREIGN,    /* another one's */
        STW_ADOPTION_FREE,       /* without a controller: it may be adopted */
        STW_ADOPTION_REFUSED, /* no child may be adopted or created; `err` of the child says why */
    } answer;
    char uid[64], resource_version[STW_RV_LEN]; /* of the object without a controller */
    int64_t generation;                         /* 0: it has none */
    struct stw_child *after; /* the Deployment whose pods must be available first, or NULL */
    /* What must come first besides: "2 members are ready"; NULL: nothing.  From adopt_after() of a row,
     * or set after the check by kinds that call stw_child_ensure() themselves.  Borrowed. */
    const char *until;
};

struct stw_child {
    const struct stw_watch *watch;
    const char *name; /* metadata.name of desired */
    /* With apiVersion, kind, metadata and the ownerReference; borrowed.  NULL: make() creates it on
     * demand, or returns NULL when out of memory. */
    const json_t *desired;
    json_t *(*make)(const void *ctx);
    const void *ctx;
    struct stw_hash inputs;           /* of all that make() depends on; zero: call it each time */
    bool applied_before;              /* by the status: it was once as this generation wants it */
    const struct stw_origin *origins; /* of its fields, for the text of `err`; or NULL */
    /* By stw_child_know_template(); zero: the template is applied when it differs.  Afterwards: what
     * is to be remembered. */
    struct stw_template template;

    enum stw_child_state state;
    struct stw_error err;
    struct stw_child_live live; /* afterwards; zero when it does not exist */
    char fields[256];           /* for REPAIRED: the fields that differed, or a STW_DRIFT_ text */
    json_t *made;               /* by make() */
    bool outdated;              /* a pod template waits; `differs`: what it would change, or "" if
                                   the status reports that already */
    bool updated_early;         /* it was applied: another client had changed the one before */
    char differs[256];
    struct stw_adoption adoption;
    const struct stw_operator *adopter; /* not NULL: `desired` has a mark instead of an owner */
    bool marked;                        /* that was done */
    bool adopted_now;                   /* by this call */
};

/* Frees what the calls below put into it. */
void stw_child_done(struct stw_child *child);

#define STW_DRIFT_DELETED "(deleted)"
/* All values were as wanted, but not their field managers (metadata.managedFields). */
#define STW_DRIFT_OWNERS "(managedFields)"

/* All or nothing: looks which children of an owner that adopts are there without a controller, and asks
 * the server whether they could be adopted and the missing ones created, without a write.  Call it
 * before the first stw_child_ensure() of them.  Children without `desired` and `make` are not wanted.
 * When all children are ours, it sends nothing.  `children` must not move until they are ensured.  It runs
 * on the worker of the run. */
void stw_children_check_adoption(struct stw_run *run, const struct stw_owner *owner,
                                 struct stw_child *children, size_t count);

/* Makes the object match `desired`: with at most one write, or none when it already matches.  An
 * adoption may take two. */
void stw_child_ensure(struct stw_run *run, const struct stw_owner *owner, struct stw_child *child);

/* Deletes the object when it is ours, because it is not wanted. */
void stw_child_remove(struct stw_run *run, const struct stw_owner *owner, struct stw_child *child);

/* --- children beyond the rows, of any name; `w` is a STW_CHILD_WATCH that the controller names.  The tree
 * is borrowed, has metadata of stw_manifest_metadata() and may be NULL: the error then says what it lacks.
 * Each ends the step with a state of enum stw_child_state, and an error if it is not as wanted.  They
 * block for at most three requests; on the worker of the run. */

/* Makes the object as `desired`, with one write, or none if it is so: STW_CHILD_SYNCED, _CREATED, _UPDATED.
 * Another owner's is left alone: STW_CHILD_FOREIGN. */
enum stw_child_state stw_child_write(struct stw_run *run, const struct stw_owner *owner,
                                     const struct stw_watch *w, const json_t *desired,
                                     struct stw_error *err) STW_MUST_CHECK;
/* Creates the object once: STW_CHILD_CREATED.  One of this name that the owner has is left as it is,
 * with any content: STW_CHILD_SYNCED.  For Jobs, claims of volumes, and Secrets with generated values. */
enum stw_child_state stw_child_create_once(struct stw_run *run, const struct stw_owner *owner,
                                           const struct stw_watch *w, const json_t *desired,
                                           struct stw_error *err) STW_MUST_CHECK;

/* Reads a child from the cache: 0, or -1 when it is not there. */
int stw_child_cached(struct stw_run *run, const struct stw_watch *w, const char *key,
                     struct stw_child_live *ret);
/* The digest of the object to apply. */
int stw_child_digest(const json_t *desired, struct stw_hash *ret);
/* The same for a child.  Does not call make() when the digest for its inputs is known. */
int stw_child_wanted(struct stw_run *run, struct stw_child *child, struct stw_hash *ret);
/* Whether a live child is as `wanted`, or as the server normalises it. */
bool stw_child_as_wanted(struct stw_run *run, const struct stw_watch *w, const char *key,
                         struct stw_hash wanted, const struct stw_child_live *live);
/* The owner is gone: drops what is remembered about its child. */
void stw_child_forget(struct stw_run *run, const struct stw_watch *w, const char *key);

/* {"apiVersion", "kind", "name", "uid", "controller": true, "blockOwnerDeletion": true} */
json_t *stw_owner_reference(const struct stw_resource *r, const struct stw_owner *owner);

#endif
