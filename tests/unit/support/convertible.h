/* SPDX-License-Identifier: Apache-2.0
 *
 * A kind with three versions.  v1 is its own; v1alpha1 has other names, other types and a field that
 * v1 lacks; v1beta1 has a function of its own. */
#ifndef STW_TESTS_CONVERTIBLE_H
#define STW_TESTS_CONVERTIBLE_H

#include "schema/conversion.h"

struct site {
    const char *host;
};

static const struct stw_field site_tag = {.name = "", .type = STW_T_STRING};
static const struct stw_field site_backend_fields[] = {{.name = "url", .type = STW_T_STRING}, {0}};
static const struct stw_field site_backend = {
    .name = "", .type = STW_T_OBJECT, .fields = site_backend_fields};
static const struct stw_field site_old_backend_fields[] = {
    {.name = "address", .type = STW_T_STRING}, {0}};
static const struct stw_field site_old_backend = {
    .name = "", .type = STW_T_OBJECT, .fields = site_old_backend_fields};

static const struct stw_field site_web[] = {
    {.name = "replicas", .type = STW_T_INT},
    {.name = "image", .type = STW_T_STRING},
    {0},
};
static const struct stw_field site_common[] = {
    {.name = "a", .type = STW_T_INT}, {.name = "onlyNew", .type = STW_T_INT}, {0}};
static const struct stw_field site_old_common[] = {
    {.name = "a", .type = STW_T_INT}, {.name = "onlyOld", .type = STW_T_INT}, {0}};

static const struct stw_field site_spec[] = {
    {.name = "host", STW_FIELD(STW_T_STRING, struct site, host)},
    {.name = "port", .type = STW_T_INT},
    {.name = "web", .type = STW_T_OBJECT, .fields = site_web},
    {.name = "common", .type = STW_T_OBJECT, .fields = site_common},
    {.name = "tags", .type = STW_T_LIST, .item = &site_tag},
    {.name = "backends", .type = STW_T_LIST, .item = &site_backend},
    {.name = "labels", .type = STW_T_MAP, .item = &site_tag},
    {.name = "extra", .type = STW_T_RAW},
    {.name = "schedule", .type = STW_T_STRING},
    {0},
};
static const struct stw_field site_status[] = {{.name = "url", .type = STW_T_STRING}, {0}};

static const struct stw_field site_spec_alpha[] = {
    {.name = "from", .type = STW_T_STRING}, /* host */
    {.name = "port", .type = STW_T_STRING},
    {.name = "replicas", .type = STW_T_INT}, /* web.replicas */
    {.name = "common", .type = STW_T_OBJECT, .fields = site_old_common},
    {.name = "marks", .type = STW_T_LIST, .item = &site_tag}, /* tags */
    {.name = "backends", .type = STW_T_LIST, .item = &site_old_backend},
    {.name = "comment", .type = STW_T_STRING},
    {.name = "schedule", .type = STW_T_STRING},
    {0},
};
static const struct stw_field site_status_alpha[] = {{.name = "address", .type = STW_T_STRING},
                                                     {0}};
static const struct stw_move site_moves_alpha[] = {
    {"spec.host", "spec.from"},
    {"spec.web.replicas", "spec.replicas"},
    {"spec.tags", "spec.marks"},
    {"status.url", "status.address"},
    {0},
};

static const struct stw_field site_cron[] = {{.name = "minute", .type = STW_T_STRING}, {0}};
static const struct stw_field site_spec_beta[] = {
    {.name = "host", .type = STW_T_STRING},
    {.name = "port", .type = STW_T_INT},
    {.name = "schedule", .type = STW_T_OBJECT, .fields = site_cron},
    {0},
};

/* schedule: "5" <-> {"minute": "5"} */
static inline int convert_site(struct stw_json object, bool to_own, struct stw_conversion *c,
                               struct stw_error *err)
{
    struct stw_json value =
        stw_json_path(object, to_own ? "spec.schedule.minute" : "spec.schedule");
    size_t len = 0;
    const char *text = stw_json_raw(value, &len);
    if (stw_json_is(value, "fail"))
        return stw_fail(err, STW_ERR_INVALID, "spec.schedule: \"fail\" has no minute");
    if (stw_json_type(value) != STW_JSON_STRING)
        return 0;
    stw_conversion_drop(c, "spec.schedule");
    stw_conversion_set(c, to_own ? "spec.schedule" : "spec.schedule.minute", text, len);
    return 0;
}

static const struct stw_kind_version site_versions[] = {
    {.name = "v1alpha1",
     .stored = true,
     .deprecated = "example.org/v1alpha1 Site is deprecated; use example.org/v1",
     .spec = site_spec_alpha,
     .status = site_status_alpha,
     .moves = site_moves_alpha},
    {.name = "v1beta1", .spec = site_spec_beta, .convert = convert_site},
    {0},
};

static const struct stw_kind site_kind = {
    .group = "example.org",
    .version = "v1",
    .kind = "Site",
    .plural = "sites",
    .namespaced = true,
    .singular = "site",
    .help = "Site is for tests.",
    .spec = site_spec,
    .spec_size = sizeof(struct site),
    .status = site_status,
    .operations = STW_CREATE | STW_UPDATE,
    .versions = site_versions,
};

static const struct stw_operator site_operator = {
    .name = "sites",
    .domain = "sites.example.org",
    .metric_prefix = "sites",
    .version = "0.1.0",
    .kinds = (const struct stw_kind *const[]){&site_kind, NULL},
};

#endif
