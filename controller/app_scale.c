/* SPDX-License-Identifier: Apache-2.0
 *
 * Who says how many pods there are.  While autoscaling is on it is the autoscaler, and
 * spec.replicas of the Deployment is not among the fields that we apply.  A field that its only
 * manager gives up falls back to its default, which here is one pod: so a second manager of ours
 * takes it over first with the value that it has
 * (kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership), and keeps it;
 * servers up to 1.21 do not write down that an autoscaler has written it. */
#include "base/log.h"
#include "base/util.h"
#include "controller/app_priv.h"
#include "controller/ending.h"

#define SECOND_MANAGER "steward-app-replicas"

/* What autoscaling begins with. */
static int64_t start_value(const struct stw_app *spec)
{
    int64_t n = STW_MAX(spec->replicas, spec->autoscaling.min);
    return STW_MIN(n, spec->autoscaling.max);
}

static int apply_replicas(struct app *a, const char *uid, int64_t n, struct stw_error *err)
{
    struct stw_run *run = a->run;
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *object =
        json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:I}}", "apiVersion", "apps/v1", "kind", "Deployment",
                  "metadata", "name", a->owner.name, "uid", uid, "spec", "replicas", (json_int_t)n);
    if (!object)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    if (!stw_run_may_write(run))
        return stw_fail(err, STW_ERR_CANCELLED, "steward no longer leads");
    if (stw_kube_apply(run->client, &stw_res_deployment, a->owner.ns, a->owner.name, NULL, object,
                       SECOND_MANAGER, &answer, err) != 0)
        return -1;
    stw_informer_saw(stw_run_cache(run, &stw_watch_deployments), &answer);
    return 0;
}

/* Autoscaling went off and nobody has said yet how many pods there shall be then: they stay as many
 * as they are, and the App says so. */
static int keep_number(struct app *a, int64_t n, struct stw_error *err)
{
    struct stw_run *run = a->run;
    json_auto_t *patch = json_pack("{s:{s:I}}", "spec", "replicas", (json_int_t)n);
    if (!patch)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    if (!stw_run_may_write(run))
        return stw_fail(err, STW_ERR_CANCELLED, "steward no longer leads");
    stw_log(STW_LOG_INFO, "autoscaling is off; the pods stay as many as they are",
            STW_INT("replicas", (uint64_t)n));
    return stw_kube_merge_patch(run->client, run->controller->resource, run->ns, run->name, "scale",
                                patch, run->controller->field_manager, NULL, err);
}

/* The App is as autoscaling left it. */
static bool must_keep(const struct app *a, const struct stw_rollout *r)
{
    const json_t *start = json_object_get(a->object.status, "startReplicas");
    return json_is_integer(start) && json_integer_value(start) == a->spec.replicas &&
           r->wanted > 0 && r->wanted != a->spec.replicas;
}

bool app_hand_over(struct app *a, struct stw_result *result)
{
    struct stw_child_live live;
    struct stw_error err = {0};
    bool on = a->spec.autoscaling.enabled;
    int rc = 0;
    if (stw_child_cached(a->run, &stw_watch_deployments, a->run->key, &live) != 0 ||
        !stw_streq(live.owner_uid, a->owner.uid) || live.terminating)
        return true;
    if (on && live.rollout.scaled_by_us) {
        int64_t n = live.rollout.wanted > 0 ? live.rollout.wanted : start_value(&a->spec);
        rc = apply_replicas(a, live.uid, n, &err);
    } else if (!on && must_keep(a, &live.rollout)) {
        if (keep_number(a, live.rollout.wanted, &err) == 0)
            return false; /* the App has changed: the next run goes on */
        rc = -1;
    }
    if (rc != 0)
        stw_run_fail(a->run, &err, result);
    return rc == 0;
}

bool app_start_scaling(struct app *a, struct stw_result *result)
{
    struct stw_child *c = &a->children[APP_DEPLOYMENT];
    struct stw_error err = {0};
    bool made = c->state == STW_CHILD_CREATED || (c->state == STW_CHILD_REPAIRED && !*c->fields);
    int64_t n = start_value(&a->spec);
    if (!a->spec.autoscaling.enabled || !made || c->live.rollout.wanted == n)
        return true;
    if (apply_replicas(a, c->live.uid, n, &err) == 0) {
        c->live.rollout.wanted = n;
        return true;
    }
    stw_run_fail(a->run, &err, result);
    return false;
}

int64_t app_wanted(const struct app *a)
{
    return a->spec.autoscaling.enabled ? a->children[APP_DEPLOYMENT].live.rollout.wanted
                                       : a->spec.replicas;
}
