/* SPDX-License-Identifier: Apache-2.0
 *
 * What several kinds read of a Pod's status, or write into a Pod. */
#ifndef STW_KINDS_COMMON_POD_H
#define STW_KINDS_COMMON_POD_H

#include "base/json.h"

#include <jansson.h>

/* Copies a message for a status: cut, and well-formed UTF-8. */
void stw_pod_text(struct stw_json string, char *out, size_t size);
/* The condition Ready is True.  Of a pod on a lost node it is not, although the status of its
 * containers stays as the kubelet reported it last. */
bool stw_pod_ready(struct stw_json pod);
/* True if the scheduler finds no node for the pod; `*ret_message` is its message. */
bool stw_pod_unschedulable(struct stw_json pod, struct stw_json *ret_message);

/* Why a container does not run yet. */
enum stw_pod_wait {
    STW_POD_NO_WAIT,
    STW_POD_STARTS,
    STW_POD_PULLS,    /* its image cannot be pulled: the kubelet tries again */
    STW_POD_NO_IMAGE, /* its image cannot be used */
    STW_POD_CRASHES,
    STW_POD_NO_CONTAINER, /* it cannot be created or started */
    STW_POD_OTHER,
};
/* Reasons of pods in conditions and events of all kinds; an API.  They are Kubernetes' own words where it
 * has one, so every other reason is that of the kubelet. */
#define STW_POD_REASON_IMAGE "ImagePullBackOff" /* ErrImagePull too: the two alternate */
#define STW_POD_REASON_CRASH "CrashLoopBackOff"
#define STW_POD_REASON_MEMORY "OOMKilled"
#define STW_POD_REASON_NODE "Unschedulable"
#define STW_POD_REASON_SECRET "SecretNotFound" /* of a Secret, or a key in it */
#define STW_POD_REASON_VOLUME                                                                      \
    "VolumePending" /* unschedulable because of a volume of an EtcdCluster */
#define STW_POD_REASON_UNREADY "NotReady"
#define STW_POD_REASON_MAX 64

/* `waiting`: state.waiting of a container's status. */
enum stw_pod_wait stw_pod_wait_of(struct stw_json waiting);
/* The reason of a container that waits, from its status. */
void stw_pod_reason(struct stw_json container, char out[STW_POD_REASON_MAX]);
/* The reason of one that ends again and again, from its latest end. */
const char *stw_pod_crash_reason(struct stw_json ended);

/* The items of a volume of a Secret with a certificate.  The files are "<prefix>.crt", "<prefix>.key" and
 * "<prefix>-ca.crt"; the keys are the same, or `common`: tls.crt, tls.key and ca.crt.  NULL: out of memory. */
json_t *stw_pod_certificate_items(const char *prefix, bool common);

#endif
