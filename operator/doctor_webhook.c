/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the webhook configurations, and whether their caBundle matches the serving certificate. */
#include "operator/doctor.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/util.h"
#include "certs/certs.h"
#include "certs/issue.h"
#include "kube/secret.h"
#include "operator/names.h"
#include "schema/kind.h"

#include <inttypes.h>

#define PEM_MAX_BYTES ((size_t)256 * 1024)
#define SOON_US ((int64_t)7 * 86400 * 1000000)

struct webhook_check {
    struct doctor *d;
    char *leaf; /* PEM; NULL: unknown */
    const struct stw_resource *resource;
    const char *name; /* of the configuration */
    unsigned hooks;
};

static const char *log_advice(struct doctor *d)
{
    return doctor_advice(d,
                         "{operator} writes it within a minute; if it does not: kubectl -n %s logs "
                         "deployment/" STW_DEPLOYMENT " | grep -i certificate",
                         d->ns);
}

static const char *apply_advice(struct doctor *d)
{
    return doctor_advice(d, "{operator} print webhooks --namespace %s | kubectl apply -f -", d->ns);
}

/* --- the certificate */

static void check_expiry(struct doctor *d, const char *leaf)
{
    struct stw_cert_info info;
    struct stw_error err = {0};
    char until[STW_TIME_LEN];
    if (stw_cert_info(leaf, &info, &err) != 0) {
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "certificate",
                        doctor_advice(d, "kubectl -n %s delete secret " STW_CERTS_SECRET, d->ns),
                        "Secret %s/" STW_CERTS_SECRET ": %s", d->ns, err.text);
        return;
    }
    int64_t left_us = info.not_after_us - (stw_wall_us(&stw_clock_system) + d->ahead_us);
    enum stw_check_level verdict = left_us <= 0        ? STW_CHECK_FAIL
                                   : left_us < SOON_US ? STW_CHECK_WARN
                                                       : STW_CHECK_OK;
    stw_time_format(info.not_after_us, until);
    stw_checkup_add(&d->report, verdict, "certificate",
                    verdict == STW_CHECK_OK ? NULL : log_advice(d), "%s %s, %" PRId64 " days %s",
                    left_us <= 0 ? "expired" : "valid until", until,
                    (left_us < 0 ? -left_us : left_us) / ((int64_t)86400 * 1000000),
                    left_us <= 0 ? "ago" : "from now");
}

/* Uses only tls.crt of the Secret: a certificate is not secret. */
static char *read_leaf(struct doctor *d)
{
    stw_autoanswer struct stw_answer secret = {0};
    stw_autofree char *folder = doctor_argument(d, "--webhook-cert-path");
    struct stw_error err = {0};
    if (folder) {
        stw_checkup_add(&d->report, STW_CHECK_OK, "certificate", NULL,
                        "it comes from the folder %s (--webhook-cert-path), which cannot be seen "
                        "from here",
                        folder);
        return NULL;
    }
    if (stw_remote_get(&d->remote, &stw_res_secret, d->ns, STW_CERTS_SECRET, &secret, &err) != 0) {
        if (err.code == STW_ERR_NOT_FOUND)
            stw_checkup_add(
                &d->report, STW_CHECK_FAIL, "certificate", log_advice(d),
                "Secret %s/" STW_CERTS_SECRET " is not there: {operator} has not made it", d->ns);
        else
            doctor_unread(d, "certificate", &err);
        return NULL;
    }
    char *leaf = stw_base64_json_take(stw_secret_entry(secret.root, "tls.crt"), PEM_MAX_BYTES);
    check_expiry(d, leaf ? leaf : "");
    return leaf;
}

/* --- a webhook */

static void add_host(const char *url, char *out, size_t size)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    size_t len = *host == '[' ? strcspn(++host, "]") : strcspn(host, ":/");
    stw_format(out, size, "%.*s", (int)STW_MIN(len, size - 1), host);
}

static bool is_address(const char *host)
{
    return strchr(host, ':') || host[strspn(host, "0123456789.")] == '\0';
}

/* The host name that the API server connects to. */
static void host_of(struct doctor *d, struct stw_json config, char *out, size_t size)
{
    char url[1024];
    struct stw_json service = stw_json_get(config, "service");
    out[0] = '\0';
    if (stw_json_strcpy(stw_json_get(config, "url"), url, sizeof(url)) == 0) {
        add_host(url, out, size);
        return;
    }
    if (stw_json_strcpy(stw_json_get(service, "name"), d->service, sizeof(d->service)) == 0 &&
        stw_json_strcpy(stw_json_get(service, "namespace"), d->service_ns, sizeof(d->service_ns)) ==
            0)
        stw_format(out, size, "%s.%s.svc", d->service, d->service_ns);
}

static bool is_cert_for_host(const char *leaf, const char *host)
{
    const char *const one[] = {host, NULL}, *const none[] = {NULL};
    return is_address(host) ? stw_cert_covers(leaf, none, one) : stw_cert_covers(leaf, one, none);
}

/* The fault of a webhook, as the end of a sentence; NULL: none. */
static const char *fault_of(const struct webhook_check *x, const char *bundle, const char *host)
{
    struct stw_error err = {0};
    if (!bundle)
        return "has no caBundle: the API server trusts no certificate there";
    if (stw_ca_check(bundle, stw_wall_us(&stw_clock_system) + x->d->ahead_us, &err) != 0)
        return "has a caBundle without a CA that is valid now";
    if (x->leaf && !stw_cert_signed_by(x->leaf, bundle))
        return "has a caBundle that has not signed the certificate in the Secret";
    if (x->leaf && *host && !is_cert_for_host(x->leaf, host))
        return "is called by a name that the certificate is not for";
    return NULL;
}

static bool check_client_config(struct webhook_check *x, const char *name, struct stw_json config)
{
    char host[512];
    stw_autofree char *bundle =
        stw_base64_json_take(stw_json_get(config, "caBundle"), PEM_MAX_BYTES);
    host_of(x->d, config, host, sizeof(host));
    x->hooks++;
    const char *fault = fault_of(x, bundle, host);
    if (fault)
        stw_checkup_add(&x->d->report, STW_CHECK_FAIL, x->resource->kind, log_advice(x->d),
                        "webhook %s (%s) %s", name, *host ? host : "no address", fault);
    return !fault;
}

/* Reports only the first fault: usually all webhooks have the same. */
static bool check_hooks(struct webhook_check *x, struct stw_json configuration)
{
    struct stw_json key, hook;
    stw_json_foreach (stw_json_get(configuration, "webhooks"), key, hook) {
        char name[256] = "";
        (void)stw_json_strcpy(stw_json_get(hook, "name"), name, sizeof(name));
        if (!check_client_config(x, name, stw_json_get(hook, "clientConfig")))
            return false;
    }
    return true;
}

/* The conversion webhooks of kinds with several versions.  A CRD that is missing, or has none, is
 * reported by the check of CRDs. */
static void check_conversions(struct webhook_check *x)
{
    bool good = true;
    x->resource = &stw_res_crd;
    x->hooks = 0;
    for (const struct stw_kind *const *k = x->d->op->kinds; *k; k++) {
        stw_autoanswer struct stw_answer crd = {0};
        struct stw_error err = {0};
        char name[512];
        stw_format(name, sizeof(name), "%s.%s", (*k)->plural, (*k)->group);
        if (!(*k)->versions || !(*k)->versions->name ||
            stw_remote_get(&x->d->remote, &stw_res_crd, NULL, name, &crd, &err) != 0)
            continue;
        struct stw_json conversion = stw_json_path(crd.root, "spec.conversion");
        if (stw_json_is(stw_json_get(conversion, "strategy"), "Webhook"))
            good &= check_client_config(x, name, stw_json_path(conversion, "webhook.clientConfig"));
    }
    if (good && x->hooks)
        stw_checkup_add(&x->d->report, STW_CHECK_OK, "conversion", NULL,
                        "%u conversion webhooks, whose caBundle fits%s", x->hooks,
                        x->leaf ? " the certificate" : "");
}

static void check_configuration(struct webhook_check *x, const struct stw_resource *r,
                                const char *name)
{
    stw_autoanswer struct stw_answer configuration = {0};
    struct stw_error err = {0};
    x->resource = r;
    x->name = name;
    x->hooks = 0;
    if (stw_remote_get(&x->d->remote, r, NULL, name, &configuration, &err) != 0) {
        if (err.code == STW_ERR_NOT_FOUND)
            stw_checkup_add(&x->d->report, STW_CHECK_FAIL, r->kind, apply_advice(x->d),
                            "%s is not there: objects are stored without admission", name);
        else
            doctor_unread(x->d, r->kind, &err);
        return;
    }
    if (check_hooks(x, configuration.root))
        stw_checkup_add(&x->d->report, STW_CHECK_OK, r->kind, NULL,
                        "%u webhooks, whose caBundle fits%s", x->hooks,
                        x->leaf ? " the certificate" : "");
}

void doctor_webhooks(struct doctor *d)
{
    struct webhook_check x = {.d = d, .leaf = read_leaf(d)};
    check_configuration(&x, &stw_res_mutating, STW_CERTS_MUTATING);
    check_configuration(&x, &stw_res_validating, STW_CERTS_VALIDATING);
    check_conversions(&x);
    free(x.leaf);
}
