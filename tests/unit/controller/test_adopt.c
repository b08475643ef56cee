/* SPDX-License-Identifier: Apache-2.0
 *
 * Adoption: what is asked, what is written, and when nothing is. */
#include "controller/child/child_priv.h"
#include "controller/verdict.h"

#include "child_fixture.h"

#define PATH "/api/v1/namespaces/shop/configmaps/web"
#define OTHER_PATH "/api/v1/namespaces/shop/configmaps/other"
#define MARK(owner) "'annotations':{'steward.dev/adopted-by':'" owner "'},"
#define FREE(more)                                                                                 \
    "{'metadata':{'namespace':'shop','name':'web','uid':'c-1'," more "'resourceVersion':'5'}}"
#define TAKEN(owner)                                                                               \
    "{'metadata':{'namespace':'shop','name':'web','uid':'c-1','resourceVersion':'6'," MARK(        \
        owner) "'managedFields':[{'manager':'steward-myweb','operation':'Apply','fieldsV1':{"      \
               "'f:metadata':{'f:annotations':{'f:steward.dev/"                                    \
               "adopted-by':{}}},'f:data':{'f:k':{}}}}]},"                                         \
               "'data':{'k':'v'}}"
#define GET(path, answer) "{'match':'GET " path "','body':" answer "}"
#define ABSENT(path)                                                                               \
    "{'match':'GET " path "','status':404,'body':{'kind':'Status','reason':'NotFound'}}"
#define EXISTS                                                                                     \
    "{'match':'PATCH " PATH "','status':409,'body':{'kind':'Status','reason':'Conflict'}}"
#define PATCH(answer) "{'match':'PATCH " PATH "','body':" answer "}"
#define REFUSE(path)                                                                               \
    "{'match':'" path "','status':422,'body':{'kind':'Status','reason':'Invalid','message':'no'}}"

#define OWNER_PATH "/apis/mycompany.com/v1/namespaces/shop/apps/web"
#define OWNER(uid, more) "{'metadata':{'namespace':'shop','name':'web','uid':'" uid "'" more "}}"

static json_t *config(const char *name)
{
    return json_pack("{s:s,s:s,s:{s:s,s:s,s:[{s:s,s:s,s:s}]},s:{s:s}}", "apiVersion", "v1", "kind",
                     "ConfigMap", "metadata", "namespace", "shop", "name", name, "ownerReferences",
                     "kind", "MyWeb", "name", "web", "uid", "u-1", "data", "k", "v");
}

static void begin(struct fixture *f, const char *cached, const char *steps)
{
    fixture_begin(f, &stw_watch_configmaps, config("web"), cached, steps);
    f->owner.adopt = true;
}

/* The content of the cache and of the server; the result, and the number of dry runs and of writes
 * that change something. */
static const struct {
    const char *what, *cached, *steps;
    bool adopt;
    enum stw_child_state state;
    const char *said;
    unsigned tries, writes;
} cases[] = {
    {"without a controller", "",
     "[" EXISTS "," GET(PATH, FREE("")) "," GET(PATH, FREE("")) "," PATCH(FREE("")) "," PATCH(
         TAKEN("MyWeb/web/u-1")) "]",
     true, STW_CHILD_UPDATED, "", 1, 1},
    {"the server would refuse it", "",
     "[" EXISTS "," GET(PATH, FREE("")) "," GET(PATH, FREE("")) "," REFUSE("PATCH " PATH) "]", true,
     STW_CHILD_NOT_ADOPTED, "nothing is adopted, because ConfigMap \"web\" cannot be: no", 1, 0},
    {"not asked to adopt", "", "[" EXISTS "," GET(PATH, FREE("")) "]", false, STW_CHILD_FOREIGN,
     "(owner: none)", 0, 0},
    {"adopted before", TAKEN("MyWeb/web/u-1"), "[]", false, STW_CHILD_SYNCED, "", 0, 0},
    {"adopted before, and only the cache has lost it", "",
     "[" EXISTS "," GET(PATH, TAKEN("MyWeb/web/u-1")) "]", false, STW_CHILD_SYNCED, "", 0, 0},
    {"adopted by a former owner", TAKEN("MyWeb/web/u-0"),
     "[" EXISTS "," GET(PATH, TAKEN("MyWeb/web/u-0")) "]", false, STW_CHILD_FOREIGN,
     "(owner: none)", 0, 0},
    {"adopted by an owner of another name", TAKEN("MyWeb/more/u-9"),
     "[" EXISTS "," GET(PATH, TAKEN("MyWeb/more/u-9")) "]", false, STW_CHILD_FOREIGN,
     "(owner: none)", 0, 0},
    {"adopted by an owner that is there", TAKEN("App/web/u-9"),
     "[" EXISTS "," GET(PATH, TAKEN("App/web/u-9")) "," GET(PATH, TAKEN("App/web/u-9")) "," GET(
         OWNER_PATH, OWNER("u-9", "")) "]",
     true, STW_CHILD_NOT_ADOPTED,
     "nothing is adopted, because ConfigMap \"web\" cannot be: App/web has adopted it, and is "
     "still "
     "there",
     0, 0},
    {"whether that owner is there, is unknown", TAKEN("App/web/u-9"),
     "[" EXISTS "," GET(PATH, TAKEN("App/web/u-9")) "," GET(
         PATH, TAKEN("App/web/u-9")) ",{'match':'GET " OWNER_PATH
                                     "','status':403,'body':{'kind':'Status','reason':"
                                     "'Forbidden','message':'no'}}]",
     true, STW_CHILD_NOT_ADOPTED, "ConfigMap \"web\" cannot be: no", 0, 0},
    {"that owner is of a kind of nobody", TAKEN("Shop/web/u-9"),
     "[" EXISTS "," GET(PATH, TAKEN("Shop/web/u-9")) "," GET(PATH, TAKEN("Shop/web/u-9")) "]", true,
     STW_CHILD_NOT_ADOPTED, "Shop/web has adopted it, a kind that is not reconciled here", 0, 0},
    {"that owner has another UID now", TAKEN("App/web/u-9"),
     "[" EXISTS "," GET(PATH, TAKEN("App/web/u-9")) "," GET(PATH, TAKEN("App/web/u-9")) "," GET(
         OWNER_PATH, OWNER("u-10", "")) "," PATCH(FREE("")) "," PATCH(TAKEN("MyWeb/web/u-1")) "]",
     true, STW_CHILD_UPDATED, "", 1, 1},
    {"that owner is being deleted", TAKEN("App/web/u-9"),
     "[" EXISTS "," GET(PATH, TAKEN("App/web/u-9")) "," GET(PATH, TAKEN("App/web/u-9")) "," GET(
         OWNER_PATH,
         OWNER("u-9",
               ",'deletionTimestamp':'2026'")) "," PATCH(FREE("")) "," PATCH(TAKEN("MyWeb/web/"
                                                                                   "u-1")) "]",
     true, STW_CHILD_UPDATED, "", 1, 1},
    {"that owner is gone", TAKEN("App/web/u-9"),
     "[" EXISTS "," GET(PATH, TAKEN("App/web/u-9")) "," GET(PATH, TAKEN("App/web/u-9")) "," ABSENT(
         OWNER_PATH) "," PATCH(FREE("")) "," PATCH(TAKEN("MyWeb/web/u-1")) "]",
     true, STW_CHILD_UPDATED, "", 1, 1},
    {"a mark that is none", TAKEN("MyWeb/web"), "[" EXISTS "," GET(PATH, TAKEN("MyWeb/web")) "]",
     false, STW_CHILD_FOREIGN, "(owner: none)", 0, 0},
};

static void test_adoption_of_one_child(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        begin(&f, cases[i].cached, cases[i].steps);
        f.owner.adopt = cases[i].adopt;
        stw_child_ensure(&f.run, &f.owner, &f.child);
        unsigned creates = fake_count(&f.fake, "\"resourceVersion\":\"1\"");
        unsigned tries = fake_count(&f.fake, "dryRun=All");
        unsigned writes = fake_count(&f.fake, "PATCH /") - tries - creates;
        if (f.child.state != cases[i].state || !strstr(f.child.err.text, cases[i].said) ||
            tries != cases[i].tries || writes != cases[i].writes)
            fail_msg("%s: state %d, \"%s\", %u dry runs, %u writes", cases[i].what,
                     (int)f.child.state, f.child.err.text, tries, writes);
        fixture_end(&f);
    }
}

/* The write names the object and the version that the server was asked about, and no owner. */
static void test_adoption_write_names_object_and_version(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "", cases[0].steps);
    stw_child_ensure(&f.run, &f.owner, &f.child);
    assert_true(f.child.adopted_now);
    assert_int_equal(fake_count(&f.fake, "\"steward.dev/adopted-by\":\"MyWeb/web/u-1\""), 2);
    assert_int_equal(fake_count(&f.fake, "\"uid\":\"c-1\",\"resourceVersion\":\"5\""), 2);
    assert_int_equal(fake_count(&f.fake, "ownerReferences"), 1); /* of the attempt to create it */
    fixture_end(&f);
}

/* The child changes between the question and the write: the run ends, and nothing is written. */
static void expect_conflict(const char *answers)
{
    struct fixture f;
    begin(&f, "", answers);
    stw_children_check_adoption(&f.run, &f.owner, &f.child, 1);
    assert_int_equal(f.child.adoption.answer, STW_ADOPTION_FREE);
    stw_child_ensure(&f.run, &f.owner, &f.child);
    assert_int_equal(f.child.state, STW_CHILD_FAILED);
    assert_int_equal(f.child.err.code, STW_ERR_CONFLICT);
    fixture_end(&f);
}

static void test_change_after_the_dry_run_is_a_conflict(void **state)
{
    (void)state;
    expect_conflict("[" GET(PATH, FREE("")) "," PATCH(FREE("")) "," EXISTS "," GET(
        PATH, "{'metadata':{'namespace':'shop','name':'web','uid':'c-1',"
              "'resourceVersion':'7'}}") "]");
}

/* Another owner has adopted it meanwhile, which changes no generation. */
static void test_adoption_by_another_owner_is_a_conflict(void **state)
{
    (void)state;
    expect_conflict("[" GET(PATH, FREE("'generation':3,")) "," PATCH(FREE("")) "," EXISTS "," GET(
        PATH, "{'metadata':{'namespace':'shop','name':'web','uid':'c-1'," MARK(
                  "App/web/u-9") "'generation':3,'resourceVersion':'7'}}") "]");
}

/* Nothing is written while the kind names something that must come first. */
static void test_waiting_adoption_writes_nothing(void **state)
{
    struct fixture f;
    struct stw_aspect a = {0};
    (void)state;
    begin(&f, "",
          "[" GET(PATH, FREE("")) "," PATCH(FREE("")) "," EXISTS "," GET(PATH, FREE("")) "]");
    stw_children_check_adoption(&f.run, &f.owner, &f.child, 1);
    f.child.adoption.until = "the new pods are ready";
    stw_child_ensure(&f.run, &f.owner, &f.child);
    assert_int_equal(f.child.state, STW_CHILD_HELD);
    stw_aspect_child(&a, &f.child);
    assert_int_equal(a.level, STW_LEVEL_PROGRESSING);
    assert_string_equal(a.reason, STW_REASON_ADOPTION_WAITS);
    assert_string_equal(a.message,
                        "ConfigMap \"web\" stays as it is until the new pods are ready; then "
                        "it is adopted");
    assert_int_equal(fake_count(&f.fake, "adopted-by"), 1); /* of the dry run */
    fixture_end(&f);
}

/* Two children: what is there of the second one, and whether the first may be adopted. */
static const struct {
    const char *what, *steps;
    bool allowed;
} pairs[] = {
    {"the other is missing",
     "[" GET(PATH,
             FREE("")) "," PATCH(FREE("")) "," ABSENT(OTHER_PATH) ",{'match':'POST /','body':{}}]",
     true},
    {"the other is missing, and would be refused",
     "[" GET(PATH, FREE("")) "," PATCH(FREE("")) "," ABSENT(OTHER_PATH) "," REFUSE("POST /") "]",
     false},
    {"the other is another one's",
     "[" GET(PATH, FREE("")) "," PATCH(FREE("")) "," GET(
         OTHER_PATH, "{'metadata':{'uid':'c-2','ownerReferences':[{'kind':'MyWeb','name':'b','uid':"
                     "'u-9','controller':true}]}}") "]",
     false},
    {"the other is being deleted",
     "[" GET(PATH, FREE("")) "," PATCH(FREE("")) "," GET(
         OTHER_PATH, "{'metadata':{'uid':'c-2','deletionTimestamp':'2026'}}") "]",
     false},
    {"the other cannot be read",
     "[" GET(PATH, FREE("")) "," PATCH(
         FREE("")) ",{'match':'GET " OTHER_PATH
                   "','status':403,'body':{'kind':'Status','reason':'Forbidden'}}]",
     false},
};

static void test_children_are_adopted_all_or_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(pairs); i++) {
        struct fixture f;
        begin(&f, "", pairs[i].steps);
        json_auto_t *other = config("other");
        struct stw_child both[] = {
            f.child, {.watch = &stw_watch_configmaps, .name = "other", .desired = other}};
        stw_children_check_adoption(&f.run, &f.owner, both, 2);
        bool allowed = both[0].adoption.answer == STW_ADOPTION_FREE &&
                       both[1].adoption.answer == STW_ADOPTION_MISSING;
        bool refused = both[0].adoption.answer == STW_ADOPTION_REFUSED &&
                       both[1].adoption.answer == STW_ADOPTION_REFUSED &&
                       strstr(both[0].err.text, "ConfigMap \"other\" cannot be");
        if (pairs[i].allowed ? !allowed : !refused)
            fail_msg("%s: %d and %d, \"%s\"", pairs[i].what, (int)both[0].adoption.answer,
                     (int)both[1].adoption.answer, both[0].err.text);
        fixture_end(&f);
    }
}

/* --- fields of other managers */

#define ENTRY(manager, operation, more, fields)                                                    \
    "{'manager':'" manager "','operation':'" operation "','apiVersion':'apps/v1'," more            \
    "'fieldsType':'FieldsV1','fieldsV1':{" fields "}}"

/* managedFields before; what the patch has, and what it must not have ("": there is no patch). */
static const struct {
    const char *what, *before, *has, *lacks;
} transfers[] = {
    {"a Deployment of kubectl",
     ENTRY("kubectl", "Update", "",
           "'f:spec':{'f:replicas':{},'f:template':{'f:metadata':{'f:labels':{'f:x':{}}},"
           "'f:spec':{'f:containers':{}}}}"),
     "{'manager':'kubectl','operation':'Update','apiVersion':'apps/v1','fieldsType':'FieldsV1',"
     "'fieldsV1':{'f:spec':{'f:replicas':{},'f:template':{'f:metadata':{'f:labels':{'f:x':{}}}}}}},"
     "{'manager':'steward-app','operation':'Apply','apiVersion':'apps/v1','fieldsType':'FieldsV1',"
     "'fieldsV1':{'f:spec':{'f:template':{'f:spec':{'f:containers':{}}}}}}]}]",
     ""},
    {"nothing is left of an entry", ENTRY("helm", "Apply", "", "'f:spec':{'f:strategy':{}}"),
     "'f:strategy'", "'helm'"},
    {"only the status", ENTRY("kcm", "Update", "'subresource':'status',", "'f:spec':{'f:x':{}}"),
     "", ""},
    {"only what an autoscaler sets", ENTRY("kcm", "Update", "", "'f:spec':{'f:replicas':{}}"), "",
     ""},
    {"only metadata", ENTRY("a", "Update", "", "'f:metadata':{'f:labels':{}}"), "", ""},
};

static char *with_quotes(const char *text)
{
    char *all = strdup(text);
    for (char *p = all; p && *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return all;
}

static void test_field_ownership_moves_between_managers(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(transfers); i++) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(8192), patch = STW_BUF_INIT(8192);
        stw_autojson struct stw_json_doc doc = {0};
        stw_buf_addf(&text, "{'metadata':{'uid':'d-1','resourceVersion':'5','managedFields':[%s]}}",
                     transfers[i].before);
        stw_autofree char *live = with_quotes(stw_buf_str(&text));
        stw_autofree char *has = with_quotes(transfers[i].has);
        stw_autofree char *lacks = with_quotes(transfers[i].lacks);
        assert_int_equal(stw_json_scan(&doc, live, strlen(live), NULL), 0);
        bool any =
            stw_adoption_transfer(&stw_res_deployment, stw_json_root(&doc), "steward-app", &patch);
        if (any != (*has != '\0') || (any && !strstr(stw_buf_str(&patch), has)) ||
            (*lacks && strstr(stw_buf_str(&patch), lacks)))
            fail_msg("%s: %d, %s", transfers[i].what, any, stw_buf_str(&patch));
    }
}

/* --- the selector of the Deployment */

#define DEPLOYMENT_PATH "/apis/apps/v1/namespaces/shop/deployments/web"
#define OURS "'annotations':{'steward.dev/adopted-by':'MyWeb/web/u-1'},"
#define REFERENCE(uid)                                                                             \
    "'ownerReferences':[{'apiVersion':'operator.k8s-summit.org/"                                   \
    "v1','kind':'MyWeb','name':'web','uid':'" uid "','controller':true}],"
#define DEPLOYMENT(more, selector)                                                                 \
    "{'metadata':{'namespace':'shop','name':'web','uid':'d-1'," more "'resourceVersion':'5'},"     \
    "'spec':{'selector':{" selector                                                                \
    "},'template':{'metadata':{'labels':{'app':'shop','x':'y'}}}}}"
#define SHOP "'matchLabels':{'app':'shop'}"
#define USUAL "'matchLabels':{'app.kubernetes.io/instance':'web','app.kubernetes.io/name':'myweb'}"
#define EXPRESSION SHOP ",'matchExpressions':[{'key':'x','operator':'Exists'}]"
#define ANSWER(status, reason)                                                                     \
    "[{'match':'GET " DEPLOYMENT_PATH "','status':" status                                         \
    ",'body':{'kind':'Status','reason':'" reason "','message':'no'}}]"
#define LIVE(more, selector) "[" GET(DEPLOYMENT_PATH, DEPLOYMENT(more, selector)) "]"

static const struct {
    const char *what, *cached, *steps;
    bool adopt, is_new;
    const char *labels; /* "": the usual ones; NULL: unknown */
} selectors[] = {
    {"cached and marked", DEPLOYMENT(OURS, SHOP), "[]", false, false, "{\"app\":\"shop\"}"},
    {"cached, with a reference instead", DEPLOYMENT(REFERENCE("u-1"), SHOP), "[]", false, false,
     "{\"app\":\"shop\"}"},
    {"cached, with both", DEPLOYMENT(OURS REFERENCE("u-1"), SHOP), "[]", false, false,
     "{\"app\":\"shop\"}"},
    {"made by us", DEPLOYMENT(REFERENCE("u-1"), USUAL), "[]", false, false, ""},
    {"ours, with an expression", DEPLOYMENT(REFERENCE("u-1"), EXPRESSION), "[]", false, false, ""},
    {"without our label, and marked", "", LIVE(OURS, SHOP), false, false, "{\"app\":\"shop\"}"},
    {"without our label, with a reference", "", LIVE(REFERENCE("u-1"), SHOP), false, false,
     "{\"app\":\"shop\"}"},
    {"another one's", "", LIVE(REFERENCE("u-9"), SHOP), true, false, ""},
    {"another one's, with our mark", "", LIVE(OURS REFERENCE("u-9"), SHOP), true, false, ""},
    {"nobody's", "", LIVE("", SHOP), false, false, ""},
    {"nobody's, to be adopted", "", LIVE("", SHOP), true, true, "{\"app\":\"shop\"}"},
    {"there is none", "", ANSWER("404", "NotFound"), false, false, ""},
    {"a new object", "", "[]", false, true, ""},
    {"unknown", "", ANSWER("500", "InternalError"), false, false, NULL},
    {"unknown, to be adopted", "", ANSWER("500", "InternalError"), true, true, NULL},
    {"forbidden", "", ANSWER("403", "Forbidden"), false, false, NULL},
};

static void test_selector_of_the_deployment_is_known_or_unknown(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(selectors); i++) {
        struct fixture f;
        struct stw_error err = {0};
        json_t *labels = NULL;
        fixture_begin(&f, &stw_watch_deployments, NULL, selectors[i].cached, selectors[i].steps);
        f.owner.adopt = selectors[i].adopt;
        int rc = stw_find_selector(&f.run, &f.owner, selectors[i].is_new, &labels, &err);
        stw_autofree char *text = labels ? json_dumps(labels, JSON_COMPACT) : strdup("");
        bool known = rc == 0 && !*err.text;
        if (known != (selectors[i].labels != NULL) ||
            !stw_streq(text, selectors[i].labels ? selectors[i].labels : "") ||
            fake_count(&f.fake, "GET ") != !stw_streq(selectors[i].steps, "[]"))
            fail_msg("%s: %d, %s, \"%s\"", selectors[i].what, rc, text, err.text);
        json_decref(labels);
        fixture_end(&f);
    }
}

/* --- a Service that would leave its pods */

#define SERVICE_PATH "/api/v1/namespaces/shop/services/web"
#define SERVICE(more, selector)                                                                    \
    "{'metadata':{'namespace':'shop','name':'web','uid':'s-1'," REFERENCE("u-1") more              \
        "'resourceVersion':'5'},'spec':{'selector':{" selector "}}}"
#define MANAGED                                                                                    \
    "'managedFields':[{'manager':'steward-myweb','operation':'Apply','apiVersion':'v1',"           \
    "'fieldsV1':{'f:spec':{'f:selector':{}}}}],"
#define OLD_SERVICE SERVICE("", "'app':'shop'")
#define OWN_SERVICE SERVICE(MANAGED, "'app':'shop'")
#define PATCHED "{'match':'PATCH " SERVICE_PATH "','body':" SERVICE("", "'x':'y'") "}"
#define NO_DEPLOYMENT                                                                              \
    "{'match':'GET " DEPLOYMENT_PATH "','status':404,'body':{'kind':'Status','reason':'NotFound'}" \
    "}"
#define NEW_DEPLOYMENT(replicas, available)                                                        \
    "{'metadata':{'namespace':'shop','name':'web','uid':'d-1'," REFERENCE(                         \
        "u-1") "'resourceVersion':'5'},'spec':{'replicas':" replicas ",'selector':{" USUAL         \
               "}},'status':{'replicas':" replicas ",'availableReplicas':" available "}}"

static json_t *wanted_service(const json_t *selector)
{
    return json_pack("{s:s,s:s,s:{s:s,s:s,s:[{s:s,s:s,s:s,s:s,s:b}]},s:{s:O}}", "apiVersion", "v1",
                     "kind", "Service", "metadata", "namespace", "shop", "name", "web",
                     "ownerReferences", "apiVersion", "operator.k8s-summit.org/v1", "kind", "MyWeb",
                     "name", "web", "uid", "u-1", "controller", 1, "spec", "selector", selector);
}

/* The Deployment in the cache and on the server, and the selector that is wanted. */
static const struct {
    const char *what, *cached, *steps, *key, *value;
    enum stw_child_state state;
    unsigned writes;
} services[] = {
    {"the Deployment has other labels", "", LIVE(OURS, SHOP), "app", "other", STW_CHILD_FOREIGN, 0},
    {"another one's, with other labels", "", LIVE(REFERENCE("u-9"), SHOP), "app", "other",
     STW_CHILD_FOREIGN, 0},
    {"the cached one is selected by others", DEPLOYMENT(REFERENCE("u-1"), SHOP),
     LIVE(REFERENCE("u-1"), SHOP), "app", "other", STW_CHILD_FOREIGN, 0},
    {"unknown", "", ANSWER("500", "InternalError"), "app", "other", STW_CHILD_FAILED, 0},
    {"its pods have the label", "",
     "[" GET(DEPLOYMENT_PATH, DEPLOYMENT(REFERENCE("u-9"), SHOP)) "," GET(
         SERVICE_PATH, OLD_SERVICE) "," GET(DEPLOYMENT_PATH,
                                            DEPLOYMENT(REFERENCE("u-9"), SHOP)) "," PATCHED "]",
     "x", "y", STW_CHILD_UPDATED, 1},
    {"there is no Deployment", "",
     "[" NO_DEPLOYMENT "," GET(SERVICE_PATH, OLD_SERVICE) "," NO_DEPLOYMENT "," PATCHED "]", "x",
     "y", STW_CHILD_UPDATED, 1},
    {"that of our own selector has no Deployment", "",
     "[" NO_DEPLOYMENT "," GET(SERVICE_PATH, OWN_SERVICE) "," NO_DEPLOYMENT "]", "x", "y",
     STW_CHILD_HELD, 0},
    {"no pod of the Deployment is available", NEW_DEPLOYMENT("1", "0"),
     "[" GET(SERVICE_PATH, OWN_SERVICE) "]", "x", "y", STW_CHILD_HELD, 0},
    {"another client changed the selector", NEW_DEPLOYMENT("1", "0"),
     "[" GET(SERVICE_PATH, OLD_SERVICE) "," PATCHED "]", "x", "y", STW_CHILD_UPDATED, 1},
    {"another client added a label to it", NEW_DEPLOYMENT("1", "0"),
     "[" GET(SERVICE_PATH, SERVICE(MANAGED, "'app':'shop','x':'y'")) "," PATCHED "]", "x", "y",
     STW_CHILD_UPDATED, 1},
    {"a pod of it is available", NEW_DEPLOYMENT("2", "1"), "[" PATCHED "]", "x", "y",
     STW_CHILD_UPDATED, 1},
    {"there are to be no pods", NEW_DEPLOYMENT("0", "0"), "[" PATCHED "]", "x", "y",
     STW_CHILD_UPDATED, 1},
};

/* A fixture of a Service, and a cache of Deployments. */
static void begin_service(struct fixture *f, struct stw_watch_cache caches[static 2],
                          const json_t *selector, const char *deployment, const char *steps)
{
    struct stw_error err;
    stw_autofree char *text = with_quotes(deployment);
    stw_autobuf struct stw_buf object = STW_BUF_INIT(4096);
    const struct stw_informer_config config = {.resource = &stw_res_deployment,
                                               .project = fixture_project,
                                               .ctx = (void *)(uintptr_t)&stw_watch_deployments};
    fixture_begin(f, &stw_watch_services, wanted_service(selector), OLD_SERVICE, steps);
    caches[0] = f->cache;
    caches[1] = (struct stw_watch_cache){.watch = &stw_watch_deployments};
    assert_int_equal(stw_informer_create(f->fake.client, &config, &stw_clock_system, NULL,
                                         &caches[1].informer, &err),
                     0);
    stw_buf_adds(&object, text);
    if (*text)
        stw_informer_saw(caches[1].informer, &object, NULL);
    f->manager.caches = caches;
    f->manager.cache_count = 2;
}

static void test_service_is_held_that_would_leave_its_pods(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(services); i++) {
        struct fixture f;
        struct stw_watch_cache caches[2];
        json_auto_t *selector = json_pack("{s:s}", services[i].key, services[i].value);
        begin_service(&f, caches, selector, services[i].cached, services[i].steps);
        stw_child_ensure(&f.run, &f.owner, &f.child);
        unsigned writes = fake_count(&f.fake, "PATCH /");
        if (f.child.state != services[i].state || writes != services[i].writes)
            fail_msg("%s: state %d, \"%s\", %u writes", services[i].what, (int)f.child.state,
                     f.child.err.text, writes);
        stw_informer_destroy(caches[1].informer);
        fixture_end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adoption_of_one_child),
        cmocka_unit_test(test_adoption_write_names_object_and_version),
        cmocka_unit_test(test_change_after_the_dry_run_is_a_conflict),
        cmocka_unit_test(test_adoption_by_another_owner_is_a_conflict),
        cmocka_unit_test(test_waiting_adoption_writes_nothing),
        cmocka_unit_test(test_children_are_adopted_all_or_none),
        cmocka_unit_test(test_field_ownership_moves_between_managers),
        cmocka_unit_test(test_selector_of_the_deployment_is_known_or_unknown),
        cmocka_unit_test(test_service_is_held_that_would_leave_its_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
