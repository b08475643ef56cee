/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of kubeconfig reading that only this module and its tests use. */
#ifndef STW_KUBE_KUBECONFIG_PRIV_H
#define STW_KUBE_KUBECONFIG_PRIV_H

#include "base/util.h"
#include "kube/kubeconfig.h"

#define STW_KUBECONFIG_MAX_BYTES (1u << 20) /* of a kubeconfig, and of each file that it names */
#define STW_SERVICEACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

#define STW_KUBECONFIG_INSTEAD                                                                     \
    "use a token, a tokenFile, a client-certificate with its client-key, or run as a "             \
    "ServiceAccount in the cluster"

/* The identity of a pod: `host` and `port` as in KUBERNETES_SERVICE_*, `dir` contains token, ca.crt
 * and namespace. */
int stw_kubeconfig_in_cluster(const char *host, const char *port, const char *dir,
                              struct stw_kubeconfig **ret, struct stw_error *err) STW_MUST_CHECK;
struct stw_kubeconfig *stw_kubeconfig_copy(const struct stw_kubeconfig *c); /* NULL: no memory */

#endif
