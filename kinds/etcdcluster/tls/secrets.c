/* SPDX-License-Identifier: Apache-2.0
 *
 * The Secrets with an EtcdCluster's certificates.  Also creates and renews those of steward's own
 * authority, one per cluster (authority.c decides when).  etcd reads CA bundles only at
 * its start, so a new bundle means that pods are recreated.  It reads leaf certificates at each TLS
 * handshake. */
#include "kinds/etcdcluster/tls/secrets.h"

#include "base/base64.h"
#include "base/log.h"
#include "base/process/fault.h"
#include "base/util.h"
#include "certs/issue.h"
#include "controller/secret_watch.h"
#include "kinds/common/certificate.h"
#include "kinds/etcdcluster/act/pod.h"
#include "kinds/etcdcluster/observe/pods.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/tls/authority.h"
#include "kinds/etcdcluster/tls/tls_state.h"
#include "kube/secret.h"

#include <stdio.h>

#define PEM_MAX (256u << 10)

/* --- reading */

/* 1: read, 0: there is no such Secret, -1. */
static int read_secret(struct ec *e, const char *name, struct stw_secret *s, struct stw_error *err)
{
    if (stw_run_get_secret(e->run, name, NULL, s, err) == 0)
        return 1;
    if (err->code != STW_ERR_NOT_FOUND)
        return stw_error_wrap(err, "cannot read Secret \"%s\"", name);
    *err = (struct stw_error){0};
    return 0;
}

/* The decoded value of a key; NULL: absent, empty or invalid. */
static char *read_value(const struct stw_secret *s, const char *key)
{
    return stw_base64_json_take(stw_secret_entry(stw_json_root(&s->doc), key), PEM_MAX);
}

/* -1: the Secret has no certificate that can be used. */
static int read_pem_values(const struct stw_secret *s, const char *name, const char *prefix,
                           struct ec_pem *ret, struct stw_error *err)
{
    struct stw_certificate c;
    int rc = stw_certificate_read(s, name, prefix, &c, err);
    *ret = (struct ec_pem){.cert = c.cert, .key = c.key, .ca = c.ca, .common = c.common};
    return rc;
}

int ec_secret_read(struct ec *e, const char *name, const char *prefix, struct ec_pem *ret,
                   struct stw_error *err)
{
    stw_autosecret struct stw_secret s = {0};
    *ret = (struct ec_pem){0};
    int rc = read_secret(e, name, &s, err);
    if (rc > 0)
        (void)read_pem_values(&s, name, prefix, ret, err);
    return rc;
}

void ec_secrets_versions(struct ec *e, char *out, size_t size)
{
    const char *const names[] = {e->tls.ca_secret, e->tls.peer_secret, e->tls.server_secret,
                                 e->tls.operator_secret};
    struct stw_informer *cache = stw_run_cache(e->run, &stw_watch_secrets);
    int start = snprintf(out, size, "%lld:", (long long)e->object.generation);
    size_t at = start > 0 ? (size_t)start : 0;
    for (size_t i = 0; i < STW_COUNT(names); i++) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
        char key[STW_KEY_LEN], rv[STW_RV_LEN] = "";
        stw_key_make(e->owner.ns, names[i], key);
        if (*names[i])
            (void)stw_informer_get(cache, key, &text, rv);
        int n = snprintf(out + at, size - at, "%s,", rv);
        at += n > 0 && (size_t)n < size - at ? (size_t)n : 0;
    }
}

/* --- writing */

struct secret_entry {
    const char *key, *value; /* NULL: left out */
};

static json_t *data_of(const struct secret_entry *entries)
{
    json_t *data = json_object();
    for (; entries->key; entries++) {
        stw_autobuf struct stw_buf text = {.max = PEM_MAX, .secret = true};
        if (!entries->value)
            continue;
        stw_base64_encode(entries->value, strlen(entries->value), &text);
        (void)json_object_set_new(data, entries->key, json_string(stw_buf_str(&text)));
    }
    return data;
}

static json_t *build_secret_manifest(const struct ec *e, const char *name,
                                     const struct stw_secret *old,
                                     const struct secret_entry *entries)
{
    static const char *const pinned[] = {"resourceVersion", "uid"};
    json_t *m = stw_manifest_metadata(e->run, &e->owner, &e->naming, name);
    struct stw_json was = stw_json_get(stw_json_root(&old->doc), "metadata");
    for (size_t i = 0; i < STW_COUNT(pinned); i++) {
        stw_autofree char *text = stw_json_strdup(stw_json_get(was, pinned[i]));
        if (text)
            (void)json_object_set_new(m, pinned[i], json_string(text));
    }
    return json_pack("{s:s,s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "Secret", "type",
                     "Opaque", "metadata", m, "data", data_of(entries));
}

static bool is_our_secret(const struct ec *e, const struct stw_secret *s)
{
    char kind[64], name[254], uid[64] = "";
    return stw_owner_controller(stw_json_root(&s->doc), kind, name, uid) == 0 &&
           stw_streq(uid, e->owner.uid);
}

/* The text of a JSON string belongs to the tree, which is about to be freed. */
static void wipe_data(json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach (json_object_get(object, "data"), key, value)
        stw_wipe((char *)(uintptr_t)json_string_value(value), json_string_length(value));
}

static int write_secret(struct ec *e, const char *name, const struct stw_secret *old,
                        const struct secret_entry *entries, struct stw_error *err)
{
    bool there = stw_json_there(stw_json_root(&old->doc));
    if (stw_run_check_write(e->run, err) != 0)
        return -1;
    if (there && !is_our_secret(e, old))
        return stw_fail(err, STW_ERR_FORBIDDEN,
                        "Secret \"%s\" exists and is not controlled by this object; delete it, or "
                        "name it under spec.TLS.static",
                        name);
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    stw_resource_path(&stw_res_secret, e->owner.ns, there ? name : NULL, NULL, &path);
    stw_buf_addf(&path, "?fieldManager=%s", e->run->field_manager);
    json_auto_t *object = build_secret_manifest(e, name, old, entries);
    char *body = json_dumps(object, JSON_COMPACT);
    wipe_data(object);
    if (!body)
        return stw_fail_memory(err);
    struct stw_request request = {.method = there ? "PUT" : "POST",
                                  .path = stw_buf_str(&path),
                                  .body = body,
                                  .body_len = strlen(body),
                                  .secret = true};
    int rc = stw_client_do(e->run->client, &request, NULL, err);
    stw_fault_point("secret");
    stw_wipe_free(body);
    if (rc == 0)
        stw_log(STW_LOG_INFO, "wrote a Secret of certificates", STW_STR("secret", name));
    return rc == 0 ? 0 : stw_error_wrap(err, "cannot write Secret \"%s\"", name);
}

/* --- the authority */

/* According to the status, no change is in progress. */
static bool is_calm(const struct ec *e)
{
    static const struct {
        const char *type;
        enum stw_truth truth;
    } calm[] = {{"Rolling", STW_FALSE}, {"AllMembersHealthy", STW_TRUE}, {"Scaling", STW_FALSE}};
    const json_t *list = json_object_get(e->object.status, "conditions");
    for (size_t i = 0; i < STW_COUNT(calm); i++)
        if (!stw_condition_is(stw_condition_find(list, calm[i].type), calm[i].truth))
            return false;
    return true;
}

/* Every member has been started with the bundle that includes the next authority. */
static bool all_trust(void *ctx, const char *bundle)
{
    struct ec *e = ctx;
    struct ec_tls with = {0};
    ec_tls_trust(&with, bundle); /* once for members, once for clients */
    ec_tls_trust(&with, bundle);
    stw_format(e->tls.trust_hash, sizeof(e->tls.trust_hash), "%s", with.trust_hash);
    ec_hash_template(e);
    e->tls.trust_hash[0] = '\0';
    return is_calm(e) && ec_has_template_everywhere(e);
}

static void look_by(struct ec *e, int64_t at)
{
    e->tls.look_again = STW_MIN(e->tls.look_again, at);
}

/* With its key, its authorities, and not expired.  It need not be as a new one would be. */
static bool is_usable(const struct ec *e, const struct ec_pem *p)
{
    static const char *const no_names[] = {NULL};
    return p->ca && ec_leaf_is_good(p, p->ca, no_names, 0, stw_wall_us(e->run->clock));
}

/* 1: the Secret is ours, and its certificate is usable, 0, -1.  `ret` is set if 1. */
static int read_leaf_in_use(struct ec *e, const char *name, const char *prefix, struct ec_pem *ret,
                            struct stw_error *err)
{
    stw_autosecret struct stw_secret s = {0};
    struct ec_pem p = {0};
    struct stw_error why = {0};
    int rc = read_secret(e, name, &s, err);
    if (rc <= 0)
        return rc;
    if (read_pem_values(&s, name, prefix, &p, &why) != 0 || !is_our_secret(e, &s) ||
        !is_usable(e, &p)) {
        ec_pem_done(&p);
        return 0;
    }
    *ret = p;
    return 1;
}

/* The authority is lost, and members run: their certificates have to last until all trust another
 * one.  Sets `ret` to that of the peers.  -1: `err`, or EC_TLS_LOST. */
static int find_leaves_in_use(struct ec *e, struct ec_pem *ret, struct stw_error *err)
{
    const struct {
        const char *name, *prefix;
    } leaves[] = {{e->tls.operator_secret, "etcd-client"},
                  {e->tls.server_secret, "server"},
                  {e->tls.peer_secret, "peer"}};
    for (size_t i = 0; i < STW_COUNT(leaves); i++) {
        ec_pem_done(ret);
        int rc = read_leaf_in_use(e, leaves[i].name, leaves[i].prefix, ret, err);
        if (rc == 0)
            ec_tls_set_state(
                &e->tls, EC_TLS_LOST,
                "the certificates in Secrets \"%.60s\" and \"%.70s\" are gone or damaged, and "
                "members run with them: put one of the two back from a backup. Without one, "
                "delete all pods of the cluster: when none runs, a new authority is created",
                e->tls.ca_secret, leaves[i].name);
        if (rc <= 0)
            return -1;
    }
    return 0;
}

static void tell_of_replacement(struct ec *e, const struct ec_authority *a)
{
    if (a->next.cert)
        stw_object_event(e->run, &e->object, true, "AuthorityLost", "Rotate",
                         "the authority in Secret \"%s\" is gone or damaged: another one signs "
                         "once all members trust it",
                         e->tls.ca_secret);
    else
        stw_object_event(e->run, &e->object, false, "AuthorityReplaced", "Rotate",
                         "all members trust the new authority in Secret \"%s\"", e->tls.ca_secret);
}

/* `in_use` is set to what a->in_use points to, and is the caller's. */
static int ensure_authority(struct ec *e, struct ec_authority *a, struct ec_pem *in_use,
                            struct stw_error *err)
{
    stw_autosecret struct stw_secret s = {0};
    char name[128];
    int64_t now_us = stw_wall_us(e->run->clock);
    if (read_secret(e, e->tls.ca_secret, &s, err) < 0)
        return -1;
    a->now =
        (struct stw_pem_pair){.cert = read_value(&s, "ca.crt"), .key = read_value(&s, "ca.key")};
    a->next = (struct stw_pem_pair){.cert = read_value(&s, "next.crt"),
                                    .key = read_value(&s, "next.key")};
    a->previous = read_value(&s, "previous.crt");
    if (ec_authority_lost(a, now_us) && ec_has_running_pod(e)) {
        if (find_leaves_in_use(e, in_use, err) != 0)
            return -1;
        a->in_use = in_use;
    }
    stw_format(name, sizeof(name), "etcd %.40s", e->owner.name);
    int step = ec_authority_advance(a, name, now_us, all_trust, e, err);
    if (step < 0)
        return -1;
    look_by(e, ec_authority_look(a, now_us));
    const struct secret_entry entries[] = {{"ca.crt", a->now.cert},       {"ca.key", a->now.key},
                                           {"next.crt", a->next.cert},    {"next.key", a->next.key},
                                           {"previous.crt", a->previous}, {NULL, NULL}};
    if (step > 0 && write_secret(e, e->tls.ca_secret, &s, entries, err) != 0)
        return -1;
    if (step > 0 && a->in_use)
        tell_of_replacement(e, a);
    return 0;
}

/* --- leaves */

#define NAMES_MAX 8
struct names {
    char text[NAMES_MAX][300];
    const char *list[NAMES_MAX + 1];
    size_t count;
};

static void add_name(struct names *n, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add_name(struct names *n, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(n->text[n->count], sizeof(n->text[0]), fmt, ap);
    va_end(ap);
    n->list[n->count] = n->text[n->count];
    n->list[++n->count] = NULL;
}

static void names_of_members(const struct ec *e, struct names *n)
{
    const char *name = e->owner.name, *ns = e->owner.ns;
    const char *domain = e->spec.pod.cluster_domain ? e->spec.pod.cluster_domain : "cluster.local";
    add_name(n, "*.%s.%s.svc", name, ns);
    add_name(n, "*.%s.%s.svc.%s", name, ns, domain);
    add_name(n, "%s-client", name);
    add_name(n, "%s-client.%s", name, ns);
    add_name(n, "%s-client.%s.svc", name, ns);
    add_name(n, "%s-client.%s.svc.%s", name, ns, domain);
    add_name(n, "localhost");
}

static void names_of_clients(const struct ec *e, struct names *n)
{
    add_name(n, "client.%s.%s.svc", e->owner.name, e->owner.ns);
}

static int write_leaf(struct ec *e, const struct ec_authority *a, const struct stw_secret *old,
                      const char *name, const char *prefix, const struct stw_pem_pair *leaf,
                      struct stw_error *err)
{
    char cert[32], key[32], ca[32];
    stw_format(cert, sizeof(cert), "%s.crt", prefix);
    stw_format(key, sizeof(key), "%s.key", prefix);
    stw_format(ca, sizeof(ca), "%s-ca.crt", prefix);
    const struct secret_entry entries[] = {
        {cert, leaf->cert}, {key, leaf->key}, {ca, stw_buf_str(&a->bundle)}, {NULL, NULL}};
    return write_secret(e, name, old, entries, err);
}

static int ensure_leaf(struct ec *e, const struct ec_authority *a, const char *name,
                       const char *prefix, const struct names *n, struct stw_error *err)
{
    static const char *const addresses[] = {"127.0.0.1", "::1", NULL};
    stw_autosecret struct stw_secret s = {0};
    struct ec_pem p = {0};
    struct stw_pem_pair fresh = {0};
    struct stw_error why = {0};
    if (read_secret(e, name, &s, err) < 0)
        return -1;
    if (stw_json_there(stw_json_root(&s.doc)))
        (void)read_pem_values(&s, name, prefix, &p, &why); /* none: it is made */
    int64_t now_us = stw_wall_us(e->run->clock);
    int64_t early_s = e->spec.tls.auto_.renew_before_days * stw_day_s();
    bool good =
        a->now.cert ? ec_leaf_is_good(&p, a->now.cert, n->list, early_s, now_us) : is_usable(e, &p);
    int rc = 0;
    if (!good && !a->now.cert)
        rc = stw_fail(err, STW_ERR_CONFLICT, "Secret \"%s\" has changed meanwhile", name);
    else if (!good)
        rc = stw_issue_both(&a->now, n->list, addresses, now_us,
                            (uint32_t)e->spec.tls.auto_.validity_days, &fresh, err);
    if (rc == 0)
        look_by(e, ec_cert_end(good ? p.cert : fresh.cert) - early_s);
    const struct stw_pem_pair old = {.cert = p.cert, .key = p.key};
    if (rc == 0 && (!good || !p.ca || !stw_streq(p.ca, stw_buf_str(&a->bundle))))
        rc = write_leaf(e, a, &s, name, prefix, good ? &old : &fresh, err);
    if (rc == 0 && !good && stw_json_there(stw_json_root(&s.doc)))
        stw_object_event(e->run, &e->object, false, "CertRotated", "Rotate",
                         "renewed the certificate in Secret \"%s\"", name);
    stw_pem_pair_done(&fresh);
    ec_pem_done(&p);
    return rc;
}

int ec_secrets_ensure(struct ec *e, struct stw_error *err)
{
    struct ec_authority a = {0};
    struct ec_pem in_use = {0};
    struct names members = {0}, clients = {0};
    names_of_members(e, &members);
    names_of_clients(e, &clients);
    int rc = -1;
    if (ensure_authority(e, &a, &in_use, err) == 0 &&
        ensure_leaf(e, &a, e->tls.peer_secret, "peer", &members, err) == 0 &&
        ensure_leaf(e, &a, e->tls.server_secret, "server", &members, err) == 0)
        rc = ensure_leaf(e, &a, e->tls.operator_secret, "etcd-client", &clients, err);
    ec_authority_done(&a);
    ec_pem_done(&in_use);
    return rc;
}
