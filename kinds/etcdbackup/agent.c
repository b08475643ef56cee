/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdbackup/agent.h"

#include "base/fault.h"
#include "base/util.h"
#include "controller/condition.h"
#include "kinds/common/pod.h"

#include <stdio.h>

#define SELECTOR "app.kubernetes.io/component=agent"
#define TEXT_MAX (64u << 10)

/* --- what the cache keeps: o owner's kind, n its name, u uid, w owner's uid, t it is being
 * deleted, p phase, m termination message, x why it makes no progress */

static void look_at_container(struct stw_json status, struct stw_agent_live *a, bool *reported)
{
    static const char *const waits[] = {
        "ErrImagePull",      "ImagePullBackOff",           "InvalidImageName",
        "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError"};
    struct stw_json state = stw_json_get(status, "state");
    struct stw_json ended = stw_json_get(state, "terminated");
    struct stw_json waiting = stw_json_get(state, "waiting");
    int64_t code = 0;
    (void)stw_json_int(stw_json_get(ended, "exitCode"), &code);
    if (stw_json_there(ended) && !*a->message && !*reported)
        stw_pod_text(stw_json_get(ended, "message"), a->message, sizeof(a->message));
    else if (code != 0)
        stw_pod_text(stw_json_get(ended, "message"), a->text, sizeof(a->text));
    *reported = *reported || stw_json_there(ended);
    for (size_t i = 0; i < STW_COUNT(waits); i++)
        if (stw_json_is(stw_json_get(waiting, "reason"), waits[i])) {
            a->phase = STW_AGENT_STUCK;
            stw_format(a->text, sizeof(a->text), "%s: ", waits[i]);
            stw_pod_text(stw_json_get(waiting, "message"), a->text + strlen(a->text),
                         sizeof(a->text) - strlen(a->text));
        }
}

static void look_at_pod(struct stw_json pod, struct stw_agent_live *a)
{
    struct stw_json status = stw_json_get(pod, "status"), key, container;
    struct stw_json phase = stw_json_get(status, "phase"), message;
    bool reported = false;
    *a = (struct stw_agent_live){.phase = STW_AGENT_RUNNING};
    stw_json_foreach (stw_json_get(status, "initContainerStatuses"), key, container)
        look_at_container(container, a, &reported);
    stw_json_foreach (stw_json_get(status, "containerStatuses"), key, container)
        look_at_container(container, a, &reported);
    if (stw_pod_unschedulable(pod, &message)) {
        a->phase = STW_AGENT_STUCK;
        stw_pod_text(message, a->text, sizeof(a->text));
    }
    if (stw_json_is(phase, "Succeeded"))
        a->phase = STW_AGENT_SUCCEEDED;
    if (stw_json_is(phase, "Failed")) {
        a->phase = STW_AGENT_FAILED;
        if (!*a->text) /* DeadlineExceeded */
            stw_pod_text(stw_json_get(status, "message"), a->text, sizeof(a->text));
    }
}

static void add_nonempty_text(struct stw_buf *out, const char *key, const char *text)
{
    if (!*text)
        return;
    stw_buf_addf(out, ",\"%s\":", key);
    stw_buf_json_strz(out, text);
}

static void project_agent(const struct stw_operator *op, struct stw_json pod, struct stw_buf *out)
{
    char kind[64], name[254], owner_uid[64], uid[64];
    struct stw_json meta = stw_json_get(pod, "metadata");
    (void)op;
    if (stw_owner_controller(pod, kind, name, owner_uid) != 0 ||
        stw_json_strcpy(stw_json_get(meta, "uid"), uid, sizeof(uid)) != 0)
        return;
    struct stw_agent_live *a = calloc(1, sizeof(*a));
    if (!a) {
        out->failed = true;
        return;
    }
    look_at_pod(pod, a);
    stw_buf_addf(out, "{\"p\":%d", (int)a->phase);
    add_nonempty_text(out, "o", kind);
    add_nonempty_text(out, "n", name);
    add_nonempty_text(out, "u", uid);
    add_nonempty_text(out, "w", owner_uid);
    add_nonempty_text(out, "m", a->message);
    add_nonempty_text(out, "x", a->text);
    if (stw_json_there(stw_json_get(meta, "deletionTimestamp")))
        stw_buf_adds(out, ",\"t\":true");
    stw_buf_addc(out, '}');
    free(a);
}

static void enqueue_agent_owner(struct stw_manager *m, const struct stw_watch *w, const char *key,
                                const char *old_text, const char *new_text)
{
    stw_autojson struct stw_json_doc doc = {0};
    const char *text = new_text ? new_text : old_text, *slash = strchr(key, '/');
    char kind[64], name[254], ns[254], owner[STW_KEY_LEN];
    (void)w;
    if (!slash || stw_json_scan(&doc, text, strlen(text), NULL) != 0 ||
        stw_json_strcpy(stw_json_get(stw_json_root(&doc), "o"), kind, sizeof(kind)) != 0 ||
        stw_json_strcpy(stw_json_get(stw_json_root(&doc), "n"), name, sizeof(name)) != 0)
        return;
    stw_format(ns, sizeof(ns), "%.*s", (int)STW_MIN(slash - key, 253), key);
    stw_key_make(ns, name, owner);
    stw_manager_enqueue(m, kind, owner);
}

const struct stw_watch stw_watch_agents = {
    .resource = &stw_res_pod,
    .label_selector = SELECTOR,
    .managed = true,
    .metrics_name = "pods/agents",
    .project = project_agent,
    .changed = enqueue_agent_owner,
};

int stw_agent_find(const struct stw_run *run, const char *name, struct stw_agent_live *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    char key[STW_KEY_LEN];
    int64_t phase = STW_AGENT_NONE;
    *ret = (struct stw_agent_live){0};
    stw_key_make(run->ns, name, key);
    if (stw_informer_get(stw_run_cache(run, &stw_watch_agents), key, &text, NULL) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    (void)stw_json_int(stw_json_get(root, "p"), &phase);
    (void)stw_json_strcpy(stw_json_get(root, "u"), ret->uid, sizeof(ret->uid));
    (void)stw_json_strcpy(stw_json_get(root, "w"), ret->owner_uid, sizeof(ret->owner_uid));
    (void)stw_json_strcpy(stw_json_get(root, "m"), ret->message, sizeof(ret->message));
    (void)stw_json_strcpy(stw_json_get(root, "x"), ret->text, sizeof(ret->text));
    ret->phase = (enum stw_agent_phase)phase;
    ret->going = stw_json_bool(stw_json_get(root, "t"), false);
    return 0;
}

/* --- creating one */

void stw_agent_name(const struct stw_owner *owner, const char *what, char out[STW_AGENT_NAME_MAX])
{
    char name[37];
    struct stw_hash h = stw_hash_bytes(owner->uid, strlen(owner->uid));
    stw_format(name, sizeof(name), "%.36s", owner->name);
    for (char *p = name; *p; p++)
        if (*p == '.')
            *p = '-';
    stw_format(out, STW_AGENT_NAME_MAX, "%s-%.8s-%08llx", name, what,
               (unsigned long long)(h.lo & 0xffffffffu));
}

json_t *stw_agent_container(const char *name, const char *image, json_t *command, json_t *args,
                            json_t *mounts)
{
    json_t *c = json_pack("{s:s,s:s,s:s,s:o,s:s,s:{s:b,s:b,s:{s:[s]}},s:{s:{s:s,s:s},s:{s:s}}}",
                          "name", name, "image", image, "imagePullPolicy", "IfNotPresent",
                          "volumeMounts", mounts, "terminationMessagePolicy",
                          "FallbackToLogsOnError", "securityContext", "allowPrivilegeEscalation", 0,
                          "readOnlyRootFilesystem", 1, "capabilities", "drop", "ALL", "resources",
                          "requests", "cpu", "50m", "memory", "64Mi", "limits", "memory", "512Mi");
    if (command)
        (void)json_object_set_new(c, "command", command);
    if (args)
        (void)json_object_set_new(c, "args", args);
    return c;
}

json_t *stw_agent_secret_volume(const char *name, const char *secret)
{
    return json_pack("{s:s,s:{s:s,s:i}}", "name", name, "secret", "secretName", secret,
                     "defaultMode", 0440);
}

json_t *stw_agent_mount(const char *name, const char *path, bool read_only)
{
    return json_pack("{s:s,s:s,s:b}", "name", name, "mountPath", path, "readOnly", read_only);
}

static json_t *build_agent_metadata(const struct stw_run *run, const struct stw_agent *a)
{
    return json_pack("{s:s,s:s,s:{s:s,s:s,s:s,s:s,s:s},s:[o]}", "name", a->name, "namespace",
                     a->owner->ns, "labels", "app.kubernetes.io/name", a->app,
                     "app.kubernetes.io/instance", a->owner->name, "app.kubernetes.io/component",
                     "agent", "app.kubernetes.io/part-of", run->op->name, STW_MANAGED_BY,
                     run->op->name, "ownerReferences",
                     stw_owner_reference(run->controller->resource, a->owner));
}

static json_t *build_agent_spec(const struct stw_agent *a)
{
    json_t *s = json_pack(
        "{s:s,s:b,s:I,s:i,s:o,s:o,s:{s:b,s:I,s:I,s:I,s:s,s:{s:s}}}", "restartPolicy", "Never",
        "automountServiceAccountToken", 0, "activeDeadlineSeconds", (json_int_t)a->deadline_s,
        "terminationGracePeriodSeconds", 15, "containers", a->containers, "volumes", a->volumes,
        "securityContext", "runAsNonRoot", 1, "runAsUser", (json_int_t)a->user, "runAsGroup",
        (json_int_t)a->user, "fsGroup", (json_int_t)a->user, "fsGroupChangePolicy",
        "OnRootMismatch", "seccompProfile", "type", "RuntimeDefault");
    if (a->init_containers)
        (void)json_object_set_new(s, "initContainers", a->init_containers);
    if (a->pull_secrets)
        (void)json_object_set(s, "imagePullSecrets", json_deep_copy(a->pull_secrets));
    return s;
}

int stw_agent_create(struct stw_run *run, const struct stw_agent *a, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *pod = json_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "Pod", "metadata",
                                 build_agent_metadata(run, a), "spec", build_agent_spec(a));
    if (!pod)
        return stw_fail_memory(err);
    int rc = stw_kube_create(run->client, &stw_res_pod, a->owner->ns, pod, &answer, err);
    stw_fault_point("agent");
    if (rc == 0)
        stw_informer_saw(stw_run_cache(run, &stw_watch_agents), &answer, NULL);
    /* An existing pod of that name is ours; the watch will deliver it. */
    return stw_error_pass_over(rc, STW_ERR_EXISTS, err);
}

int stw_agent_delete(const struct stw_run *run, const char *name, const char *uid,
                     struct stw_error *err)
{
    int rc = stw_kube_delete(run->client, &stw_res_pod, run->ns, name, uid, NULL, err);
    stw_fault_point("delete");
    return stw_error_pass_over(rc, STW_ERR_NOT_FOUND, err);
}
