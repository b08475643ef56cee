/* SPDX-License-Identifier: Apache-2.0
 *
 * Erus that Deployments request by an annotation.  They are created disabled and with the default
 * schedule.  The Deployment owns them, so they are deleted with it. */
#include "kinds/eru/auto.h"

#include "base/log.h"
#include "base/util.h"
#include "controller/outcome.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/watch.h"
#include "kinds/eru/workloads.h"

#include <stdio.h>

#define KEYS_MAX (1u << 20)

/* --- creation */

static json_t *build_eru(const struct stw_run *run, const struct eru_desired *desired)
{
    return json_pack("{s:s,s:s,s:{s:s,s:s,s:{s:s,s:s,s:s},s:[{s:s,s:s,s:s,s:s,s:b}]},s:{s:s}}",
                     "apiVersion", "mtsre.meitu.com/v1", "kind", "Eru", "metadata", "name",
                     run->name, "namespace", run->ns, "labels", STW_MANAGED_BY, run->op->name,
                     "app.kubernetes.io/name", "eru", "app.kubernetes.io/part-of", run->op->name,
                     "ownerReferences", "apiVersion", "apps/v1", "kind", "Deployment", "name",
                     run->name, "uid", desired->uid, "controller", 1, "spec", "deploymentname",
                     run->name);
}

/* Another client has created an Eru with another name for the Deployment. */
static bool has_another(const struct stw_run *run)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2048), keys = STW_BUF_INIT(KEYS_MAX);
    stw_buf_addf(&index, "deployment:%s", run->key);
    stw_informer_keys(stw_run_cache(run, run->controller->own), stw_buf_str(&index), &keys);
    return keys.len > 0;
}

static void tell_made(struct stw_run *run, const struct stw_buf *answer)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_object made = {0};
    stw_informer_saw(stw_run_cache(run, run->controller->own), answer, NULL);
    if (stw_json_scan(&doc, stw_buf_str(answer), answer->len, NULL) != 0)
        return;
    struct stw_json meta = stw_json_get(stw_json_root(&doc), "metadata");
    (void)stw_json_strcpy(stw_json_get(meta, "uid"), made.uid, sizeof(made.uid));
    (void)stw_json_strcpy(stw_json_get(meta, "resourceVersion"), made.resource_version,
                          sizeof(made.resource_version));
    stw_object_event(run, &made, false, "Created", "Create",
                     "made, disabled, because Deployment \"%s\" has the annotation " ERU_WANTED,
                     run->name);
    stw_log(STW_LOG_INFO, "made an Eru that a Deployment asks for");
}

void eru_make(struct stw_run *run, struct stw_result *result)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    struct stw_error err = {0};
    struct eru_desired desired;
    eru_desired_of(run, eru_workload_of("Deployment"), run->key, &desired);
    if (!desired.wanted || has_another(run) || !stw_run_may_write(run))
        return;
    json_auto_t *eru = build_eru(run, &desired);
    if (!eru)
        (void)stw_fail_memory(&err);
    if (eru &&
        stw_kube_create(run->client, &stw_kind_eru.resource, run->ns, eru, &answer, &err) == 0) {
        tell_made(run, &answer);
        result->outcome = STW_RUN_AFTER; /* to write its status */
        result->after_ms = 1;
    } else if (err.code != STW_ERR_EXISTS) { /* if it exists, the watch reports it */
        stw_run_fail(run, &err, result);
    }
}

/* --- after the annotation was removed */

static bool is_eru_of_deployment(struct stw_json eru, const char *deployment_uid)
{
    struct stw_json key, owner;
    stw_json_foreach (stw_json_path(eru, "metadata.ownerReferences"), key, owner)
        if (stw_json_is(stw_json_get(owner, "kind"), "Deployment") &&
            stw_json_is(stw_json_get(owner, "uid"), deployment_uid))
            return true;
    return false;
}

static bool has_label(const struct stw_run *run, const struct stw_object *o)
{
    struct stw_json labels = stw_json_path(o->root, "metadata.labels");
    return stw_json_is(stw_json_get(labels, STW_MANAGED_BY), run->op->name);
}

static void delete_it(struct eru *e, const char *rv, struct stw_result *result)
{
    struct stw_run *run = e->run;
    struct stw_error err = {0};
    if (stw_kube_delete(run->client, &stw_kind_eru.resource, run->ns, run->name, e->object.uid, rv,
                        &err) != 0 &&
        err.code != STW_ERR_NOT_FOUND) {
        stw_run_fail(run, &err, result);
        return;
    }
    stw_informer_saw_delete(stw_run_cache(run, run->controller->own), run->key, rv);
    stw_object_event(run, &e->object, false, "Deleted", "Delete",
                     "deleted, because Deployment \"%s\" no longer has the annotation " ERU_WANTED,
                     e->spec.deployment);
}

/* Removes our label: the Eru stays, and is no longer managed by steward. */
static void give_over(struct eru *e, const char *rv, struct stw_result *result)
{
    struct stw_run *run = e->run;
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    struct stw_error err = {0};
    json_auto_t *patch =
        json_pack("{s:{s:s,s:{s:n}}}", "metadata", "resourceVersion", rv, "labels", STW_MANAGED_BY);
    if (!patch)
        (void)stw_fail_memory(&err);
    if (!patch ||
        stw_kube_merge_patch(run->client, STW_PLACE(&stw_kind_eru.resource, run->ns, run->name),
                             patch, run->field_manager, &answer, &err) != 0) {
        stw_run_fail(run, &err, result);
        return;
    }
    stw_informer_saw(stw_run_cache(run, run->controller->own), &answer, NULL);
    stw_object_event(run, &e->object, false, "Kept", "Keep",
                     "Deployment \"%s\" no longer has the annotation " ERU_WANTED
                     ", but this Eru has been changed; it is kept",
                     e->spec.deployment);
    result->outcome = STW_RUN_AFTER;
    result->after_ms = 1;
}

bool eru_unmake(struct eru *e, struct stw_result *result)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err = {0};
    struct eru_desired desired;
    char rv[STW_RV_LEN], key[STW_KEY_LEN];
    eru_workload_key(e, key);
    eru_desired_of(e->run, e->workload, key, &desired);
    if (!desired.there || desired.wanted || !has_label(e->run, &e->object) ||
        !stw_run_may_write(e->run))
        return false;
    if (stw_kube_get(e->run->client, &stw_kind_eru.resource, e->run->ns, e->run->name, &text,
                     &err) != 0 ||
        stw_json_scan(&doc, stw_buf_str(&text), text.len, &err) != 0) {
        stw_run_fail(e->run, &err, result);
        return true;
    }
    struct stw_json live = stw_json_root(&doc);
    if (!is_eru_of_deployment(live, desired.uid) ||
        stw_json_strcpy(stw_json_path(live, "metadata.resourceVersion"), rv, sizeof(rv)) != 0)
        return false;
    if (eru_is_default(&e->spec))
        delete_it(e, rv, result);
    else
        give_over(e, rv, result);
    return true;
}
