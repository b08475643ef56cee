/* SPDX-License-Identifier: Apache-2.0
 *
 * The resources that the program itself uses, their URLs, and object keys. */
#include "kube/resource.h"

#include "base/hex.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

const struct stw_resource stw_res_configmap = {"", "v1", "ConfigMap", "configmaps", true};
const struct stw_resource stw_res_service = {"", "v1", "Service", "services", true};
const struct stw_resource stw_res_secret = {"", "v1", "Secret", "secrets", true};
const struct stw_resource stw_res_namespace = {"", "v1", "Namespace", "namespaces", false};
const struct stw_resource stw_res_deployment = {"apps", "v1", "Deployment", "deployments", true};
const struct stw_resource stw_res_lease = {"coordination.k8s.io", "v1", "Lease", "leases", true};
const struct stw_resource stw_res_event = {"events.k8s.io", "v1", "Event", "events", true};
const struct stw_resource stw_res_crd = {"apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                                         "customresourcedefinitions", false};
const struct stw_resource stw_res_mutating = {"admissionregistration.k8s.io", "v1",
                                              "MutatingWebhookConfiguration",
                                              "mutatingwebhookconfigurations", false};
const struct stw_resource stw_res_validating = {"admissionregistration.k8s.io", "v1",
                                                "ValidatingWebhookConfiguration",
                                                "validatingwebhookconfigurations", false};
const struct stw_resource stw_res_ingress = {"networking.k8s.io", "v1", "Ingress", "ingresses",
                                             true};
const struct stw_resource stw_res_pod = {"", "v1", "Pod", "pods", true};
#define AUTOSCALER "HorizontalPodAutoscaler", "horizontalpodautoscalers", true
const struct stw_resource stw_res_autoscaler_v2 = {"autoscaling", "v2", AUTOSCALER};
const struct stw_resource stw_res_autoscaler_v2beta2 = {"autoscaling", "v2beta2", AUTOSCALER};
const struct stw_resource stw_res_autoscaler_v1 = {"autoscaling", "v1", AUTOSCALER};
#define DISRUPTION_BUDGET "PodDisruptionBudget", "poddisruptionbudgets", true
const struct stw_resource stw_res_disruption_budget_v1 = {"policy", "v1", DISRUPTION_BUDGET};
const struct stw_resource stw_res_disruption_budget_v1beta1 = {"policy", "v1beta1",
                                                               DISRUPTION_BUDGET};

/* Of definitions that a cluster may lack: the Prometheus operator, the Gateway API. */
const struct stw_resource stw_res_pod_monitor = {"monitoring.coreos.com", "v1", "PodMonitor",
                                                 "podmonitors", true};
const struct stw_resource stw_res_http_route = {"gateway.networking.k8s.io", "v1", "HTTPRoute",
                                                "httproutes", true};

void stw_resource_api_version(const struct stw_resource *r, struct stw_buf *out)
{
    if (r->group[0] != '\0') {
        stw_buf_adds(out, r->group);
        stw_buf_addc(out, '/');
    }
    stw_buf_adds(out, r->version);
}

static void add_part(struct stw_buf *out, const char *part)
{
    if (part) {
        stw_buf_addc(out, '/');
        stw_url_escape(part, out);
    }
}

void stw_resource_path(const struct stw_resource *r, const char *ns, const char *name,
                       const char *sub, struct stw_buf *out)
{
    if (r->group[0] != '\0') {
        stw_buf_adds(out, "/apis");
        add_part(out, r->group);
    } else {
        stw_buf_adds(out, "/api");
    }
    add_part(out, r->version);
    if (r->namespaced && ns && ns[0] != '\0') {
        stw_buf_adds(out, "/namespaces");
        add_part(out, ns);
    }
    add_part(out, r->plural);
    add_part(out, name);
    add_part(out, sub);
}

void stw_key_make(const char *ns, const char *name, char out[STW_KEY_LEN])
{
    size_t len = 0;
    if (ns && ns[0] != '\0') {
        len = strnlen(ns, 253);
        memcpy(out, ns, len);
        out[len++] = '/';
    }
    size_t rest = strnlen(name, 253);
    memcpy(out + len, name, rest);
    out[len + rest] = '\0';
}

void stw_key_split(const char *key, char *ns, char *name)
{
    const char *slash = strchr(key, '/');
    assert(strlen(key) < STW_KEY_LEN);
    int ns_len = slash ? (int)(slash - key) : 0;
    stw_format(ns, STW_KEY_LEN, "%.*s", ns_len, key);
    stw_format(name, STW_KEY_LEN, "%s", slash ? slash + 1 : key);
}

bool stw_rule_has_verb(const char *verbs, const char *verb)
{
    size_t len = strlen(verb);
    for (const char *p = verbs; *p;) {
        size_t n = strcspn(p, ",");
        if (n == len && memcmp(p, verb, len) == 0)
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}
