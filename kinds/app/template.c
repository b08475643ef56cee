/* SPDX-License-Identifier: Apache-2.0
 *
 * The strategic merge of spec.podTemplate over the pod template that steward builds.  Admission has
 * refused what both set (spec_template.c). */
#include "kinds/app/template.h"

#include "base/util.h"
#include "kinds/app/container.h"
#include "kinds/app/run_priv.h"

static void merge_map(json_t *base, json_t *over);

static json_t *find_container(json_t *list, const json_t *like)
{
    json_t *container;
    size_t i;
    json_array_foreach (list, i, container)
        if (json_equal(json_object_get(container, "name"), json_object_get(like, "name")))
            return container;
    return NULL;
}

static void merge_containers(json_t *base, json_t *over)
{
    json_t *container;
    size_t i;
    json_array_foreach (over, i, container) {
        json_t *same = find_container(base, container);
        if (same)
            merge_map(same, container);
        else
            (void)json_array_append(base, container);
    }
}

/* Containers are merged by their names.  The variables and ports of steward come first; admission
 * has refused others of the same names.  Other lists are replaced. */
static void merge_map(json_t *base, json_t *over)
{
    const char *name;
    json_t *value;
    json_object_foreach (over, name, value) {
        json_t *old = json_object_get(base, name);
        if (json_is_object(old) && json_is_object(value))
            merge_map(old, value);
        else if (json_is_array(old) && stw_streq(name, "containers"))
            merge_containers(old, value);
        else if (json_is_array(old) && (stw_streq(name, "envFrom") || stw_streq(name, "ports")))
            (void)json_array_extend(old, value);
        else
            (void)json_object_set(base, name, value);
    }
}

/* --- what the server would default, see app_own_defaults() */

static void set_missing(json_t *object, const char *key, json_t *value)
{
    if (json_is_object(object) && !json_object_get(object, key))
        (void)json_object_set(object, key, value);
    json_decref(value);
}

static void own_handler(json_t *handler)
{
    set_missing(json_object_get(handler, "httpGet"), "scheme", json_string("HTTP"));
}

static void own_container(json_t *container)
{
    static const char *const probes[] = {"livenessProbe", "readinessProbe", "startupProbe"};
    json_t *lifecycle = json_object_get(container, "lifecycle"), *element;
    size_t i;
    for (i = 0; i < STW_COUNT(probes); i++)
        own_handler(json_object_get(container, probes[i]));
    own_handler(json_object_get(lifecycle, "postStart"));
    own_handler(json_object_get(lifecycle, "preStop"));
    json_array_foreach (json_object_get(container, "ports"), i, element)
        set_missing(element, "protocol", json_string("TCP"));
    json_array_foreach (json_object_get(container, "env"), i, element)
        app_own_defaults(element);
    stw_manifest_canonical_resources(json_object_get(container, "resources"));
}

static void own_volume(json_t *volume)
{
    static const char *const sources[] = {"configMap", "secret", "projected", "downwardAPI"};
    for (size_t i = 0; i < STW_COUNT(sources); i++)
        set_missing(json_object_get(volume, sources[i]), "defaultMode", json_integer(0644));
    set_missing(json_object_get(volume, "hostPath"), "type", json_string(""));
}

/* Containers of the user get the security profile of the App too. */
static void secure_container(const struct app *a, json_t *container)
{
    json_t *given = json_object_get(container, "securityContext");
    const char *name = json_string_value(json_object_get(container, "name"));
    if (name && !stw_streq(name, APP_NAME))
        (void)json_object_set_new(container, "securityContext", app_security_context(a, given));
}

static void complete_pod(const struct app *a, json_t *pod)
{
    static const char *const lists[] = {"containers", "initContainers"};
    json_t *element;
    size_t i;
    for (size_t l = 0; l < STW_COUNT(lists); l++)
        json_array_foreach (json_object_get(pod, lists[l]), i, element) {
            secure_container(a, element);
            own_container(element);
        }
    json_array_foreach (json_object_get(pod, "volumes"), i, element)
        own_volume(element);
    stw_manifest_canonical_resources(json_object_get(pod, "resources"));
}

void app_merge_template(const struct app *a, json_t *template)
{
    json_auto_t *over = stw_manifest_tree(a->spec.pod_template);
    if (!over)
        return;
    merge_map(template, over);
    complete_pod(a, json_object_get(template, "spec"));
}

void app_merge_strategy(const struct app *a, json_t *strategy)
{
    json_auto_t *over = stw_manifest_tree(stw_json_path(a->object.root, "spec.strategy"));
    for (const char *const *own = app_strategy_members; over && *own; own++)
        (void)json_object_del(over, *own);
    merge_map(strategy, over);
}
