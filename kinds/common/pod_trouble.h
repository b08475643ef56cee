/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems of the pods of the Deployment that an object has under its own name: an image that cannot
 * be pulled, a container that crashes, a pod that no node takes. */
#ifndef STW_KINDS_COMMON_POD_TROUBLE_H
#define STW_KINDS_COMMON_POD_TROUBLE_H

#include "base/clock.h"
#include "controller/controller.h"
#include "kinds/common/pod.h"

struct stw_object;

/* A problem of a pod, from its status. */
struct stw_pod_trouble {
    bool found;
    bool passing; /* transient: the pod may just be starting */
    char reason[STW_POD_REASON_MAX];
    char message[512];
    char template[64]; /* the pod's pod-template-hash */
    char created[STW_TIME_LEN];
};

/* A controller that finds problems lists this watch. */
extern const struct stw_watch stw_watch_pod_troubles;
/* Decodes a cached text of that watch.  -1: the text is invalid. */
int stw_pod_trouble_read(const char *text, size_t len, struct stw_pod_trouble *ret);
/* The worst problem of the newest template of the run's Deployment; not found: none is known. */
void stw_pod_trouble_find(const struct stw_run *run, struct stw_pod_trouble *ret);
/* It lasts, and it is not the reason of the object's condition `type` yet. */
bool stw_pod_trouble_is_new(const struct stw_pod_trouble *t, const struct stw_object *o,
                            const char *type);

#endif
