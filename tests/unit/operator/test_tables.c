/* SPDX-License-Identifier: Apache-2.0
 *
 * What stw_operator_check_tables says of each mistake.  Each row changes one member of tables that are
 * right. */
#include "base/util.h"
#include "controller/reconcile.h"
#include "operator/main.h"
#include "schema/rows.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct lamp {
    int64_t watts;
    const char *color;
    struct {
        const char *cloth;
    } shade;
    struct stw_json tags;
};

struct lamp_run {
    STW_SUBJECT;
    struct lamp spec;
};

/* --- the tables, set again for each mistake */

enum { WATTS, COLOR, SHADE, TAGS, FIELDS };
static const struct stw_field tag = {.name = "", .type = STW_T_STRING};
static const char *const colors[] = {"Red", "White", NULL};
static struct stw_field shade_fields[2], fields[FIELDS + 1], old_fields[3];
static struct stw_column columns[3];
static struct stw_cel cel[2];
static struct stw_cel_rule within[2], rules[3];
static struct stw_move moves[2];
static struct stw_kind_version versions[2];
static struct stw_scale scale;
static struct stw_kind kind, second_kind;
static struct stw_watch own, jobs, other_jobs;
static struct stw_child_row rows[3];
static const struct stw_watch *watches[3];
static struct stw_controller controller, second;
static const struct stw_kind *kinds[3];
static const struct stw_controller *controllers[3];
static struct stw_operator op;
static const struct stw_resource job = {"batch", "v1", "Job", "jobs", true};

static json_t *make(const void *subject)
{
    (void)subject;
    return NULL;
}

static int64_t count_replicas(const void *subject)
{
    (void)subject;
    return 1;
}

static void remove_lamp(struct stw_subject *s, struct stw_result *result)
{
    (void)s, (void)result;
}

static void set_kind(void)
{
    shade_fields[0] = (struct stw_field){
        .name = "cloth",
        .type = STW_T_STRING,
        .offset = offsetof(struct lamp, shade.cloth) - offsetof(struct lamp, shade),
    };
    fields[WATTS] = (struct stw_field){.name = "watts",
                                       .type = STW_T_INT,
                                       .offset = offsetof(struct lamp, watts),
                                       .def = "60",
                                       STW_RANGE(1, 100)};
    fields[COLOR] = (struct stw_field){.name = "color",
                                       .type = STW_T_STRING,
                                       .offset = offsetof(struct lamp, color),
                                       .def = "\"Red\"",
                                       .values = colors,
                                       .cel = cel};
    fields[SHADE] = (struct stw_field){.name = "shade",
                                       .type = STW_T_OBJECT,
                                       .offset = offsetof(struct lamp, shade),
                                       .fields = shade_fields};
    fields[TAGS] = (struct stw_field){
        .name = "tags", .type = STW_T_MAP, .offset = offsetof(struct lamp, tags), .item = &tag};
    old_fields[0] = (struct stw_field){.name = "power", .type = STW_T_INT};
    old_fields[1] = (struct stw_field){.name = "color", .type = STW_T_STRING};
    cel[0] = (struct stw_cel){"self.matches(r\"^[A-Z'(\\]\") || self == 'it\\'s('",
                              "begins with a capital letter"};
    within[0] =
        (struct stw_cel_rule){.at = "cloth", .rule = "has(self.cloth)", .message = "needs a cloth"};
    rules[0] = (struct stw_cel_rule){
        .at = "watts", .rule = "!has(self.shade) || self.?watts < 60", .message = "too hot"};
    rules[1] = (struct stw_cel_rule){.at = "shade", .within = within};
    columns[0] = (struct stw_column){.name = "W", .type = "integer", .json_path = ".spec.watts"};
    columns[1] = (struct stw_column)STW_COLUMN_READY;
    scale = (struct stw_scale){".spec.watts", ".status.observedGeneration", NULL};
    moves[0] = (struct stw_move){"spec.watts", "spec.power"};
    versions[0] = (struct stw_kind_version){.name = "v1alpha1", .spec = old_fields, .moves = moves};
    kind = (struct stw_kind){.group = "example.org",
                             .version = "v1",
                             .kind = "Lamp",
                             .plural = "lamps",
                             .namespaced = true,
                             .singular = "lamp",
                             .help = "A lamp.",
                             .versions = versions,
                             .spec = fields,
                             .spec_size = sizeof(struct lamp),
                             .cel = rules,
                             .columns = columns,
                             .scale = &scale,
                             .operations = STW_CREATE | STW_UPDATE,
                             .finalizer = "example.org/lamp"};
}

static void set_tables(void)
{
    set_kind();
    second_kind = kind;
    second_kind.plural = "bulbs";
    own = (struct stw_watch){.resource = &kind.resource,
                             .project = stw_object_project,
                             .changed = stw_watch_own_changed};
    jobs = other_jobs = own;
    jobs.resource = other_jobs.resource = &job;
    other_jobs.metrics_name = "otherjobs";
    watches[0] = &jobs;
    watches[1] = &other_jobs;
    rows[0] = (struct stw_child_row){"ConfigMapSynced", &stw_watch_configmaps, make};
    rows[1] = (struct stw_child_row){.condition = "DeploymentAvailable",
                                     .watch = &stw_watch_deployments,
                                     .make = make,
                                     .replicas = count_replicas};
    controller = (struct stw_controller){STW_CONTROLLER_OF("lamp", kind),
                                         .own = &own,
                                         .watches = watches,
                                         .children = rows,
                                         STW_RUN_STATE(struct lamp_run, spec),
                                         .deleting = remove_lamp};
    kinds[0] = &kind;
    kinds[1] = NULL;
    controllers[0] = &controller;
    controllers[1] = NULL;
    op = (struct stw_operator){.name = "lamps",
                               .domain = "example.org",
                               .metric_prefix = "lamps",
                               .version = "1",
                               .kinds = kinds,
                               .controllers = controllers};
}

static void add_second(const struct stw_kind *k, const char *name)
{
    static struct stw_watch second_own;
    second_own = own;
    second_own.resource = &k->resource;
    second = controller;
    second.kind = k;
    second.resource = &k->resource;
    second.own = &second_own;
    second.name = name;
    kinds[1] = k;
    controllers[1] = &second;
}

/* --- the mistakes */

static void assert_says(unsigned line, const char *want)
{
    struct stw_error err = {0};
    int rc = stw_operator_check_tables(&op, &err);
    if ((rc == 0) != !want || (want && !strstr(err.text, want)))
        fail_msg("line %u: want \"%s\", got %d \"%s\"", line, want ? want : "", rc, err.text);
    set_tables();
}
#define WRONG(change, want) ((change), assert_says(__LINE__, (want)))

static void test_valid_tables_are_accepted(void **state)
{
    (void)state;
    assert_says(__LINE__, NULL);
    WRONG(add_second(&second_kind, "bulb"), NULL);
    WRONG(fields[TAGS].def = "{\"a\":\"b\"}", NULL);
    WRONG(rules[0].type = STW_CEL_TRANSITION, NULL);
}

static void test_mistakes_in_fields_are_named(void **state)
{
    (void)state;
    WRONG(fields[WATTS].def = "60W", "Lamp: spec.watts: the default 60W is not JSON");
    WRONG(fields[WATTS].def = "6,7", "Lamp: spec.watts: the default 6,7 is not JSON");
    WRONG(fields[COLOR].def = "Red", "spec.color: the default Red is not JSON; a string needs its");
    WRONG(fields[WATTS].def = "\"60\"", "spec.watts: the default \"60\" must be an integer");
    WRONG(fields[WATTS].def = "101", "the default 101 is out of the range of 1 to 100");
    WRONG(fields[COLOR].def = "\"Blue\"", "the default \"Blue\": is not one of .values");
    WRONG(fields[COLOR].def = "\"\"", "an empty string cannot be a default");
    WRONG(fields[COLOR].def = "\"a\\n\"", "must be short and have no \\");
    WRONG(shade_fields[0].def = "null", "spec.shade.cloth: the default null must be a string");
    WRONG(old_fields[0].def = "x", "Lamp, version v1alpha1: spec.power: the default x is not JSON");
    WRONG(fields[COLOR].offset = 0, "spec.color: another field has its place in the struct");
    WRONG(fields[TAGS].offset = sizeof(struct lamp) - 8, "spec.tags: its place is outside of the");
    WRONG(fields[SHADE].fields = NULL, "spec.shade: an object needs .fields");
    WRONG(fields[TAGS].item = NULL, "spec.tags: a list or map needs .item");
    WRONG(fields[TAGS].name = "color", "spec.color: the field is there twice");
    WRONG(fields[WATTS].min = 101, "spec.watts: its range ends before it begins");
}

static void test_mistakes_in_a_kind_are_named(void **state)
{
    (void)state;
    WRONG(kind.spec_size = 0, "Lamp: .spec_size is missing");
    WRONG(kind.spec_size = 8,
          "spec.color: its place is outside of the struct of .spec_size 8 bytes");
    WRONG(kind.spec = NULL, "Lamp: .spec is missing");
    WRONG(kind.kind = NULL, "a kind has no .kind");
    WRONG(kind.group = "Example", "Lamp: .group: must be a domain");
    WRONG(kind.version = "1", "Lamp: .version: must be like v1");
    WRONG(kind.plural = NULL, "Lamp: .plural: must hold only a-z");
    WRONG(kind.singular = "Lamp", "Lamp: .singular: must hold only a-z");
    WRONG(kind.help = NULL, "Lamp: .help: is missing");
    WRONG(kind.operations = 0, "Lamp: .operations: is missing");
    WRONG(kind.finalizer = "lamp", "Lamp: .finalizer: \"lamp\" must be like example.org/cleanup");
    WRONG(kind.finalizer = "example.org/", "must be like example.org/cleanup");
    WRONG(columns[0].type = "int", "Lamp: column W: its type must be");
    WRONG(columns[0].json_path = ".spec.watt", "column W: the path .spec.watt leads to no field");
    WRONG(columns[0].json_path = "spec.watts", "column W: the path must be like .spec.replicas");
    WRONG(scale.status_replicas = ".status.count",
          "scale: the path .status.count leads to no field");
    WRONG(
        moves[0].own = "spec.watt",
        "Lamp, version v1alpha1, move spec.watt to spec.power: the kind's own version has no such");
    WRONG(versions[0].spec = NULL, "Lamp: version v1alpha1 has no fields");
}

static void test_mistakes_in_rules_are_named(void **state)
{
    (void)state;
    WRONG(rules[0].at = "watt", "Lamp: spec.watt: a rule in CEL is at this field, which does not");
    WRONG(within[0].at = "wood", "Lamp: spec.shade.wood: a rule in CEL is at this field");
    WRONG(rules[0].message = NULL, "spec.watts: a rule in CEL needs .rule and .message");
    WRONG(rules[0].rule = "has(self.shde)", "uses self.shde, and there is no field shde");
    WRONG(rules[0].rule = "self.shade.cloths == ''",
          "uses self.shade.cloths, and there is no field");
    WRONG(within[0].rule = "self.shade == 1", "spec.shade.cloth: a rule in CEL uses self.shade");
    WRONG(rules[0].rule = "(self.watts < 60", "spec.watts: a rule in CEL lacks a )");
    WRONG(rules[0].rule = "(self.watts]) < 60", "a rule in CEL has a ] too many");
    WRONG(rules[0].expression = "'at ' + string(self.watts", "a rule in CEL lacks a )");
    WRONG(rules[0].rule = "self.color != 'it", "a text in a rule in CEL has no end");
    WRONG(cel[0].rule = "self.length < 3", "spec.color: a rule in CEL uses self.length");
}

static void test_mistakes_in_a_controller_are_named(void **state)
{
    static const struct stw_resource cluster_role = {"rbac.authorization.k8s.io", "v1",
                                                     "ClusterRole", "clusterroles", false};
    (void)state;
    WRONG(controller.name = NULL, "the name of a controller must have 1 to 40 characters");
    WRONG(controller.resource = &job, "controller lamp: .resource must be that of its kind");
    WRONG(controller.own = NULL, "controller lamp: .own is missing: STW_OWN_WATCH(kind)");
    WRONG(controller.own = &jobs, "controller lamp: .own watches jobs, not the kind");
    WRONG(own.project = NULL, "controller lamp: .own: the watch of lamps has no .project");
    WRONG(jobs.changed = NULL, "controller lamp: .watches: the watch of jobs has no .changed");
    WRONG(jobs.resource = NULL, "controller lamp: .watches: the watch has no .resource");
    WRONG(controller.run_size = 8, "controller lamp: STW_RUN_STATE is missing, or its struct has");
    WRONG(controller.spec_offset = 0, "STW_RUN_STATE: the member for the spec has not the");
    WRONG(controller.run_size -= 8, "STW_RUN_STATE: the member for the spec has not the");
    WRONG(controller.children = NULL, "one of .reconcile, .children and .ensure is needed");
    WRONG(controller.deleting = NULL,
          "the kind has a finalizer, and without .deleting nothing removes it");
    WRONG(controller.aspect_count = 1, ".aspect_count without .find");
    WRONG(rows[0].make = NULL, ".children: the row of configmaps has no .make");
    WRONG(rows[0].condition = NULL, ".children: the row of configmaps has no .condition");
    WRONG(rows[0].condition = rows[1].condition, "two rows have the condition DeploymentAvailable");
    WRONG(rows[1].watch = rows[0].watch, ".replicas is for Deployments, not for configmaps");
    WRONG((rows[1].watch = rows[0].watch, rows[1].replicas = NULL),
          "two rows have the watch of configmaps");
    WRONG((rows[0].watch = &jobs, jobs.resource = &cluster_role), "clusterroles are cluster-wide");
}

static void test_mistakes_between_tables_are_named(void **state)
{
    (void)state;
    WRONG(op.name = "Lamps", "the name of an operator must be a DNS label");
    WRONG(kinds[0] = NULL, "the operator has no .kinds");
    WRONG(controllers[0] = NULL, "Lamp has no controller in .controllers");
    WRONG(controllers[1] = &controller, ".controllers has more entries than .kinds");
    WRONG(controllers[0] = &second, "number 1 must be the controller of Lamp, as in .kinds");
    WRONG((second_kind.plural = "lamps", add_second(&second_kind, "bulb")),
          "are both lamps.example");
    WRONG(add_second(&second_kind, "lamp"), "two controllers have the name lamp");
    WRONG(other_jobs.metrics_name = NULL, "two watches of jobs: share one struct stw_watch");
}

static int set_up(void **state)
{
    (void)state;
    set_tables();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_tables_are_accepted),
        cmocka_unit_test(test_mistakes_in_fields_are_named),
        cmocka_unit_test(test_mistakes_in_a_kind_are_named),
        cmocka_unit_test(test_mistakes_in_rules_are_named),
        cmocka_unit_test(test_mistakes_in_a_controller_are_named),
        cmocka_unit_test(test_mistakes_between_tables_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
