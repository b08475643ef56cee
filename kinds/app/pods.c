/* SPDX-License-Identifier: Apache-2.0
 *
 * Problems of the pods of an App.  A healthy pod is not cached; of any other one:
 *
 *     a  "namespace/name" of the App
 *     r  reason
 *     m  message
 *     p  it may only be starting
 *     t  hash of its template
 *     c  when it was created */
#include "base/util.h"
#include "kinds/app/run_priv.h"
#include "kinds/common/pod.h"

#include <stdio.h>

#define SELECTOR "app.kubernetes.io/name=" APP_NAME
#define KEYS_MAX (16u << 20)
#define TEXT_MAX (64u << 10)

/* Reasons by decreasing priority, for when several pods have problems; others have the lowest. */
static const char *const by_weight[] = {"OOMKilled", "CrashLoopBackOff", "ImagePullBackOff",
                                        "SecretNotFound", "Unschedulable"};

/* --- one pod */

static void set_trouble(struct app_trouble *t, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void set_trouble(struct app_trouble *t, const char *reason, const char *fmt, ...)
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

static void say_crash(const struct container *c, struct stw_json ended, struct app_trouble *t)
{
    int64_t code = 0;
    (void)stw_json_int(stw_json_get(ended, "exitCode"), &code);
    if (stw_json_is(stw_json_get(ended, "reason"), "OOMKilled"))
        set_trouble(t, "OOMKilled",
                    "container %s of pod %s was killed because it used more memory than its limit",
                    c->name, c->pod);
    else
        set_trouble(t, "CrashLoopBackOff",
                    "container %s of pod %s ends again and again, with exit code %lld", c->name,
                    c->pod, (long long)code);
}

static void say_image(const struct container *c, struct app_trouble *t)
{
    char image[300];
    stw_json_cut(stw_json_get(c->status, "image"), image, sizeof(image));
    set_trouble(t, "ImagePullBackOff", "container %s of pod %s: cannot pull image \"%s\"", c->name,
                c->pod, image);
}

/* Reports the kubelet's own message. */
static void say_other(const struct container *c, struct stw_json waiting, struct app_trouble *t)
{
    char reason[64], message[300];
    stw_json_cut(stw_json_get(waiting, "reason"), reason, sizeof(reason));
    stw_json_cut(stw_json_get(waiting, "message"), message, sizeof(message));
    bool secret = strstr(message, "ecret") &&
                  (strstr(message, "not found") || strstr(message, "couldn't find key"));
    set_trouble(t, secret ? "SecretNotFound" : reason, "container %s of pod %s: %s", c->name,
                c->pod, *message ? message : reason);
}

static void look_at_waiting(const struct container *c, struct stw_json waiting,
                            struct app_trouble *t)
{
    static const char *const starting[] = {"ContainerCreating", "PodInitializing"};
    static const char *const pulling[] = {"ErrImagePull", "ImagePullBackOff"};
    struct stw_json reason = stw_json_get(waiting, "reason");
    for (size_t i = 0; i < STW_COUNT(starting); i++)
        if (stw_json_is(reason, starting[i]))
            return;
    for (size_t i = 0; i < STW_COUNT(pulling); i++)
        if (stw_json_is(reason, pulling[i])) {
            say_image(c, t);
            return;
        }
    if (stw_json_is(reason, "CrashLoopBackOff"))
        say_crash(c, stw_json_path(c->status, "lastState.terminated"), t);
    else if (stw_json_there(reason))
        say_other(c, waiting, t);
}

/* Between two crashes a container runs for a moment; the crash is still reported. */
static void look_at_running(const struct container *c, struct app_trouble *t)
{
    struct stw_json before = stw_json_path(c->status, "lastState.terminated");
    if (c->init || stw_json_bool(stw_json_get(c->status, "ready"), false))
        return;
    if (stw_json_there(before)) {
        say_crash(c, before, t);
        return;
    }
    set_trouble(t, "NotReady", "container %s of pod %s runs but is not ready", c->name, c->pod);
    t->passing = true;
}

static void look_at_container(const struct container *c, struct app_trouble *t)
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
                               struct app_trouble *t)
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

static void look_at_scheduling(struct stw_json pod, struct app_trouble *t)
{
    char name[254], message[300];
    struct stw_json found;
    if (!stw_pod_unschedulable(pod, &found))
        return;
    stw_json_cut(stw_json_path(pod, "metadata.name"), name, sizeof(name));
    stw_json_cut(found, message, sizeof(message));
    set_trouble(t, "Unschedulable", "pod %s cannot be scheduled: %s", name, message);
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

static void project_pod(const struct stw_operator *op, struct stw_json pod, struct stw_buf *out)
{
    char ns[254], app[254], key[STW_KEY_LEN];
    struct app_trouble t = {0};
    struct stw_json labels = stw_json_path(pod, "metadata.labels");
    (void)op;
    if (!is_active_pod(pod) ||
        stw_json_strcpy(stw_json_path(pod, "metadata.namespace"), ns, sizeof(ns)) != 0 ||
        stw_json_strcpy(stw_json_get(labels, "app.kubernetes.io/instance"), app, sizeof(app)) != 0)
        return;
    look_at_containers(pod, "status.initContainerStatuses", true, &t);
    look_at_containers(pod, "status.containerStatuses", false, &t);
    if (!stw_json_there(stw_json_path(pod, "status.containerStatuses")))
        look_at_scheduling(pod, &t);
    if (!t.found)
        return;
    stw_key_make(ns, app, key);
    stw_message_clean(t.reason, sizeof(t.reason) - 1);
    stw_message_clean(t.message, sizeof(t.message) - 1);
    stw_buf_adds(out, "{\"a\":");
    stw_buf_json_strz(out, key);
    stw_buf_adds(out, ",\"r\":");
    stw_buf_json_strz(out, t.reason);
    stw_buf_adds(out, ",\"m\":");
    stw_buf_json_strz(out, t.message);
    stw_buf_adds(out, t.passing ? ",\"p\":true" : "");
    add_copy(out, "t", stw_json_get(labels, "pod-template-hash"));
    add_copy(out, "c", stw_json_path(pod, "metadata.creationTimestamp"));
    stw_buf_addc(out, '}');
}

/* --- the pods of an App */

static void index_app(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    char key[STW_KEY_LEN];
    (void)ctx;
    if (stw_json_strcpy(stw_json_get(projected, "a"), key, sizeof(key)) == 0)
        stw_index_add(out, "app", key);
}

static void pod_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                        const char *old_text, const char *new_text)
{
    stw_autojson struct stw_json_doc doc = {0};
    const char *text = new_text ? new_text : old_text;
    char app[STW_KEY_LEN];
    (void)w;
    (void)key;
    if (stw_json_scan(&doc, text, strlen(text), NULL) == 0 &&
        stw_json_strcpy(stw_json_get(stw_json_root(&doc), "a"), app, sizeof(app)) == 0)
        stw_manager_enqueue(m, stw_kind_app.kind, app);
}

const struct stw_watch app_watch_pods = {
    .resource = &stw_res_pod,
    .label_selector = SELECTOR,
    .managed = true,
    .project = project_pod,
    .index = index_app,
    .changed = pod_changed,
};

static size_t rank_trouble(const struct app_trouble *t)
{
    size_t i = 0;
    while (i < STW_COUNT(by_weight) && !stw_streq(t->reason, by_weight[i]))
        i++;
    return t->passing ? i + 1 : i;
}

int app_trouble_read(const char *text, size_t len, struct app_trouble *ret)
{
    stw_autojson struct stw_json_doc doc = {0};
    *ret = (struct app_trouble){0};
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

static bool read_cached(struct stw_informer *cache, const char *key, struct app_trouble *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    return stw_informer_get(cache, key, &text, NULL) == 0 &&
           app_trouble_read(stw_buf_str(&text), text.len, ret) == 0 && ret->found;
}

/* Keys of the pods of an App that have problems. */
static void find_pods(const struct app *a, struct stw_buf *keys)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2 * STW_KEY_LEN);
    stw_buf_addf(&index, "app:%s", a->run->key);
    stw_informer_keys(stw_run_cache(a->run, &app_watch_pods), stw_buf_str(&index), keys);
}

/* The template hash of the youngest pod that has a problem. */
static void find_template(const struct app *a, char out[64])
{
    struct stw_informer *cache = stw_run_cache(a->run, &app_watch_pods);
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    char newest[STW_TIME_LEN] = "";
    size_t at = 0;
    out[0] = '\0';
    find_pods(a, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        struct app_trouble t;
        if (!read_cached(cache, key, &t) || strcmp(t.created, newest) <= 0)
            continue;
        stw_format(newest, sizeof(newest), "%s", t.created); /* RFC 3339 sorts as text */
        stw_format(out, 64, "%s", t.template);
    }
}

/* Ignores pods of older templates: they are being replaced, and their problem may be fixed already.
 * Of several equally bad problems it takes the pod with the first name, so that the message does
 * not change between runs. */
void app_find_trouble(struct app *a)
{
    struct stw_informer *cache = stw_run_cache(a->run, &app_watch_pods);
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    const char *first = "";
    char template[64];
    size_t at = 0;
    find_template(a, template);
    find_pods(a, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        struct app_trouble t;
        if (!read_cached(cache, key, &t) || !stw_streq(t.template, template))
            continue;
        size_t mine = rank_trouble(&t), best = rank_trouble(&a->trouble);
        if (a->trouble.found && (mine > best || (mine == best && strcmp(key, first) > 0)))
            continue;
        a->trouble = t;
        first = key;
    }
}
