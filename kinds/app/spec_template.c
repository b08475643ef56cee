/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on spec.podTemplate: it must not set what another field of the App sets. */
#include "base/util.h"
#include "kinds/app/spec_priv.h"
#include "schema/core.h"
#include "schema/names.h"

#include <stdio.h>

#define TEMPLATE "spec.podTemplate"
#define OWN_CONTAINER "app"
#define NAMES_MAX 100 /* the field table refuses longer lists */

struct own {
    const char *name, *field; /* a member of a pod or container, and the App's field for it */
};

static const struct own own_pod[] = {
    {"serviceAccountName", "serviceAccountName"},
    {"serviceAccount", "serviceAccountName"},
    {"automountServiceAccountToken", "serviceAccountName"},
    {"imagePullSecrets", "imagePullSecrets"},
    {"affinity", "affinity"},
    {"tolerations", "tolerations"},
    {"topologySpreadConstraints", "topologySpreadConstraints"},
    {"terminationGracePeriodSeconds", "terminationGracePeriodSeconds"},
    {NULL, NULL},
};
static const struct own own_container[] = {
    {"image", "image"},
    {"resources", "resources"},
    {"securityContext", "securityContext"},
    {"env", "env"},
    {NULL, NULL},
};

static void refuse_own(struct stw_json object, const struct own *all, const char *path,
                       struct stw_findings *f)
{
    char at[256];
    for (; all->name; all++) {
        stw_format(at, sizeof(at), "%s.%s", path, all->name);
        if (stw_json_there(stw_json_get(object, all->name)))
            stw_findings_add(f, at, STW_FORBIDDEN, NULL, "is set by steward from spec.%s",
                             all->field);
    }
}

/* --- metadata */

static const char *const own_labels[] = {"app",
                                         "pod-template-hash",
                                         "app.kubernetes.io/name",
                                         "app.kubernetes.io/instance",
                                         "app.kubernetes.io/component",
                                         "app.kubernetes.io/part-of",
                                         "app.kubernetes.io/managed-by",
                                         "app.kubernetes.io/version",
                                         NULL};
/* Profiles of AppArmor and seccomp as they were set before they were fields. */
static const char *const own_annotations[] = {"mycompany.com/config-hash",
                                              "mycompany.com/inputs-hash",
                                              "container.apparmor.security.beta.kubernetes.io/",
                                              "seccomp.security.alpha.kubernetes.io/",
                                              "container.seccomp.security.alpha.kubernetes.io/",
                                              NULL};

static void check_keys(struct stw_json map, const char *const *own, bool prefixes, const char *path,
                       const char *message, struct stw_findings *f)
{
    struct stw_json key, value;
    stw_json_foreach (map, key, value) {
        char name[STW_CORE_ENV_NAME_MAX + 64], at[512];
        if (stw_findings_spent(f))
            return;
        stw_json_cut(key, name, sizeof(name));
        for (const char *const *one = own; *one; one++) {
            size_t len = strlen(*one);
            bool is_prefix = prefixes && (*one)[len - 1] == '/';
            if (is_prefix ? strncmp(name, *one, len) != 0 : !stw_streq(name, *one))
                continue;
            stw_format(at, sizeof(at), "%s[%s]", path, name);
            stw_findings_add(f, at, STW_FORBIDDEN, NULL, "%s", message);
        }
    }
}

static void check_metadata(struct stw_json metadata, struct stw_findings *f)
{
    /* Members of metadata that a pod gets from elsewhere, or that the server sets. */
    static const char *const others[] = {"name",
                                         "generateName",
                                         "namespace",
                                         "selfLink",
                                         "uid",
                                         "resourceVersion",
                                         "generation",
                                         "creationTimestamp",
                                         "deletionTimestamp",
                                         "deletionGracePeriodSeconds",
                                         "ownerReferences",
                                         "finalizers",
                                         "clusterName",
                                         "managedFields"};
    struct stw_json labels = stw_json_get(metadata, "labels");
    struct stw_json annotations = stw_json_get(metadata, "annotations");
    for (size_t i = 0; i < STW_COUNT(others); i++) {
        char at[128];
        stw_format(at, sizeof(at), TEMPLATE ".metadata.%s", others[i]);
        if (stw_json_there(stw_json_get(metadata, others[i])))
            stw_findings_add(f, at, STW_FORBIDDEN, NULL, "only labels and annotations can be set");
    }
    check_keys(labels, own_labels, false, TEMPLATE ".metadata.labels", APP_BY_STEWARD, f);
    stw_core_check_labels(labels, TEMPLATE ".metadata.labels", f);
    check_keys(annotations, own_annotations, true, TEMPLATE ".metadata.annotations",
               APP_PROFILES_ELSEWHERE, f);
    stw_core_check_annotations(annotations, TEMPLATE ".metadata.annotations", f);
}

/* --- containers */

static bool has_name(struct stw_json list, struct stw_json name, uint32_t before)
{
    struct stw_json key, element;
    stw_json_foreach (list, key, element)
        if (before-- == 0)
            return false;
        else if (stw_json_compare(stw_json_get(element, "name"), name) == 0)
            return true;
    return false;
}

/* The elements of these lists are merged by their names. */
static void check_names(struct stw_json spec, const char *list, struct stw_findings *f)
{
    struct stw_json key, element, all = stw_json_get(spec, list);
    uint32_t index = 0;
    char at[128];
    stw_json_foreach (all, key, element) {
        struct stw_json name = stw_json_get(element, "name");
        if (stw_findings_spent(f) || index == NAMES_MAX)
            return;
        stw_format(at, sizeof(at), TEMPLATE ".spec.%s[%u].name", list, index);
        if (stw_json_size(name) == 0)
            stw_findings_add(f, at, STW_REQUIRED, NULL, "%s", "");
        else if (stw_json_type(name) == STW_JSON_STRING && has_name(all, name, index))
            stw_findings_at(f, at, STW_DUPLICATE, name, "%s", "");
        index++;
    }
}

static void check_own_ports(const struct app_spec *app, struct stw_json ports, const char *path,
                            struct stw_findings *f)
{
    struct stw_json key, port;
    uint32_t index = 0;
    stw_json_foreach (ports, key, port) {
        int64_t n = 0;
        char at[192];
        if (stw_findings_spent(f))
            return;
        stw_format(at, sizeof(at), "%s.ports[%u]", path, index++);
        (void)stw_json_int(stw_json_get(port, "containerPort"), &n);
        if (stw_json_is(stw_json_get(port, "name"), "http") || n == app->port)
            stw_findings_add(f, at, STW_FORBIDDEN, NULL, "is set by steward from spec.port");
        else if (app_has_metrics_port(app) &&
                 (stw_json_is(stw_json_get(port, "name"), "metrics") || n == app->metrics.port))
            stw_findings_add(f, at, STW_FORBIDDEN, NULL,
                             "is set by steward from spec.metrics.port");
    }
}

static void check_own_container(const struct app_spec *app, struct stw_json container,
                                const char *path, struct stw_findings *f)
{
    static const struct own readiness[] = {{"readinessProbe", "healthCheck"}, {NULL, NULL}};
    static const struct own liveness[] = {{"livenessProbe", "healthCheck"}, {NULL, NULL}};
    refuse_own(container, own_container, path, f);
    if (app->health.path)
        refuse_own(container, readiness, path, f);
    if (app->health.path && app->health.liveness)
        refuse_own(container, liveness, path, f);
    check_own_ports(app, stw_json_get(container, "ports"), path, f);
}

static void check_other_container(struct stw_json container, const char *path,
                                  struct stw_findings *f)
{
    char at[192];
    stw_format(at, sizeof(at), "%s.image", path);
    if (stw_json_size(stw_json_get(container, "image")) == 0)
        stw_findings_add(f, at, STW_REQUIRED, NULL, "%s", "");
    stw_format(at, sizeof(at), "%s.env", path);
    stw_core_check_env(stw_json_get(container, "env"), at, f);
    stw_format(at, sizeof(at), "%s.resources", path);
    stw_core_check_resources(stw_json_get(container, "resources"), at, f);
}

static void check_containers(const struct app_spec *app, struct stw_json spec, const char *list,
                             bool has_own, struct stw_findings *f)
{
    struct stw_json key, container;
    uint32_t index = 0;
    stw_json_foreach (stw_json_get(spec, list), key, container) {
        char path[128];
        bool own = stw_json_is(stw_json_get(container, "name"), OWN_CONTAINER);
        if (stw_findings_spent(f))
            return;
        stw_format(path, sizeof(path), TEMPLATE ".spec.%s[%u]", list, index++);
        if (own && has_own)
            check_own_container(app, container, path, f);
        else if (own)
            stw_findings_add(f, path, STW_FORBIDDEN, NULL, "\"%s\" is the name of a container",
                             OWN_CONTAINER);
        else
            check_other_container(container, path, f);
    }
}

void app_check_template(const struct app_spec *app, struct stw_findings *f)
{
    static const char *const lists[] = {"containers", "initContainers", "volumes"};
    struct stw_json spec = stw_json_get(app->pod_template, "spec");
    check_metadata(stw_json_get(app->pod_template, "metadata"), f);
    refuse_own(spec, own_pod, TEMPLATE ".spec", f);
    if (stw_json_there(stw_json_get(spec, "ephemeralContainers")))
        stw_findings_add(f, TEMPLATE ".spec.ephemeralContainers", STW_FORBIDDEN, NULL,
                         APP_EPHEMERAL);
    for (size_t i = 0; i < STW_COUNT(lists); i++)
        check_names(spec, lists[i], f);
    check_containers(app, spec, "containers", true, f);
    check_containers(app, spec, "initContainers", false, f);
}
