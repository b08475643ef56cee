/* SPDX-License-Identifier: Apache-2.0
 *
 * What the caches keep of members' pods and claims: only what shows the state of a member.
 *   a "namespace/name" of the cluster   u uid   o uid of the owner   t it is being deleted
 * of pods:  i IP   d node   h hash of the template   e version   c created (seconds)   z it has ended
 *   r its container runs or has run   y ready   g guarded   f forced   q refused an empty folder
 *   v labelled as a voter   l its log begins after its start
 *   w trouble (enum ec_trouble)   x its reason   m the message of the kubelet or the scheduler
 * of claims:  k uid of the cluster   b bound   s requested size   z size of the volume   c its class
 *   m what its resize waits for   f its resize failed */
#include "kinds/etcdcluster/observe/watch.h"

#include "base/clock.h"
#include "base/util.h"
#include "etcd/etcd.h"
#include "kinds/common/pod.h"
#include "kinds/etcdcluster/labels.h"
#include "kube/owned.h"

#include <stdio.h>

#define SELECTOR "app.kubernetes.io/name=" EC_APP
#define TEXT_MAX (64u << 10)

/* Message of etcd 3.4 to 3.6 if it has no data, does not start a new cluster, and reaches no other
 * member (see EC_GUARD).  Source: server/etcdserver/cluster_util.go, getClusterFromRemotePeers */
#define REFUSALS 2 /* a single one may come from a volume that was not there yet */
#define REFUSAL "could not retrieve cluster information from the given URLs"
#define NO_SPACE "no space left on device" /* of the volume, not of the quota */

/* --- reading a pod */

static void set_pod_trouble(struct ec_pod_live *p, enum ec_trouble trouble, struct stw_json text)
{
    p->trouble = trouble;
    stw_pod_text(text, p->text, sizeof(p->text));
}

/* Only the latest end counts: an earlier one may be from before the member joined. */
static void look_at_end(struct stw_json status, struct ec_pod_live *p)
{
    stw_autobuf struct stw_buf message = STW_BUF_INIT(TEXT_MAX);
    struct stw_json end = stw_json_path(status, "state.terminated");
    if (!stw_json_there(end))
        end = stw_json_path(status, "lastState.terminated");
    if (!stw_json_there(end))
        return;
    p->ran = true;
    stw_json_str(stw_json_get(end, "message"), &message);
    p->refused = strstr(stw_buf_str(&message), REFUSAL);
    p->full = strstr(stw_buf_str(&message), NO_SPACE);
}

static const enum ec_trouble waits[] = {
    [STW_POD_PULLS] = EC_TROUBLE_IMAGE,   [STW_POD_NO_IMAGE] = EC_TROUBLE_IMAGE,
    [STW_POD_CRASHES] = EC_TROUBLE_CRASH, [STW_POD_NO_CONTAINER] = EC_TROUBLE_CRASH,
    [STW_POD_OTHER] = EC_TROUBLE_NONE,
};

static void look_at_container(struct stw_json status, struct ec_pod_live *p)
{
    struct stw_json state = stw_json_get(status, "state");
    struct stw_json waiting = stw_json_get(state, "waiting");
    int64_t restarts = 0;
    (void)stw_json_int(stw_json_get(status, "restartCount"), &restarts);
    look_at_end(status, p);
    p->refused = p->refused && restarts >= REFUSALS;
    if (stw_json_there(stw_json_get(state, "running"))) {
        p->ran = true;
        p->refused = false; /* with an empty folder it would have exited at once */
    }
    enum ec_trouble trouble = waits[stw_pod_wait_of(waiting)];
    if (trouble != EC_TROUBLE_NONE) {
        set_pod_trouble(p, trouble, stw_json_get(waiting, "message"));
        stw_pod_reason(status, p->reason);
    }
    if (p->trouble == EC_TROUBLE_CRASH && p->refused)
        stw_format(p->text, sizeof(p->text),
                   "its data folder is empty, and so etcd does not start");
    if (p->trouble == EC_TROUBLE_CRASH && p->full)
        stw_format(p->text, sizeof(p->text),
                   "its volume is full, and so etcd does not run: make it larger, or make space "
                   "on it");
}

static void look_at_scheduling(struct stw_json pod, struct ec_pod_live *p)
{
    struct stw_json message;
    if (!stw_pod_unschedulable(pod, &message))
        return;
    set_pod_trouble(p, EC_TROUBLE_UNSCHEDULABLE, message);
    if (strstr(p->text, "ersistent") || strstr(p->text, "volume"))
        p->trouble = EC_TROUBLE_VOLUME;
    stw_format(p->reason, sizeof(p->reason), "%s",
               p->trouble == EC_TROUBLE_VOLUME ? STW_POD_REASON_VOLUME : STW_POD_REASON_NODE);
}

static void look_at_annotations(struct stw_json annotations, struct ec_pod_live *p)
{
    char initial[STW_ETCD_URL_MAX + EC_NAME_MAX] = "";
    (void)stw_json_strcpy(stw_json_get(annotations, EC_HASH), p->hash, sizeof(p->hash));
    (void)stw_json_strcpy(stw_json_get(annotations, EC_INPUTS), p->inputs, sizeof(p->inputs));
    (void)stw_json_strcpy(stw_json_get(annotations, EC_VERSION), p->version, sizeof(p->version));
    int rc =
        stw_json_strcpy(stw_json_get(annotations, EC_INITIAL_CLUSTER), initial, sizeof(initial));
    p->forced = stw_json_is(stw_json_get(annotations, EC_FORCED), "true");
    p->trimmed = stw_json_is(stw_json_get(annotations, EC_TRIMMED), "true");
    p->guarded = rc == 0 && !strchr(initial, ',') &&
                 stw_json_is(stw_json_get(annotations, EC_INITIAL_STATE), "existing");
}

static int64_t seconds_of(struct stw_json time)
{
    char text[STW_TIME_LEN];
    int64_t us;
    if (stw_json_strcpy(time, text, sizeof(text)) != 0 || stw_time_parse(text, &us) != 0)
        return 0;
    return us / 1000000;
}

static void look_at_owner(struct stw_json object, char out[64])
{
    char kind[64], name[254];
    if (stw_owner_controller(object, kind, name, out) != 0)
        out[0] = '\0';
}

static int look_at_cluster(struct stw_json object, char out[STW_KEY_LEN])
{
    char ns[254], name[254];
    struct stw_json m = stw_json_get(object, "metadata");
    if (stw_json_strcpy(stw_json_get(m, "namespace"), ns, sizeof(ns)) != 0 ||
        stw_json_strcpy(stw_json_get(stw_json_get(m, "labels"), EC_CLUSTER), name, sizeof(name)) !=
            0)
        return -1;
    stw_key_make(ns, name, out);
    return 0;
}

static int look_at_pod(struct stw_json pod, struct ec_pod_live *p)
{
    struct stw_json m = stw_json_get(pod, "metadata"), status = stw_json_get(pod, "status");
    struct stw_json phase = stw_json_get(status, "phase");
    *p = (struct ec_pod_live){0};
    if (look_at_cluster(pod, p->cluster) != 0 ||
        stw_json_strcpy(stw_json_get(m, "uid"), p->uid, sizeof(p->uid)) != 0)
        return -1;
    look_at_owner(pod, p->owner_uid);
    (void)stw_json_strcpy(stw_json_get(status, "podIP"), p->ip, sizeof(p->ip));
    (void)stw_json_strcpy(stw_json_path(pod, "spec.nodeName"), p->node, sizeof(p->node));
    p->created = seconds_of(stw_json_get(m, "creationTimestamp"));
    p->going = stw_json_there(stw_json_get(m, "deletionTimestamp"));
    p->ended = stw_json_is(phase, "Failed") || stw_json_is(phase, "Succeeded");
    p->voter = stw_json_is(stw_json_get(stw_json_get(m, "labels"), EC_ROLE), EC_VOTER);
    look_at_annotations(stw_json_get(m, "annotations"), p);
    p->ready = stw_pod_ready(pod);
    look_at_scheduling(pod, p);
    look_at_container(stw_json_at(stw_json_get(status, "containerStatuses"), 0), p);
    return 0;
}

/* --- what is kept */

static void add_text_key(struct stw_buf *out, const char *key, const char *text)
{
    stw_buf_addf(out, ",\"%s\":", key);
    stw_buf_json_strz(out, text);
}

static void add_true(struct stw_buf *out, const char *key, bool set)
{
    if (set)
        stw_buf_addf(out, ",\"%s\":true", key);
}

static void add_known(struct stw_buf *out, const char *key, const char *text)
{
    if (*text)
        add_text_key(out, key, text);
}

static void project_pod(const struct stw_operator *op, struct stw_json pod, struct stw_buf *out)
{
    struct ec_pod_live p;
    (void)op;
    if (look_at_pod(pod, &p) != 0)
        return;
    stw_buf_adds(out, "{\"a\":");
    stw_buf_json_strz(out, p.cluster);
    add_text_key(out, "u", p.uid);
    add_text_key(out, "o", p.owner_uid);
    add_text_key(out, "i", p.ip);
    add_known(out, "d", p.node);
    add_text_key(out, "h", p.hash);
    add_text_key(out, "n", p.inputs);
    add_text_key(out, "e", p.version);
    stw_buf_addf(out, ",\"c\":%lld", (long long)p.created);
    add_true(out, "t", p.going);
    add_true(out, "z", p.ended);
    add_true(out, "r", p.ran);
    add_true(out, "y", p.ready);
    add_true(out, "g", p.guarded);
    add_true(out, "f", p.forced);
    add_true(out, "l", p.trimmed);
    add_true(out, "q", p.refused);
    add_true(out, "v", p.voter);
    if (p.trouble != EC_TROUBLE_NONE) {
        stw_buf_addf(out, ",\"w\":%d", (int)p.trouble);
        add_text_key(out, "x", p.reason);
        add_text_key(out, "m", p.text);
    }
    stw_buf_addc(out, '}');
}

/* The conditions and states of core/v1 PersistentVolumeClaim.  The last row that applies counts. */
static const struct {
    const char *condition, *state; /* type of a condition, or state of the resource "storage" */
    const char *text;
    bool failed;
} resizes[] = {
    {"Resizing", "ControllerResizeInProgress", "the storage resizes it", false},
    {"FileSystemResizePending", "NodeResizePending",
     "the kubelet has yet to resize its file system", false},
    {NULL, "NodeResizeInProgress", "the kubelet resizes its file system", false},
    {"ControllerResizeError", "ControllerResizeInfeasible", "the storage cannot resize it", true},
    {NULL, "ControllerResizeFailed", "the storage cannot resize it", true},
    {"NodeResizeError", "NodeResizeInfeasible", "the kubelet cannot resize its file system", true},
    {NULL, "NodeResizeFailed", "the kubelet cannot resize its file system", true},
};

static bool has_condition(struct stw_json status, const char *type, struct stw_json *ret_message)
{
    struct stw_json key, c;
    stw_json_foreach (stw_json_get(status, "conditions"), key, c) {
        if (!stw_json_is(stw_json_get(c, "type"), type) ||
            !stw_json_is(stw_json_get(c, "status"), "True"))
            continue;
        *ret_message = stw_json_get(c, "message");
        return true;
    }
    return false;
}

static void look_at_resize(struct stw_json status, struct ec_claim_live *c)
{
    struct stw_json state =
        stw_json_get(stw_json_get(status, "allocatedResourceStatuses"), "storage");
    for (size_t i = 0; i < STW_COUNT(resizes); i++) {
        struct stw_json message = {0};
        char said[128] = "";
        bool reported =
            resizes[i].condition && has_condition(status, resizes[i].condition, &message);
        if (!reported && !stw_json_is(state, resizes[i].state))
            continue;
        stw_pod_text(message, said, sizeof(said));
        stw_format(c->resize, sizeof(c->resize), "%s%s%s", resizes[i].text, *said ? ": " : "",
                   said);
        c->resize_failed = resizes[i].failed;
    }
}

static void look_at_size(struct stw_json list, char out[64])
{
    if (stw_json_strcpy(stw_json_get(list, "storage"), out, 64) != 0)
        out[0] = '\0';
}

static void project_claim(const struct stw_operator *op, struct stw_json claim, struct stw_buf *out)
{
    char cluster[STW_KEY_LEN], uid[64], of[64] = "";
    struct ec_claim_live c = {0};
    struct stw_json m = stw_json_get(claim, "metadata"), status = stw_json_get(claim, "status");
    (void)op;
    if (look_at_cluster(claim, cluster) != 0 ||
        stw_json_strcpy(stw_json_get(m, "uid"), uid, sizeof(uid)) != 0)
        return;
    (void)stw_json_strcpy(stw_json_get(stw_json_get(m, "annotations"), EC_CLUSTER_UID), of,
                          sizeof(of));
    stw_buf_adds(out, "{\"a\":");
    stw_buf_json_strz(out, cluster);
    add_text_key(out, "u", uid);
    add_text_key(out, "k", of);
    add_true(out, "t", stw_json_there(stw_json_get(m, "deletionTimestamp")));
    add_true(out, "b", stw_json_is(stw_json_get(status, "phase"), "Bound"));
    look_at_size(stw_json_path(claim, "spec.resources.requests"), c.requested);
    look_at_size(stw_json_get(status, "capacity"), c.capacity);
    (void)stw_json_strcpy(stw_json_path(claim, "spec.storageClassName"), c.class, sizeof(c.class));
    look_at_resize(status, &c);
    add_known(out, "s", c.requested);
    add_known(out, "z", c.capacity);
    add_known(out, "c", c.class);
    add_known(out, "m", c.resize);
    add_true(out, "f", c.resize_failed);
    stw_buf_addc(out, '}');
}

/* --- reading it back */

static void copy_text_key(struct stw_json root, const char *key, char *out, size_t size)
{
    out[0] = '\0';
    (void)stw_json_strcpy(stw_json_get(root, key), out, size);
}

static bool is_true(struct stw_json root, const char *key)
{
    return stw_json_bool(stw_json_get(root, key), false);
}

int ec_pod_read(const char *text, size_t len, struct ec_pod_live *p)
{
    stw_autojson struct stw_json_doc doc = {0};
    int64_t trouble = EC_TROUBLE_NONE;
    *p = (struct ec_pod_live){0};
    if (stw_json_scan(&doc, text, len, NULL) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    copy_text_key(root, "a", p->cluster, sizeof(p->cluster));
    copy_text_key(root, "u", p->uid, sizeof(p->uid));
    copy_text_key(root, "o", p->owner_uid, sizeof(p->owner_uid));
    copy_text_key(root, "i", p->ip, sizeof(p->ip));
    copy_text_key(root, "d", p->node, sizeof(p->node));
    copy_text_key(root, "h", p->hash, sizeof(p->hash));
    copy_text_key(root, "n", p->inputs, sizeof(p->inputs));
    copy_text_key(root, "e", p->version, sizeof(p->version));
    copy_text_key(root, "x", p->reason, sizeof(p->reason));
    copy_text_key(root, "m", p->text, sizeof(p->text));
    (void)stw_json_int(stw_json_get(root, "c"), &p->created);
    (void)stw_json_int(stw_json_get(root, "w"), &trouble);
    p->trouble = (enum ec_trouble)trouble;
    p->going = is_true(root, "t");
    p->ended = is_true(root, "z");
    p->ran = is_true(root, "r");
    p->ready = is_true(root, "y");
    p->guarded = is_true(root, "g");
    p->forced = is_true(root, "f");
    p->trimmed = is_true(root, "l");
    p->refused = is_true(root, "q");
    p->voter = is_true(root, "v");
    return *p->uid ? 0 : -1;
}

int ec_claim_read(const char *text, size_t len, struct ec_claim_live *c)
{
    stw_autojson struct stw_json_doc doc = {0};
    *c = (struct ec_claim_live){0};
    if (stw_json_scan(&doc, text, len, NULL) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    copy_text_key(root, "a", c->cluster, sizeof(c->cluster));
    copy_text_key(root, "u", c->uid, sizeof(c->uid));
    copy_text_key(root, "k", c->cluster_uid, sizeof(c->cluster_uid));
    c->going = is_true(root, "t");
    c->bound = is_true(root, "b");
    copy_text_key(root, "s", c->requested, sizeof(c->requested));
    copy_text_key(root, "z", c->capacity, sizeof(c->capacity));
    copy_text_key(root, "c", c->class, sizeof(c->class));
    copy_text_key(root, "m", c->resize, sizeof(c->resize));
    c->resize_failed = is_true(root, "f");
    return *c->uid ? 0 : -1;
}

/* --- watches */

static void index_cluster(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    char key[STW_KEY_LEN];
    (void)ctx;
    if (stw_json_strcpy(stw_json_get(projected, "a"), key, sizeof(key)) == 0)
        stw_index_add(out, "cluster", key);
}

static void enqueue_member_cluster(struct stw_manager *m, const struct stw_watch *w,
                                   const char *key, const char *old_text, const char *new_text)
{
    stw_autojson struct stw_json_doc doc = {0};
    const char *text = new_text ? new_text : old_text;
    char cluster[STW_KEY_LEN];
    (void)w;
    (void)key;
    if (stw_json_scan(&doc, text, strlen(text), NULL) == 0 &&
        stw_json_strcpy(stw_json_get(stw_json_root(&doc), "a"), cluster, sizeof(cluster)) == 0)
        stw_manager_enqueue(m, stw_kind_etcdcluster.kind, cluster);
}

const struct stw_resource ec_res_claim = {.group = "",
                                          .version = "v1",
                                          .kind = "PersistentVolumeClaim",
                                          .plural = "persistentvolumeclaims",
                                          .namespaced = true};

const struct stw_watch ec_watch_pods = {
    .resource = &stw_res_pod,
    .label_selector = SELECTOR,
    .managed = true,
    .metrics_name = "pods/etcd",
    .project = project_pod,
    .index = index_cluster,
    .changed = enqueue_member_cluster,
};
const struct stw_watch ec_watch_claims = {
    .resource = &ec_res_claim,
    .label_selector = SELECTOR,
    .managed = true,
    .project = project_claim,
    .index = index_cluster,
    .changed = enqueue_member_cluster,
};
