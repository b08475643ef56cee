/* SPDX-License-Identifier: Apache-2.0
 *
 * Uses the macros of the public headers as an operator does.  Only compiled. */
#include <steward/base.h>
#include <steward/client.h>
#include <steward/controller.h>
#include <steward/kind.h>
#include <steward/operator.h>

struct shop {
    const char *image;
    struct stw_json secrets, affinity, tolerations;
    int64_t count;
};

struct shop_run {
    STW_SUBJECT;
    struct shop spec;
};

static const struct stw_field spec[] = {
    STW_ROW_IMAGE(struct shop, image, "Image."),
    STW_ROW_PULL_SECRETS(struct shop, secrets),
    STW_ROW_AFFINITY(struct shop, affinity),
    STW_ROW_TOLERATIONS(struct shop, tolerations),
    {.name = "count", STW_FIELD(STW_T_INT, struct shop, count), STW_RANGE(1, 2)},
    {0},
};
static const struct stw_field status[] = {
    STW_ROW_REPAIRS, STW_ROW_LAST_REPAIR, STW_ROW_TEMPLATES, {0}};
static const struct stw_column columns[] = {STW_COLUMN_READY, STW_COLUMN_AGE, {0}};
extern const struct stw_kind shop_kind;
const struct stw_kind shop_kind = {.spec = spec, .status = status, .columns = columns};

static const struct stw_resource job = {"batch", "v1", "Job", "jobs", true};
static const struct stw_watch jobs = STW_CHILD_WATCH(&job);
static const struct stw_watch monitors = {STW_CHILD_WATCH_MEMBERS(&job), .optional = true};

static json_t *make_job(const void *subject)
{
    const struct shop_run *r = subject;
    return stw_tree_pack("{s:s}", "image", r->spec.image);
}

static const struct stw_child_row children[] = {
    {.condition = "JobSynced", .watch = &jobs, .make = make_job},
    {.condition = "MonitorSynced", .watch = &monitors, .make = make_job},
    {0},
};

static void reconcile(struct stw_subject *s, struct stw_result *result)
{
    struct stw_aspect synced = {.type = "Synced"};
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(100);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_json key, value;
    struct stw_error err = {0};
    if (stw_kube_get(s->run->client, &job, s->run->ns, "a", &answer, &err) != 0 ||
        stw_kube_apply(s->run->client, STW_PLACE(&job, s->run->ns, "a"), NULL, "x", &answer,
                       &err) != 0 ||
        stw_kube_apply(s->run->client, STW_PLACE(&job, s->run->ns, "a", "status"), NULL, "x",
                       &answer, &err) != 0)
        stw_log(STW_LOG_ERROR, "cannot apply", STW_STR("error", err.text));
    if (stw_json_scan(&doc, stw_buf_str(&answer), answer.len, &err) != 0)
        STW_ASPECT_SAY(&synced, "%s", err.text);
    stw_json_foreach (stw_json_root(&doc), key, value)
        if (stw_json_is(key, "spec") && stw_json_there(value))
            synced.level = STW_LEVEL_FINE;
    stw_run_report(s->run, &s->object, &synced, 1, stw_tree_pack("{s:i}", "count", 1), result);
}

extern const struct stw_controller shop_controller;
const struct stw_controller shop_controller = {
    STW_CONTROLLER_OF("shop", shop_kind),
    STW_OWN_WATCH(shop_kind),
    STW_RUN_STATE(struct shop_run, spec),
    .children = children,
    .reconcile = reconcile,
};
