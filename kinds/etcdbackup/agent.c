/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdbackup/agent.h"

#include "base/process/fault.h"
#include "base/util.h"
#include "controller/condition.h"
#include "controller/manifest.h"
#include "kinds/common/pod.h"
#include "kinds/etcdbackup/spec.h"
#include "kube/tree.h"
#include "schema/names.h"

#include <stdio.h>

#define SELECTOR "app.kubernetes.io/component=agent"
#define TEXT_MAX (64u << 10)

/* --- what the cache keeps: o owner's kind, n its name, u uid, w owner's uid, t it is being
 * deleted, p phase, m termination message, r and x why it makes no progress, s its main container
 * runs */

/* What the containers of a pod say together. */
struct seen {
    bool reported, started, succeeded, failed;
    char other[300]; /* the error of a container that is not the agent's */
};

static bool is_name_of(struct stw_json container, const char *const *names)
{
    while (*names && !stw_json_is(stw_json_get(container, "name"), *names))
        names++;
    return *names;
}

static void look_at_end(struct stw_json ended, bool main, struct eb_agent_live *a, struct seen *s)
{
    int64_t code = 0;
    (void)stw_json_int(stw_json_get(ended, "exitCode"), &code);
    s->failed = s->failed || code != 0;
    s->succeeded = s->succeeded || (main && code == 0);
    if (!s->reported)
        stw_pod_text(stw_json_get(ended, "message"), a->message, sizeof(a->message));
    else if (code != 0)
        stw_pod_text(stw_json_get(ended, "message"), a->text, sizeof(a->text));
    s->reported = true;
}

/* A native sidecar is an init container that goes on, so its end is not the agent's either. */
static void look_at_other_end(struct stw_json container, struct stw_json ended, struct seen *s)
{
    char name[64], why[200];
    int64_t code = 0;
    (void)stw_json_int(stw_json_get(ended, "exitCode"), &code);
    if (code == 0 || *s->other)
        return;
    stw_pod_text(stw_json_get(container, "name"), name, sizeof(name));
    stw_pod_text(stw_json_get(ended, "message"), why, sizeof(why));
    stw_format(s->other, sizeof(s->other), "container \"%s\" ended with exit code %lld%s%s", name,
               (long long)code, *why ? ": " : "", why);
}

/* Of an image, the text is that of ErrImagePull. */
static void look_at_wait(struct stw_json container, struct stw_json waiting,
                         struct eb_agent_live *a)
{
    static const char pull[] = "ErrImagePull: ";
    enum stw_pod_wait wait = stw_pod_wait_of(waiting);
    char name[64], why[200];
    if (wait < STW_POD_PULLS || wait == STW_POD_OTHER || *a->reason)
        return;
    stw_pod_text(stw_json_get(container, "name"), name, sizeof(name));
    stw_pod_text(stw_json_get(waiting, "message"), why, sizeof(why));
    stw_pod_reason(container, a->reason);
    const char *text = strstr(why, pull);
    stw_format(a->text, sizeof(a->text), "container \"%s\": %s", name,
               text ? text + strlen(pull) : why);
}

static void look_at_container(struct stw_json status, struct eb_agent_live *a, struct seen *s)
{
    static const char *const own[] = {EB_AGENT_FETCH, EB_AGENT_SNAPSHOT, EB_AGENT_RESTORE, NULL};
    static const char *const mains[] = {EB_AGENT_SNAPSHOT, EB_AGENT_RESTORE, NULL};
    struct stw_json state = stw_json_get(status, "state");
    struct stw_json ended = stw_json_get(state, "terminated");
    struct stw_json waiting = stw_json_get(state, "waiting");
    bool main = is_name_of(status, mains);
    s->started = s->started || (main && stw_json_there(stw_json_get(state, "running")));
    if (stw_json_there(ended) && is_name_of(status, own))
        look_at_end(ended, main, a, s);
    else if (stw_json_there(ended))
        look_at_other_end(status, ended, s);
    else if (stw_json_there(waiting))
        look_at_wait(status, waiting, a);
}

/* The phase of the pod is not that of the agent: another container may run on when the agent has ended,
 * or end before it. */
static void set_phase(struct stw_json pod, const struct seen *s, struct eb_agent_live *a)
{
    struct stw_json status = stw_json_get(pod, "status"), message;
    struct stw_json phase = stw_json_get(status, "phase");
    if (s->failed) {
        a->phase = EB_AGENT_FAILED;
    } else if (s->succeeded || stw_json_is(phase, "Succeeded")) {
        a->phase = EB_AGENT_SUCCEEDED;
    } else if (stw_json_is(phase, "Failed")) { /* its deadline, its node, or another container */
        a->phase = EB_AGENT_FAILED;
        stw_pod_text(stw_json_get(status, "message"), a->text, sizeof(a->text));
        if (!*a->text)
            stw_format(a->text, sizeof(a->text), "%s", s->other);
    } else if (*a->reason && !s->started) {
        a->phase = EB_AGENT_STUCK;
    } else if (stw_pod_unschedulable(pod, &message)) {
        a->phase = EB_AGENT_STUCK;
        stw_format(a->reason, sizeof(a->reason), STW_POD_REASON_NODE);
        stw_pod_text(message, a->text, sizeof(a->text));
    }
}

static void look_at_pod(struct stw_json pod, struct eb_agent_live *a)
{
    struct stw_json status = stw_json_get(pod, "status"), key, container;
    struct seen s = {0};
    *a = (struct eb_agent_live){.phase = EB_AGENT_RUNNING};
    stw_json_foreach (stw_json_get(status, "initContainerStatuses"), key, container)
        look_at_container(container, a, &s);
    stw_json_foreach (stw_json_get(status, "containerStatuses"), key, container)
        look_at_container(container, a, &s);
    set_phase(pod, &s, a);
    a->runs = s.started;
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
        !stw_reference_is_of(stw_owner_find(pod), stw_kind_etcdbackup.group, kind) ||
        stw_json_strcpy(stw_json_get(meta, "uid"), uid, sizeof(uid)) != 0)
        return;
    struct eb_agent_live *a = calloc(1, sizeof(*a));
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
    add_nonempty_text(out, "r", a->reason);
    add_nonempty_text(out, "x", a->text);
    if (a->runs)
        stw_buf_adds(out, ",\"s\":true");
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

const struct stw_watch eb_watch_agents = {
    .resource = &stw_res_pod,
    .label_selector = SELECTOR,
    .managed = true,
    .metrics_name = "pods/agents",
    .project = project_agent,
    .changed = enqueue_agent_owner,
};

int eb_agent_find(const struct stw_run *run, const char *name, struct eb_agent_live *ret)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    char key[STW_KEY_LEN];
    int64_t phase = EB_AGENT_NONE;
    *ret = (struct eb_agent_live){0};
    stw_key_make(run->ns, name, key);
    if (stw_informer_get(stw_run_cache(run, &eb_watch_agents), key, &text, NULL) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    (void)stw_json_int(stw_json_get(root, "p"), &phase);
    (void)stw_json_strcpy(stw_json_get(root, "u"), ret->uid, sizeof(ret->uid));
    (void)stw_json_strcpy(stw_json_get(root, "w"), ret->owner_uid, sizeof(ret->owner_uid));
    (void)stw_json_strcpy(stw_json_get(root, "m"), ret->message, sizeof(ret->message));
    (void)stw_json_strcpy(stw_json_get(root, "r"), ret->reason, sizeof(ret->reason));
    (void)stw_json_strcpy(stw_json_get(root, "x"), ret->text, sizeof(ret->text));
    ret->phase = (enum eb_agent_phase)phase;
    ret->runs = stw_json_bool(stw_json_get(root, "s"), false);
    ret->going = stw_json_bool(stw_json_get(root, "t"), false);
    return 0;
}

/* --- creating one */

void eb_agent_name(const struct stw_owner *owner, const char *what, char out[EB_AGENT_NAME_MAX])
{
    char name[37];
    struct stw_hash h = stw_hash_bytes(owner->uid, strlen(owner->uid));
    stw_format(name, sizeof(name), "%.36s", owner->name);
    for (char *p = name; *p; p++)
        if (*p == '.')
            *p = '-';
    stw_format(out, EB_AGENT_NAME_MAX, "%s-%.8s-%08llx", name, what,
               (unsigned long long)(h.lo & 0xffffffffu));
}

static const struct {
    const char *name, *request, *limit;
} default_resources[] = {{"cpu", "50m", "1"}, {"memory", "64Mi", "512Mi"}};

static bool is_within(const char *small, const json_t *large)
{
    stw_quantity a, b;
    return !large || stw_quantity_parse(small, &a) != 0 || !json_is_string(large) ||
           stw_quantity_parse(json_string_value(large), &b) != 0 || a <= b;
}

static json_t *member_object(json_t *tree, const char *key)
{
    if (!json_object_get(tree, key))
        (void)json_object_set_new(tree, key, json_object());
    return json_object_get(tree, key);
}

json_t *eb_agent_resources(struct stw_json given)
{
    json_t *tree = stw_json_there(given) ? stw_manifest_resources(given) : json_object();
    json_t *requests = member_object(tree, "requests"), *limits = member_object(tree, "limits");
    for (size_t i = 0; i < STW_COUNT(default_resources); i++) {
        const char *name = default_resources[i].name, *limit = default_resources[i].limit;
        json_t *request_of = json_object_get(requests, name),
               *limit_of = json_object_get(limits, name);
        stw_quantity asked, most;
        bool larger = json_is_string(request_of) && stw_quantity_parse(limit, &most) == 0 &&
                      stw_quantity_parse(json_string_value(request_of), &asked) == 0 &&
                      asked > most;
        if (!request_of && is_within(default_resources[i].request, limit_of))
            (void)json_object_set_new(requests, name, json_string(default_resources[i].request));
        if (!limit_of)
            (void)json_object_set_new(limits, name,
                                      larger ? json_deep_copy(request_of) : json_string(limit));
    }
    return tree;
}

json_t *eb_agent_container(const char *name, const char *image, json_t *command, json_t *args,
                           json_t *mounts)
{
    json_t *c =
        json_pack("{s:s,s:s,s:s,s:o,s:s,s:{s:b,s:b,s:{s:[s]}},s:o}", "name", name, "image", image,
                  "imagePullPolicy", "IfNotPresent", "volumeMounts", mounts,
                  "terminationMessagePolicy", "FallbackToLogsOnError", "securityContext",
                  "allowPrivilegeEscalation", 0, "readOnlyRootFilesystem", 1, "capabilities",
                  "drop", "ALL", "resources", eb_agent_resources(STW_JSON_NONE));
    if (command)
        (void)json_object_set_new(c, "command", command);
    if (args)
        (void)json_object_set_new(c, "args", args);
    return c;
}

json_t *eb_agent_secret_volume(const char *name, const char *secret)
{
    return json_pack("{s:s,s:{s:s,s:i}}", "name", name, "secret", "secretName", secret,
                     "defaultMode", 0440);
}

json_t *eb_agent_mount(const char *name, const char *path, bool read_only)
{
    return json_pack("{s:s,s:s,s:b}", "name", name, "mountPath", path, "readOnly", read_only);
}

/* Ours are set last, so that the spec cannot override them. */
static json_t *build_agent_labels(const struct stw_run *run, const struct eb_agent *a)
{
    json_t *all = stw_manifest_tree(a->pod->labels);
    json_auto_t *ours = json_pack(
        "{s:s,s:s,s:s,s:s,s:s}", "app.kubernetes.io/name", a->app, "app.kubernetes.io/instance",
        a->owner->name, "app.kubernetes.io/component", "agent", "app.kubernetes.io/part-of",
        run->op->name, STW_MANAGED_BY, run->op->name);
    if (!all)
        all = json_object();
    (void)json_object_update(all, ours);
    return all;
}

static void set_if(json_t *to, const char *key, json_t *value)
{
    if (json_array_size(value) > 0 || json_object_size(value) > 0)
        (void)json_object_set(to, key, value);
    json_decref(value);
}

static json_t *build_agent_metadata(const struct stw_run *run, const struct eb_agent *a)
{
    json_t *m = json_pack("{s:s,s:s,s:o,s:[o]}", "name", a->name, "namespace", a->owner->ns,
                          "labels", build_agent_labels(run, a), "ownerReferences",
                          stw_owner_reference(run->controller->resource, a->owner));
    set_if(m, "annotations", stw_manifest_tree(a->pod->annotations));
    return m;
}

static json_t *build_agent_spec(const struct eb_agent *a)
{
    const struct ec_spec_pod *p = a->pod;
    json_t *s = json_pack(
        "{s:s,s:b,s:I,s:i,s:o,s:o,s:{s:b,s:I,s:I,s:I,s:s,s:{s:s}}}", "restartPolicy", "Never",
        "automountServiceAccountToken", 0, "activeDeadlineSeconds", (json_int_t)a->deadline_s,
        "terminationGracePeriodSeconds", 15, "containers", a->containers, "volumes", a->volumes,
        "securityContext", "runAsNonRoot", 1, "runAsUser", (json_int_t)a->user, "runAsGroup",
        (json_int_t)a->user, "fsGroup", (json_int_t)a->user, "fsGroupChangePolicy",
        "OnRootMismatch", "seccompProfile", "type", "RuntimeDefault");
    if (a->init_containers)
        (void)json_object_set_new(s, "initContainers", a->init_containers);
    stw_tree_set_text(s, "serviceAccountName", p->service_account);
    stw_tree_set_text(s, "priorityClassName", p->priority_class);
    set_if(s, "nodeSelector", stw_manifest_tree(p->node_selector));
    set_if(s, "affinity", stw_manifest_tree(p->affinity));
    set_if(s, "tolerations", stw_manifest_tree(p->tolerations));
    set_if(s, "topologySpreadConstraints", stw_manifest_tree(p->spread));
    set_if(s, "imagePullSecrets", stw_manifest_tree(p->image_pull_secrets));
    return s;
}

int eb_agent_create(struct stw_run *run, const struct eb_agent *a, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *pod = stw_tree_whole(stw_tree_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind",
                                                    "Pod", "metadata", build_agent_metadata(run, a),
                                                    "spec", build_agent_spec(a)));
    if (!pod)
        return stw_tree_fail("the manifest of Pod", err);
    int rc = stw_kube_create(run->client, &stw_res_pod, a->owner->ns, pod, &answer, err);
    stw_fault_point("agent");
    if (rc == 0)
        stw_informer_saw(stw_run_cache(run, &eb_watch_agents), &answer, NULL);
    /* An existing pod of that name is ours; the watch will deliver it. */
    if (stw_error_pass_over(rc, STW_ERR_EXISTS, err) == 0)
        return 0;
    stw_origin_name(a->origins, pod, a->object, err);
    return stw_error_wrap(err, "pod \"%s\" could not be created", a->name);
}

int eb_agent_delete(const struct stw_run *run, const char *name, const char *uid,
                    struct stw_error *err)
{
    int rc = stw_kube_delete(run->client, &stw_res_pod, run->ns, name, uid, NULL, err);
    stw_fault_point("delete");
    return stw_error_pass_over(rc, STW_ERR_NOT_FOUND, err);
}

/* --- what a refusal means */

bool eb_refusal_of(const struct stw_error *err, struct eb_refusal *ret)
{
    struct stw_aspect *a = calloc(1, sizeof(*a));
    if (!a || err->code == STW_ERR_CANCELLED || err->code == STW_ERR_CONFLICT ||
        err->code == STW_ERR_NOT_FOUND || err->code == STW_ERR_INTERNAL) {
        free(a);
        return false;
    }
    stw_aspect_error(a, err);
    *ret = (struct eb_refusal){
        .reason = a->reason, .level = a->level, .again_ms = a->again_ms, .err = *err};
    /* A webhook answers 400; what is wrong with the object itself, 422. */
    if (err->code == STW_ERR_INVALID && err->http != 422) {
        ret->reason = STW_REASON_FORBIDDEN;
        ret->again_ms = STW_REFUSED_AGAIN_MS;
    }
    free(a);
    return true;
}

void eb_refusal_verdict(const struct eb_refusal *r, struct stw_verdict *v)
{
    v->level = r->level;
    v->reason = r->reason;
    v->again_ms = r->again_ms;
    v->err = &r->err;
    stw_format(v->message, sizeof(v->message), "%s", r->err.text);
}
