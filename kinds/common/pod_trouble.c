/* SPDX-License-Identifier: Apache-2.0
 *
 * A healthy pod is not cached; of any other one:
 *
 *     d  "namespace/name" of its Deployment
 *     r  reason
 *     m  message
 *     p  it may only be starting
 *     t  hash of its template
 *     c  when it was created */
#include "kinds/common/pod_trouble.h"

#include "base/buf.h"
#include "base/util.h"
#include "controller/condition.h"
#include "controller/object.h"
#include "kinds/common/pod.h"
#include "kube/owned.h"
#include "kube/resource.h"

#include <stdio.h>

#define KEYS_MAX (16u << 20)
#define TEXT_MAX (64u << 10)

/* Reasons by decreasing priority, for when several pods have problems; others have the lowest. */
static const char *const by_weight[] = {STW_POD_REASON_MEMORY, STW_POD_REASON_CRASH,
                                        STW_POD_REASON_IMAGE, STW_POD_REASON_SECRET,
                                        STW_POD_REASON_NODE};

/* --- one pod */

static void set_trouble(struct stw_pod_trouble *t, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void set_trouble(struct stw_pod_trouble *t, const char *reason, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(t->message, sizeof(t->message), fmt, ap);
    va_end(ap);
    stw_format(t->reason, sizeof(t->reason), "%s", reason);
    t->found = true;
    t->passing = false;
}

/* A container of a pod, from the pod's status. */
struct container {
    struct stw_json status;
    char name[64], pod[254];
    bool init;
};

static void say_crash(const struct container *c, struct stw_json ended, struct stw_pod_trouble *t)
{
    const char *reason = stw_pod_crash_reason(ended);
    int64_t code = 0;
    (void)stw_json_int(stw_json_get(ended, "exitCode"), &code);
    if (stw_streq(reason, STW_POD_REASON_MEMORY))
        set_trouble(t, reason,
                    "container %s of pod %s was killed because it used more memory than its limit",
                    c->name, c->pod);
    else
        set_trouble(t, reason, "container %s of pod %s ends again and again, with exit code %lld",
                    c->name, c->pod, (long long)code);
}

static void say_image(const struct container *c, struct stw_pod_trouble *t)
{
    char image[300];
    stw_json_cut(stw_json_get(c->status, "image"), image, sizeof(image));
    set_trouble(t, STW_POD_REASON_IMAGE, "container %s of pod %s: cannot pull image \"%s\"",
                c->name, c->pod, image);
}

/* Reports the kubelet's own message. */
static void say_other(const struct container *c, struct stw_json waiting, struct stw_pod_trouble *t)
{
    char reason[STW_POD_REASON_MAX], kubelets[64], message[300];
    stw_pod_reason(c->status, reason);
    stw_json_cut(stw_json_get(waiting, "reason"), kubelets, sizeof(kubelets));
    stw_json_cut(stw_json_get(waiting, "message"), message, sizeof(message));
    set_trouble(t, reason, "container %s of pod %s: %s", c->name, c->pod,
                *message ? message : kubelets);
}

static void look_at_waiting(const struct container *c, struct stw_json waiting,
                            struct stw_pod_trouble *t)
{
    switch (stw_pod_wait_of(waiting)) {
    case STW_POD_NO_WAIT:
    case STW_POD_STARTS:
        return;
    case STW_POD_PULLS:
        say_image(c, t);
        return;
    case STW_POD_CRASHES:
        say_crash(c, stw_json_path(c->status, "lastState.terminated"), t);
        return;
    default:
        say_other(c, waiting, t);
        return;
    }
}

/* Between two crashes a container runs for a moment; the crash is still reported. */
static void look_at_running(const struct container *c, struct stw_pod_trouble *t)
{
    struct stw_json before = stw_json_path(c->status, "lastState.terminated");
    if (c->init || stw_json_bool(stw_json_get(c->status, "ready"), false))
        return;
    if (stw_json_there(before)) {
        say_crash(c, before, t);
        return;
    }
    set_trouble(t, STW_POD_REASON_UNREADY, "container %s of pod %s runs but is not ready", c->name,
                c->pod);
    t->passing = true;
}

static void look_at_container(const struct container *c, struct stw_pod_trouble *t)
{
    struct stw_json state = stw_json_get(c->status, "state");
    struct stw_json waiting = stw_json_get(state, "waiting");
    struct stw_json ended = stw_json_get(state, "terminated");
    int64_t code = 0;
    (void)stw_json_int(stw_json_get(ended, "exitCode"), &code);
    if (stw_json_there(waiting))
        look_at_waiting(c, waiting, t);
    else if (stw_json_there(ended) && (!c->init || code != 0))
        say_crash(c, ended, t);
    else if (stw_json_there(stw_json_get(state, "running")))
        look_at_running(c, t);
}

static void look_at_containers(struct stw_json pod, const char *list, bool init,
                               struct stw_pod_trouble *t)
{
    struct container c = {.init = init};
    struct stw_json key;
    stw_json_cut(stw_json_path(pod, "metadata.name"), c.pod, sizeof(c.pod));
    stw_json_foreach (stw_json_path(pod, list), key, c.status) {
        stw_json_cut(stw_json_get(c.status, "name"), c.name, sizeof(c.name));
        if (!t->found || t->passing)
            look_at_container(&c, t);
    }
}

static void look_at_scheduling(struct stw_json pod, struct stw_pod_trouble *t)
{
    char name[254], message[300];
    struct stw_json found;
    if (!stw_pod_unschedulable(pod, &found))
        return;
    stw_json_cut(stw_json_path(pod, "metadata.name"), name, sizeof(name));
    stw_json_cut(found, message, sizeof(message));
    set_trouble(t, STW_POD_REASON_NODE, "pod %s cannot be scheduled: %s", name, message);
}

/* Pods that have ended or are being deleted will be replaced and are ignored. */
static bool is_active_pod(struct stw_json pod)
{
    struct stw_json phase = stw_json_path(pod, "status.phase");
    return !stw_json_there(stw_json_path(pod, "metadata.deletionTimestamp")) &&
           !stw_json_is(phase, "Failed") && !stw_json_is(phase, "Succeeded");
}

static void add_copy(struct stw_buf *out, const char *name, struct stw_json string)
{
    char text[64];
    if (stw_json_strcpy(string, text, sizeof(text)) != 0)
        return;
    stw_buf_addf(out, ",\"%s\":", name);
    stw_buf_json_strz(out, text);
}

/* A ReplicaSet is named DEPLOYMENT-HASH, and its pods have the hash in a label.  Labels that say of
 * which object the pod is may be others after an adoption; this name is not. */
static int find_deployment(struct stw_json pod, char out[STW_KEY_LEN])
{
    char name[254], hash[64], ns[254];
    struct stw_json owner = stw_owner_find(pod);
    struct stw_json labels = stw_json_path(pod, "metadata.labels");
    if (!stw_reference_is_of(owner, "apps", "ReplicaSet") ||
        stw_json_strcpy(stw_json_get(owner, "name"), name, sizeof(name)) != 0 ||
        stw_json_strcpy(stw_json_path(pod, "metadata.namespace"), ns, sizeof(ns)) != 0 ||
        stw_json_strcpy(stw_json_get(labels, "pod-template-hash"), hash, sizeof(hash)) != 0)
        return -1;
    size_t len = strlen(name), end = strlen(hash) + 1;
    if (len <= end || name[len - end] != '-' || !stw_streq(name + len - end + 1, hash))
        return -1;
    name[len - end] = '\0';
    stw_key_make(ns, name, out);
    return 0;
}

static void project_pod(const struct stw_operator *op, struct stw_json pod, struct stw_buf *out)
{
    char deployment[STW_KEY_LEN];
    struct stw_pod_trouble t = {0};
    (void)op;
    if (!is_active_pod(pod) || find_deployment(pod, deployment) != 0)
        return;
    look_at_containers(pod, "status.initContainerStatuses", true, &t);
    look_at_containers(pod, "status.containerStatuses", false, &t);
    if (!stw_json_there(stw_json_path(pod, "status.containerStatuses")))
        look_at_scheduling(pod, &t);
    if (!t.found)
        return;
    stw_message_clean(t.reason, sizeof(t.reason) - 1);
    stw_message_clean(t.message, sizeof(t.message) - 1);
    stw_buf_adds(out, "{\"d\":");
    stw_buf_json_strz(out, deployment);
    stw_buf_adds(out, ",\"r\":");
    stw_buf_json_strz(out, t.reason);
    stw_buf_adds(out, ",\"m\":");
    stw_buf_json_strz(out, t.message);
    stw_buf_adds(out, t.passing ? ",\"p\":true" : "");
    add_copy(out, "t", stw_json_path(pod, "metadata.labels.pod-template-hash"));
    add_copy(out, "c", stw_json_path(pod, "metadata.creationTimestamp"));
    stw_buf_addc(out, '}');
}

/* --- the pods of a Deployment */

static int read_deployment_key(const char *text, char out[STW_KEY_LEN])
{
    stw_autojson struct stw_json_doc doc = {0};
    if (!text || stw_json_scan(&doc, text, strlen(text), NULL) != 0)
        return -1;
    return stw_json_strcpy(stw_json_get(stw_json_root(&doc), "d"), out, STW_KEY_LEN);
}

static void index_deployment(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    char key[STW_KEY_LEN];
    (void)ctx;
    if (stw_json_strcpy(stw_json_get(projected, "d"), key, sizeof(key)) == 0)
        stw_index_add(out, "deployment", key);
}

/* The object of the Deployment has its name. */
static void pod_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                        const char *old_text, const char *new_text)
{
    char deployment[STW_KEY_LEN];
    (void)key;
    if (read_deployment_key(new_text ? new_text : old_text, deployment) == 0)
        stw_manager_enqueue_namesakes(m, w, deployment);
}

const struct stw_watch stw_watch_pod_troubles = {
    .resource = &stw_res_pod,
    .managed = true,
    .optional = true, /* older roles of MyWeb lack the right */
    .project = project_pod,
    .index = index_deployment,
    .changed = pod_changed,
};

static size_t rank_trouble(const struct stw_pod_trouble *t)
{
    size_t i = 0;
    while (i < STW_COUNT(by_weight) && !stw_streq(t->reason, by_weight[i]))
        i++;
    return t->passing ? i + 1 : i;
}

int stw_pod_trouble_read(const char *text, size_t len, struct stw_pod_trouble *ret)
{
    stw_autojson struct stw_json_doc doc = {0};
    *ret = (struct stw_pod_trouble){0};
    if (stw_json_scan(&doc, text, len, NULL) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    stw_json_cut(stw_json_get(root, "r"), ret->reason, sizeof(ret->reason));
    stw_json_cut(stw_json_get(root, "m"), ret->message, sizeof(ret->message));
    stw_json_cut(stw_json_get(root, "t"), ret->template, sizeof(ret->template));
    stw_json_cut(stw_json_get(root, "c"), ret->created, sizeof(ret->created));
    ret->passing = stw_json_bool(stw_json_get(root, "p"), false);
    ret->found = *ret->reason != '\0';
    return 0;
}

static bool read_cached(struct stw_informer *cache, const char *key, struct stw_pod_trouble *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    return stw_informer_get(cache, key, &text, NULL) == 0 &&
           stw_pod_trouble_read(stw_buf_str(&text), text.len, ret) == 0 && ret->found;
}

/* Keys of the pods of the object's Deployment that have problems. */
static void find_pods(const struct stw_run *run, struct stw_buf *keys)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2 * STW_KEY_LEN);
    stw_buf_addf(&index, "deployment:%s", run->key);
    stw_informer_keys(stw_run_cache(run, &stw_watch_pod_troubles), stw_buf_str(&index), keys);
}

/* The template hash of the youngest of these pods. */
static void find_template(struct stw_informer *cache, struct stw_buf *keys, char out[64])
{
    char newest[STW_TIME_LEN] = "";
    size_t at = 0;
    out[0] = '\0';
    for (const char *key; (key = stw_keys_next(keys, &at));) {
        struct stw_pod_trouble t;
        if (!read_cached(cache, key, &t) || strcmp(t.created, newest) <= 0)
            continue;
        stw_format(newest, sizeof(newest), "%s", t.created); /* RFC 3339 sorts as text */
        stw_format(out, 64, "%s", t.template);
    }
}

/* Ignores pods of older templates: they are being replaced, and their problem may be fixed already.
 * Of several equally bad problems it takes the pod with the first name, so that the message does
 * not change between runs. */
void stw_pod_trouble_find(const struct stw_run *run, struct stw_pod_trouble *ret)
{
    struct stw_informer *cache = stw_run_cache(run, &stw_watch_pod_troubles);
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    const char *first = "";
    char template[64];
    size_t at = 0;
    *ret = (struct stw_pod_trouble){0};
    find_pods(run, &keys);
    find_template(cache, &keys, template);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        struct stw_pod_trouble t;
        if (!read_cached(cache, key, &t) || !stw_streq(t.template, template))
            continue;
        size_t mine = rank_trouble(&t), best = rank_trouble(ret);
        if (ret->found && (mine > best || (mine == best && strcmp(key, first) > 0)))
            continue;
        *ret = t;
        first = key;
    }
}

bool stw_pod_trouble_is_new(const struct stw_pod_trouble *t, const struct stw_object *o,
                            const char *type)
{
    const json_t *old = stw_condition_find(json_object_get(o->status, "conditions"), type);
    return t->found && !t->passing && !stw_streq(stw_condition_reason(old), t->reason);
}
