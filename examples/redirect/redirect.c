/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator with one kind, Redirect: a host name that an nginx of the namespace sends elsewhere.
 * The spec is a table of fields; the ConfigMap and the Service are rows, so there is no code that
 * reconciles. */
#include <steward/controller.h>
#include <steward/kind.h>
#include <steward/operator.h>

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

static const struct stw_kind kind = {
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
    {.condition = "ConfigMapSynced", .watch = &stw_watch_configmaps, .make = make_configmap},
    {.condition = "ServiceSynced", .watch = &stw_watch_services, .make = make_service},
    {0},
};

static const struct stw_controller controller = {
    STW_CONTROLLER_OF("redirect", kind),
    STW_OWN_WATCH(kind),
    STW_RUN_STATE(struct redirect_run, spec),
    .children = children,
};

static const struct stw_operator redirect = {
    .name = "redirect",
    .domain = "redirect.example.org",
    .metric_prefix = "redirect",
    .version = "0.1.0",
    .about = "redirect sends the requests for a host name elsewhere.\n",
    .kinds = (const struct stw_kind *const[]){&kind, NULL},
    .controllers = (const struct stw_controller *const[]){&controller, NULL},
};

int main(int argc, char **argv)
{
    return stw_operator_main(&redirect, argc, argv);
}
