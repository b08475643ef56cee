/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and builds the status of an EtcdRestore.  It reports only steps that were observed. */
#include "controller/status.h"
#include "base/util.h"
#include "kinds/etcdbackup/state.h"
#include "kinds/etcdrestore/run_priv.h"
#include "kube/tree.h"

#include <assert.h>
#include <stdio.h>

#define JOINING_LOOK_MS 2000 /* between two checks of the cluster in the cache */

const char *const er_phase_names[] = {
    [ER_PENDING] = "Pending", [ER_FETCHING] = "Fetching", [ER_VERIFYING] = "Verifying",
    [ER_SEEDING] = "Seeding", [ER_JOINING] = "Joining",   [ER_SUCCEEDED] = "Succeeded",
    [ER_FAILED] = "Failed",
};
static_assert(STW_COUNT(er_phase_names) == ER_PHASES, "one name for each phase");

void er_state_read(const json_t *status, struct er_state *ret)
{
    char phase[16];
    const json_t *snapshot = json_object_get(status, "snapshot");
    const json_t *retry = json_object_get(status, "retry");
    *ret = (struct er_state){0};
    stw_tree_copy(status, "phase", phase, sizeof(phase));
    for (int i = 0; i < ER_PHASES; i++)
        if (stw_streq(phase, er_phase_names[i]))
            ret->phase = (enum er_phase)i;
    stw_tree_copy(status, "uri", ret->uri, sizeof(ret->uri));
    stw_tree_copy(status, "seedMember", ret->seed, sizeof(ret->seed));
    stw_tree_copy(status, "reason", ret->reason, sizeof(ret->reason));
    stw_tree_copy(status, "newClusterID", ret->cluster_id, sizeof(ret->cluster_id));
    stw_tree_copy(retry, "lastError", ret->error, sizeof(ret->error));
    ret->retry_at = stw_tree_time(retry, "nextTime", EB_NEVER);
    ret->failures = stw_tree_count(retry, "count");
    stw_tree_copy(snapshot, "sha256", ret->snapshot.sha256, sizeof(ret->snapshot.sha256));
    stw_tree_copy(snapshot, "storageVersion", ret->snapshot.version, sizeof(ret->snapshot.version));
    ret->snapshot.revision = (uint64_t)stw_tree_count(snapshot, "revision");
    ret->snapshot.size_bytes = (uint64_t)stw_tree_count(snapshot, "sizeBytes");
}

static void write_snapshot(const struct eb_snapshot *s, json_t *status)
{
    json_t *snapshot = json_pack("{s:I}", "sizeBytes", (json_int_t)s->size_bytes);
    if (s->revision)
        (void)json_object_set_new(snapshot, "revision", json_integer((json_int_t)s->revision));
    stw_tree_set_text(snapshot, "sha256", s->sha256);
    stw_tree_set_text(snapshot, "storageVersion", s->version);
    (void)json_object_set_new(status, "snapshot", snapshot);
}

static void write_retry(const struct er_state *s, json_t *status)
{
    char when[STW_TIME_LEN];
    stw_time_format(s->retry_at * 1000000, when);
    (void)json_object_set_new(status, "retry",
                              json_pack("{s:I,s:s,s:s}", "count", (json_int_t)s->failures,
                                        "nextTime", when, "lastError", s->error));
}

static void write_state(const struct er_state *s, json_t *status)
{
    (void)json_object_set_new(status, "phase", json_string(er_phase_names[s->phase]));
    (void)json_object_set_new(status, "succeeded", json_boolean(s->phase == ER_SUCCEEDED));
    stw_tree_set_text(status, "uri", s->uri);
    stw_tree_set_text(status, "seedMember", s->seed);
    stw_tree_set_text(status, "newClusterID", s->cluster_id);
    stw_tree_set_text(status, "reason", s->reason);
    if (*s->snapshot.sha256)
        write_snapshot(&s->snapshot, status);
    if (s->retry_at != EB_NEVER)
        write_retry(s, status);
}

/* --- conditions */

static void set_conditions(const struct er *e, struct stw_conditions *c)
{
    const struct er_state *s = &e->state;
    bool has = *s->snapshot.sha256;
    if (has)
        stw_condition_set(c, "SourceFetched", STW_TRUE, "Fetched", "%s", s->uri);
    else if (*s->reason)
        stw_condition_set(c, "SourceFetched", STW_FALSE, s->reason, "%s",
                          *s->error ? s->error : e->text);
    if (has)
        stw_condition_set(c, "SnapshotVerified", STW_TRUE, "HashMatches", "SHA-256 %s",
                          s->snapshot.sha256);
    else if (stw_streq(s->reason, "HashMismatch") || stw_streq(s->reason, "SizeMismatch"))
        stw_condition_set(c, "SnapshotVerified", STW_FALSE, s->reason, "%s",
                          *s->error ? s->error : e->text);
    if (s->phase == ER_JOINING || s->phase == ER_SUCCEEDED)
        stw_condition_set(c, "SeedReady", STW_TRUE, "Restored",
                          "the snapshot is in the volume of member %s", s->seed);
    if (s->phase == ER_SUCCEEDED)
        stw_condition_set(c, "ClusterReady", STW_TRUE, "Ready", "EtcdCluster \"%s\" is ready",
                          e->spec.cluster);
    else if (s->phase == ER_JOINING)
        stw_condition_set(c, "ClusterReady", STW_FALSE, STW_REASON_PROGRESSING,
                          "EtcdCluster \"%s\" is not ready yet", e->spec.cluster);
}

/* --- the verdict */

#define SAY(v, ...) (stw_format((v)->message, sizeof((v)->message), __VA_ARGS__))

static void compute_restore_verdict(const struct er *e, struct stw_verdict *v)
{
    static const char *const steps[ER_PHASES] = {
        [ER_PENDING] = "about to begin",
        [ER_FETCHING] = "the snapshot is fetched",
        [ER_VERIFYING] = "the snapshot is verified",
        [ER_SEEDING] = "the snapshot is unpacked onto the first member's volume",
        [ER_JOINING] = "the cluster is made",
    };
    const struct er_state *s = &e->state;
    *v = (struct stw_verdict){.level = STW_LEVEL_PROGRESSING, .reason = STW_REASON_PROGRESSING};
    if (e->stalled) {
        v->level = STW_LEVEL_STALLED;
        v->reason = e->stalled;
        v->again_ms = STW_STALLED_AGAIN_MS;
        SAY(v, "%s", e->text);
    } else if (e->refusal.reason) {
        eb_refusal_verdict(&e->refusal, v);
    } else if (s->phase == ER_SUCCEEDED) {
        v->level = STW_LEVEL_FINE;
        v->reason = "Succeeded";
        SAY(v, "EtcdCluster \"%s\" was made from %.800s", e->spec.cluster, s->uri);
    } else if (s->retry_at != EB_NEVER) {
        /* A retry helps only if a user repairs the object in the store. */
        v->level = stw_streq(s->reason, "HashMismatch") ? STW_LEVEL_STALLED : STW_LEVEL_WAITING;
        v->reason = *s->reason ? s->reason : "RestoreFailed";
        v->again_ms = e->again ? 1 : (uint64_t)STW_MAX(s->retry_at - e->now, 1) * 1000;
        SAY(v, "%s", s->error);
    } else if (*e->stuck) { /* its watch wakes us */
        v->level = STW_LEVEL_WAITING;
        v->reason = e->stuck;
        SAY(v, "%s", e->text);
    } else {
        v->again_ms = e->again ? 1 : s->phase == ER_JOINING ? JOINING_LOOK_MS : 0;
        SAY(v, "%s", *e->text ? e->text : steps[s->phase]);
    }
}

void er_judge(struct er *e, struct stw_verdict *v, json_t **ret_status)
{
    struct stw_status s;
    stw_status_begin(&s, e->run, &e->object, NULL);
    compute_restore_verdict(e, v);
    stw_verdict_conditions(v, &s.conditions);
    set_conditions(e, &s.conditions);
    write_state(&e->state, s.tree);
    *ret_status = stw_status_end(&s);
}
