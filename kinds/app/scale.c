/* SPDX-License-Identifier: Apache-2.0
 *
 * Who sets the number of replicas.  While autoscaling is on, the autoscaler does, and spec.replicas
 * of the Deployment is not among the fields that we apply.  A field that its only manager gives up
 * returns to its default, here one replica.  So a second field manager of ours first takes it over
 * with its current value
 * (kubernetes.io/docs/reference/using-api/server-side-apply/#transferring-ownership) and keeps it,
 * because servers up to 1.21 do not record that an autoscaler has written the field.
 *
 * A Deployment that is created while autoscaling is on gets the start value for autoscaling.  We
 * own the field until these replicas are available or anything else must be written. */
#include "kinds/app/scale.h"

#include "base/log.h"
#include "base/util.h"
#include "controller/condition.h"
#include "controller/outcome.h"
#include "kinds/app/deployment.h"
#include "kinds/app/replicas.h"
#include "kinds/app/run_priv.h"

#define SECOND_MANAGER "steward-app-replicas"

int app_read_deployment(struct app *a, struct stw_buf *text, struct stw_json_doc *doc,
                        struct stw_error *err)
{
    return stw_kube_get(a->run->client, &stw_res_deployment, a->owner.ns, a->owner.name, text,
                        err) != 0
               ? -1
               : stw_json_scan(doc, stw_buf_str(text), text->len, err);
}

/* spec.replicas of the Deployment as the server has it, and the version of the Deployment.  The
 * cache may not have the last number of an autoscaler yet. */
static int read_number(struct app *a, const char *uid, char version[static STW_RV_LEN],
                       int64_t *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    if (app_read_deployment(a, &answer, &doc, err) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    if (!stw_json_is(stw_json_path(root, "metadata.uid"), uid) ||
        stw_json_strcpy(stw_json_path(root, "metadata.resourceVersion"), version, STW_RV_LEN) !=
            0 ||
        stw_json_int(stw_json_path(root, "spec.replicas"), ret) != 0)
        return stw_fail(err, STW_ERR_CONFLICT, "Deployment \"%s\" is another one now",
                        a->owner.name);
    return 0;
}

/* STW_ERR_CONFLICT: the Deployment has changed since `version`, perhaps its number. */
static int apply_replicas(struct app *a, const char *version, int64_t n, struct stw_error *err)
{
    struct stw_run *run = a->run;
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *object = json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:I}}", "apiVersion", "apps/v1",
                                    "kind", "Deployment", "metadata", "name", a->owner.name,
                                    "resourceVersion", version, "spec", "replicas", (json_int_t)n);
    if (!object)
        return stw_fail_memory(err);
    if (stw_kube_apply(run->client, STW_PLACE(&stw_res_deployment, a->owner.ns, a->owner.name),
                       object, SECOND_MANAGER, &answer, err) != 0)
        return -1;
    stw_informer_saw(stw_run_cache(run, &stw_watch_deployments), &answer, NULL);
    return 0;
}

/* Autoscaling was switched off and no client has set the number of replicas since: writes it into
 * spec.replicas of the App. */
static int keep_number(struct app *a, int64_t n, struct stw_error *err)
{
    struct stw_run *run = a->run;
    json_auto_t *patch = json_pack("{s:{s:I}}", "spec", "replicas", (json_int_t)n);
    if (!patch)
        return stw_fail_memory(err);
    if (stw_run_check_write(run, err) != 0)
        return -1;
    stw_log(STW_LOG_INFO, "autoscaling is off; spec.replicas takes over the number of pods",
            STW_INT("replicas", (uint64_t)n));
    return stw_kube_merge_patch(run->client,
                                STW_PLACE(run->controller->resource, run->ns, run->name, "scale"),
                                patch, run->field_manager, NULL, err);
}

/* The number for spec.replicas of the App, if that was not changed since autoscaling was on and the
 * Deployment has another `number`; 0: it stays.  An autoscaler of another owner may have set more
 * than an App may have. */
static int64_t find_number_to_keep(const struct app *a, int64_t number)
{
    const json_t *start = json_object_get(a->object.status, "startReplicas");
    int64_t n = STW_MIN(number, APP_REPLICAS_MAX);
    if (!json_is_integer(start) || json_integer_value(start) != a->spec.replicas)
        return 0;
    return n > 0 && n != a->spec.replicas ? n : 0;
}

/* --- autoscalers of other owners */

static bool scales_us(const struct app *a, struct stw_json scaler)
{
    struct stw_json target = stw_json_path(scaler, "spec.scaleTargetRef");
    return stw_json_is(stw_json_get(target, "kind"), stw_res_deployment.kind) &&
           stw_json_is(stw_json_get(target, "name"), a->owner.name) &&
           !stw_json_there(stw_json_path(scaler, "metadata.deletionTimestamp"));
}

static int look_for_foreign(struct app *a, struct stw_error *err)
{
    struct stw_run *run = a->run;
    stw_autobuf struct stw_buf path = STW_BUF_INIT(2048);
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_json key, scaler;
    stw_resource_path(stw_informer_resource(stw_run_cache(run, &stw_watch_autoscalers)), run->ns,
                      NULL, NULL, &path);
    struct stw_request request = {.method = "GET", .path = stw_buf_str(&path)};
    if (stw_client_do(run->client, &request, &answer, err) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&answer), answer.len, err) != 0)
        return -1;
    stw_json_foreach (stw_json_get(stw_json_root(&doc), "items"), key, scaler)
        if (scales_us(a, scaler))
            (void)stw_json_strcpy(stw_json_path(scaler, "metadata.name"), a->foreign,
                                  sizeof(a->foreign));
    return 0;
}

/* The Deployment is there, and this run adopts it. */
static bool adopts(const struct app *a)
{
    return a->children[APP_DEPLOYMENT].adoption.answer == STW_ADOPTION_FREE;
}

/* Not all autoscalers of a cluster are watched, since they change every few seconds.  They are
 * listed when the Deployment has another number of replicas than the spec, and as long as the last
 * run found one.  Also before the status says that the Deployment was applied: an autoscaler may be
 * faster than that. */
static int find_foreign(struct app *a, const struct stw_rollout *r, struct stw_error *err)
{
    const json_t *old =
        stw_condition_find(json_object_get(a->object.status, "conditions"), "AutoscalingActive");
    bool before = stw_streq(stw_condition_reason(old), APP_REASON_FOREIGN);
    if (a->spec.autoscaling.enabled || (!before && r->wanted == a->spec.replicas))
        return 0;
    return look_for_foreign(a, err);
}

/* --- before and after the Deployment */

static bool says_available(const json_t *status)
{
    return stw_condition_is(stw_condition_find(json_object_get(status, "conditions"), "Available"),
                            STW_TRUE);
}

/* The Deployment is as it was created, by a run whose status reported that, and is not available
 * yet. */
static bool is_beginning(struct app *a, const struct stw_child_live *live)
{
    struct stw_hash wanted;
    json_auto_t *desired = NULL;
    if (!a->spec.autoscaling.enabled || !live->rollout.scaled_by_us ||
        live->rollout.wanted != app_start_replicas(&a->spec) ||
        !json_object_get(a->object.status, "startReplicas") || says_available(a->object.status))
        return false;
    a->begins = true;
    desired = app_deployment(a);
    a->begins = stw_child_digest(desired, &wanted) == 0 &&
                stw_child_as_wanted(a->run, &stw_watch_deployments, a->run->key, wanted, live);
    return a->begins;
}

bool app_begun(const struct app *a, const json_t *status)
{
    return a->begins && says_available(status);
}

/* The Deployment that is applied next differs by our own action, so it does not count as drift. */
static int give_up_number(struct app *a, const struct stw_child_live *live, struct stw_error *err)
{
    char version[STW_RV_LEN];
    int64_t n;
    if (!live->rollout.scaled_by_us)
        return 0;
    if (read_number(a, live->uid, version, &n, err) != 0)
        return -1;
    a->children[APP_DEPLOYMENT].applied_before = false;
    return apply_replicas(a, version, n > 0 || *a->foreign ? n : app_start_replicas(&a->spec), err);
}

/* 1: the number was written into the App, 0: not needed, -1: error. */
static int hand_over(struct app *a, const struct stw_child_live *live, struct stw_error *err)
{
    char version[STW_RV_LEN];
    int64_t n;
    if (find_foreign(a, &live->rollout, err) != 0)
        return -1;
    if (app_is_scaled(a))
        return is_beginning(a, live) ? 0 : give_up_number(a, live, err);
    if (find_number_to_keep(a, live->rollout.wanted) == 0)
        return 0;
    if (read_number(a, live->uid, version, &n, err) != 0)
        return -1;
    n = find_number_to_keep(a, n);
    if (n == 0)
        return 0;
    return keep_number(a, n, err) == 0 ? 1 : -1;
}

bool app_hand_over(struct app *a, struct stw_result *result)
{
    struct stw_child_live live;
    struct stw_error err = {0};
    if (adopts(a) && !a->spec.autoscaling.enabled && look_for_foreign(a, &err) != 0) {
        stw_run_fail(a->run, &err, result);
        return false;
    }
    if (adopts(a)) /* it keeps the number that its autoscaler has set */
        return true;
    if (stw_child_cached(a->run, &stw_watch_deployments, a->run->key, &live) != 0) {
        /* Without a start value it gets one replica, and we own nothing that we must give up. */
        a->begins = a->spec.autoscaling.enabled && app_start_replicas(&a->spec) > 1;
        return true;
    }
    if (!stw_streq(live.owner_uid, a->owner.uid) || live.terminating)
        return true;
    int rc = hand_over(a, &live, &err);
    if (rc < 0)
        stw_run_fail(a->run, &err, result);
    return rc == 0; /* 1: the App has changed; the next run continues */
}
