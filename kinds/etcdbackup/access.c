/* SPDX-License-Identifier: Apache-2.0
 *
 * External inputs of a backup: Secrets, the members' addresses, a store.  Secrets are read when a
 * backup begins, and wiped after it. */
#include "kinds/etcdbackup/access.h"

#include "base/util.h"
#include "kinds/common/certificate.h"
#include "kinds/common/product.h"
#include "kinds/etcdbackup/places.h"
#include "kinds/etcdbackup/plan.h"
#include "kinds/etcdbackup/run.h"
#include "kinds/etcdbackup/state.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/reconcile.h"
#include "kube/secret.h"
#include "store/credentials.h"

#include <stdio.h>

#define KEYS_MAX (64u << 10)
#define TEXT_MAX (8u << 20)

int eb_fault(struct eb_snapshot *s, enum eb_snapshot_fault fault, const char *reason,
             const char *fmt, ...)
{
    va_list ap;
    s->fault = fault;
    stw_format(s->reason, sizeof(s->reason), "%s", reason);
    va_start(ap, fmt);
    (void)stw_vfail(&s->err, STW_ERR_UNAVAILABLE, fmt, ap);
    va_end(ap);
    return -1;
}

int eb_fault_memory(struct eb_snapshot *s)
{
    return eb_fault(s, EB_SNAPSHOT_OTHER, "InternalError", "out of memory");
}

/* --- Secrets */

static int secret_get(const struct stw_run *run, const char *name, enum eb_snapshot_fault fault,
                      struct stw_secret *ret, struct eb_snapshot *why)
{
    struct stw_error err = {0};
    if (stw_run_get_secret(run, name, NULL, ret, &err) == 0)
        return 0;
    stw_secret_done(ret);
    if (err.code == STW_ERR_NOT_FOUND)
        return eb_fault(why, fault, "SecretMissing",
                        "there is no Secret \"%s\" in namespace \"%s\"", name, run->ns);
    return eb_fault(why, fault, "SecretMissing", "Secret \"%s\" cannot be read: %s", name,
                    err.text);
}

/* --- the store */

static int read_s3_secret(const struct stw_run *run, const char *name, struct stw_credentials *c,
                          char **ret_ca, struct eb_snapshot *why)
{
    struct stw_secret s;
    struct stw_error err = {0};
    if (secret_get(run, name, EB_SNAPSHOT_STORE, &s, why) != 0)
        return -1;
    char *text = stw_secret_value(&s, "credentials");
    bool cut = stw_secret_has_nul(&s, "ca.crt");
    *ret_ca = stw_secret_value(&s, "ca.crt");
    stw_secret_done(&s);
    int rc = !text ? stw_fail(&err, STW_ERR_INVALID, "it has no key \"credentials\"")
             : cut ? stw_fail(&err, STW_ERR_INVALID, "ca.crt has a NUL byte")
             : *ret_ca && stw_certificate_check_authorities(*ret_ca, &err) != 0
                 ? stw_error_wrap(&err, "ca.crt")
                 : stw_credentials_parse(text, strlen(text), NULL, c, &err);
    stw_wipe_free(text);
    if (rc != 0)
        return eb_fault(why, EB_SNAPSHOT_STORE, "SecretInvalid", "Secret \"%s\": %s", name,
                        err.text);
    return 0;
}

int eb_secret_has(const struct stw_run *run, const char *name, const char *key, bool *ret,
                  struct eb_snapshot *why)
{
    struct stw_secret s;
    if (secret_get(run, name, EB_SNAPSHOT_STORE, &s, why) != 0)
        return -1;
    *ret = stw_json_there(stw_secret_entry(stw_json_root(&s.doc), key));
    stw_secret_done(&s);
    return 0;
}

static int open_s3(const struct stw_run *run, const struct eb_spec_s3 *s3, const char *bucket,
                   const struct stw_credentials *c, const char *ca, struct stw_store **ret,
                   struct eb_snapshot *why)
{
    struct stw_error err = {0};
    const struct stw_store_s3 config = {
        .endpoint = s3->endpoint,
        .region = s3->region ? s3->region : "us-east-1",
        .bucket = bucket,
        .access_key = *c->access_key ? c->access_key : NULL,
        .secret_key = c->secret_key,
        .session_token = *c->session_token ? c->session_token : NULL,
        .ca = ca,
        .sse = s3->sse,
        .path_style = s3->force_path_style,
        .part_bytes = eb_places_part_bytes(stw_share_limit(STW_SHARE_TRANSFERS)),
        .reach = stw_product_reach(run->env),
    };
    if (stw_store_s3_create(&config, ret, &err) == 0)
        return 0;
    return eb_fault(why, EB_SNAPSHOT_STORE, "StoreFailed", "%s", err.text);
}

int eb_store_open(const struct stw_run *run, const struct eb_spec_s3 *s3, struct stw_store **ret,
                  char **ret_path, struct eb_snapshot *why)
{
    struct stw_credentials c = {0};
    char *ca = NULL;
    const char *slash = strchr(s3->path, '/');
    stw_autofree char *bucket = slash ? strndup(s3->path, (size_t)(slash - s3->path)) : NULL;
    *ret_path = slash ? strdup(slash + 1) : NULL;
    int rc = -1;
    if (!bucket || !*ret_path)
        (void)eb_fault_memory(why);
    else if (!s3->aws_secret || read_s3_secret(run, s3->aws_secret, &c, &ca, why) == 0)
        rc = open_s3(run, s3, bucket, &c, ca, ret, why);
    stw_credentials_wipe(&c);
    free(ca);
    return rc;
}

/* --- the members */

static int add_source(struct eb_source *s, const char *url, const char *address)
{
    if (s->count == EB_ENDPOINTS_MAX)
        return 0;
    s->urls[s->count] = strdup(url);
    s->addresses[s->count] = address ? strdup(address) : NULL;
    bool bad = !s->urls[s->count] || (address && !s->addresses[s->count]);
    s->count++;
    return bad ? -1 : 0;
}

void eb_source_done(struct eb_source *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->urls[i]);
        free(s->addresses[i]);
    }
    *s = (struct eb_source){0};
}

static int given_endpoints(const struct eb_spec *spec, struct eb_source *ret)
{
    struct stw_json key, url;
    stw_json_foreach (spec->endpoints, key, url) {
        stw_autofree char *text = stw_json_strdup(url);
        if (!text || add_source(ret, text, NULL) != 0)
            return -1;
    }
    return 0;
}

/* Host names as in the cluster's own certificates: <pod>.<cluster>.<namespace>.svc */
static int add_pods(const struct stw_run *run, const char *cluster, const char *domain, bool tls,
                    struct eb_source *ret)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2048), keys = STW_BUF_INIT(KEYS_MAX);
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    struct stw_informer *pods = stw_run_cache(run, &ec_watch_pods);
    size_t at = 0;
    stw_buf_addf(&index, "cluster:%s/%s", run->ns, cluster);
    stw_informer_keys(pods, stw_buf_str(&index), &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        struct ec_pod_live pod;
        char url[STW_ETCD_URL_MAX];
        const char *slash = strchr(key, '/');
        if (!slash || stw_informer_get(pods, key, &text, NULL) != 0 ||
            ec_pod_read(stw_buf_str(&text), text.len, &pod) != 0 || pod.going || pod.ended ||
            !*pod.ip)
            continue;
        if (stw_format_whole(url, sizeof(url), "%s://%s.%s.%s.svc%s%s:%d", tls ? "https" : "http",
                             slash + 1, cluster, run->ns, domain ? "." : "", domain ? domain : "",
                             EC_CLIENT_PORT) != 0 ||
            add_source(ret, url, pod.ip) != 0)
            return -1;
    }
    return 0;
}

static void find_tls(const struct ec_spec *c, const char *name, struct eb_source *ret)
{
    const char *secret = c->tls.static_.operator_secret;
    if (c->tls.auto_.provider)
        stw_format(ret->tls_secret, sizeof(ret->tls_secret), "%.250s-client-tls", name);
    else if (c->tls.static_.member.server_secret && secret)
        stw_format(ret->tls_secret, sizeof(ret->tls_secret), "%.253s", secret);
}

static int of_cluster(const struct stw_run *run, const char *name, struct eb_source *ret,
                      struct eb_snapshot *why)
{
    stw_autoobject struct stw_object o = {0};
    struct ec_spec spec = {0};
    char key[STW_KEY_LEN];
    stw_key_make(run->ns, name, key);
    struct stw_informer *clusters = stw_run_other_cache(run, &stw_controller_etcdcluster);
    struct stw_arena *arena = stw_arena_create();
    struct stw_error err = {0};
    int rc = 0, found = arena && clusters
                            ? stw_object_load_other(run, &stw_controller_etcdcluster, key, &o, &err)
                            : 1;
    if (!arena)
        rc = eb_fault_memory(why);
    else if (!clusters)
        rc = eb_fault(why, EB_SNAPSHOT_SOURCE, "ClusterNotFound",
                      "steward runs without the kind EtcdCluster (--kinds), and so cannot find the "
                      "EtcdCluster \"%s\": name its etcdEndpoints",
                      name);
    else if (found < 0)
        rc = eb_fault(why, EB_SNAPSHOT_SOURCE, "ClusterNotFound",
                      "EtcdCluster \"%s\" cannot be read: %.200s", name, err.text);
    else if (found > 0)
        rc = eb_fault(why, EB_SNAPSHOT_SOURCE, "ClusterNotFound",
                      "there is no EtcdCluster \"%s\" in namespace \"%s\"", name, run->ns);
    else if (stw_kind_decode(&stw_kind_etcdcluster, stw_json_get(o.root, "spec"), arena, &spec,
                             &why->err) != 0)
        rc = eb_fault(why, EB_SNAPSHOT_SOURCE, "ClusterNotFound",
                      "EtcdCluster \"%s\" cannot be read", name);
    if (rc == 0) {
        find_tls(&spec, name, ret);
        rc = add_pods(run, name, spec.pod.cluster_domain, *ret->tls_secret, ret);
        if (rc != 0)
            rc = eb_fault_memory(why);
        else if (ret->count == 0)
            rc = eb_fault(why, EB_SNAPSHOT_SOURCE, "NoHealthyEndpoint",
                          "EtcdCluster \"%s\" has no running member", name);
    }
    stw_arena_destroy(arena);
    return rc;
}

int eb_source_find(const struct stw_run *run, const struct eb_spec *spec, struct eb_source *ret,
                   struct eb_snapshot *why)
{
    *ret = (struct eb_source){0};
    if (spec->cluster) {
        if (of_cluster(run, spec->cluster, ret, why) != 0)
            return -1;
    } else if (given_endpoints(spec, ret) != 0) {
        return eb_fault_memory(why);
    }
    if (spec->client_tls_secret)
        stw_format(ret->tls_secret, sizeof(ret->tls_secret), "%.253s", spec->client_tls_secret);
    return 0;
}

/* --- the connection to the members */

struct keys {
    struct stw_certificate tls;
    char *user, *password;
};

static void keys_done(struct keys *k)
{
    stw_certificate_done(&k->tls);
    stw_wipe_free(k->user);
    stw_wipe_free(k->password);
}

static void cut_line(char *text)
{
    if (text)
        text[strcspn(text, "\r\n")] = '\0';
}

static int read_keys(const struct stw_run *run, const char *tls, const char *auth, struct keys *k,
                     struct eb_snapshot *why)
{
    struct stw_secret s;
    struct stw_error err = {0};
    if (*tls) {
        if (secret_get(run, tls, EB_SNAPSHOT_SOURCE, &s, why) != 0)
            return -1;
        int rc = stw_certificate_read(&s, tls, "etcd-client", &k->tls, &err);
        stw_secret_done(&s);
        if (rc != 0)
            return eb_fault(why, EB_SNAPSHOT_SOURCE, "SecretInvalid", "%s", err.text);
    }
    if (!auth)
        return 0;
    if (secret_get(run, auth, EB_SNAPSHOT_SOURCE, &s, why) != 0)
        return -1;
    k->user = stw_secret_value(&s, "username");
    k->password = stw_secret_value(&s, "password");
    stw_secret_done(&s);
    cut_line(k->user);
    cut_line(k->password);
    if (!k->user || !k->password)
        return eb_fault(why, EB_SNAPSHOT_SOURCE, "SecretInvalid",
                        "Secret \"%s\" needs username and password", auth);
    return 0;
}

static int open_etcd(struct eb *e, const char *tls, struct eb_job *j, struct eb_snapshot *why)
{
    struct keys k = {0};
    struct stw_error err = {0};
    int rc = read_keys(e->run, tls, e->spec.auth_secret, &k, why);
    if (rc == 0) {
        const struct stw_etcd_config config = {
            .op = e->run->op,
            .tls = {.ca = k.tls.ca, .cert = k.tls.cert, .key = k.tls.key},
            .user = k.user,
            .password = k.password,
            .reach = stw_product_reach(e->run->env),
        };
        rc = stw_etcd_create(&config, &j->etcd, &err);
        if (rc != 0)
            rc = eb_fault(why, EB_SNAPSHOT_SOURCE, "TLSFailed", "%s", err.text);
    }
    keys_done(&k);
    return rc;
}

int eb_inputs_check(const struct eb *e, bool *ret_common, struct eb_snapshot *why)
{
    const struct eb_spec *spec = &e->spec;
    struct eb_source source;
    struct keys k = {0};
    struct stw_credentials c = {0};
    char *ca = NULL;
    int rc = eb_source_find(e->run, spec, &source, why);
    if (rc != 0 && stw_streq(why->reason, "NoHealthyEndpoint")) { /* it may have one by then */
        *why = (struct eb_snapshot){0};
        rc = 0;
    }
    if (rc == 0)
        rc = read_keys(e->run, source.tls_secret, spec->auth_secret, &k, why);
    if (rc == 0 && spec->s3.aws_secret && !stw_same(spec->storage_type, "PVC"))
        rc = read_s3_secret(e->run, spec->s3.aws_secret, &c, &ca, why);
    *ret_common = k.tls.common;
    stw_credentials_wipe(&c);
    free(ca);
    keys_done(&k);
    eb_source_done(&source);
    return rc;
}

/* --- a job */

void eb_job_free(struct eb_job *j)
{
    if (!j)
        return;
    stw_etcd_destroy(j->etcd);
    stw_store_destroy(j->store);
    for (size_t i = 0; i < j->count; i++) {
        free(j->urls[i]);
        free(j->addresses[i]);
    }
    free(j->path);
    free(j->keep);
    free(j);
}

/* Moves the endpoints from `s` to `j`. */
static void take_endpoints(struct eb_job *j, struct eb_source *s)
{
    for (size_t i = 0; i < s->count; i++) {
        j->urls[i] = stw_take(s->urls[i]);
        j->addresses[i] = stw_take(s->addresses[i]);
        j->endpoints[i] = (struct stw_etcd_endpoint){.url = j->urls[i], .address = j->addresses[i]};
    }
    j->count = s->count;
    s->count = 0;
}

/* Store key of the newest verified backup, which retention never removes. */
static char *key_to_keep(const struct eb *e)
{
    const json_t *verified = eb_state_verified(&e->state);
    const char *uri = json_string_value(json_object_get(verified, "uri"));
    const char *bucket = uri && strncmp(uri, "s3://", 5) == 0 ? uri + 5 : NULL;
    const char *slash = bucket ? strchr(bucket, '/') : NULL;
    return slash ? strdup(slash + 1) : NULL;
}

static int fill_job(struct eb *e, struct eb_job *j, struct eb_snapshot *why)
{
    struct eb_source source;
    int rc = eb_source_find(e->run, &e->spec, &source, why);
    if (rc == 0)
        rc = open_etcd(e, source.tls_secret, j, why);
    if (rc == 0)
        rc = eb_store_open(e->run, &e->spec.s3, &j->store, &j->path, why);
    take_endpoints(j, &source);
    j->keep = key_to_keep(e);
    j->named = e->clock.mode == EB_ONCE;
    j->again = e->again;
    j->verify = !stw_streq(e->spec.verify, "None");
    j->timeout_s = e->spec.policy.timeout_s;
    j->max_backups = e->spec.policy.max_backups;
    j->max_age_s = e->spec.policy.max_age_s;
    return rc;
}

int eb_job_create(struct eb *e, struct eb_job **ret, struct eb_snapshot *why)
{
    struct eb_job *j = calloc(1, sizeof(*j));
    if (!j)
        return eb_fault_memory(why);
    if (fill_job(e, j, why) != 0) {
        eb_job_free(j);
        return -1;
    }
    *ret = j;
    return 0;
}

void eb_uri(const struct eb_spec *spec, const char *key, char *out, size_t size)
{
    const char *path = stw_same(spec->storage_type, "PVC") ? spec->pvc.path : spec->s3.path;
    if (stw_same(spec->storage_type, "PVC")) {
        const char *slash = strrchr(path, '/'); /* the key is a name in the folder of the path */
        int folder = slash ? (int)(slash - path) + 1 : 0;
        stw_format(out, size, "pvc://%s/%.*s%s", spec->pvc.claim, folder, path, key);
        return;
    }
    stw_format(out, size, "s3://%.*s/%s", (int)strcspn(path, "/"), path, key);
}
