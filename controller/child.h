/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that a custom object owns: how they are cached (a digest instead of the object), and how
 * one is made to be as it should.  Nothing is ever written to an object that somebody else
 * controls. */
#ifndef STW_CONTROLLER_CHILD_H
#define STW_CONTROLLER_CHILD_H

#include "base/util.h"
#include "controller/controller.h"
#include "kube/owned.h"

#include <jansson.h>

/* The built-in kinds that steward makes.  ConfigMaps and Deployments are watched by the label
 * app.kubernetes.io/managed-by=steward.  Services are watched all, but only ours and those with a
 * node port are kept: so that a taken port can be traced to its holder (index "services.nodePort").
 */
extern const struct stw_watch stw_watch_configmaps, stw_watch_deployments, stw_watch_services;
/* In the version that the server has: v2, v2beta2 or v1; v1 or v1beta1. */
extern const struct stw_watch stw_watch_autoscalers, stw_watch_disruption_budgets;

/* What `kubectl rollout status` looks at. */
struct stw_rollout {
    int64_t generation, observed_generation;
    int64_t replicas, updated, available; /* of the status */
    /* For controllers whose Deployments others may scale: */
    int64_t wanted, ready; /* spec.replicas; of the status */
    bool scaled_by_us;     /* our field manager owns spec.replicas */
    char stuck_reason[64]; /* "ProgressDeadlineExceeded", "ReplicaFailure" or "" */
    char stuck_message[256];
};

/* What a HorizontalPodAutoscaler says of itself. */
struct stw_autoscaler {
    bool told, active;             /* its condition ScalingActive is there, and true */
    char reason[64], message[256]; /* why it is not */
};

/* A cached child, read. */
struct stw_child_live {
    bool terminating;
    char uid[64];
    char owner_kind[64], owner_name[254], owner_uid[64]; /* its controller; "" for none */
    struct stw_hash digest;     /* of what the controller's field manager owns */
    int64_t node_port;          /* of a Service: the first; 0 for none */
    struct stw_rollout rollout; /* of a Deployment */
    struct stw_autoscaler autoscaler;
};

/* Reads a text of these watches.  -1: it is none. */
int stw_child_read(const char *text, size_t len, struct stw_child_live *ret);

enum stw_child_state {
    STW_CHILD_SYNCED,  /* as wanted; nothing was written */
    STW_CHILD_ABSENT,  /* as wanted: there is none */
    STW_CHILD_REMOVED, /* there is none any more */
    STW_CHILD_CREATED,
    STW_CHILD_UPDATED,
    STW_CHILD_REPAIRED,    /* somebody else had changed or deleted it; `fields` */
    STW_CHILD_TERMINATING, /* one of this name is being deleted: wait; `err` may say more */
    STW_CHILD_FOREIGN,     /* somebody else's: `err` says whose */
    STW_CHILD_HOT_LOOP,    /* written too often */
    STW_CHILD_FAILED,      /* `err` */
};

/* The custom object. */
struct stw_owner {
    const char *kind, *ns, *name, *uid;
    bool adopt; /* take over an object that nobody controls */
};

struct stw_child {
    const struct stw_watch *watch;
    const char *name; /* its own: that in desired's metadata */
    /* With apiVersion, kind, metadata and the ownerReference; borrowed.  NULL: make() gives a new
     * one when it is needed, or NULL without memory. */
    const json_t *desired;
    json_t *(*make)(const void *ctx);
    const void *ctx;
    struct stw_hash inputs; /* of all that make() depends on; zero: make it each time */
    bool applied_before;    /* by the status: it was once as this generation wants it */

    enum stw_child_state state;
    struct stw_error err;
    struct stw_child_live live; /* after what was done; zero when there is none */
    char fields[256];           /* of REPAIRED: the fields that differed, or one of the two below */
    json_t *made;               /* by make() */
};

void stw_child_done(struct stw_child *child);

#define STW_DRIFT_DELETED "(deleted)"
/* Every value was as wanted, but not the record of who wants it (metadata.managedFields). */
#define STW_DRIFT_OWNERS "(managedFields)"

/* Makes the object as `desired` says, with at most one write, and none when it is so. */
void stw_child_ensure(struct stw_run *run, const struct stw_owner *owner, struct stw_child *child);

/* The object is not wanted: deletes it when it is ours. */
void stw_child_remove(struct stw_run *run, const struct stw_owner *owner, struct stw_child *child);

/* The cached child of this controller by that name: 0, or -1 when there is none. */
int stw_child_cached(struct stw_run *run, const struct stw_watch *w, const char *key,
                     struct stw_child_live *ret);
/* The digest of what would be applied. */
int stw_child_digest(const json_t *desired, struct stw_hash *ret);
/* The same of a child, without making it when its inputs are known. */
int stw_child_wanted(struct stw_run *run, struct stw_child *child, struct stw_hash *ret);
/* Whether a live child is as `wanted`, or as the server makes of that. */
bool stw_child_as_wanted(struct stw_run *run, const struct stw_watch *w, const char *key,
                         struct stw_hash wanted, const struct stw_child_live *live);
/* The owner is gone: nothing about its child needs to be remembered. */
void stw_child_forget(struct stw_run *run, const struct stw_watch *w, const char *key);

/* {"apiVersion", "kind", "name", "uid", "controller": true, "blockOwnerDeletion": true} */
json_t *stw_owner_reference(const struct stw_resource *r, const struct stw_owner *owner);

#endif
