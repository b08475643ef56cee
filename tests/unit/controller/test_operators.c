/* SPDX-License-Identifier: Apache-2.0
 *
 * Two operators in one process: two managers, each with its own names, domain and kind, on the
 * scripted server.  Both kinds are called Thing, so that only group and operator tell them apart. */
#include "base/util.h"
#include "controller/finalizer.h"
#include "controller/manager/manager_priv.h"
#include "controller/manifest.h"
#include "controller/outcome.h"
#include "controller/reconcile.h"
#include "fake.h"
#include "schema/rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* --- a kind with one ConfigMap, twice */

struct thing {
    const char *text;
};

struct thing_run {
    STW_SUBJECT;
    struct thing spec;
};

static const struct stw_field fields[] = {
    {.name = "text", STW_FIELD(STW_T_STRING, struct thing, text), .help = "Text."},
    {0},
};
static const struct stw_field status[] = {STW_ROW_REPAIRS, STW_ROW_LAST_REPAIR, {0}};
static const struct stw_column columns[] = {STW_COLUMN_READY, {0}};
static const struct stw_naming naming = {.app = "thing", .component = "page", .image = ""};

static json_t *make_configmap(const void *subject)
{
    const struct thing_run *r = subject;
    return json_pack("{s:s,s:s,s:o,s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap", "metadata",
                     stw_manifest_metadata(r->run, &r->owner, &naming, r->owner.name), "data",
                     "text", r->spec.text);
}

static const struct stw_child_row children[] = {
    {"ConfigMapSynced", &stw_watch_configmaps, make_configmap},
    {0},
};

#define KIND_OF(group_)                                                                            \
    {                                                                                              \
        .group = (group_), .version = "v1", .kind = "Thing", .plural = "things",                   \
        .namespaced = true, .singular = "thing", .help = "A text.", .spec = fields,                \
        .spec_size = sizeof(struct thing), .status = status, .columns = columns,                   \
        .operations = STW_CREATE | STW_UPDATE                                                      \
    }
static const struct stw_kind alpha_kind = KIND_OF("things.alpha.example");
static const struct stw_kind omega_kind = KIND_OF("things.omega.example");

#define CONTROLLER_OF(kind_)                                                                       \
    {                                                                                              \
        STW_CONTROLLER_OF("thing", kind_), STW_OWN_WATCH(kind_),                                   \
            STW_RUN_STATE(struct thing_run, spec), .children = children                            \
    }
static const struct stw_controller alpha_controller = CONTROLLER_OF(alpha_kind);
static const struct stw_controller omega_controller = CONTROLLER_OF(omega_kind);

static const struct stw_operator alpha = {
    .name = "alpha",
    .domain = "alpha.example",
    .metric_prefix = "alpha",
    .version = "1.0.0",
    .kinds = (const struct stw_kind *const[]){&alpha_kind, NULL},
    .controllers = (const struct stw_controller *const[]){&alpha_controller, NULL},
};
static const struct stw_operator omega = {
    .name = "omega",
    .domain = "omega.example",
    .metric_prefix = "omega",
    .version = "2.0.0",
    .kinds = (const struct stw_kind *const[]){&omega_kind, NULL},
    .controllers = (const struct stw_controller *const[]){&omega_controller, NULL},
};

/* --- the server */

/* Of each kind: "free" has the annotation of the other operator and must not be paused by it;
 * "held" has that of its own. */
#define THING(name, domain)                                                                        \
    "{'metadata':{'name':'" name "','namespace':'shop','uid':'u-" name "',"                        \
    "'generation':1,'resourceVersion':'5','annotations':{'" domain "/paused':'true'}},"            \
    "'spec':{'text':'t'}}"
#define THINGS(own, other)                                                                         \
    "{'match':'GET /apis/things." own "/v1/things.*watch=','times':0,'then':'stall'},"             \
    "{'match':'GET /apis/things." own "/v1/things','times':0,'body':{'metadata':{"                 \
    "'resourceVersion':'5'},'items':[" THING("free", other) "," THING(                             \
        "held", own) "]}},"                                                                        \
                     "{'match':'PATCH /apis/things." own                                           \
                     "/v1/.*/status','times':0,'body':" THING("free", other) "},"

static const char steps[] = "[" THINGS("alpha.example", "omega.example") THINGS(
    "omega.example",
    "alpha.example") "{'match':'GET /api/v1/configmaps.*watch=','times':0,'then':'stall'},"
                     "{'match':'GET "
                     "/api/v1/configmaps','times':0,'body':{'metadata':{'resourceVersion':'5'},"
                     "'items':[]}},"
                     "{'match':'PATCH "
                     "/api/v1/namespaces/shop/configmaps/','times':0,'body':{'metadata':{"
                     "'name':'free','namespace':'shop','uid':'c','resourceVersion':'9'}}},"
                     "{'match':'POST "
                     "/apis/coordination','times':0,'status':201,'body':{'metadata':{"
                     "'resourceVersion':'9'}}},"
                     "{'match':'PUT "
                     "/apis/coordination','times':0,'body':{'metadata':{'resourceVersion':'9'}}},"
                     "{'match':'POST /apis/events','times':0,'status':201,'body':{}}]";

/* --- a running operator */

struct side {
    const struct stw_operator *op;
    const char *name, *other;
    struct stw_metrics *metrics;
    struct stw_client *client;
    struct stw_manager *manager;
};

static void begin(struct side *s, const struct stw_operator *op, const struct stw_operator *other)
{
    struct stw_error err = {0};
    *s = (struct side){.op = op,
                       .name = op->name,
                       .other = other->name,
                       .metrics = stw_metrics_create(op->metric_prefix)};
    s->client = fake_client_of(&fake, op, NULL, s->metrics);
    const struct stw_manager_config config = {.op = op,
                                              .client = s->client,
                                              .clock = &stw_clock_system,
                                              .metrics = s->metrics,
                                              .leader_elect = true,
                                              .lease_ns = "system",
                                              .identity = "me"};
    if (stw_manager_create(&config, &s->manager, &err) != 0 ||
        stw_manager_start(s->manager, &err) != 0)
        fail_msg("%s: %s", op->name, err.text);
}

static void end(struct side *s)
{
    stw_manager_destroy(s->manager);
    stw_client_destroy(s->client);
    stw_metrics_destroy(s->metrics);
}

/* --- what it sent */

static const char *text_of(const json_t *request, const char *member)
{
    const char *text = json_string_value(json_object_get(request, member));
    return text ? text : "";
}

static bool is_from(const json_t *request, const struct side *s)
{
    char agent[STW_USER_AGENT_LEN];
    stw_operator_agent(s->op, agent);
    /* Alone, or with the controller: "other/1 (thing)". */
    const char *sent = text_of(request, "agent");
    size_t len = strlen(agent);
    return strncmp(sent, agent, len) == 0 && (!sent[len] || stw_streq(sent + len, " (thing)"));
}

/* How many requests of this operator contain `part`, where '@' is its name. */
static unsigned count_sent(const struct side *s, const char *part)
{
    json_auto_t *log = fake_log(&fake);
    stw_autobuf struct stw_buf wanted = STW_BUF_INIT(1000);
    const json_t *one;
    unsigned n = 0;
    size_t i;
    for (const char *p = part; *p; p++)
        stw_buf_adds(&wanted, *p == '@' ? s->name : (char[]){*p == '\'' ? '"' : *p, '\0'});
    json_array_foreach (json_object_get(log, "requests"), i, one)
        n += is_from(one, s) && (strstr(text_of(one, "request"), stw_buf_str(&wanted)) ||
                                 strstr(text_of(one, "body"), stw_buf_str(&wanted)));
    return n;
}

static void await_sent(const struct side *s, const char *part)
{
    wait_until(count_sent(s, part) > 0);
}

static void assert_names(const struct side *s)
{
    json_auto_t *log = fake_log(&fake);
    const json_t *one;
    size_t i;
    json_array_foreach (json_object_get(log, "requests"), i, one) {
        if (!is_from(one, s))
            continue;
        if (strstr(text_of(one, "request"), s->other) || strstr(text_of(one, "body"), s->other))
            fail_msg("%s sent the name of %s: %s %s", s->name, s->other, text_of(one, "request"),
                     text_of(one, "body"));
    }
}

static void assert_metrics(const struct side *s)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1 << 20);
    char own[64];
    (void)snprintf(own, sizeof(own), "\n%s_objects{kind=\"Thing\"", s->name);
    stw_metrics_render(s->metrics, &text);
    assert_non_null(strstr(stw_buf_str(&text), own));
    assert_non_null(strstr(stw_buf_str(&text), "\ncontroller_runtime_reconcile_total{"));
    assert_null(strstr(stw_buf_str(&text), s->other));
    assert_null(strstr(stw_buf_str(&text), "steward"));
}

static void test_operators_use_their_own_names(void **state)
{
    struct side sides[2];
    (void)state;
    fake_steps(&fake, steps);
    begin(&sides[0], &alpha, &omega);
    begin(&sides[1], &omega, &alpha);
    for (size_t i = 0; i < STW_COUNT(sides); i++) {
        const struct side *s = &sides[i];
        await_sent(s, "GET /apis/things.@.example/v1/things?");
        await_sent(s, "labelSelector=app.kubernetes.io%2Fmanaged-by%3D@&");
        await_sent(s, "'name':'@.@.example'"); /* the Lease */
        await_sent(s, "PATCH /api/v1/namespaces/shop/configmaps/free?fieldManager=@-thing&");
        await_sent(s, "'app.kubernetes.io/managed-by':'@'");
        await_sent(s, "'reportingController':'@-thing'");
        await_sent(s, "PATCH /apis/things.@.example/v1/namespaces/shop/things/free/status"
                      "?fieldManager=@-thing");
        await_sent(s, "paused by the annotation @.example/paused");
    }
    for (size_t i = 0; i < STW_COUNT(sides); i++) {
        assert_int_equal(count_sent(&sides[i], "/configmaps/held"), 0);
        assert_names(&sides[i]);
        assert_metrics(&sides[i]);
    }
    for (size_t i = 0; i < STW_COUNT(sides); i++)
        end(&sides[i]);
    assert_int_equal(fake_count(&fake, "steward"), 0);
}

/* --- a kind with a finalizer and STW_OWN_WATCH */

#define KEEPER "things.alpha.example/keeper"
#define OTHER "other.example/keeper"

/* What was made elsewhere is gone: there is none. */
static void let_go(struct stw_subject *s, struct stw_result *result)
{
    struct stw_error err = {0};
    if (stw_finalizer_remove(s->run, &s->object, KEEPER, &err) < 0)
        stw_run_fail(s->run, &err, result);
}

static struct stw_kind kept_kind = KIND_OF("things.alpha.example");
static const struct stw_controller kept_controller = {
    STW_CONTROLLER_OF("thing", kept_kind), STW_OWN_WATCH(kept_kind),
    STW_RUN_STATE(struct thing_run, spec), .children = children, .deleting = let_go};

static const char kept_steps[] =
    "[{'match':'GET /apis/things.alpha.example/v1/things.*watch=','times':0,'then':'stall'},"
    "{'match':'GET /apis/things.alpha.example/v1/things','times':0,'body':{'metadata':{"
    "'resourceVersion':'5'},'items':[{'metadata':{'name':'leaves','namespace':'shop','uid':'u',"
    "'generation':2,'resourceVersion':'5','deletionTimestamp':'2026-01-01T00:00:00Z',"
    "'finalizers':['" OTHER "','" KEEPER "']},'spec':{'text':'t'}}]}},"
    "{'match':'PATCH /apis/things.alpha.example/v1/namespaces/shop/things/leaves','times':0,"
    "'body':{'metadata':{'name':'leaves','namespace':'shop','uid':'u','resourceVersion':'9',"
    "'deletionTimestamp':'2026-01-01T00:00:00Z','finalizers':['" OTHER "']}}},"
    "{'match':'GET /api/v1/configmaps.*watch=','times':0,'then':'stall'},"
    "{'match':'GET /api/v1/configmaps','times':0,'body':{'metadata':{'resourceVersion':'5'},"
    "'items':[]}},"
    "{'match':'POST /apis/coordination','times':0,'status':201,'body':{'metadata':{"
    "'resourceVersion':'9'}}},"
    "{'match':'PUT /apis/coordination','times':0,'body':{'metadata':{'resourceVersion':'9'}}}]";

/* Its list of finalizers is in the cache, so that ours goes and the others stay. */
static void test_own_finalizer_is_removed_at_deletion(void **state)
{
    const struct stw_controller *const controllers[] = {&kept_controller, NULL};
    const struct stw_kind *const kinds[] = {&kept_kind, NULL};
    struct stw_operator op = alpha;
    struct side side;
    (void)state;
    kept_kind.finalizer = KEEPER;
    op.kinds = kinds;
    op.controllers = controllers;
    fake_steps(&fake, kept_steps);
    begin(&side, &op, &omega);
    await_sent(&side, "PATCH /apis/things.@.example/v1/namespaces/shop/things/leaves?");
    assert_int_equal(count_sent(&side, "'finalizers':['" OTHER "']"), 1);
    end(&side);
}

static void note_own_rights(void *ctx, const struct stw_rule *rule)
{
    if (rule->resource == &kept_kind.resource && !rule->subresource)
        stw_buf_addf(ctx, "%s;", rule->verbs);
}

static void test_finalizer_right_follows_from_the_kind(void **state)
{
    static const struct {
        const char *finalizer, *own, *want;
    } rows[] = {
        {NULL, NULL, "get,list,watch;"},
        {KEEPER, NULL, "get,list,watch,patch;"},
        {KEEPER, "get,list,watch,delete", "get,list,watch,delete;patch;"},
        {KEEPER, "get,list,watch,patch", "get,list,watch,patch;"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
        const struct stw_rule rules[] = {{.resource = &kept_kind.resource, .verbs = rows[i].own},
                                         {0}};
        struct stw_controller c = kept_controller;
        kept_kind.finalizer = rows[i].finalizer;
        c.rules = rows[i].own ? rules : NULL;
        stw_controller_rules(&c, note_own_rights, &out);
        assert_string_equal(stw_buf_str(&out), rows[i].want);
    }
}

static bool is_wanted(const void *subject)
{
    return subject != NULL;
}

static void note_rights_on_jobs(void *ctx, const struct stw_rule *rule)
{
    if (stw_streq(rule->resource->plural, "jobs"))
        stw_buf_addf(ctx, "%s;", rule->verbs);
}

/* A child that the library does not know is a row like any other. */
static void test_rights_on_children_follow_from_the_rows(void **state)
{
    static const struct stw_resource job = {"batch", "v1", "Job", "jobs", true};
    static const struct stw_watch jobs = STW_CHILD_WATCH(&job);
    static const struct stw_rule granted[] = {{.resource = &job, .verbs = "list,delete"}, {0}};
    static const struct {
        bool (*wanted)(const void *subject);
        const struct stw_rule *rules;
        const char *want;
    } rows[] = {
        {NULL, NULL, "get,list,watch,create,patch;"},
        {is_wanted, NULL, "get,list,watch,create,patch,delete;"},
        {is_wanted, granted, "get,list,watch,create,patch;list,delete;"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        const struct stw_child_row row[] = {
            {"JobSynced", &jobs, make_configmap, .wanted = rows[i].wanted}, {0}};
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1000);
        struct stw_controller c = alpha_controller;
        c.children = row;
        c.rules = rows[i].rules;
        stw_controller_rules(&c, note_rights_on_jobs, &out);
        assert_string_equal(stw_buf_str(&out), rows[i].want);
    }
}

static void note_default(void *ctx, const char *pointer, const char *json)
{
    stw_buf_addf(ctx, "%s %s\n", pointer, json);
}

static void test_webhook_adds_the_finalizer_to_new_objects(void **state)
{
    static const struct {
        enum stw_operation operation;
        bool later;
        const char *metadata, *want;
    } rows[] = {
        {STW_CREATE, false, "{}", "/metadata/finalizers [\"" KEEPER "\"]\n"},
        {STW_CREATE, false, "{\"finalizers\":null}", "/metadata/finalizers [\"" KEEPER "\"]\n"},
        {STW_CREATE, false, "{\"finalizers\":[]}", "/metadata/finalizers/- \"" KEEPER "\"\n"},
        {STW_CREATE, false, "{\"finalizers\":[\"" OTHER "\"]}",
         "/metadata/finalizers/- \"" KEEPER "\"\n"},
        {STW_CREATE, false, "{\"finalizers\":[\"" OTHER "\",\"" KEEPER "\"]}", ""},
        {STW_CREATE, false, "{\"finalizers\":{}}", ""},
        {STW_CREATE, false, "[]", ""},
        {STW_CREATE, true, "{}", ""},
        {STW_UPDATE, false, "{}", ""},
        {STW_DELETE, false, "{}", ""},
    };
    (void)state;
    kept_kind.finalizer = KEEPER;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1000), text = STW_BUF_INIT(1000);
        stw_autojson struct stw_json_doc doc = {0};
        kept_kind.finalizer_later = rows[i].later;
        stw_buf_addf(&text, "{\"metadata\":%s,\"spec\":{}}", rows[i].metadata);
        assert_int_equal(stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL), 0);
        const struct stw_admission a = {
            .kind = &kept_kind, .operation = rows[i].operation, .object = stw_json_root(&doc)};
        stw_kind_default(&a, &(struct stw_defaults){.add = note_default, .ctx = &out});
        if (!stw_streq(stw_buf_str(&out), rows[i].want))
            fail_msg("row %zu: %s", i, stw_buf_str(&out));
    }
}

/* --- limits and names that cannot be used */

static void test_limits_and_names_are_checked(void **state)
{
    static const struct {
        const char *name;
        struct stw_limits limits;
        const char *want; /* in the error; NULL: none */
    } rows[] = {
        {"alpha", {.controllers = 1, .caches = 2}, NULL},
        {"alpha", {.controllers = 1, .caches = 1}, "more than 1 watches"},
        {"alpha,beta", {0}, "must be a DNS label"}, /* would change the label selectors */
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_operator op = alpha;
        struct stw_manager *m = NULL;
        struct stw_error err = {0};
        op.name = rows[i].name;
        op.limits = rows[i].limits;
        struct stw_client *client = fake_client_of(&fake, &op, NULL, NULL);
        const struct stw_manager_config config = {
            .op = &op, .client = client, .clock = &stw_clock_system};
        int rc = stw_manager_create(&config, &m, &err);
        if ((rc == 0) != !rows[i].want || (rows[i].want && !strstr(err.text, rows[i].want)))
            fail_msg("row %zu: %d %s", i, rc, err.text);
        stw_manager_destroy(m);
        stw_client_destroy(client);
    }
}

static void test_response_limit_of_the_operator_applies(void **state)
{
    struct stw_operator op = alpha;
    struct stw_error err = {0};
    (void)state;
    op.limits.response_bytes = 100;
    struct stw_client *small = fake_client_of(&fake, &op, NULL, NULL);
    struct stw_client *large = fake_client_of(&fake, &alpha, NULL, NULL);
    const struct stw_request req = {.method = "GET", .path = "/large"};
    fake_steps(&fake, "[{'match':'/large','times':0,'stream':[{'repeat':'x','bytes':1000}]}]");
    assert_int_equal(stw_client_do(small, &req, NULL, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    assert_int_equal(stw_client_do(large, &req, NULL, &err), 0);
    stw_client_destroy(small);
    stw_client_destroy(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_operators_use_their_own_names, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_own_finalizer_is_removed_at_deletion, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test(test_finalizer_right_follows_from_the_kind),
        cmocka_unit_test(test_rights_on_children_follow_from_the_rows),
        cmocka_unit_test(test_webhook_adds_the_finalizer_to_new_objects),
        cmocka_unit_test_setup_teardown(test_limits_and_names_are_checked, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_response_limit_of_the_operator_applies, fake_set_up,
                                        fake_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
