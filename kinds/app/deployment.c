/* SPDX-License-Identifier: Apache-2.0
 *
 * The desired Deployment of an App. */
#include "kinds/app/deployment.h"

#include "base/util.h"
#include "kinds/app/children.h"
#include "kinds/app/container.h"
#include "kinds/app/replicas.h"
#include "kinds/app/run_priv.h"
#include "kinds/app/template.h"
#include "kube/tree.h"

#include <stdio.h>

#define HASH_ANNOTATION "mycompany.com/config-hash"

/* --- pod */

/* Spread evenly, but schedule anyway if that is impossible. */
static json_t *soft_spread(const struct app *a, const char *key)
{
    return stw_tree_pack("{s:i,s:s,s:s,s:{s:o}}", "maxSkew", 1, "topologyKey", key,
                         "whenUnsatisfiable", "ScheduleAnyway", "labelSelector", "matchLabels",
                         app_selector(a));
}

static json_t *build_spread_constraints(const struct app *a)
{
    json_t *given = stw_manifest_tree(a->spec.spread), *constraint;
    size_t i;
    if (!given)
        return stw_tree_pack("[o,o]", soft_spread(a, "kubernetes.io/hostname"),
                             soft_spread(a, "topology.kubernetes.io/zone"));
    json_array_foreach (given, i, constraint)
        if (!json_object_get(constraint, "labelSelector"))
            (void)json_object_set_new(constraint, "labelSelector",
                                      stw_tree_pack("{s:o}", "matchLabels", app_selector(a)));
    return given;
}

static void set_if(json_t *to, const char *key, json_t *value)
{
    if (json_array_size(value) > 0 || json_object_size(value) > 0)
        (void)json_object_set(to, key, value);
    json_decref(value);
}

static json_t *pod_spec(const struct app *a)
{
    bool account = a->spec.service_account != NULL;
    json_t *pod = stw_tree_pack("{s:b,s:[o],s:I}", "automountServiceAccountToken", account,
                                "containers", app_container(a), "terminationGracePeriodSeconds",
                                (json_int_t)a->spec.grace_period_s);
    if (account)
        (void)json_object_set_new(pod, "serviceAccountName", json_string(a->spec.service_account));
    set_if(pod, "imagePullSecrets", stw_manifest_tree(a->spec.image_pull_secrets));
    set_if(pod, "affinity", stw_manifest_tree(a->spec.affinity));
    set_if(pod, "tolerations", stw_manifest_tree(a->spec.tolerations));
    set_if(pod, "topologySpreadConstraints", build_spread_constraints(a));
    return pod;
}

static json_t *build_pod_template(const struct app *a)
{
    json_t *template =
        stw_tree_pack("{s:{s:o,s:{s:s}},s:o}", "metadata", "labels", app_labels(a), "annotations",
                      HASH_ANNOTATION, a->config_hash, "spec", pod_spec(a));
    if (*a->inputs.applied)
        (void)json_object_set_new(
            json_object_get(json_object_get(template, "metadata"), "annotations"),
            APP_INPUTS_ANNOTATION, json_string(a->inputs.applied));
    app_merge_template(a, template);
    return template;
}

/* --- Deployment */

static json_t *read_share_or_default(struct stw_json given, json_t *otherwise)
{
    json_t *value = stw_json_there(given) ? stw_tree_read(given) : NULL;
    if (!value)
        return otherwise;
    json_decref(otherwise);
    if (!json_is_real(value))
        return value;
    double real = json_real_value(value); /* to the API server 1.0 is 1 */
    json_decref(value);
    return json_integer((json_int_t)real);
}

static json_t *build_rollout_strategy(const struct app *a)
{
    json_t *strategy;
    if (app_recreates(&a->spec))
        strategy = stw_tree_pack("{s:s}", "type", APP_RECREATE);
    else
        strategy = stw_tree_pack(
            "{s:s,s:{s:o,s:o}}", "type", "RollingUpdate", "rollingUpdate", "maxSurge",
            read_share_or_default(a->spec.strategy.max_surge, json_string(APP_MAX_SURGE)),
            "maxUnavailable",
            read_share_or_default(a->spec.strategy.max_unavailable, json_integer(0)));
    app_merge_strategy(a, strategy);
    return strategy;
}

json_t *app_deployment(const struct app *a)
{
    json_t *spec = stw_tree_pack("{s:I,s:{s:o},s:o,s:o}", "progressDeadlineSeconds",
                                 (json_int_t)a->spec.strategy.deadline_s, "selector", "matchLabels",
                                 app_selector(a), "strategy", build_rollout_strategy(a), "template",
                                 build_pod_template(a));
    if (a->spec.strategy.min_ready_s > 0)
        (void)json_object_set_new(spec, "minReadySeconds",
                                  json_integer((json_int_t)a->spec.strategy.min_ready_s));
    if (a->spec.strategy.history != APP_HISTORY)
        (void)json_object_set_new(spec, "revisionHistoryLimit",
                                  json_integer((json_int_t)a->spec.strategy.history));
    if (!app_is_scaled(a) || a->begins)
        (void)json_object_set_new(spec, "replicas", json_integer((json_int_t)app_number(a)));
    return stw_tree_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "apps/v1", "kind", "Deployment",
                         "metadata", app_metadata(a, a->owner.name), "spec", spec);
}
