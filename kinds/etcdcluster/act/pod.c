/* SPDX-License-Identifier: Apache-2.0
 *
 * What a member's pod should be.  A pod is created once and not applied again: an annotation holds
 * the hash of what the spec requires, and a pod with another hash is recreated. */
#include "kinds/etcdcluster/act/pod.h"

#include "base/hex.h"
#include "base/process/fault.h"
#include "base/util.h"
#include "kinds/common/pod.h"
#include "kinds/etcdcluster/labels.h"
#include "kinds/etcdcluster/names.h"
#include "kinds/etcdcluster/plan/entries.h"
#include "kinds/etcdcluster/plan/maintenance_limits.h"
#include "kinds/etcdcluster/run.h"
#include "kube/tree.h"
#include "schema/names.h"

#include <stdio.h>

#define FOLDER "/var/etcd"
#define PEER_FOLDER "/etc/etcdtls/member/peer-tls"
#define SERVER_FOLDER "/etc/etcdtls/member/server-tls"
#define USER_ID 65532
#define GRACE_SECONDS 10 /* a stop needs 2; without a quorum, waiting longer does not help */
#define NANO 1000000000

/* --- arguments */

static void append_etcd_arg(json_t *args, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void append_etcd_arg(json_t *args, const char *fmt, ...)
{
    char text[2 * STW_ETCD_URL_MAX];
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(text, sizeof(text), fmt, ap);
    va_end(ap);
    (void)json_array_append_new(args, json_string(text));
}

static void tls_args(const struct ec *e, struct stw_semver v, json_t *args)
{
    if (e->tls.peer) {
        append_etcd_arg(args, "--peer-client-cert-auth=true");
        append_etcd_arg(args, "--peer-trusted-ca-file=" PEER_FOLDER "/peer-ca.crt");
        append_etcd_arg(args, "--peer-cert-file=" PEER_FOLDER "/peer.crt");
        append_etcd_arg(args, "--peer-key-file=" PEER_FOLDER "/peer.key");
        /* The CA authenticates the client; a SAN check would need its address in reverse DNS. */
        append_etcd_arg(args, "%s", stw_etcd_option(v, STW_ETCD_SKIP_CLIENT_SAN));
    }
    if (e->tls.client) {
        append_etcd_arg(args, "--client-cert-auth=true");
        append_etcd_arg(args, "--trusted-ca-file=" SERVER_FOLDER "/server-ca.crt");
        append_etcd_arg(args, "--cert-file=" SERVER_FOLDER "/server.crt");
        append_etcd_arg(args, "--key-file=" SERVER_FOLDER "/server.key");
    }
}

static void number_arg(json_t *args, const char *flag, int64_t n)
{
    if (n > 0)
        append_etcd_arg(args, "--%s=%lld", flag, (long long)n);
}

/* etcd takes each option once, so the feature gates of the spec are appended to ours. */
static void check_args(const struct ec *e, struct stw_semver v, json_t *args)
{
    const char *option = stw_etcd_option(v, STW_ETCD_CORRUPT_CHECK);
    struct stw_json gates = stw_json_get(e->spec.options.extra_args, STW_ETCD_GATES);
    stw_autofree char *more =
        stw_etcd_has(v, STW_ETCD_FEATURE_GATES) ? stw_json_strdup(gates) : NULL;
    append_etcd_arg(args, "%s%s%.700s", option, more && *more ? "," : "", more ? more : "");
}

static void option_args(const struct ec *e, struct stw_semver v, json_t *args)
{
    stw_quantity quota;
    struct stw_json key, value;
    if (stw_quantity_of(e->spec.options.quota_backend_bytes, &quota) == 0)
        number_arg(args, "quota-backend-bytes", (int64_t)(quota / NANO));
    if (e->spec.options.auto_compaction_mode)
        append_etcd_arg(args, "--auto-compaction-mode=%s", e->spec.options.auto_compaction_mode);
    if (e->spec.options.auto_compaction_retention)
        append_etcd_arg(args, "--auto-compaction-retention=%s",
                        e->spec.options.auto_compaction_retention);
    number_arg(args, "snapshot-count", e->spec.options.snapshot_count);
    number_arg(args, "heartbeat-interval", e->spec.options.heartbeat_interval_ms);
    number_arg(args, "election-timeout", e->spec.options.election_timeout_ms);
    stw_json_foreach (e->spec.options.extra_args, key, value) {
        if (stw_json_is(key, STW_ETCD_GATES) && stw_etcd_has(v, STW_ETCD_FEATURE_GATES))
            continue;
        stw_autofree char *name = stw_json_strdup(key), *text = stw_json_strdup(value);
        if (name && text)
            append_etcd_arg(args, "--%.200s=%.700s", name, text);
    }
}

/* --force-new-cluster discards log entries of the survivor that are not recorded there as
 * committed.  If the survivor was killed, these are the last acknowledged writes, which its
 * database has already.  New members that read the log would never get them.  --snapshot-count=1
 * makes the first few entries trigger a snapshot: the log then begins after it, and new members get
 * the database.  If a flag is given twice, the last one counts. */
static void force_args(json_t *args)
{
    append_etcd_arg(args, "--force-new-cluster");
    append_etcd_arg(args, "--snapshot-count=1");
}

/* The first entries after the start trigger a raft snapshot, and the log begins after it. */
static void trim_args(json_t *args)
{
    append_etcd_arg(args, "--snapshot-count=1");
}

/* Options of one pod's start. */
struct start {
    struct stw_semver version;
    bool forced, trimmed;
};

static json_t *build_etcd_arguments(const struct ec *e, const char *member, const struct start *s)
{
    struct stw_semver v = s->version;
    char url[STW_ETCD_URL_MAX];
    const char *client = e->tls.client ? "https" : "http", *peer = e->tls.peer ? "https" : "http";
    json_t *args = json_array();
    append_etcd_arg(args, "--name=%s", member);
    append_etcd_arg(args, "--data-dir=" FOLDER "/data");
    append_etcd_arg(args, "--listen-peer-urls=%s://0.0.0.0:%d", peer, EC_PEER_PORT);
    append_etcd_arg(args, "--listen-client-urls=%s://0.0.0.0:%d", client, EC_CLIENT_PORT);
    append_etcd_arg(args, "--listen-metrics-urls=http://0.0.0.0:%d", EC_METRICS_PORT);
    ec_peer_url(e, member, url);
    append_etcd_arg(args, "--initial-advertise-peer-urls=%s", url);
    ec_client_url(e, member, url);
    append_etcd_arg(args, "--advertise-client-urls=%s", url);
    append_etcd_arg(args, "--initial-cluster=$(INITIAL_CLUSTER)");
    append_etcd_arg(args, "--initial-cluster-state=$(INITIAL_CLUSTER_STATE)");
    append_etcd_arg(args, "--initial-cluster-token=%s", e->owner.uid);
    append_etcd_arg(args, "--strict-reconfig-check=true");
    append_etcd_arg(args, "--pre-vote=true");
    check_args(e, v, args);
    append_etcd_arg(args, "--logger=zap");
    tls_args(e, v, args);
    option_args(e, v, args);
    if (s->forced)
        force_args(args);
    else if (s->trimmed)
        trim_args(args);
    return args;
}

/* --- the container */

/* The kubelet reads the annotation again each time it starts the container (see EC_GUARD). */
static json_t *from_annotation(const char *name, const char *annotation)
{
    return stw_tree_pack("{s:s,s:{s:{s:s,s:o}}}", "name", name, "valueFrom", "fieldRef",
                         "apiVersion", "v1", "fieldPath",
                         json_sprintf("metadata.annotations['%s']", annotation));
}

static json_t *build_etcd_env(const struct ec *e)
{
    json_auto_t *given = stw_manifest_tree(e->spec.pod.env);
    json_t *all = json_array();
    (void)json_array_append_new(all, from_annotation("INITIAL_CLUSTER", EC_INITIAL_CLUSTER));
    (void)json_array_append_new(all, from_annotation("INITIAL_CLUSTER_STATE", EC_INITIAL_STATE));
    (void)json_array_extend(all, given);
    return all;
}

/* A full database still serves reads, so the pod stays ready: the alarm is excluded where etcd
 * supports that (3.4.17, 3.5.0).  Older versions ignore the query. */
#define LIVENESS_PERIOD_S 10
#define READY_PATH "/health?exclude=NOSPACE"

/* Without /livez, only checks that etcd listens: /health fails while there is no quorum, and
 * killing members would not bring that back.  /livez fails while the member is defragmented, which may
 * take as long as the quota is large. */
static json_t *build_liveness_probe(const struct ec *e, struct stw_semver v)
{
    int64_t failures = ec_defragment_limit(ec_quota(e)) / LIVENESS_PERIOD_S;
    json_t *p =
        stw_tree_pack("{s:i,s:i,s:i,s:i}", "initialDelaySeconds", 10, "periodSeconds",
                      LIVENESS_PERIOD_S, "timeoutSeconds", 10, "failureThreshold", (int)failures);
    bool livez = stw_etcd_has(v, STW_ETCD_LIVEZ);
    json_t *how = livez ? stw_tree_pack("{s:s,s:i}", "path", "/livez", "port", EC_METRICS_PORT)
                        : stw_tree_pack("{s:i}", "port", EC_METRICS_PORT);
    (void)json_object_set_new(p, livez ? "httpGet" : "tcpSocket", how);
    return p;
}

static json_t *build_volume_mounts(const struct ec *e)
{
    json_t *all = stw_tree_pack("[{s:s,s:s}]", "name", "data", "mountPath", FOLDER);
    if (e->tls.peer)
        (void)json_array_append_new(all, stw_tree_pack("{s:s,s:s,s:b}", "name", "peer-tls",
                                                       "mountPath", PEER_FOLDER, "readOnly", 1));
    if (e->tls.client)
        (void)json_array_append_new(all, stw_tree_pack("{s:s,s:s,s:b}", "name", "server-tls",
                                                       "mountPath", SERVER_FOLDER, "readOnly", 1));
    return all;
}

static json_t *build_container_port(const char *name, int number)
{
    return stw_tree_pack("{s:s,s:i,s:s}", "name", name, "containerPort", number, "protocol", "TCP");
}

static json_t *build_etcd_container(const struct ec *e, const char *member, const struct start *s)
{
    char version[STW_SEMVER_LEN];
    stw_semver_text(s->version, version);
    json_t *c = stw_tree_pack("{s:s,s:o,s:[s],s:o,s:o,s:o,s:[o,o,o],s:s}", "name", "etcd", "image",
                              json_sprintf("%s:v%s", e->spec.repository, version), "command",
                              "etcd", "args", build_etcd_arguments(e, member, s), "env",
                              build_etcd_env(e), "volumeMounts", build_volume_mounts(e), "ports",
                              build_container_port("client", EC_CLIENT_PORT),
                              build_container_port("peer", EC_PEER_PORT),
                              build_container_port("metrics", EC_METRICS_PORT),
                              "terminationMessagePolicy", "FallbackToLogsOnError");
    (void)json_object_set_new(c, "readinessProbe",
                              stw_tree_pack("{s:{s:s,s:i},s:i,s:i,s:i}", "httpGet", "path",
                                            READY_PATH, "port", EC_METRICS_PORT, "periodSeconds", 2,
                                            "timeoutSeconds", 5, "failureThreshold", 3));
    (void)json_object_set_new(c, "livenessProbe", build_liveness_probe(e, s->version));
    (void)json_object_set_new(c, "securityContext",
                              stw_tree_pack("{s:b,s:{s:[s]}}", "allowPrivilegeEscalation", 0,
                                            "capabilities", "drop", "ALL"));
    if (stw_json_there(e->spec.pod.resources))
        (void)json_object_set_new(c, "resources", stw_manifest_resources(e->spec.pod.resources));
    return c;
}

/* --- the pod */

static json_t *spread_over(const struct ec *e, const char *key)
{
    return stw_tree_pack("{s:i,s:s,s:s,s:{s:o}}", "maxSkew", 1, "topologyKey", key,
                         "whenUnsatisfiable", "ScheduleAnyway", "labelSelector", "matchLabels",
                         ec_selector(e));
}

static json_t *build_topology_spread(const struct ec *e)
{
    json_t *given = stw_manifest_tree(e->spec.pod.spread);
    if (given)
        return given;
    return stw_tree_pack("[o,o]", spread_over(e, "kubernetes.io/hostname"),
                         spread_over(e, "topology.kubernetes.io/zone"));
}

static json_t *build_pod_affinity(const struct ec *e)
{
    if (!e->spec.pod.anti_affinity)
        return stw_manifest_tree(e->spec.pod.affinity);
    return stw_tree_pack("{s:{s:[{s:{s:o},s:s}]}}", "podAntiAffinity",
                         "requiredDuringSchedulingIgnoredDuringExecution", "labelSelector",
                         "matchLabels", ec_selector(e), "topologyKey", "kubernetes.io/hostname");
}

static json_t *build_security_context(const struct ec *e)
{
    json_t *given = stw_manifest_tree(e->spec.pod.security_context);
    const json_t *user = json_object_get(given, "runAsUser");
    bool root = json_is_integer(user) && json_integer_value(user) == 0;
    if (given && !root && !json_object_get(given, "runAsNonRoot"))
        (void)json_object_set_new(given, "runAsNonRoot", json_true());
    if (given && !json_object_get(given, "seccompProfile"))
        (void)json_object_set_new(given, "seccompProfile",
                                  stw_tree_pack("{s:s}", "type", "RuntimeDefault"));
    if (given)
        return given;
    return stw_tree_pack("{s:b,s:i,s:i,s:i,s:{s:s}}", "runAsNonRoot", 1, "runAsUser", USER_ID,
                         "runAsGroup", USER_ID, "fsGroup", USER_ID, "seccompProfile", "type",
                         "RuntimeDefault");
}

static json_t *data_volume(const struct ec *e, const char *member)
{
    if (e->state.storage.durable)
        return stw_tree_pack("{s:s,s:{s:s}}", "name", "data", "persistentVolumeClaim", "claimName",
                             member);
    if (*e->state.storage.size)
        return stw_tree_pack("{s:s,s:{s:s}}", "name", "data", "emptyDir", "sizeLimit",
                             e->state.storage.size);
    return stw_tree_pack("{s:s,s:{}}", "name", "data", "emptyDir");
}

/* The files are "<prefix>.crt", "<prefix>.key" and "<prefix>-ca.crt", whatever keys the Secret has.  The
 * kubelet leaves the files of a volume as they are while the Secret lacks one of the volume's items.  So a
 * member whose Secret gets other keys goes on with the files it has, until its pod is recreated. */
static json_t *secret_volume(const struct ec *e, const char *prefix, const char *secret,
                             bool common)
{
    char name[32];
    stw_format(name, sizeof(name), "%s-tls", prefix);
    json_t *volume = stw_tree_pack("{s:s,s:{s:s}}", "name", name, "secret", "secretName", secret);
    if (!e->tls.own) /* steward writes no other keys */
        (void)json_object_set_new(json_object_get(volume, "secret"), "items",
                                  stw_pod_certificate_items(prefix, common));
    return volume;
}

static json_t *build_pod_volumes(const struct ec *e, const char *member)
{
    json_t *all = stw_tree_pack("[o]", data_volume(e, member));
    if (e->tls.peer)
        (void)json_array_append_new(
            all, secret_volume(e, "peer", e->tls.peer_secret, e->tls.peer_common));
    if (e->tls.client)
        (void)json_array_append_new(
            all, secret_volume(e, "server", e->tls.server_secret, e->tls.server_common));
    return all;
}

static void set_if(json_t *to, const char *key, json_t *value)
{
    if (json_array_size(value) > 0 || json_object_size(value) > 0)
        (void)json_object_set(to, key, value);
    json_decref(value);
}

static json_t *pod_spec(const struct ec *e, const char *member, const struct start *s)
{
    const struct ec_spec_pod *p = &e->spec.pod;
    json_t *spec =
        stw_tree_pack("{s:b,s:[o],s:s,s:s,s:s,s:i,s:o,s:o}", "automountServiceAccountToken",
                      p->service_account != NULL, "containers", build_etcd_container(e, member, s),
                      "hostname", member, "subdomain", e->owner.name, "restartPolicy", "Always",
                      "terminationGracePeriodSeconds", GRACE_SECONDS, "securityContext",
                      build_security_context(e), "volumes", build_pod_volumes(e, member));
    stw_tree_set_text(spec, "serviceAccountName", p->service_account);
    stw_tree_set_text(spec, "priorityClassName", p->priority_class);
    set_if(spec, "nodeSelector", stw_manifest_tree(p->node_selector));
    set_if(spec, "affinity", build_pod_affinity(e));
    set_if(spec, "tolerations", stw_manifest_tree(p->tolerations));
    set_if(spec, "topologySpreadConstraints", build_topology_spread(e));
    set_if(spec, "imagePullSecrets", stw_manifest_tree(p->image_pull_secrets));
    return spec;
}

/* Ours are set last, so that the spec cannot override them. */
static json_t *build_pod_labels(const struct ec *e, const char *member)
{
    json_t *all = stw_manifest_tree(e->spec.pod.labels);
    json_auto_t *ours = ec_labels(e, member);
    if (!all)
        all = json_object();
    (void)json_object_update(all, ours);
    return all;
}

static json_t *build_pod_annotations(const struct ec *e)
{
    const char *mark = stw_fault_template(); /* in a build for tests: as another version makes it */
    json_t *all = stw_manifest_tree(e->spec.pod.annotations);
    if (!all)
        all = json_object();
    if (mark)
        (void)json_object_set_new(all, "steward.dev/test", json_string(mark));
    return all;
}

/* Without probes, which the spec does not set: a steward upgrade that changes them must not
 * recreate all pods. */
static json_t *hashed_spec(const struct ec *e)
{
    const struct start any = {.version = {3, 5, 0}};
    json_t *spec = pod_spec(e, "", &any);
    json_t *etcd = json_array_get(json_object_get(spec, "containers"), 0);
    (void)json_object_del(etcd, "readinessProbe");
    (void)json_object_del(etcd, "livenessProbe");
    return spec;
}

static void hash_tree(const json_t *tree, char out[STW_HASH_LEN])
{
    stw_autofree char *text = json_dumps(tree, JSON_COMPACT | JSON_SORT_KEYS);
    stw_hash_format(stw_hash_bytes(text ? text : "", text ? strlen(text) : 0), out);
}

/* What does not depend on the version of steward.  A field that is added later must be left out while
 * it has its default value. */
static void hash_inputs(struct ec *e)
{
    struct stw_json spec = stw_json_get(e->object.root, "spec");
    bool repository = stw_json_there(stw_json_get(spec, "repository"));
    json_auto_t *all = stw_tree_pack(
        "{s:o?,s:o?,s:s,s:b,s:b,s:s,s:s,s:s,s:b,s:s}", "pod",
        stw_manifest_tree(stw_json_get(spec, "pod")), "options",
        stw_manifest_tree(stw_json_get(spec, "options")), "repository",
        repository ? e->spec.repository : "", "peerTLS", e->tls.peer, "clientTLS", e->tls.client,
        "peerSecret", e->tls.peer_secret, "serverSecret", e->tls.server_secret, "size",
        e->state.storage.grown ? e->state.storage.initial_size : e->state.storage.size, "durable",
        e->state.storage.durable, "trust", e->tls.trust_hash);
    if (e->tls.peer_common)
        (void)json_object_set_new(all, "peerCommon", json_true());
    if (e->tls.server_common)
        (void)json_object_set_new(all, "serverCommon", json_true());
    hash_tree(all, e->input_hash);
}

/* Hashes what the spec requires of any pod: without a member's name, with a fixed version, and with
 * the CA bundles, which etcd reads at its start. */
void ec_hash_template(struct ec *e)
{
    json_auto_t *all =
        stw_tree_pack("{s:o,s:o,s:o,s:s}", "labels", build_pod_labels(e, ""), "annotations",
                      build_pod_annotations(e), "spec", hashed_spec(e), "trust", e->tls.trust_hash);
    hash_tree(all, e->template_hash);
    hash_inputs(e);
}

void ec_initial_cluster(const struct ec *e, const char *member, bool alone, struct stw_buf *out)
{
    char url[STW_ETCD_URL_MAX];
    bool self = false;
    for (size_t i = 0; !alone && i < e->view.count; i++) {
        const struct ec_member *m = &e->view.members[i];
        if (!m->listed)
            continue;
        stw_buf_addf(out, "%s%s=%s", out->len ? "," : "", m->name, e->details[i].peer_url);
        self = self || stw_streq(m->name, member);
    }
    if (self)
        return;
    ec_peer_url(e, member, url);
    stw_buf_addf(out, "%s%s=%s", out->len ? "," : "", member, url);
}

static bool is_created_as_voter(const struct ec *e, const struct ec_move *move)
{
    size_t i = ec_index(e, move->member);
    return move->seed || stw_streq(move->member, e->restored) ||
           (i != EC_MEMBERS_MAX && e->view.members[i].listed && !e->view.members[i].learner);
}

json_t *ec_pod_manifest(const struct ec *e, const struct ec_move *move)
{
    char version[STW_SEMVER_LEN];
    stw_autobuf struct stw_buf initial = STW_BUF_INIT(64 * 1024);
    json_t *notes = build_pod_annotations(e), *marks = build_pod_labels(e, move->member);
    if (is_created_as_voter(e, move) && !move->forced)
        (void)json_object_set_new(marks, EC_ROLE, json_string(EC_VOTER));
    ec_initial_cluster(e, move->member, move->seed || move->guarded, &initial);
    stw_semver_text(move->version, version);
    (void)json_object_set_new(notes, EC_HASH, json_string(e->template_hash));
    (void)json_object_set_new(notes, EC_INPUTS, json_string(e->input_hash));
    (void)json_object_set_new(notes, EC_VERSION, json_string(version));
    (void)json_object_set_new(notes, EC_INITIAL_CLUSTER, json_string(stw_buf_str(&initial)));
    (void)json_object_set_new(notes, EC_INITIAL_STATE,
                              json_string(move->seed ? "new" : "existing"));
    if (move->forced)
        (void)json_object_set_new(notes, EC_FORCED, json_string("true"));
    if (move->trimmed)
        (void)json_object_set_new(notes, EC_TRIMMED, json_string("true"));
    const struct start start = {
        .version = move->version, .forced = move->forced, .trimmed = move->trimmed};
    return stw_tree_pack("{s:s,s:s,s:{s:s,s:s,s:o,s:o,s:[o]},s:o}", "apiVersion", "v1", "kind",
                         "Pod", "metadata", "name", move->member, "namespace", e->owner.ns,
                         "labels", marks, "annotations", notes, "ownerReferences",
                         stw_owner_reference(e->run->controller->resource, &e->owner), "spec",
                         pod_spec(e, move->member, &start));
}
