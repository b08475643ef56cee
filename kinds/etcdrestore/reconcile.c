/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a restore.  Each is observed before the next begins:
 *
 *     Pending    the backup and a name for the first member are recorded before anything is created
 *     Fetching   a volume and a pod: the snapshot is fetched, verified and unpacked
 *     Joining    the EtcdCluster is created, with that member as its seed
 *     Succeeded  the EtcdCluster is ready
 *
 * Nothing that existed before is changed. */
#include "kinds/etcdrestore/reconcile.h"

#include "base/backoff.h"
#include "base/util.h"
#include "base/visible.h"
#include "controller/outcome.h"
#include "controller/secret_watch.h"
#include "controller/status.h"
#include "kinds/common/product.h"
#include "kinds/etcdbackup/state.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/plan/entries.h"
#include "kinds/etcdcluster/reconcile.h"
#include "kinds/etcdrestore/run_priv.h"

#include <stdio.h>

#define TEXT_MAX (8u << 20)

static void stall_restore(struct er *e, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void stall_restore(struct er *e, const char *reason, const char *fmt, ...)
{
    va_list ap;
    e->stalled = reason;
    va_start(ap, fmt);
    stw_vformat(e->text, sizeof(e->text), fmt, ap);
    va_end(ap);
    stw_format(e->state.reason, sizeof(e->state.reason), "%s", reason);
}

/* Call after setting state.reason and state.error. */
static void fail_attempt(struct er *e)
{
    struct er_state *s = &e->state;
    int64_t done = STW_MAX(s->failures, 0); /* the status may hold any number */
    s->phase = ER_FAILED;
    s->failures++;
    e->again = *s->seed; /* to clean up */
    s->retry_at = e->now + (int64_t)stw_backoff(ER_BACKOFF_S, (uint64_t)done, ER_BACKOFF_MAX_S);
    stw_message_clean(s->error, sizeof(s->error) - 1);
    stw_visible_replace(s->error, sizeof(s->error) - 1);
}

static void fail_by(struct er *e, const char *reason, const char *text)
{
    stw_format(e->state.reason, sizeof(e->state.reason), "%s", reason);
    stw_format(e->state.error, sizeof(e->state.error), "%.500s", text);
    fail_attempt(e);
}

/* --- the target cluster */

static void look_at_target(struct er *e)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    char key[STW_KEY_LEN];
    struct stw_json c, none;
    stw_key_make(e->run->ns, e->spec.cluster, key);
    if (stw_informer_get(stw_run_cache(e->run, stw_controller_etcdcluster.own), key, &text, NULL) !=
            0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL) != 0)
        return;
    struct stw_json root = stw_json_root(&doc);
    struct stw_json notes = stw_json_path(root, "metadata.annotations");
    e->target_there = true;
    e->target_ours =
        *e->state.seed && stw_json_is(stw_json_get(notes, EC_SEED_MEMBER), e->state.seed);
    stw_json_foreach (stw_json_path(root, "status.conditions"), none,
                      c) /* conditions are packed: controller/object.h */
        if (stw_json_is(stw_json_at(c, STW_CONDITION_TYPE), STW_READY) &&
            stw_json_is(stw_json_at(c, STW_CONDITION_STATUS), "True"))
            e->target_ready = true;
    (void)stw_json_strcpy(stw_json_path(root, "status.clusterID"), e->state.cluster_id,
                          sizeof(e->state.cluster_id));
}

/* --- the pod */

static void take_result(struct er *e, const struct eb_agent_live *a)
{
    struct eb_snapshot *s = &e->state.snapshot;
    struct eb_snapshot *got = calloc(1, sizeof(*got));
    bool reported = got && eb_snapshot_read(a->message, strlen(a->message), got) == 0;
    if (a->phase == EB_AGENT_SUCCEEDED && reported && got->fault == EB_SNAPSHOT_FINE) {
        *s = *got;
        s->revision = e->source.revision;
        stw_format(s->version, sizeof(s->version), "%s", e->source.version);
        e->seeded = e->again = true;
    } else if (reported && got->fault == EB_SNAPSHOT_CONTENT) {
        fail_by(e, "HashMismatch", got->err.text);
        e->state.retry_at = e->now + STW_STALLED_AGAIN_MS / 1000;
    } else if (reported && got->fault != EB_SNAPSHOT_FINE) {
        fail_by(e, got->reason, got->err.text);
    } else {
        fail_by(e, reported ? "RestoreFailed" : "AgentFailed",
                *a->text      ? a->text
                : *a->message ? a->message
                              : "the pod that restores ended without a result");
    }
    free(got);
}

/* True once the pod does not exist any more; deletes it. */
static bool pod_is_gone(struct er *e)
{
    struct eb_agent_live *a = calloc(1, sizeof(*a));
    char name[EB_AGENT_NAME_MAX];
    er_pod_name(e, name);
    bool there = !a || eb_agent_find(e->run, name, a) == 0;
    if (a && there && !a->going)
        (void)eb_agent_delete(e->run, name, a->uid, &e->err);
    free(a);
    return !there;
}

/* Data of a failed attempt on its volume is useless: the next attempt begins with a volume of its
 * own.  The status reports the failure before anything is deleted, so that the next leader does not
 * retry with a half-filled volume. */
static void clear_away(struct er *e)
{
    if (!pod_is_gone(e))
        stw_format(e->text, sizeof(e->text), "the pod of the last attempt ends");
    else if (er_claim_delete(e, &e->err) == 0)
        e->state.seed[0] = '\0';
}

static void make_pod(struct er *e)
{
    if (er_secret_look(e, &e->err) == 0 && er_claim_ensure(e, &e->err) == 0)
        (void)er_pod_create(e, &e->err);
    if (e->err.code != STW_ERR_NOT_FOUND)
        return;
    fail_by(e, "SecretMissing", e->err.text);
    e->state.retry_at = STW_MIN(e->state.retry_at, e->now + ER_LOOK_S);
    e->err = (struct stw_error){0};
}

static void follow_pod(struct er *e)
{
    struct eb_agent_live *a = calloc(1, sizeof(*a));
    char name[EB_AGENT_NAME_MAX];
    er_pod_name(e, name);
    if (!a)
        return;
    if (eb_agent_find(e->run, name, a) != 0)
        make_pod(e);
    else if (a->going)
        stw_format(e->text, sizeof(e->text), "pod \"%s\" of the last attempt ends", name);
    else if (a->phase == EB_AGENT_SUCCEEDED || a->phase == EB_AGENT_FAILED)
        take_result(e, a);
    else if (a->phase == EB_AGENT_STUCK) {
        stw_format(e->stuck, sizeof(e->stuck), "%s", a->reason);
        stw_format(e->text, sizeof(e->text), "pod \"%s\": %s", name, a->text);
    } else
        e->state.phase = *a->message ? ER_SEEDING : ER_FETCHING; /* fetching has ended */
    free(a);
}

/* --- steps */

/* The backup does not exist yet: nothing has been tried. */
static void look_again_soon(struct er_state *s, int64_t now)
{
    s->phase = ER_PENDING;
    s->retry_at = STW_MIN(s->retry_at, now + ER_LOOK_S);
}

static bool too_old(struct er *e)
{
    struct stw_semver of;
    if (!*e->source.version || stw_semver_parse(e->source.version, &of) != 0)
        return false;
    of.patch = 0;
    struct stw_semver to = {e->cluster.version.major, e->cluster.version.minor, 0};
    return stw_semver_compare(to, of) < 0;
}

static bool may_begin(struct er *e)
{
    if (e->target_there && !e->target_ours)
        stall_restore(
            e, "TargetExists",
            "EtcdCluster \"%s\" exists and is not touched: delete it, or restore under another "
            "name",
            e->spec.cluster);
    else if (!stw_json_there(e->spec.template))
        stall_restore(e, STW_REASON_INVALID_SPEC, "no EtcdCluster \"%s\" to copy; give template",
                      e->spec.cluster);
    else if (!*e->agent_image)
        stall_restore(e, "AgentImageMissing",
                      "a restore is made by a pod with steward's own image: start steward with "
                      "--agent-image");
    else if (er_cluster_read(e) != 0)
        stall_restore(e, STW_REASON_INVALID_SPEC, "spec.template: %.400s",
                      *e->err.text ? e->err.text : "its version cannot be read");
    e->err = (struct stw_error){0};
    return !e->stalled;
}

static void begin_attempt(struct er *e)
{
    if (er_source_find(e) != 0) {
        fail_attempt(e);
        if (!*e->state.seed)
            look_again_soon(&e->state, e->now);
        return;
    }
    if (too_old(e)) {
        stall_restore(e, "VersionTooOld", "the backup is of etcd %s, and template.version is %s",
                      e->source.version, e->cluster.spec.version);
        return;
    }
    e->state.reason[0] = e->state.error[0] = '\0';
    e->state.retry_at = EB_NEVER;
    if (!*e->state.seed) { /* recorded first, used in the next run */
        ec_fresh_name(&e->cluster, e->state.seed);
        e->state.phase = ER_FETCHING;
        e->again = true; /* our own status write does not wake us */
        return;
    }
    if (e->state.phase == ER_FAILED || e->state.phase == ER_PENDING)
        e->state.phase = ER_FETCHING;
    follow_pod(e);
    if (e->seeded)
        e->state.phase = ER_JOINING;
}

static void join_target_cluster(struct er *e)
{
    e->state.phase = ER_JOINING;
    if (!pod_is_gone(e)) /* its deletion wakes us */
        return;
    if (e->target_there && e->target_ready)
        e->state.phase = ER_SUCCEEDED;
    if (e->target_there || er_target_create(e, &e->err) == 0)
        return;
    if (e->err.code != STW_ERR_NOT_FOUND)
        return;
    e->state.snapshot = (struct eb_snapshot){0};
    fail_by(e, "VolumeLost", e->err.text);
    e->err = (struct stw_error){0};
}

/* The restore failed because of a watched Secret: each run may check whether that is fixed. */
static bool has_its_secret(struct er *e)
{
    struct stw_error err = {0};
    if (e->state.phase != ER_FAILED || !stw_streq(e->state.reason, "SecretMissing"))
        return false;
    bool there = er_source_find(e) == 0 && er_secret_look(e, &err) == 0;
    er_source_done(&e->source);
    e->source = (struct er_source){0};
    return there;
}

static void run_next_step(struct er *e)
{
    if (e->state.phase == ER_SUCCEEDED)
        return;
    look_at_target(e);
    if (!may_begin(e))
        return;
    if (e->target_ours || e->state.phase == ER_JOINING)
        join_target_cluster(e);
    else if (e->state.phase == ER_FAILED && *e->state.seed)
        clear_away(e);
    else if (e->state.retry_at == EB_NEVER || e->now >= e->state.retry_at || has_its_secret(e))
        begin_attempt(e);
}

static void report_phase_change(const struct er *e)
{
    if (e->was.phase == e->state.phase)
        return;
    if (e->state.phase == ER_JOINING)
        stw_object_event(e->run, &e->object, false, "SnapshotRestored", "Restore",
                         "%s is in the volume of member %s", e->state.uri, e->state.seed);
    else if (e->state.phase == ER_SUCCEEDED)
        stw_object_event(e->run, &e->object, false, "RestoreSucceeded", "Restore",
                         "EtcdCluster \"%s\" was made from %s", e->spec.cluster, e->state.uri);
}

static void reconcile_restore(struct stw_subject *subject, struct stw_result *result)
{
    struct er *e = (struct er *)subject;
    struct stw_verdict v = {0};
    json_t *status;
    e->agent_image = stw_product_agent_image(e->run->env);
    e->now = stw_wall_us(e->run->clock) / 1000000;
    er_state_read(e->object.status, &e->state);
    e->was = e->state;
    if (e->was.phase != ER_SUCCEEDED && !stw_run_may_write(e->run)) {
        (void)stw_fail(&e->err, STW_ERR_CANCELLED, "stopped");
        stw_run_fail(e->run, &e->err, result);
        return;
    }
    run_next_step(e);
    if (e->err.code != STW_OK && eb_refusal_of(&e->err, &e->refusal))
        e->err = (struct stw_error){0};
    er_judge(e, &v, &status);
    v.exact = e->was.phase != e->state.phase || !stw_streq(e->was.seed, e->state.seed);
    stw_run_end(e->run, &e->object, &v, status, NULL, result);
    if (result->outcome == STW_RUN_DONE || result->outcome == STW_RUN_AFTER)
        report_phase_change(e);
    if (e->err.code != STW_OK)
        stw_run_fail(e->run, &e->err, result);
    er_source_done(&e->source);
}

/* --- the kind in the table */

static void index_names(void *ctx, struct stw_json projected, struct stw_buf *out)
{
    char ns[254], name[254], key[STW_KEY_LEN];
    (void)ctx;
    if (stw_json_strcpy(stw_json_path(projected, "metadata.namespace"), ns, sizeof(ns)) != 0)
        return;
    if (stw_json_strcpy(stw_json_path(projected, "spec.etcdCluster.name"), name, sizeof(name)) ==
        0) {
        stw_key_make(ns, name, key);
        stw_index_add(out, "restoreOf", key);
    }
    if (stw_json_strcpy(stw_json_path(projected, "spec.backupRef.name"), name, sizeof(name)) == 0) {
        stw_key_make(ns, name, key);
        stw_index_add(out, "restoreFrom", key);
    }
    if (stw_json_strcpy(stw_json_path(projected, "spec.s3.awsSecret"), name, sizeof(name)) == 0) {
        stw_key_make(ns, name, key);
        stw_index_add(out, "secret", key);
    }
}

static const struct stw_watch own_watch = {
    .resource = &stw_kind_etcdrestore.resource,
    .project = stw_object_project,
    .index = index_names,
    .changed = stw_watch_own_changed,
};

static const struct stw_watch *const watches[] = {&eb_watch_agents, &stw_watch_secrets, NULL};

static const struct stw_rule rules[] = {
    {.resource = &stw_res_pod, .verbs = "get,list,watch,create,delete"},
    {.resource = &ec_res_claim, .verbs = "create,delete,patch"},
    {.resource = &stw_res_secret, .verbs = "get,list,watch"},
    {.resource = &stw_kind_etcdcluster.resource, .verbs = "create"},
    EB_RULE_OWN_POD,
    {0},
};

static const struct stw_kind *const needs[] = {&stw_kind_etcdcluster, NULL};

static const char *const conditions[] = {"SourceFetched", "SnapshotVerified", "SeedReady",
                                         "ClusterReady", NULL};

const struct stw_controller stw_controller_etcdrestore = {
    STW_CONTROLLER_OF("etcdrestore", stw_kind_etcdrestore),
    .own = &own_watch,
    .watches = watches,
    .rules = rules,
    .conditions = conditions,
    STW_RUN_STATE(struct er, spec),
    .reconcile = reconcile_restore,
    .needs = needs,
};
