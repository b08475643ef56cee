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
/* `waiting`: state.waiting of a container's status. */
enum stw_pod_wait stw_pod_wait_of(struct stw_json waiting);

/* The items of a volume of a Secret with a certificate.  The files are "<prefix>.crt", "<prefix>.key" and
 * "<prefix>-ca.crt"; the keys are the same, or `common`: tls.crt, tls.key and ca.crt.  NULL: out of memory. */
json_t *stw_pod_certificate_items(const char *prefix, bool common);

#endif
