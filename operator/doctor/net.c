/* SPDX-License-Identifier: Apache-2.0
 *
 * The path from the API server to a pod: Service, endpoints, NetworkPolicies. */
#include "operator/doctor/doctor.h"

#include "base/util.h"
#include "kube/pages.h"
#include "operator/main/names.h"

#define PORT 9443
#define PORT_NAME "webhook"

static const struct stw_resource res_slice = {.group = "discovery.k8s.io",
                                              .version = "v1",
                                              .kind = "EndpointSlice",
                                              .plural = "endpointslices",
                                              .namespaced = true};
static const struct stw_resource res_endpoints = {
    .group = "", .version = "v1", .kind = "Endpoints", .plural = "endpoints", .namespaced = true};
static const struct stw_resource res_policy = {.group = "networking.k8s.io",
                                               .version = "v1",
                                               .kind = "NetworkPolicy",
                                               .plural = "networkpolicies",
                                               .namespaced = true};

/* --- ready endpoints of the Service */

/* A slice has one address family; with dual stack, a pod is in two slices. */
struct ready {
    unsigned v4, v6;
};

static int count_slice(void *ctx, struct stw_json slice)
{
    struct ready *ready = ctx;
    bool v6 = stw_json_is(stw_json_get(slice, "addressType"), "IPv6");
    unsigned *count = v6 ? &ready->v6 : &ready->v4;
    struct stw_json key, one;
    stw_json_foreach (stw_json_get(slice, "endpoints"), key, one)
        *count += stw_json_bool(stw_json_path(one, "conditions.ready"), true) &&
                  stw_json_size(stw_json_get(one, "addresses")) > 0;
    return 0;
}

/* Servers before 1.21 have only Endpoints. */
static int count_ready(struct doctor *d, unsigned *ret, struct stw_error *err)
{
    char selector[300];
    stw_autoanswer struct stw_answer endpoints = {0};
    struct stw_json key, subset;
    struct ready ready = {0};
    stw_format(selector, sizeof(selector), "kubernetes.io/service-name=%s", d->service);
    struct stw_pages q = {.resource = &res_slice,
                          .ns = d->service_ns,
                          .label_selector = selector,
                          .timeout_ms = d->remote.timeout_ms};
    int done = stw_pages_each(d->remote.client, &q, count_slice, &ready, err);
    *ret = STW_MAX(ready.v4, ready.v6);
    if (done == 0)
        return 0;
    if (err->code != STW_ERR_NOT_FOUND)
        return -1;
    *err = (struct stw_error){0};
    if (stw_remote_get(&d->remote, &res_endpoints, d->service_ns, d->service, &endpoints, err) != 0)
        return err->code == STW_ERR_NOT_FOUND ? 0 : -1;
    stw_json_foreach (stw_json_get(endpoints.root, "subsets"), key, subset)
        *ret += stw_json_size(stw_json_get(subset, "addresses"));
    return 0;
}

/* A Service without a selector has endpoints of its own, and pods with unknown labels are not
 * {operator}'s Deployment. */
static struct stw_json pod_labels(const struct doctor *d)
{
    return stw_json_path(d->deployment.root, "spec.template.metadata.labels");
}

/* Adds the pairs of a selector that the labels of the pods lack. */
static void add_mismatches(struct stw_json selector, struct stw_json labels, struct stw_buf *out)
{
    struct stw_json key, value;
    stw_json_foreach (selector, key, value) {
        stw_autofree char *name = stw_json_strdup(key), *wanted = stw_json_strdup(value);
        stw_autofree char *has = name ? stw_json_strdup(stw_json_get(labels, name)) : NULL;
        if (!name || !wanted || stw_same(wanted, has))
            continue;
        stw_buf_addf(out, "%s%s=%s (they have ", out->len ? ", " : "", name, wanted);
        stw_buf_addf(out, has ? "%s=%s)" : "no %s)", name, has);
    }
}

/* The Deployment's selector matches its pods: the API server sees to that. */
static bool check_selector(struct doctor *d, enum stw_check_level level, const char *check,
                           const char *ns, const char *name, struct stw_json service)
{
    stw_autobuf struct stw_buf wrong = STW_BUF_INIT(4096), right = STW_BUF_INIT(512);
    if (!stw_json_there(pod_labels(d)) || !stw_streq(ns, d->ns))
        return true;
    add_mismatches(stw_json_path(service, "spec.selector"), pod_labels(d), &wrong);
    if (!wrong.len)
        return true;
    size_t len = 0;
    const char *labels =
        stw_json_raw(stw_json_path(d->deployment.root, "spec.selector.matchLabels"), &len);
    stw_buf_add(&right, labels ? labels : "", labels ? len : 0);
    stw_checkup_add(&d->report, level, check,
                    doctor_advice(d,
                                  "kubectl -n %s patch service %s --type=json "
                                  "-p='[{\"op\":\"replace\",\"path\":\"/spec/selector\","
                                  "\"value\":%s}]'",
                                  ns, name, stw_buf_str(&right)),
                    "its selector matches no pod of {operator}: %s", stw_buf_str(&wrong));
    return false;
}

/* It is optional. */
static void check_metrics_service(struct doctor *d)
{
    stw_autoanswer struct stw_answer service = {0};
    struct stw_error err = {0};
    char name[STW_OWN_NAME_LEN];
    stw_operator_text(d->op, STW_METRICS_SERVICE, name);
    if (stw_remote_get(&d->remote, &stw_res_service, d->ns, name, &service, &err) == 0)
        (void)check_selector(d, STW_CHECK_WARN, "metrics Service", d->ns, name, service.root);
    else if (err.code != STW_ERR_NOT_FOUND)
        doctor_unread(d, "metrics Service", &err);
}

static void check_webhook_service(struct doctor *d)
{
    stw_autoanswer struct stw_answer service = {0};
    struct stw_error err = {0};
    unsigned ready;
    if (!*d->service)
        return; /* called by URL, or not configured */
    if (stw_remote_get(&d->remote, &stw_res_service, d->service_ns, d->service, &service, &err) !=
        0) {
        if (err.code == STW_ERR_NOT_FOUND)
            stw_checkup_add(&d->report, STW_CHECK_FAIL, "Service",
                            doctor_reinstall(d, "kubectl apply -k config/webhook"),
                            "%s/%s, which the webhooks name, is not there", d->service_ns,
                            d->service);
        else
            doctor_unread(d, "Service", &err);
    } else if (!check_selector(d, STW_CHECK_FAIL, "Service", d->service_ns, d->service,
                               service.root)) {
        return;
    } else if (count_ready(d, &ready, &err) != 0) {
        doctor_unread(d, "endpoints", &err);
    } else if (ready == 0) {
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "Service",
                        doctor_advice(d,
                                      "kubectl -n %s get pods --show-labels; kubectl -n %s "
                                      "describe service %s",
                                      d->service_ns, d->service_ns, d->service),
                        "no pod of %s/%s is ready: no object of these kinds can be stored",
                        d->service_ns, d->service);
    } else {
        stw_checkup_add(&d->report, STW_CHECK_OK, "Service", NULL, "%u ready pods of %s/%s", ready,
                        d->service_ns, d->service);
    }
}

void doctor_service(struct doctor *d)
{
    check_webhook_service(d);
    check_metrics_service(d);
}

/* --- NetworkPolicies */

static bool has_labels(struct stw_json wanted, struct stw_json labels)
{
    struct stw_json key, value;
    stw_json_foreach (wanted, key, value) {
        char name[400];
        if (stw_json_strcpy(key, name, sizeof(name)) != 0 ||
            !stw_json_equal(value, stw_json_get(labels, name)))
            return false;
    }
    return true;
}

/* Match expressions are assumed to match: better to check one policy too many than too few. */
bool doctor_policy_selects(struct stw_json policy, struct stw_json labels)
{
    struct stw_json key, type, spec = stw_json_get(policy, "spec");
    struct stw_json types = stw_json_get(spec, "policyTypes");
    bool incoming = stw_json_size(types) == 0;
    stw_json_foreach (types, key, type)
        incoming |= stw_json_is(type, "Ingress");
    return incoming && has_labels(stw_json_path(spec, "podSelector.matchLabels"), labels);
}

static bool is_port(struct stw_json entry, const char *name, int64_t port)
{
    int64_t first, last;
    struct stw_json wanted = stw_json_get(entry, "port");
    struct stw_json protocol = stw_json_get(entry, "protocol");
    if (stw_json_there(protocol) && !stw_json_is(protocol, "TCP"))
        return false;
    if (!stw_json_there(wanted))
        return true;
    if (stw_json_int(wanted, &first) != 0)
        return name && stw_json_is(wanted, name);
    if (stw_json_int(stw_json_get(entry, "endPort"), &last) != 0)
        last = first;
    return port >= first && port <= last;
}

/* A selector cannot match the API server's address: only rules for all peers or for an ipBlock can
 * admit it. */
static bool from_anybody(struct stw_json rule)
{
    struct stw_json key, peer, from = stw_json_get(rule, "from");
    stw_json_foreach (from, key, peer)
        if (stw_json_there(stw_json_get(peer, "ipBlock")))
            return true;
    return stw_json_size(from) == 0;
}

bool doctor_policy_admits(struct stw_json policy, const char *name, int64_t port)
{
    struct stw_json k, rule, key, entry;
    stw_json_foreach (stw_json_path(policy, "spec.ingress"), k, rule) {
        struct stw_json ports = stw_json_get(rule, "ports");
        bool admitted = stw_json_size(ports) == 0;
        stw_json_foreach (ports, key, entry)
            admitted |= is_port(entry, name, port);
        if (admitted && from_anybody(rule))
            return true;
    }
    return false;
}

struct policies {
    struct doctor *d;
    struct stw_json labels;
    int64_t port;
    unsigned selecting, admitting;
};

static int look_at_policy(void *ctx, struct stw_json policy)
{
    struct policies *p = ctx;
    if (doctor_policy_selects(policy, p->labels)) {
        p->selecting++;
        p->admitting += doctor_policy_admits(policy, PORT_NAME, p->port);
    }
    return 0;
}

static int64_t webhook_port(const struct doctor *d)
{
    int64_t port = PORT;
    struct stw_json key, one;
    stw_json_foreach (stw_json_get(doctor_container(d), "ports"), key, one)
        if (stw_json_is(stw_json_get(one, "name"), PORT_NAME))
            (void)stw_json_int(stw_json_get(one, "containerPort"), &port);
    return port;
}

void doctor_network_policy(struct doctor *d)
{
    struct policies p = {.d = d, .labels = pod_labels(d), .port = webhook_port(d)};
    struct stw_pages q = {.resource = &res_policy, .ns = d->ns, .timeout_ms = d->remote.timeout_ms};
    struct stw_error err = {0};
    if (!stw_json_there(d->deployment.root))
        return; /* no pods with known labels */
    if (stw_pages_each(d->remote.client, &q, look_at_policy, &p, &err) != 0)
        doctor_unread(d, "NetworkPolicy", &err);
    else if (p.selecting && !p.admitting)
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "NetworkPolicy",
                        "kubectl apply -k config/network-policy",
                        "%u select {operator}'s pods, and none lets the API server in to port %lld",
                        p.selecting, (long long)p.port);
    else
        stw_checkup_add(&d->report, STW_CHECK_OK, "NetworkPolicy", NULL,
                        p.selecting ? "port %lld is open to the API server"
                                    : "none selects {operator}'s pods: port %lld is open",
                        (long long)p.port);
}
