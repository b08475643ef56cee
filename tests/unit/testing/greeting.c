/* SPDX-License-Identifier: Apache-2.0 */
#include "greeting.h"

#include "controller/child.h"
#include "controller/controller.h"
#include "controller/finalizer.h"
#include "controller/manifest.h"
#include "controller/outcome.h"
#include "controller/reconcile.h"
#include "kube/tree.h"
#include "schema/rows.h"

_Atomic unsigned greeting_looks;

#define FINALIZER "greeter.example.org/greeting"

struct spec {
    const char *message;
    int64_t minutes;
};

static const struct stw_field spec_rows[] = {
    {.name = "message",
     STW_FIELD(STW_T_STRING, struct spec, message),
     .help = "What to say.",
     .required = true,
     STW_RANGE(1, 100)},
    {.name = "minutes",
     STW_FIELD(STW_T_INT, struct spec, minutes),
     .help = "How often to look.",
     .def = "60",
     STW_RANGE(1, 1000)},
    {0},
};
static const struct stw_field status_rows[] = {STW_ROW_REPAIRS, STW_ROW_LAST_REPAIR, {0}};
static const struct stw_column columns[] = {STW_COLUMN_READY, {0}};

static const struct stw_kind greeting_kind = {
    .group = "example.org",
    .version = "v1",
    .kind = "Greeting",
    .plural = "greetings",
    .namespaced = true,
    .singular = "greeting",
    .help = "A message.",
    .spec = spec_rows,
    .spec_size = sizeof(struct spec),
    .status = status_rows,
    .columns = columns,
    .operations = STW_CREATE | STW_UPDATE,
    .finalizer = FINALIZER,
};

struct run {
    STW_SUBJECT;
    struct spec spec;
};

static json_t *make_configmap(const void *subject)
{
    static const struct stw_naming naming = {
        .app = "greeting", .component = "message", .image = ""};
    const struct run *r = subject;
    return stw_tree_pack("{s:s,s:s,s:o,s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap",
                         "metadata",
                         stw_manifest_metadata(r->run, &r->owner, &naming, r->owner.name), "data",
                         "message", r->spec.message);
}

/* It looks at the world now and then. */
static void look(const struct stw_subject *s, struct stw_aspect *all)
{
    const struct run *r = (const struct run *)s;
    all[s->child_count] = (struct stw_aspect){.type = "Looked",
                                              .level = STW_LEVEL_FINE,
                                              .truth = STW_TRUE,
                                              .reason = "Looked",
                                              .message = "it was looked at"};
    if (all[0].level ==
        STW_LEVEL_FINE) /* the first of those that are fine says when to look again */
        all[0].again_ms = (uint64_t)r->spec.minutes * 60000;
    atomic_fetch_add(&greeting_looks, 1);
}

static void end(struct stw_subject *s, struct stw_result *result)
{
    struct stw_error err = {0};
    if (stw_finalizer_has(&s->object, FINALIZER) &&
        stw_finalizer_remove(s->run, &s->object, FINALIZER, &err) < 0)
        stw_run_fail(s->run, &err, result);
}

static const struct stw_child_row children[] = {
    {.condition = "ConfigMapSynced", .watch = &stw_watch_configmaps, .make = make_configmap},
    {0},
};
static const char *const conditions[] = {"Looked", NULL};

static const struct stw_controller greeting_controller = {
    STW_CONTROLLER_OF("greeting", greeting_kind),
    STW_OWN_WATCH(greeting_kind),
    STW_RUN_STATE(struct run, spec),
    .children = children,
    .conditions = conditions,
    .find = look,
    .aspect_count = 1,
    .deleting = end,
};

static const struct stw_kind *const kinds[] = {&greeting_kind, NULL};
static const struct stw_controller *const controllers[] = {&greeting_controller, NULL};

const struct stw_operator greeter = {
    .name = "greeter",
    .domain = "greeter.example.org",
    .metric_prefix = "greeter",
    .version = "1.0.0",
    .kinds = kinds,
    .controllers = controllers,
};
const struct stw_resource *const greeting = &greeting_kind.resource;

json_t *greeting_of(const char *name, const char *message)
{
    return json_pack("{s:s,s:s,s:{s:s},s:{s:s}}", "apiVersion", "example.org/v1", "kind",
                     "Greeting", "metadata", "name", name, "spec", "message", message);
}
