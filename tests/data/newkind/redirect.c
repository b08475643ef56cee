/* SPDX-License-Identifier: Apache-2.0
 *
 * Redirect: a host name that an nginx of the namespace sends elsewhere. */
#include "controller/manifest.h"
#include "controller/reconcile.h"
#include "schema/rows.h"

struct redirect {
    const char *host, *target;
    int64_t port;
};

struct redirect_run {
    STW_SUBJECT;
    struct redirect spec;
};

static const char *check_target(const char *target)
{
    return strncmp(target, "https://", 8) == 0 ? NULL : "must begin with https://";
}

static const struct stw_field spec[] = {
    {.name = "host",
     STW_FIELD(STW_T_STRING, struct redirect, host),
     .help = "Host name whose requests are redirected.",
     .required = true,
     .has_range = true,
     .min = 1,
     .max = 253},
    {.name = "target",
     STW_FIELD(STW_T_STRING, struct redirect, target),
     .help = "URL to which they are redirected.",
     .required = true,
     .has_range = true,
     .min = 9,
     .max = 1024,
     .check = check_target},
    {.name = "port",
     STW_FIELD(STW_T_INT, struct redirect, port),
     .help = "Port of the Service.",
     .def = "80",
     .has_range = true,
     .min = 1,
     .max = 65535},
    {0},
};

static const struct stw_field status[] = {STW_ROW_REPAIRS, STW_ROW_LAST_REPAIR, {0}};
static const struct stw_column columns[] = {STW_COLUMN_READY, STW_COLUMN_AGE, {0}};

const struct stw_kind stw_kind_redirect = {
    .group = "example.org",
    .version = "v1",
    .kind = "Redirect",
    .plural = "redirects",
    .namespaced = true,
    .singular = "redirect",
    .help = "Redirect sends the requests for a host name elsewhere.",
    .spec = spec,
    .spec_size = sizeof(struct redirect),
    .status = status,
    .columns = columns,
    .operations = STW_CREATE | STW_UPDATE,
    .dns1035_name = true,
    .name_max = 63,
};

static const struct stw_naming naming = {.app = "redirect", .component = "web", .image = ""};

static json_t *make_configmap(const void *subject)
{
    const struct redirect_run *r = subject;
    return stw_tree_pack(
        "{s:s,s:s,s:o,s:{s:o}}", "apiVersion", "v1", "kind", "ConfigMap", "metadata",
        stw_manifest_metadata(r->run, &r->owner, &naming, r->owner.name), "data", "redirect.conf",
        json_sprintf("server_name %s; return 301 %s;", r->spec.host, r->spec.target));
}

static json_t *make_service(const void *subject)
{
    const struct redirect_run *r = subject;
    return stw_tree_pack(
        "{s:s,s:s,s:o,s:{s:o,s:[{s:s,s:I,s:s,s:i}]}}", "apiVersion", "v1", "kind", "Service",
        "metadata", stw_manifest_metadata(r->run, &r->owner, &naming, r->owner.name), "spec",
        "selector", stw_manifest_selector(&naming, &r->owner), "ports", "name", "http", "port",
        (json_int_t)r->spec.port, "protocol", "TCP", "targetPort", 80);
}

static const struct stw_child_row children[] = {
    {"ConfigMapSynced", &stw_watch_configmaps, make_configmap},
    {"ServiceSynced", &stw_watch_services, make_service},
    {0},
};

const struct stw_controller stw_controller_redirect = {
    STW_CONTROLLER_OF("redirect", stw_kind_redirect),
    STW_OWN_WATCH(stw_kind_redirect),
    STW_RUN_STATE(struct redirect_run, spec),
    .children = children,
};
