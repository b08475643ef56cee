/* SPDX-License-Identifier: Apache-2.0
 *
 * The Deployment: one GET reads it, one server-side apply of one annotation restarts it. */
#include "base/util.h"
#include "kinds/eru/run_priv.h"

#include <stdio.h>

/* --- reading */

static void read_number(struct stw_json v, int64_t *to)
{
    (void)stw_json_int(v, to);
}

static void read_stuck(struct stw_json conditions, struct eru_target *t)
{
    struct stw_json key, condition;
    stw_json_foreach (conditions, key, condition) {
        if (!stw_json_is(stw_json_get(condition, "type"), "Progressing") ||
            !stw_json_is(stw_json_get(condition, "status"), "False"))
            continue;
        stw_json_cut(stw_json_get(condition, "message"), t->stuck_message,
                     sizeof(t->stuck_message));
        t->stuck = !stw_json_is(stw_json_get(condition, "reason"), "DeploymentPaused");
    }
}

int eru_target_read(struct stw_json deployment, struct eru_target *t)
{
    struct stw_json meta = stw_json_get(deployment, "metadata");
    struct stw_json spec = stw_json_get(deployment, "spec");
    struct stw_json status = stw_json_get(deployment, "status");
    struct stw_json annotations = stw_json_path(spec, "template.metadata.annotations");
    *t = (struct eru_target){.wanted = 1};
    if (stw_json_strcpy(stw_json_get(meta, "uid"), t->uid, sizeof(t->uid)) != 0 ||
        stw_json_strcpy(stw_json_get(meta, "resourceVersion"), t->resource_version,
                        sizeof(t->resource_version)) != 0)
        return -1;
    t->there = !stw_json_there(stw_json_get(meta, "deletionTimestamp"));
    t->paused = stw_json_bool(stw_json_get(spec, "paused"), false);
    if (stw_json_strcpy(stw_json_get(annotations, ERU_STAMP), t->stamp, sizeof(t->stamp)) != 0)
        t->stamp[0] = '\0';
    read_number(stw_json_get(meta, "generation"), &t->generation);
    read_number(stw_json_get(status, "observedGeneration"), &t->observed_generation);
    read_number(stw_json_get(spec, "replicas"), &t->wanted);
    read_number(stw_json_get(status, "replicas"), &t->replicas);
    read_number(stw_json_get(status, "updatedReplicas"), &t->updated);
    read_number(stw_json_get(status, "availableReplicas"), &t->available);
    read_stuck(stw_json_get(status, "conditions"), t);
    return 0;
}

static int read_deployment(struct eru *e, struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    char key[STW_KEY_LEN];
    eru_deployment_key(e->run, e->spec.deployment, key);
    eru_rollouts_track(eru_runtime_rollouts(e->run->state), key,
                       true); /* before the read, so that no change is missed */
    e->target = (struct eru_target){0};
    if (stw_kube_get(e->run->client, &stw_res_deployment, e->run->ns, e->spec.deployment, &text,
                     err) != 0) {
        if (err->code != STW_ERR_NOT_FOUND)
            return -1;
        *err = (struct stw_error){0};
        return 0;
    }
    if (stw_json_scan(&doc, stw_buf_str(&text), text.len, err) != 0)
        return -1;
    if (eru_target_read(stw_json_root(&doc), &e->target) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "the answer is not a Deployment");
    return 0;
}

/* --- stamping */

static int read_written(const struct stw_buf *answer, struct eru_target *t)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct eru_target now;
    if (stw_json_scan(&doc, stw_buf_str(answer), answer->len, NULL) != 0 ||
        eru_target_read(stw_json_root(&doc), &now) != 0)
        return -1;
    *t = now;
    return 0;
}

static int stamp_deployment(struct eru *e, const char *text, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *patch =
        json_pack("{s:s,s:s,s:{s:s,s:s,s:s,s:s},s:{s:{s:{s:{s:s}}}}}", "apiVersion", "apps/v1",
                  "kind", "Deployment", "metadata", "name", e->spec.deployment, "namespace",
                  e->run->ns, "uid", e->target.uid, "resourceVersion", e->target.resource_version,
                  "spec", "template", "metadata", "annotations", ERU_STAMP, text);
    if (!patch)
        return stw_fail_memory(err);
    if (!stw_run_may_write(e->run))
        return stw_fail(err, STW_ERR_CANCELLED, "this process no longer leads");
    if (stw_kube_apply(e->run->client,
                       STW_PLACE(&stw_res_deployment, e->run->ns, e->spec.deployment), patch,
                       e->run->field_manager, &answer, err) != 0)
        return -1;
    stw_informer_saw(stw_run_cache(e->run, &eru_watch_deployments), &answer, NULL);
    return read_written(&answer, &e->target) == 0
               ? 0
               : stw_fail(err, STW_ERR_INTERNAL, "the answer is not a Deployment");
}

/* --- the last change of the schedule */

static bool sets_schedule(struct stw_json entry)
{
    static const char *const fields[] = {"f:schedule", "f:timeZone", "f:enabled"};
    struct stw_json spec = stw_json_get(stw_json_get(entry, "fieldsV1"), "f:spec");
    for (size_t i = 0; i < STW_COUNT(fields); i++)
        if (stw_json_there(stw_json_get(spec, fields[i])))
            return true;
    return false;
}

/* By metadata.managedFields; now, if they do not have it. */
static int64_t changed_at(struct eru *e)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_json key, entry;
    struct stw_error err = {0};
    int64_t latest = ERU_NEVER, now = e->now_us / 1000000;
    if (stw_kube_get(e->run->client, &stw_kind_eru.resource, e->run->ns, e->run->name, &text,
                     &err) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, &err) != 0)
        return now;
    stw_json_foreach (stw_json_path(stw_json_root(&doc), "metadata.managedFields"), key, entry) {
        char time[STW_TIME_LEN];
        int64_t us;
        if (sets_schedule(entry) &&
            stw_json_strcpy(stw_json_get(entry, "time"), time, sizeof(time)) == 0 &&
            stw_time_parse(time, &us) == 0)
            latest = STW_MAX(latest, us / 1000000);
    }
    return latest == ERU_NEVER ? now : latest;
}

static int64_t took_ms(struct eru *e, int64_t written_ms)
{
    char key[STW_KEY_LEN];
    eru_deployment_key(e->run, e->spec.deployment, key);
    return eru_rollouts_took_ms(eru_runtime_rollouts(e->run->state), key, e->state.rollout.instant,
                                written_ms);
}

const struct eru_ops eru_ops = {.look = read_deployment,
                                .stamp = stamp_deployment,
                                .changed_at = changed_at,
                                .took_ms = took_ms};
