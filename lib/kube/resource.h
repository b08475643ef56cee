/* SPDX-License-Identifier: Apache-2.0
 *
 * Resources of the API, and keys of objects. */
#ifndef STW_KUBE_RESOURCE_H
#define STW_KUBE_RESOURCE_H

#include "base/buf.h"
#include "base/resource.h"

#include <stdbool.h>

extern const struct stw_resource stw_res_configmap, stw_res_service, stw_res_secret,
    stw_res_deployment, stw_res_lease, stw_res_event, stw_res_namespace, stw_res_crd,
    stw_res_mutating, stw_res_validating, stw_res_pod, stw_res_ingress, stw_res_autoscaler_v2,
    stw_res_autoscaler_v2beta2, stw_res_autoscaler_v1, stw_res_disruption_budget_v1,
    stw_res_disruption_budget_v1beta1, stw_res_pod_monitor, stw_res_http_route;

/* "apps/v1", "v1" */
void stw_resource_api_version(const struct stw_resource *r, struct stw_buf *out);
/* "/apis/apps/v1/namespaces/NS/deployments/NAME/SUB", each part percent-encoded; ns, name and sub
 * may be NULL (all namespaces; the collection; no subresource). */
void stw_resource_path(const struct stw_resource *r, const char *ns, const char *name,
                       const char *sub, struct stw_buf *out);

/* A right that a module needs: the command `print rbac` writes the roles from these tables (ended by a
 * NULL resource), and tests/e2e runs under them. */
struct stw_rule {
    const struct stw_resource *resource;
    const char *subresource; /* "status", or NULL */
    const char *verbs;       /* "get,list,watch" */
    const char *name;        /* only the object of this name, for stw_operator_text; or NULL */
    bool own_namespace;      /* only in the operator's own namespace: a Role there */
};

/* Whether "get,list,watch" has this verb. */
bool stw_rule_has_verb(const char *verbs, const char *verb);

/* An object's key: "namespace/name", or "name" of a cluster-wide one. */
#define STW_KEY_LEN (253 + 1 + 253 + 1)
void stw_key_make(const char *ns, const char *name, char out[STW_KEY_LEN]);
/* Splits at the '/'; ns is "" where there is none.  Both outputs have STW_KEY_LEN bytes. */
void stw_key_split(const char *key, char *ns, char *name);

#endif
