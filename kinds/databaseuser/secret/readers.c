/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/secret/readers.h"

#include "base/hex.h"
#include "base/log.h"
#include "base/process/fault.h"
#include "base/util.h"
#include "controller/queue/guard.h"
#include "kinds/databaseuser/run_priv.h"
#include "kube/owned.h"
#include "kube/pages.h"

#include <stdio.h>
#include <string.h>

#define RESTARTS_MAX_BYTES (256u << 10) /* of names in one run; the rest follows in the next */
/* Of the objects of one resource in the namespace; its tenant decides how many there are.  One that cannot
 * be read may have megabytes, and each run reads them all. */
#define LISTED_MAX 10000U
#define UNREADABLE_MAX 100U
#define NAME_LEN 254
#define UID_LEN 64
#define US_PER_S 1000000
#define SKEW_S 60 /* between the clocks of a node and of the API server */

/* --- annotations */

bool dbu_readers_has_name(const char *list, const char *name)
{
    size_t len = strlen(name);
    for (const char *at = list; *at;) {
        at += strspn(at, ", \t\n");
        size_t n = strcspn(at, ", \t\n");
        if (n == len && n > 0 && memcmp(at, name, len) == 0)
            return true;
        at += n;
    }
    return false;
}

/* --- workloads */

static int64_t number_at(struct stw_json object, const char *path, int64_t absent)
{
    int64_t n = absent;
    (void)stw_json_int(stw_json_path(object, path), &n);
    return n;
}

static bool has_replaced_daemons(struct stw_json w)
{
    int64_t wanted = number_at(w, "status.desiredNumberScheduled", 0);
    return number_at(w, "status.updatedNumberScheduled", 0) >= wanted &&
           number_at(w, "status.numberUnavailable", 0) == 0;
}

static bool has_replaced_replicas(struct stw_json w, const char *ready)
{
    int64_t wanted = number_at(w, "spec.replicas", 1);
    return number_at(w, "status.updatedReplicas", 0) >= wanted &&
           number_at(w, "status.replicas", 0) <= wanted && number_at(w, ready, 0) >= wanted;
}

static bool has_replaced_pods(const struct stw_resource *resource, struct stw_json w)
{
    if (number_at(w, "status.observedGeneration", 0) < number_at(w, "metadata.generation", 1))
        return false;
    if (resource == &stw_res_daemonset)
        return has_replaced_daemons(w);
    return has_replaced_replicas(w, resource == &stw_res_deployment ? "status.availableReplicas"
                                                                    : "status.readyReplicas");
}

static void read_name(struct stw_json object, char ret[NAME_LEN])
{
    if (stw_json_strcpy(stw_json_path(object, "metadata.name"), ret, NAME_LEN) != 0)
        *ret = '\0';
}

bool dbu_readers_is_rolled_out(const struct stw_resource *resource, struct stw_json w, char *ret,
                               size_t size)
{
    char name[NAME_LEN], kind[32];
    if (has_replaced_pods(resource, w))
        return true;
    read_name(w, name);
    stw_lower(resource->kind, kind, sizeof(kind));
    if (stw_json_bool(stw_json_path(w, "spec.paused"), false))
        stw_format(ret, size, "%s \"%s\" is paused: kubectl rollout resume %s/%s", resource->kind,
                   name, kind, name);
    else if (stw_json_is(stw_json_path(w, "spec.updateStrategy.type"), "OnDelete"))
        stw_format(ret, size, "%s \"%s\" has the update strategy OnDelete: delete its pods",
                   resource->kind, name);
    else
        stw_format(ret, size,
                   "%s \"%s\" has not replaced all of its pods yet: see kubectl rollout status "
                   "%s/%s",
                   resource->kind, name, kind, name);
    return false;
}

/* --- pods */

static bool reads_secret(struct stw_json container, const char *secret)
{
    struct stw_json key, one;
    stw_json_foreach (stw_json_get(container, "env"), key, one)
        if (stw_json_is(stw_json_path(one, "valueFrom.secretKeyRef.name"), secret))
            return true;
    stw_json_foreach (stw_json_get(container, "envFrom"), key, one)
        if (stw_json_is(stw_json_path(one, "secretRef.name"), secret))
            return true;
    return false;
}

static bool is_before(struct stw_json time, const char *other, int64_t margin_s)
{
    char text[STW_TIME_LEN];
    int64_t a, b;
    return stw_json_strcpy(time, text, sizeof(text)) == 0 && stw_time_parse(text, &a) == 0 &&
           stw_time_parse(other, &b) == 0 && a < b + margin_s * US_PER_S;
}

/* A container that does not run reads the Secret again when it starts. */
static bool runs_since_before(struct stw_json statuses, struct stw_json container,
                              const char *since)
{
    struct stw_json key, one, name = stw_json_get(container, "name");
    stw_json_foreach (statuses, key, one) {
        struct stw_json started = stw_json_path(one, "state.running.startedAt");
        if (stw_json_equal(stw_json_get(one, "name"), name) && stw_json_there(started))
            return is_before(started, since, SKEW_S);
    }
    return false;
}

static bool has_old_container(struct stw_json containers, struct stw_json statuses,
                              const char *secret, const char *since)
{
    struct stw_json key, container;
    stw_json_foreach (containers, key, container)
        if (reads_secret(container, secret) && runs_since_before(statuses, container, since))
            return true;
    return false;
}

bool dbu_readers_has_old_env(struct stw_json pod, const char *secret, const char *since)
{
    return is_before(stw_json_path(pod, "metadata.creationTimestamp"), since, 0) &&
           (has_old_container(stw_json_path(pod, "spec.containers"),
                              stw_json_path(pod, "status.containerStatuses"), secret, since) ||
            has_old_container(stw_json_path(pod, "spec.initContainers"),
                              stw_json_path(pod, "status.initContainerStatuses"), secret, since));
}

/* --- a look at all of them */

struct look {
    struct dbu *d;
    struct dbu_readers *ret;
    const struct stw_resource *resource;
    const char *since;
    char restart_on[STW_OWN_NAME_LEN], restarted_for[STW_OWN_NAME_LEN];
    char stamp[2 * sizeof(struct stw_hash) + 1];
    struct stw_buf todo;       /* "UID NAME\n" of workloads that have to be restarted */
    unsigned seen, unreadable; /* of the resource */
};

static bool notes_waiting(struct look *k)
{
    return k->ret->waits++ == 0;
}

/* Non-zero: there are more than are read. */
static int is_beyond(struct look *k)
{
    return ++k->seen > LISTED_MAX;
}

static int look_at_workload(void *ctx, struct stw_json w)
{
    struct look *k = ctx;
    if (is_beyond(k))
        return 1;
    char name[NAME_LEN], uid[UID_LEN], what[sizeof(k->ret->first)];
    struct stw_json asked = stw_json_get(stw_json_path(w, "metadata.annotations"), k->restart_on);
    struct stw_json stamp =
        stw_json_get(stw_json_path(w, "spec.template.metadata.annotations"), k->restarted_for);
    stw_autofree char *names = stw_json_there(asked) ? stw_json_strdup(asked) : NULL;
    if (!names || !dbu_readers_has_name(names, k->d->spec.connection.name) ||
        stw_json_there(stw_json_path(w, "metadata.deletionTimestamp")))
        return 0;
    read_name(w, name);
    if (stw_json_is(stamp, k->stamp)) {
        k->ret->restarted++;
        if (!dbu_readers_is_rolled_out(k->resource, w, what, sizeof(what)) && notes_waiting(k))
            stw_format(k->ret->first, sizeof(k->ret->first), "%s", what);
    } else if (stw_json_strcpy(stw_json_path(w, "metadata.uid"), uid, sizeof(uid)) == 0) {
        stw_buf_addf(&k->todo, "%s %s\n", uid, name);
    }
    return 0;
}

static void say_old_pod(struct look *k, struct stw_json pod)
{
    char name[NAME_LEN], kind[64] = "", owner[NAME_LEN] = "", uid[UID_LEN];
    read_name(pod, name);
    if (stw_owner_controller(pod, kind, owner, uid) == 0)
        stw_format(k->ret->first, sizeof(k->ret->first),
                   "Pod \"%s\" of %s \"%s\" has read it before the change: restart what it belongs "
                   "to",
                   name, kind, owner);
    else
        stw_format(k->ret->first, sizeof(k->ret->first),
                   "Pod \"%s\" has read it before the change: replace it", name);
}

static int look_at_pod(void *ctx, struct stw_json pod)
{
    struct look *k = ctx;
    if (is_beyond(k))
        return 1;
    if (dbu_readers_has_old_env(pod, k->d->spec.connection.name, k->since) && notes_waiting(k))
        say_old_pod(k, pod);
    return 0;
}

/* It may read the Secret: the rotation waits, and the others are restarted meanwhile. */
static int note_unreadable(void *ctx, const char *key, const char *place, const char *why)
{
    struct look *k = ctx;
    if (is_beyond(k) || ++k->unreadable > UNREADABLE_MAX)
        return 1;
    if (notes_waiting(k))
        stw_format(k->ret->first, sizeof(k->ret->first), "%s %s cannot be read: %s",
                   k->resource->kind, key ? key : place, why);
    return 0;
}

/* Others may read the Secret, too: the rotation waits.  This is what to do first. */
static void say_cut(struct look *k)
{
    k->ret->waits++;
    stw_format(k->ret->first, sizeof(k->ret->first),
               k->unreadable > UNREADABLE_MAX
                   ? "the list of %s was cut after %u objects: more than %u of them cannot be read"
                   : "the list of %s was cut after %u objects, and there are more than %u; delete "
                     "what is not needed",
               k->resource->plural, k->seen - 1,
               k->unreadable > UNREADABLE_MAX ? UNREADABLE_MAX : LISTED_MAX);
}

/* Looks at each object of a resource, up to the limits. */
static int list_resource(struct look *k, const struct stw_resource *resource, stw_page_fn *look,
                         struct stw_error *err)
{
    const struct stw_pages q = {
        .resource = resource, .ns = k->d->run->ns, .unreadable = note_unreadable};
    k->resource = resource;
    k->seen = k->unreadable = 0;
    int rc = stw_pages_each(k->d->run->client, &q, look, k, err);
    if (rc > 0)
        say_cut(k);
    return rc < 0 ? -1 : 0;
}

/* --- restarts */

static int patch_workload(struct look *k, const char *uid, const char *name, struct stw_error *err)
{
    struct stw_run *run = k->d->run;
    char what[STW_KEY_LEN + 64];
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *body =
        json_pack("{s:{s:s},s:{s:{s:{s:{s:s}}}}}", "metadata", "uid", uid, "spec", "template",
                  "metadata", "annotations", k->restarted_for, k->stamp);
    if (!body)
        return stw_fail_memory(err);
    if (stw_run_check_write(run, err) != 0)
        return -1;
    stw_format(what, sizeof(what), "%s/%s/%s", k->resource->plural, run->ns, name);
    if (stw_guard_write(stw_run_guard(run), what, 0, stw_now_ms(run->clock), STW_GUARD_PAUSE_MS) !=
        STW_GUARD_GO)
        return stw_fail(err, STW_ERR_CONFLICT,
                        "another client removes the annotation %s of its pods again and again",
                        k->restarted_for);
    return stw_kube_merge_patch(run->client, STW_PLACE(k->resource, run->ns, name), body,
                                run->field_manager, &answer, err);
}

static void say_restart(struct look *k, const char *name, const char *error)
{
    if (error)
        stw_format(k->ret->first, sizeof(k->ret->first), "%s \"%s\" cannot be restarted: %.300s",
                   k->resource->kind, name, error);
    else
        stw_format(k->ret->first, sizeof(k->ret->first), "%s \"%s\" replaces its pods",
                   k->resource->kind, name);
}

static void restart_one(struct look *k, const char *uid, const char *name)
{
    struct stw_error err = {0};
    int rc = patch_workload(k, uid, name, &err);
    if (notes_waiting(k)) /* for its pods; a restart that failed is tried again */
        say_restart(k, name, rc != 0 ? err.text : NULL);
    stw_log(rc == 0 ? STW_LOG_INFO : STW_LOG_WARN,
            rc == 0 ? "restarted a workload for a rotation" : "a workload could not be restarted",
            STW_STR("object", k->d->run->key), STW_STR("kind", k->resource->kind),
            STW_STR("name", name), STW_STR("error", err.text));
    if (rc != 0)
        return;
    stw_fault_point("restart");
    k->ret->restarted++;
    stw_object_event(k->d->run, &k->d->object, false, "Restarted", "Restart",
                     "restarted %s \"%s\", which reads Secret \"%s\"", k->resource->kind, name,
                     k->d->spec.connection.name);
}

static void restart_all(struct look *k)
{
    char *save = NULL;
    for (char *line = k->todo.len > 0 ? strtok_r(k->todo.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save)) {
        char *name = strchr(line, ' ');
        *name++ = '\0';
        restart_one(k, line, name);
    }
}

/* After the list, because a request cannot be sent in the middle of another. */
static int list_workloads(struct look *k, const struct stw_resource *resource,
                          struct stw_error *err)
{
    k->todo = STW_BUF_INIT(RESTARTS_MAX_BYTES);
    int rc = list_resource(k, resource, look_at_workload, err);
    if (rc == 0)
        restart_all(k);
    stw_buf_done(&k->todo);
    return rc;
}

static int list_all(struct look *k, struct stw_error *err)
{
    static const struct stw_resource *const workloads[] = {
        &stw_res_deployment, &stw_res_statefulset, &stw_res_daemonset};
    for (size_t i = 0; i < STW_COUNT(workloads); i++)
        if (list_workloads(k, workloads[i], err) != 0)
            return -1;
    return list_resource(k, &stw_res_pod, look_at_pod, err);
}

/* Another credential is another restart. */
static void make_stamp(const struct dbu *d, const char *credential,
                       char ret[2 * sizeof(struct stw_hash) + 1])
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1024);
    stw_buf_addf(&text, "%s/%s", d->object.uid, credential);
    struct stw_hash h = stw_hash_bytes(stw_buf_str(&text), text.len);
    stw_hex_encode((const unsigned char *)&h, sizeof(h), STW_HEX_LOWER, ret);
}

void dbu_readers_look(struct dbu *d, const char *credential, const char *since)
{
    struct dbu_readers *r = &d->readers;
    struct look k = {.d = d, .ret = r, .since = since};
    struct stw_error err = {0};
    if (r->looked && stw_streq(r->credential, credential))
        return;
    *r = (struct dbu_readers){.looked = true};
    stw_format(r->credential, sizeof(r->credential), "%s", credential);
    stw_operator_text(d->run->op, DBU_RESTART_ON, k.restart_on);
    stw_operator_text(d->run->op, DBU_RESTARTED_FOR, k.restarted_for);
    make_stamp(d, credential, k.stamp);
    if (list_all(&k, &err) == 0)
        return;
    stw_log(STW_LOG_WARN, "the workloads that read a Secret cannot be listed",
            STW_STR("object", d->run->key), STW_STR("error", err.text));
    r->unseen = err.code == STW_ERR_FORBIDDEN;
    if (!r->unseen && r->waits++ == 0)
        stw_format(r->first, sizeof(r->first), "the workloads cannot be listed: %.400s", err.text);
}
