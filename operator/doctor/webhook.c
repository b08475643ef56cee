/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks the webhook configurations, and whether their caBundle matches the serving certificate. */
#include "operator/doctor/doctor.h"

#include "base/base64.h"
#include "base/clock.h"
#include "base/util.h"
#include "certs/certs.h"
#include "certs/issue.h"
#include "kube/secret.h"
#include "operator/main/names.h"
#include "schema/kind.h"

#include <inttypes.h>

#define PEM_MAX_BYTES ((size_t)256 * 1024)
#define SOON_US ((int64_t)7 * 86400 * 1000000)
#define CONDITIONS_SINCE 28 /* matchConditions */

struct webhook_check {
    struct doctor *d;
    char *leaf;  /* PEM; NULL: unknown */
    bool folder; /* neither the certificate nor a caBundle is {operator}'s */
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

/* Who else writes it is not known. */
static const char *bundle_advice(struct webhook_check *x)
{
    if (!x->folder)
        return log_advice(x->d);
    return doctor_advice(x->d,
                         "With --webhook-cert-path {operator} does not write it.  If cert-manager "
                         "does: kubectl -n %s get certificate; kubectl get %s -o yaml | grep "
                         "cert-manager.io/inject-ca-from",
                         x->d->ns, x->resource->plural);
}

/* Of all entries that are missing. */
static const char *apply_advice(struct doctor *d)
{
    stw_autobuf struct stw_buf kinds = STW_BUF_INIT(8192), command = STW_BUF_INIT(16384);
    if (stw_kinds_are_some(d->op))
        stw_kinds_names(d->op->kinds, &kinds);
    stw_buf_addf(&command, "{operator} print webhooks --namespace %s%s%s%s | kubectl apply -f -",
                 d->ns, kinds.len ? " --kinds=" : "", stw_buf_str(&kinds),
                 d->minor >= CONDITIONS_SINCE ? " --match-conditions" : "");
    return doctor_reinstall(d, stw_buf_str(&command));
}

/* --- the certificate */

static void check_expiry(struct doctor *d, const struct stw_cert_info *info)
{
    char until[STW_TIME_LEN];
    int64_t left_us = info->not_after_us - (stw_wall_us(&stw_clock_system) + d->ahead_us);
    enum stw_check_level verdict = left_us <= 0        ? STW_CHECK_FAIL
                                   : left_us < SOON_US ? STW_CHECK_WARN
                                                       : STW_CHECK_OK;
    stw_time_format(info->not_after_us, until);
    stw_checkup_add(&d->report, verdict, "certificate",
                    verdict == STW_CHECK_OK ? NULL : log_advice(d), "%s %s, %" PRId64 " days %s",
                    left_us <= 0 ? "expired" : "valid until", until,
                    (left_us < 0 ? -left_us : left_us) / ((int64_t)86400 * 1000000),
                    left_us <= 0 ? "ago" : "from now");
}

/* At the first start the CA is there some seconds before its certificate.  A certificate that cannot
 * be used is replaced by the replicas; nothing in the Secret has to be deleted for that. */
static void check_leaf(struct doctor *d, struct stw_json secret, const char *leaf)
{
    struct stw_cert_info info;
    struct stw_error err = {0};
    if (leaf && *leaf && stw_cert_info(leaf, &info, &err) == 0)
        check_expiry(d, &info);
    else if (stw_json_there(stw_secret_entry(secret, "ca-next.crt")))
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "certificate",
                        "{operator} doctor --wait=2m; it takes some seconds",
                        "it is being made: the CA in Secret %s/" STW_CERTS_SECRET
                        " comes into the webhook configurations first",
                        d->ns);
    else
        stw_checkup_add(&d->report, STW_CHECK_FAIL, "certificate", log_advice(d),
                        "Secret %s/" STW_CERTS_SECRET ": %s", d->ns,
                        leaf && *leaf ? err.text : "it has no tls.crt");
}

/* Uses only tls.crt of the Secret: a certificate is not secret. */
static char *read_leaf(struct doctor *d, bool *ret_folder)
{
    stw_autoanswer struct stw_answer secret = {0};
    stw_autofree char *folder = doctor_argument(d, "--webhook-cert-path");
    struct stw_error err = {0};
    *ret_folder = folder != NULL;
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
    check_leaf(d, secret.root, leaf);
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
        stw_checkup_add(&x->d->report, STW_CHECK_FAIL, x->resource->kind, bundle_advice(x),
                        "webhook %s (%s) %s", name, *host ? host : "no address", fault);
    return !fault;
}

static const struct stw_kind *kind_of_hook(const struct doctor *d, struct stw_json hook)
{
    for (const struct stw_kind *const *k = d->op->kinds; *k; k++)
        if (stw_webhook_is_of(hook, *k))
            return *k;
    return NULL;
}

/* Whether an entry asks about changes of a kind, and not only about deletions. */
static bool is_checked(const struct stw_kind *kind, struct stw_json hooks, char prefix)
{
    struct stw_json key, hook;
    stw_json_foreach (hooks, key, hook) {
        char name[512];
        if (stw_webhook_is_of(hook, kind) &&
            stw_json_strcpy(stw_json_get(hook, "name"), name, sizeof(name)) == 0 &&
            name[0] == prefix)
            return true;
    }
    return false;
}

static bool check_all_there(struct webhook_check *x, struct stw_json hooks)
{
    stw_autobuf struct stw_buf missing = STW_BUF_INIT(8192);
    char prefix = x->resource == &stw_res_mutating ? 'm' : 'v';
    for (const struct stw_kind *const *k = x->d->op->kinds; *k; k++)
        if (((*k)->operations & (STW_CREATE | STW_UPDATE)) && !is_checked(*k, hooks, prefix))
            stw_buf_addf(&missing, "%s%s", missing.len ? ", " : "", (*k)->kind);
    if (missing.len)
        stw_checkup_add(&x->d->report, STW_CHECK_FAIL, x->resource->kind, apply_advice(x->d),
                        "it has no webhook for %s: objects are stored without this admission",
                        stw_buf_str(&missing));
    return missing.len == 0;
}

/* Reports only the first fault: usually all webhooks have the same.  Entries of kinds that are not
 * managed are not {operator}'s. */
static bool check_hooks(struct webhook_check *x, struct stw_json configuration)
{
    struct stw_json key, hook, hooks = stw_json_get(configuration, "webhooks");
    if (!check_all_there(x, hooks))
        return false;
    stw_json_foreach (hooks, key, hook) {
        char name[512] = "";
        (void)stw_json_strcpy(stw_json_get(hook, "name"), name, sizeof(name));
        if (kind_of_hook(x->d, hook) &&
            !check_client_config(x, name, stw_json_get(hook, "clientConfig")))
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
    struct webhook_check x = {.d = d};
    x.leaf = read_leaf(d, &x.folder);
    check_configuration(&x, &stw_res_mutating, STW_CERTS_MUTATING);
    check_configuration(&x, &stw_res_validating, STW_CERTS_VALIDATING);
    check_conversions(&x);
    free(x.leaf);
}
