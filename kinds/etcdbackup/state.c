/* SPDX-License-Identifier: Apache-2.0
 *
 * State that is kept in an EtcdBackup's status. */
#include "kinds/etcdbackup/state.h"

#include "base/backoff.h"
#include "base/util.h"
#include "base/visible.h"
#include "controller/condition.h"
#include "kube/tree.h"

#include <assert.h>
#include <stdio.h>

const char *const eb_phase_names[] = {
    [EB_PENDING] = "Pending",     [EB_RUNNING] = "Running", [EB_VERIFYING] = "Verifying",
    [EB_SUCCEEDED] = "Succeeded", [EB_FAILED] = "Failed",   [EB_SUSPENDED] = "Suspended",
};
static_assert(STW_COUNT(eb_phase_names) == EB_PHASES, "one name for each phase");

static int64_t number_of(const json_t *object, const char *key)
{
    return stw_tree_count(object, key);
}

void eb_state_read(const json_t *status, struct eb_state *ret)
{
    char phase[16];
    *ret = (struct eb_state){0};
    stw_tree_copy(status, "phase", phase, sizeof(phase));
    for (int i = 0; i < EB_PHASES; i++)
        if (stw_streq(phase, eb_phase_names[i]))
            ret->phase = (enum eb_phase)i;
    ret->last_schedule = stw_tree_time(status, "lastScheduleTime", EB_NEVER);
    ret->next_schedule = stw_tree_time(status, "nextScheduleTime", EB_NEVER);
    ret->last_success = stw_tree_time(status, "lastSuccessDate", EB_NEVER);
    ret->retry_at = stw_tree_time(json_object_get(status, "retry"), "nextTime", EB_NEVER);
    ret->snapshot_start = stw_tree_time(status, "snapshotStartTime", EB_NEVER);
    const json_t *request = json_object_get(status, "request");
    stw_tree_copy(request, "value", ret->request, sizeof(ret->request));
    stw_tree_copy(request, "succeeded", ret->request_met, sizeof(ret->request_met));
    ret->requested_at = stw_tree_time(request, "time", EB_NEVER);
    ret->failures = number_of(status, "consecutiveFailures");
    ret->pruned = number_of(status, "prunedCount");
    ret->revision = (uint64_t)number_of(status, "etcdRevision");
    stw_tree_copy(status, "etcdVersion", ret->version, sizeof(ret->version));
    stw_tree_copy(status, "sourceEndpoint", ret->endpoint, sizeof(ret->endpoint));
    stw_tree_copy(status, "Reason", ret->reason, sizeof(ret->reason));
    stw_tree_copy(status, "lastError", ret->error, sizeof(ret->error));
    ret->artifacts = json_deep_copy(json_object_get(status, "artifacts"));
    if (!json_is_array(ret->artifacts)) {
        json_decref(ret->artifacts);
        ret->artifacts = json_array();
    }
}

void eb_state_done(struct eb_state *s)
{
    json_decref(s->artifacts);
    s->artifacts = NULL;
}

static void set_retry(const struct eb_state *s, json_t *status)
{
    json_t *retry = json_pack("{s:I,s:s}", "count", (json_int_t)s->failures, "lastError", s->error);
    stw_tree_set_time(retry, "nextTime", s->retry_at, EB_NEVER);
    (void)json_object_set_new(status, "retry", retry);
}

static void set_request(const struct eb_state *s, json_t *status)
{
    json_t *request = json_object();
    stw_tree_set_text(request, "value", s->request);
    stw_tree_set_time(request, "time", s->requested_at, EB_NEVER);
    stw_tree_set_text(request, "succeeded", s->request_met);
    (void)json_object_set_new(status, "request", request);
}

void eb_state_write(const struct eb_state *s, json_t *status)
{
    (void)json_object_set_new(status, "phase", json_string(eb_phase_names[s->phase]));
    (void)json_object_set_new(status, "succeeded", json_boolean(s->phase == EB_SUCCEEDED));
    stw_tree_set_time(status, "lastScheduleTime", s->last_schedule, EB_NEVER);
    stw_tree_set_time(status, "nextScheduleTime", s->next_schedule, EB_NEVER);
    stw_tree_set_time(status, "lastSuccessDate", s->last_success, EB_NEVER);
    stw_tree_set_time(status, "snapshotStartTime", s->snapshot_start, EB_NEVER);
    (void)json_object_set_new(status, "consecutiveFailures", json_integer(s->failures));
    (void)json_object_set_new(status, "prunedCount", json_integer(s->pruned));
    if (s->revision)
        (void)json_object_set_new(status, "etcdRevision", json_integer((json_int_t)s->revision));
    stw_tree_set_text(status, "etcdVersion", s->version);
    stw_tree_set_text(status, "sourceEndpoint", s->endpoint);
    stw_tree_set_text(status, "Reason", s->reason);
    stw_tree_set_text(status, "lastError", s->error);
    if (s->retry_at != EB_NEVER)
        set_retry(s, status);
    if (*s->request || *s->request_met)
        set_request(s, status);
    (void)json_object_set(status, "artifacts", s->artifacts);
}

/* --- the result of a backup */

void eb_state_succeed(struct eb_state *s, const struct eb_snapshot *made, const char *uri)
{
    json_t *artifact =
        json_pack("{s:s,s:I,s:I,s:b}", "uri", uri, "revision", (json_int_t)made->revision,
                  "sizeBytes", (json_int_t)made->size_bytes, "verified", made->verified);
    stw_tree_set_text(artifact, "sha256", made->sha256);
    stw_tree_set_text(artifact, "etcdVersion", made->version);
    stw_tree_set_time(artifact, "time", made->time, EB_NEVER);
    (void)json_array_insert_new(s->artifacts, 0, artifact);
    while (json_array_size(s->artifacts) > EB_ARTIFACTS_MAX)
        (void)json_array_remove(s->artifacts, json_array_size(s->artifacts) - 1);
    stw_format(s->request_met, sizeof(s->request_met), "%s", s->request);
    s->phase = EB_SUCCEEDED;
    s->last_success = made->time;
    s->revision = made->revision;
    s->failures = 0;
    s->pruned += made->pruned;
    s->retry_at = EB_NEVER;
    s->reason[0] = s->error[0] = '\0';
    stw_format(s->version, sizeof(s->version), "%s", made->version);
    stw_format(s->endpoint, sizeof(s->endpoint), "%s", made->endpoint);
}

void eb_state_fail(struct eb_state *s, const struct eb_snapshot *failed, int64_t now)
{
    int64_t done = STW_MAX(s->failures, 0); /* the status may hold any number */
    s->phase = EB_FAILED;
    s->failures++;
    s->retry_at = now + (int64_t)stw_backoff(EB_BACKOFF_S, (uint64_t)done, EB_BACKOFF_MAX_S);
    stw_format(s->reason, sizeof(s->reason), "%s", failed->reason);
    stw_format(s->error, sizeof(s->error), "%s", failed->err.text);
    stw_message_clean(s->error, sizeof(s->error) - 1);
    stw_visible_replace(s->error, sizeof(s->error) - 1);
    if (*failed->endpoint)
        stw_format(s->endpoint, sizeof(s->endpoint), "%s", failed->endpoint);
}

const json_t *eb_state_verified(const struct eb_state *s)
{
    for (size_t i = 0; i < json_array_size(s->artifacts); i++) {
        const json_t *one = json_array_get(s->artifacts, i);
        if (json_is_true(json_object_get(one, "verified")))
            return one;
    }
    return NULL;
}
