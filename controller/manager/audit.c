/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/manager/audit.h"

#include "controller/controller.h"
#include "kube/pages.h"

struct audit {
    const struct stw_audit_config *config;
    const struct stw_kind *kind;
};

static int audit_object(void *ctx, struct stw_json object)
{
    const struct audit *a = ctx;
    char ns[254] = "", name[254] = "";
    stw_autofindings struct stw_findings findings = {0};
    struct stw_json meta = stw_json_get(object, "metadata");
    if (stw_json_there(stw_json_get(meta, "deletionTimestamp")))
        return 0;
    (void)stw_json_strcpy(stw_json_get(meta, "namespace"), ns, sizeof(ns));
    (void)stw_json_strcpy(stw_json_get(meta, "name"), name, sizeof(name));
    struct stw_admission question = {.kind = a->kind,
                                     .operation = STW_CREATE,
                                     .ns = ns,
                                     .name = name,
                                     .object = object,
                                     .old_object = STW_JSON_NONE,
                                     .env = a->config->env};
    stw_kind_validate(&question, &findings);
    a->config->verdict(a->config->ctx, a->kind, ns, name, &findings);
    return 0;
}

static void audit_resource(struct audit *a, const struct stw_resource *resource, const char *ns)
{
    struct stw_error err = {0};
    struct stw_pages q = {.resource = resource, .ns = ns};
    if (stw_pages_each(a->config->client, &q, audit_object, a, &err) != 0)
        a->config->trouble(a->config->ctx, a->kind, ns, &err);
}

void stw_audit(const struct stw_audit_config *config, const struct stw_kind *only)
{
    for (size_t i = 0; config->controllers[i]; i++) {
        const struct stw_controller *c = config->controllers[i];
        struct audit a = {.config = config, .kind = c->kind};
        const char *const *ns = config->namespaces;
        if (only && c->kind != only)
            continue;
        if (!ns)
            audit_resource(&a, c->resource, NULL);
        for (; ns && *ns; ns++)
            audit_resource(&a, c->resource, *ns);
    }
}
