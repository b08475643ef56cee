/* SPDX-License-Identifier: Apache-2.0
 *
 * A client that writes nothing.  Requests that would change something are not sent: they are
 * recorded, and answered as the API server would, from what is stored there now.  Such a client can
 * run the controllers of a new version beside the old one, to see what they would do.
 *
 * An apply, a patch or a delete of an object that exists is answered with that object (a merge patch
 * with the merged one), a create with the object itself.  Events are dropped.  Names of fields are
 * kept, values never. */
#ifndef STW_KUBE_SHADOW_H
#define STW_KUBE_SHADOW_H

#include "base/util.h"
#include "kube/client.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_shadow;

#define STW_SHADOW_WRITES_MAX 20000u

struct stw_shadow_write {
    const char *verb; /* "create", "patch", "delete", "evict" */
    const char *group, *resource, *ns, *name;
    const char *sub;    /* "status", or "" */
    const char *fields; /* that would change, ", " between; "" for create and delete */
    bool restarts;      /* the pod template of a workload would change, or a pod would be deleted */
    int64_t pods;       /* of the workload, by spec.replicas; 1 where it is unknown */
    uint64_t times;     /* how often it was tried */
};

/* NULL: no memory. */
struct stw_shadow *stw_shadow_create(void) STW_MUST_CHECK;
void stw_shadow_destroy(struct stw_shadow *s); /* NULL is allowed; after its client */
/* From now on, for ever, the client sends GETs only.  Call it before other threads use the client. */
void stw_client_set_shadow(struct stw_client *c, struct stw_shadow *s);
/* Calls `each` by namespace, name, resource and verb.  No thread may use the client.  Returns the
 * number of writes that were not kept, because there were too many. */
uint64_t stw_shadow_each(struct stw_shadow *s,
                         void (*each)(void *ctx, const struct stw_shadow_write *w), void *ctx);

#endif
