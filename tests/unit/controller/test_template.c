/* SPDX-License-Identifier: Apache-2.0
 *
 * Pod templates of a new version of the program: when they are applied, and which requests that
 * takes. */
#include "controller/template_status.h"

#include "base/hex.h"
#include "child_fixture.h"
#include "kinds/myweb/spec.h"
#include "kube/tree.h"

#define PATH "/apis/apps/v1/namespaces/shop/deployments/web"
#define FIELDS(ours)                                                                               \
    "'managedFields':[{'manager':'steward-myweb','operation':'Apply','fieldsV1':{'f:spec':{" ours  \
    "}}}]"
#define ALL "'f:replicas':{},'f:template':{'f:spec':{'f:dnsPolicy':{}}}"
#define NO_POLICY "'f:replicas':{}"
#define NO_NUMBER "'f:template':{'f:spec':{'f:dnsPolicy':{}}}"
/* A Deployment of ours with these values, of which we own `ours`. */
#define LIVE(rv, replicas, policy, ours)                                                           \
    "{'metadata':{'namespace':'shop','name':'web','uid':'d-1','resourceVersion':'" rv              \
    "','ownerReferences':[{'apiVersion':'operator.k8s-summit.org/"                                 \
    "v1','kind':'MyWeb','name':'web','uid':'u-1','controller':true}]," FIELDS(                     \
        ours) "},'spec':{'replicas':" replicas ",'template':{'spec':{'dnsPolicy':'" policy         \
              "','restartPolicy':'Always'}}}}"
#define EMPTY                                                                                      \
    "{'metadata':{'namespace':'shop','name':'web','uid':'d-1','resourceVersion':'5',"              \
    "'ownerReferences':[{'apiVersion':'operator.k8s-summit.org/"                                   \
    "v1','kind':'MyWeb','name':'web','uid':'u-1','controller':true}]," FIELDS(                     \
        ALL) "},'spec':{'replicas':1,'template':{'spec':{'restartPolicy':'Always'}}}}"
#define GET(live) "{'match':'GET " PATH "','body':" live "}"
#define APPLY(live) "{'match':'PATCH " PATH "','body':" live "}"

static json_t *deployment(const char *policy)
{
    return json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:i,s:{s:{s:s}}}}", "apiVersion", "apps/v1", "kind",
                     "Deployment", "metadata", "namespace", "shop", "name", "web", "spec",
                     "replicas", 1, "template", "spec", "dnsPolicy", policy);
}

static struct stw_hash template_of(const char *policy)
{
    json_auto_t *tree = deployment(policy);
    stw_autofree char *text = json_dumps(tree, JSON_COMPACT);
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_hash template;
    assert_int_equal(stw_json_scan(&doc, text, strlen(text), NULL), 0);
    (void)stw_owned_desired_parts(stw_json_root(&doc), &template);
    return template;
}

static void begin(struct fixture *f, const char *cached, const char *steps)
{
    fixture_begin(f, &stw_watch_deployments, deployment("New"), cached, steps);
}

#define REPORTED .waiting = "New", .reported = true

/* What the last template was made from, compared with the present object. */
enum inputs { UNKNOWN, SAME, OTHERS };

/* This program wants the policy New and one replica; the status remembers that `built` was applied
 * and what the server made of it. */
static const struct {
    const char *what, *cached, *steps;
    const char *built, *stored, *waiting; /* NULL: unknown, as built, none */
    const char *consent;                  /* "New": the digits of its digest */
    bool fresh;                           /* another generation, or not applied by the status */
    bool reported;
    enum inputs inputs;
    enum stw_child_state state;
    bool outdated, early;
    unsigned reads;
    const char *written; /* the policy, or NULL: no write */
    const char *fields;  /* of the drift, or what waits */
} cases[] = {
    {"nothing was remembered", LIVE("5", "1", "Old", ALL),
     "[" GET(LIVE("5", "1", "Old", ALL)) "," APPLY(LIVE("6", "1", "New", ALL)) "]",
     .state = STW_CHILD_REPAIRED, .reads = 1, .written = "New"},
    {"found", LIVE("5", "1", "Old", ALL), "[" GET(LIVE("5", "1", "Old", ALL)) "]", .built = "Old",
     .state = STW_CHILD_SYNCED, .outdated = true, .reads = 1,
     .fields = "spec.template.spec.dnsPolicy"},
    {"found and reported", LIVE("5", "1", "Old", ALL), "[]", .built = "Old", REPORTED,
     .state = STW_CHILD_SYNCED, .outdated = true},
    {"a third version", LIVE("5", "1", "Old", ALL), "[" GET(LIVE("5", "1", "Old", ALL)) "]",
     .built = "Old", .waiting = "Other", .reported = true, .state = STW_CHILD_SYNCED,
     .outdated = true, .reads = 1, .fields = "spec.template.spec.dnsPolicy"},
    {"the server stored another value", LIVE("5", "1", "old", ALL), "[]", .built = "Old",
     .stored = "old", REPORTED, .state = STW_CHILD_SYNCED, .outdated = true},
    {"the status was not written after it was applied", LIVE("5", "1", "New", ALL), "[]",
     .built = "Old", REPORTED, .state = STW_CHILD_SYNCED},
    {"consent", LIVE("5", "1", "Old", ALL), "[" APPLY(LIVE("6", "1", "New", ALL)) "]",
     .built = "Old", REPORTED, .consent = "New", .state = STW_CHILD_UPDATED, .written = "New"},
    {"consent to all", LIVE("5", "1", "Old", ALL), "[" APPLY(LIVE("6", "1", "New", ALL)) "]",
     .built = "Old", .consent = "always", .state = STW_CHILD_UPDATED, .written = "New"},
    {"consent to another", LIVE("5", "1", "Old", ALL), "[]", .built = "Old", REPORTED,
     .consent = "Other", .state = STW_CHILD_SYNCED, .outdated = true},
    {"another generation with other pods", LIVE("5", "1", "Old", ALL),
     "[" APPLY(LIVE("6", "1", "New", ALL)) "]", .built = "Old", .waiting = "Other",
     .reported = true, .fresh = true, .state = STW_CHILD_UPDATED, .written = "New"},
    {"another generation with the same pods", LIVE("5", "3", "Old", ALL),
     "[" GET(LIVE("5", "3", "Old", ALL)) "," APPLY(LIVE("6", "1", "Old", ALL)) "]", .built = "Old",
     REPORTED, .fresh = true, .state = STW_CHILD_UPDATED, .outdated = true, .reads = 1,
     .written = "Old"},
    {"another generation, made from the same, that no version has seen", LIVE("5", "3", "Old", ALL),
     "[" GET(LIVE("5", "3", "Old", ALL)) "," APPLY(LIVE("6", "1", "Old", ALL)) "]", .built = "Old",
     .fresh = true, .inputs = SAME, .state = STW_CHILD_UPDATED, .outdated = true, .reads = 1,
     .written = "Old", .fields = "spec.template.spec.dnsPolicy"},
    {"another generation, made from others, that no version has seen", LIVE("5", "3", "Old", ALL),
     "[" APPLY(LIVE("6", "1", "New", ALL)) "]", .built = "Old", .fresh = true, .inputs = OTHERS,
     .state = STW_CHILD_UPDATED, .written = "New"},
    {"another generation that no version has seen, after one that remembers no inputs",
     LIVE("5", "3", "Old", ALL), "[" APPLY(LIVE("6", "1", "New", ALL)) "]", .built = "Old",
     .fresh = true, .state = STW_CHILD_UPDATED, .written = "New"},
    {"consent, made from the same", LIVE("5", "1", "Old", ALL),
     "[" APPLY(LIVE("6", "1", "New", ALL)) "]", .built = "Old", .consent = "New", .inputs = SAME,
     .state = STW_CHILD_UPDATED, .written = "New"},
    {"it does not exist", "", "[" APPLY(LIVE("6", "1", "New", ALL)) "]", .built = "Old", REPORTED,
     .fresh = true, .state = STW_CHILD_CREATED, .written = "New"},
    {"the server dropped an empty field", EMPTY, "[" GET(EMPTY) "]", .built = "",
     .waiting = "Other", .reported = true, .state = STW_CHILD_SYNCED, .outdated = true, .reads = 1},
    {"a client changed the rest", LIVE("5", "3", "Old", NO_NUMBER),
     "[" GET(LIVE("5", "3", "Old", NO_NUMBER)) "," APPLY(LIVE("6", "1", "Old", ALL)) "]",
     .built = "Old", REPORTED, .state = STW_CHILD_REPAIRED, .outdated = true, .reads = 1,
     .written = "Old", .fields = "spec.replicas"},
    {"a client changed the template", LIVE("5", "1", "Bad", NO_POLICY),
     "[" GET(LIVE("5", "1", "Bad", NO_POLICY)) "," APPLY(LIVE("6", "1", "New", ALL)) "]",
     .built = "Old", REPORTED, .state = STW_CHILD_REPAIRED, .early = true, .reads = 1,
     .written = "New", .fields = "spec.template.spec.dnsPolicy"},
    {"a client changed it with our field manager", LIVE("5", "1", "Bad", ALL),
     "[" GET(LIVE("5", "1", "Bad", ALL)) "," APPLY(LIVE("6", "1", "New", ALL)) "]", .built = "Old",
     REPORTED, .state = STW_CHILD_REPAIRED, .early = true, .reads = 1, .written = "New",
     .fields = "spec.template.spec.dnsPolicy"},
    {"a client took all fields from us", LIVE("5", "1", "Old", ""),
     "[" GET(LIVE("5", "1", "Old", "")) "," APPLY(LIVE("6", "1", "New", ALL)) "]", .built = "Old",
     REPORTED, .state = STW_CHILD_REPAIRED, .early = true, .reads = 1, .written = "New"},
};

static void set_known(struct fixture *f, size_t i)
{
    struct stw_template *t = &f->child.template;
    char digits[STW_HASH_LEN];
    f->child.applied_before = !cases[i].fresh;
    f->child.template.reported = cases[i].reported;
    if (cases[i].built)
        t->stored = t->built = template_of(cases[i].built);
    if (cases[i].stored)
        t->stored = template_of(cases[i].stored);
    if (cases[i].waiting)
        t->waiting = template_of(cases[i].waiting);
    t->inputs_now = stw_hash_bytes("now", 3);
    if (cases[i].inputs != UNKNOWN)
        t->inputs = stw_hash_bytes("now", cases[i].inputs == SAME ? 3 : 2);
    if (!cases[i].consent)
        return;
    stw_hash_format(template_of(cases[i].consent), digits);
    digits[STW_TEMPLATE_ID_LEN] = '\0';
    stw_format(f->child.template.consent, sizeof(f->child.template.consent), "%.*s",
               STW_CONSENT_LEN - 1,
               stw_streq(cases[i].consent, STW_UPDATE_ALWAYS) ? STW_UPDATE_ALWAYS : digits);
}

static void test_template_waits_applies_or_restarts(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        char policy[64];
        begin(&f, cases[i].cached, cases[i].steps);
        set_known(&f, i);
        const struct stw_child *c = &f.child;
        stw_child_ensure(&f.run, &f.owner, &f.child);
        stw_format(policy, sizeof(policy), "\"dnsPolicy\":\"%s\"",
                   cases[i].written ? cases[i].written : "");
        unsigned writes = cases[i].written ? 1 : 0;
        const char *fields = c->state == STW_CHILD_REPAIRED ? c->fields : c->differs;
        if (c->state != cases[i].state || c->outdated != cases[i].outdated ||
            c->updated_early != cases[i].early || fake_count(&f.fake, "GET /") != cases[i].reads ||
            fake_count(&f.fake, "PATCH /") != writes ||
            (writes && fake_count(&f.fake, policy) != 1) ||
            (cases[i].fields && !stw_streq(fields, cases[i].fields)))
            fail_msg("%s: state %d, outdated %d, early %d, \"%s\", %u reads, %u writes: %s",
                     cases[i].what, (int)c->state, c->outdated, c->updated_early, fields,
                     fake_count(&f.fake, "GET /"), fake_count(&f.fake, "PATCH /"), c->err.text);
        /* What is remembered is what the object has now. */
        bool old = cases[i].outdated;
        if (!old || cases[i].inputs == SAME)
            assert_true(stw_hash_equal(c->template.inputs, c->template.inputs_now));
        assert_true(stw_hash_equal(c->template.built, template_of(old ? cases[i].built : "New")));
        assert_true(
            stw_hash_equal(c->template.waiting, old ? template_of("New") : (struct stw_hash){0}));
        fixture_end(&f);
    }
}

/* The order of members and what is outside of the template do not matter. */
static void test_template_inputs_ignore_member_order(void **state)
{
    static const char *const others[] = {"replicas", NULL};
    static const struct {
        const char *spec, *more;
        bool same;
    } inputs[] = {
        {"{\"image\":\"a:1\",\"replicas\":1,\"env\":[{\"name\":\"A\"}]}", "x", true},
        {"{\"env\":[{\"name\":\"A\"}],\"image\":\"a:1\"}", "x", true},
        {"{\"image\":\"a:1\",\"replicas\":2,\"env\":[{\"name\":\"A\"}]}", "y", false},
        {"{\"image\":\"a:2\",\"replicas\":1,\"env\":[{\"name\":\"A\"}]}", "x", false},
        {"{\"image\":\"a:1\",\"replicas\":1,\"env\":[{\"name\":\"B\"}]}", "x", false},
        {"{\"image\":\"a:1\",\"env\":[{\"name\":\"A\"}],\"port\":1}", "x", false},
        {"{\"image\":\"a:1\"}", "x", false},
    };
    struct stw_hash first = {0};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(inputs); i++) {
        stw_autojson struct stw_json_doc doc = {0};
        assert_int_equal(stw_json_scan(&doc, inputs[i].spec, strlen(inputs[i].spec), NULL), 0);
        struct stw_hash h = stw_template_inputs(stw_json_root(&doc), others, inputs[i].more);
        first = i == 0 ? h : first;
        if (!stw_hash_is_set(h) || stw_hash_equal(h, first) != inputs[i].same)
            fail_msg("%s", inputs[i].spec);
    }
}

/* A read or a write that fails changes nothing that is remembered. */
static void test_failed_template_write_is_not_recorded(void **state)
{
    static const char *const steps[] = {
        "[{'match':'GET " PATH "','status':403,'body':{'kind':'Status','message':'no right'}}]",
        "[" GET(LIVE("5", "3", "Old",
                     ALL)) ",{'match':'PATCH " PATH
                           "','status':403,'body':{'kind':'Status','message':'no right'}}]"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(steps); i++) {
        struct fixture f;
        begin(&f, LIVE("5", "3", "Old", ALL), steps[i]);
        f.child.applied_before = true;
        f.child.template.built = f.child.template.stored = template_of("Old");
        stw_child_ensure(&f.run, &f.owner, &f.child);
        assert_int_equal(f.child.state, STW_CHILD_FAILED);
        assert_true(stw_hash_equal(f.child.template.built, template_of("Old")));
        fixture_end(&f);
    }
}

/* --- the status */

static json_t *report(struct fixture *f, const char *status, json_t **ret_condition)
{
    struct stw_object o = {.generation = 2, .status = json_loads(status, 0, NULL)};
    struct stw_status s;
    stw_child_know_template(&f->child, &f->run, &o);
    stw_child_ensure(&f->run, &f->owner, &f->child);
    stw_status_begin(&s, &f->run, &o, NULL);
    stw_condition_set(&s.conditions, STW_READY, STW_TRUE, "Ready", "ready");
    stw_status_add_templates(&s, &f->run, &f->child, 1);
    json_t *tree = stw_status_end(&s);
    const json_t *found =
        stw_condition_find(json_object_get(tree, "conditions"), STW_TEMPLATE_OUTDATED);
    *ret_condition = json_deep_copy(found);
    json_decref(o.status);
    return tree;
}

/* What one run writes the next one reads; a settled one has the same status again. */
static void test_template_state_is_kept_in_the_status(void **state)
{
    struct fixture f;
    json_t *condition;
    char old[STW_HASH_LEN], new[STW_HASH_LEN], status[512], text[2048];
    (void)state;
    stw_hash_format(template_of("Old"), old);
    stw_hash_format(template_of("New"), new);
    stw_format(status, sizeof(status),
               "{\"podTemplates\":[{\"object\":\"Deployment/other\",\"hash\":\"%s\"},"
               "{\"object\":\"Deployment/web\",\"hash\":\"%s\",\"inputsHash\":\"%s\"}]}",
               new, old, new);
    begin(&f, LIVE("5", "1", "Old", ALL), "[" GET(LIVE("5", "1", "Old", ALL)) "]");
    f.child.applied_before = true;
    json_auto_t *first = report(&f, status, &condition);
    const json_t *entry = json_array_get(json_object_get(first, "podTemplates"), 0);
    assert_string_equal(stw_tree_text(entry, "hash"), old);
    assert_string_equal(stw_tree_text(entry, "waitingHash"), new);
    assert_string_equal(stw_tree_text(entry, "inputsHash"), new); /* of the one that is applied */
    assert_null(json_object_get(entry, "storedHash"));
    stw_format(text, sizeof(text),
               "Deployment \"web\" keeps the pod template of an earlier version of steward until "
               "its next rollout, or until: kubectl -n shop annotate myweb web "
               "steward.dev/update-template=%.12s --overwrite; it differs in "
               "spec.template.spec.dnsPolicy",
               new);
    assert_string_equal(stw_tree_text(condition, "message"), text);
    json_decref(condition);
    fixture_end(&f);

    stw_autofree char *again = json_dumps(first, JSON_COMPACT);
    begin(&f, LIVE("5", "1", "Old", ALL), "[]");
    f.child.applied_before = true;
    json_auto_t *second = report(&f, again, &condition);
    assert_true(json_equal(json_object_get(first, "podTemplates"),
                           json_object_get(second, "podTemplates")));
    assert_string_equal(stw_tree_text(condition, "message"), text);
    json_decref(condition);
    fixture_end(&f);

    /* The whole program may have consent. */
    begin(&f, LIVE("5", "1", "Old", ALL), "[" APPLY(LIVE("6", "1", "new", ALL)) "]");
    f.child.applied_before = true;
    f.manager.config.update_templates = true;
    json_auto_t *third = report(&f, again, &condition);
    assert_null(condition);
    entry = json_array_get(json_object_get(third, "podTemplates"), 0);
    assert_string_equal(stw_tree_text(entry, "hash"), new);
    stw_hash_format(template_of("new"), old);
    assert_string_equal(stw_tree_text(entry, "storedHash"), old);
    assert_null(json_object_get(entry, "waitingHash"));
    fixture_end(&f);
}

/* The schema of a kind without the row would drop it, so that each run would write it again. */
static void test_template_state_needs_the_status_field(void **state)
{
    struct fixture f;
    json_t *condition;
    struct stw_kind kind = stw_kind_myweb;
    struct stw_controller controller = stw_controller_myweb;
    (void)state;
    kind.status = NULL;
    controller.kind = &kind;
    begin(&f, LIVE("5", "1", "New", ALL), "[]");
    f.run.controller = &controller;
    json_auto_t *status = report(&f, "{}", &condition);
    assert_null(json_object_get(status, "podTemplates"));
    assert_null(condition);
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_template_waits_applies_or_restarts),
        cmocka_unit_test(test_template_inputs_ignore_member_order),
        cmocka_unit_test(test_failed_template_write_is_not_recorded),
        cmocka_unit_test(test_template_state_is_kept_in_the_status),
        cmocka_unit_test(test_template_state_needs_the_status_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
