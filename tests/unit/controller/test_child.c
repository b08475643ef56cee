/* SPDX-License-Identifier: Apache-2.0
 *
 * Ensuring one child: the requests that this takes, and what is reported. */
#include "controller/child.h"

#include "child_fixture.h"
#include "kinds/app/reconcile.h"
#include "kube/tree.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATH "/api/v1/namespaces/shop/configmaps/web"
#define OWNER_PATH "/apis/operator.k8s-summit.org/v1/namespaces/shop/mywebs/web"

/* Responses of the server, with ' for ".  A ConfigMap whose `data` is k: `value`, controlled by the
 * MyWeb web with the UID `owner`; steward owns `fields` of it. */
#define BY "'apiVersion':'operator.k8s-summit.org/v1',"
#define CHILD(rv, owner, value, fields)                                                            \
    CHILD_WITH("'resourceVersion':'" rv "',", owner, "'k':'" value "'", fields)
#define CHILD_WITH(version, owner, data, fields)                                                   \
    "{'metadata':{'namespace':'shop','name':'web','uid':'c-1'," version "'ownerReferences':[{" BY  \
    "'kind':'MyWeb','name':'web','uid':'" owner "','controller':true}],"                           \
    "'managedFields':[{'manager':'steward-myweb','operation':'Apply','fieldsV1':{" fields "}}]},"  \
    "'data':{" data "}}"
#define CHILD_OF_NAMESAKE                                                                          \
    "{'metadata':{'namespace':'shop','name':'web','uid':'c-3','resourceVersion':'5',"              \
    "'ownerReferences':[{'apiVersion':'other.example.org/v1','kind':'MyWeb','name':'web','uid':"   \
    "'u-7','controller':true}]}}"
/* A former version of the program served it. */
#define CHILD_OF_VERSION(version, uid)                                                             \
    "{'metadata':{'namespace':'shop','name':'web','uid':'c-3','resourceVersion':'5',"              \
    "'ownerReferences':[{'apiVersion':'operator.k8s-summit.org/" version                           \
    "','kind':'MyWeb','name':'web','uid':'" uid "','controller':true}],"                           \
    "'managedFields':[{'manager':'steward-myweb','operation':'Apply','fieldsV1':{" OURS            \
    "}}]},'data':{'k':'v'}}"
#define CHILD_OF_OTHER                                                                             \
    "{'metadata':{'namespace':'shop','name':'web','uid':'c-2','resourceVersion':'5',"              \
    "'ownerReferences':[{" BY "'kind':'MyWeb','name':'other','uid':'u-9','controller':true}]}}"
#define OURS "'f:data':{'f:k':{}}"
#define OWNER(uid, more)                                                                           \
    "{'match':'GET " OWNER_PATH "','body':{'metadata':{'name':'web','uid':'" uid "'" more "}}}"
#define APPLY(answer) "{'match':'PATCH " PATH "','body':" answer "}"
#define REFUSE "{'match':'PATCH " PATH "','status':422,'body':{'kind':'Status','message':'no'}}"
#define GET(answer) "{'match':'GET " PATH "','body':" answer "}"

static void begin(struct fixture *f, const char *cached, const char *steps)
{
    json_t *desired =
        json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap",
                  "metadata", "namespace", "shop", "name", "web", "data", "k", "v");
    fixture_begin(f, &stw_watch_configmaps, desired, cached, steps);
    f->child.applied_before = true;
}

static enum stw_child_state ensure(struct fixture *f)
{
    stw_child_ensure(&f->run, &f->owner, &f->child);
    return f->child.state;
}

/* The content of the cache and of the server, and the result: the state, the text (the fields of a
 * repair, otherwise the error), and the number of reads and writes. */
static const struct {
    const char *what, *cached, *steps;
    bool fresh; /* never applied before */
    enum stw_child_state state;
    const char *said;
    unsigned reads, writes;
} cases[] = {
    {"as wanted", CHILD("5", "u-1", "v", OURS), "[]", false, STW_CHILD_SYNCED, "", 0, 0},
    {"new", "", "[" APPLY(CHILD("5", "u-1", "v", OURS)) "]", true, STW_CHILD_CREATED, "", 0, 1},
    {"deleted by somebody", "", "[" OWNER("u-1", "") "," APPLY(CHILD("5", "u-1", "v", OURS)) "]",
     false, STW_CHILD_REPAIRED, "(deleted)", 1, 1},
    {"deleted with its owner", "", "[]", false, STW_CHILD_FAILED, "deleted meanwhile", 1, 0},
    {"deleted with a former owner", "", "[" OWNER("u-2", "") "]", false, STW_CHILD_FAILED,
     "deleted meanwhile", 1, 0},
    {"its owner is being deleted", "", "[" OWNER("u-1", ",'deletionTimestamp':'2024'") "]", false,
     STW_CHILD_FAILED, "deleted meanwhile", 1, 0},
    {"nobody can say whether the owner lives", "",
     "[{'match':'GET " OWNER_PATH "','status':403,'body':{'kind':'Status','message':'no right'}}]",
     false, STW_CHILD_FAILED, "no right", 1, 0},
    {"only the cache has lost it", "",
     "[" OWNER("u-1", "") "," REFUSE "," GET(CHILD("5", "u-1", "v", OURS)) "]", false,
     STW_CHILD_SYNCED, "", 2, 1},
    {"a value was changed", CHILD("5", "u-1", "w", OURS),
     "[" GET(CHILD("5", "u-1", "w", OURS)) "," APPLY(CHILD("6", "u-1", "v", OURS)) "]", false,
     STW_CHILD_REPAIRED, "data.k", 1, 1},
    {"only its managedFields were changed", CHILD("5", "u-1", "v", ""),
     "[" GET(CHILD("5", "u-1", "v", "")) "," APPLY(CHILD("6", "u-1", "v", OURS)) "]", false,
     STW_CHILD_REPAIRED, "(managedFields)", 1, 1},
    {"a former owner's, before the garbage collector comes", "",
     "[" REFUSE "," GET(CHILD("5", "u-0", "v", OURS)) "]", true, STW_CHILD_TERMINATING,
     "left from a former MyWeb", 1, 1},
    {"the same, and the cache knows", CHILD("5", "u-0", "v", OURS), "[]", true,
     STW_CHILD_TERMINATING, "left from a former MyWeb", 0, 0},
    {"another one's", CHILD_OF_OTHER, "[" REFUSE "," GET(CHILD_OF_OTHER) "]", true,
     STW_CHILD_FOREIGN, "(owner: MyWeb/other)", 1, 1},
    {"another group's kind of the same name", "", "[" REFUSE "," GET(CHILD_OF_NAMESAKE) "]", true,
     STW_CHILD_FOREIGN, "(owner: MyWeb.other.example.org/web)", 1, 1},
    {"the same, while the cache is asked", CHILD_OF_NAMESAKE,
     "[" REFUSE "," GET(CHILD_OF_NAMESAKE) "]", true, STW_CHILD_FOREIGN,
     "(owner: MyWeb.other.example.org/web)", 1, 1},
    {"a former owner's, of a version that is not served", "",
     "[" REFUSE "," GET(CHILD_OF_VERSION("v9", "u-0")) "]", true, STW_CHILD_FOREIGN,
     "(owner: MyWeb/web of operator.k8s-summit.org/v9, a version that is not served)", 1, 1},
    {"the same, and the cache knows it", CHILD_OF_VERSION("v9", "u-0"),
     "[" REFUSE "," GET(CHILD_OF_VERSION("v9", "u-0")) "]", true, STW_CHILD_FOREIGN,
     "(owner: MyWeb/web of operator.k8s-summit.org/v9, a version that is not served)", 1, 1},
    {"our own, of a version that is not served", CHILD_OF_VERSION("v9", "u-1"), "[]", false,
     STW_CHILD_SYNCED, "", 0, 0},
    {"nobody's", "", "[" REFUSE "," GET("{'metadata':{'name':'web','uid':'c-2'}}") "]", true,
     STW_CHILD_FOREIGN, "(owner: none)", 1, 1},
};

static void test_child_is_applied_repaired_or_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        begin(&f, cases[i].cached, cases[i].steps);
        f.child.applied_before = !cases[i].fresh;
        enum stw_child_state got = ensure(&f);
        const char *said = got == STW_CHILD_REPAIRED ? f.child.fields : f.child.err.text;
        if (got != cases[i].state || !strstr(said, cases[i].said) ||
            fake_count(&f.fake, "GET /") != cases[i].reads ||
            fake_count(&f.fake, "PATCH /") != cases[i].writes)
            fail_msg("%s: state %d, \"%s\", %u reads, %u writes", cases[i].what, (int)got, said,
                     fake_count(&f.fake, "GET /"), fake_count(&f.fake, "PATCH /"));
        fixture_end(&f);
    }
}

/* --- the guard of a create */

#define VERSION(minor) "{'match':'GET /version','body':{'major':'1','minor':'" minor "'}}"
#define NO_VERSION "{'match':'GET /version','status':403,'body':{'kind':'Status'}}"
#define NEW_GUARD "\"resourceVersion\":\"1\""
#define OLD_GUARD "\"deletionGracePeriodSeconds\":"

/* Servers that store the old guard must never get it, and servers that answer the new one with a
 * 500 must not get that one. */
static const struct {
    const char *what;
    const struct stw_watch *watch;
    const char *version;
    const char *guard, *other;
} guards[] = {
    {"a ConfigMap of any server", &stw_watch_configmaps, "", NEW_GUARD, OLD_GUARD},
    {"a Service of 1.20", &stw_watch_services, VERSION("20") ",", OLD_GUARD, NEW_GUARD},
    {"a Service of 1.23", &stw_watch_services, VERSION("23+") ",", OLD_GUARD, NEW_GUARD},
    {"a Service of 1.24", &stw_watch_services, VERSION("24") ",", NEW_GUARD, OLD_GUARD},
    {"a Service of 1.36", &stw_watch_services, VERSION("36+") ",", NEW_GUARD, OLD_GUARD},
    {"a Service of a server that does not tell", &stw_watch_services, NO_VERSION ",", NEW_GUARD,
     OLD_GUARD},
    {"a Service of a server that tells nonsense", &stw_watch_services, VERSION("x") ",", NEW_GUARD,
     OLD_GUARD},
};

static void test_create_has_its_precondition(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(guards); i++) {
        struct fixture f;
        char steps[1024];
        (void)snprintf(steps, sizeof(steps), "[%s{'match':'PATCH /','body':%s}]", guards[i].version,
                       CHILD("5", "u-1", "v", OURS));
        begin(&f, "", steps);
        f.manager.caches[0].watch = guards[i].watch;
        stw_informer_destroy(f.manager.caches[0].informer);
        const struct stw_informer_config config = {.resource = guards[i].watch->resource,
                                                   .project = fixture_project,
                                                   .ctx = (void *)(uintptr_t)guards[i].watch};
        assert_int_equal(stw_informer_create(f.fake.client, &config, &stw_clock_system, NULL,
                                             &f.manager.caches[0].informer, NULL),
                         0);
        f.child.watch = guards[i].watch;
        f.child.applied_before = false;
        if (ensure(&f) != STW_CHILD_CREATED || fake_count(&f.fake, guards[i].guard) != 1 ||
            fake_count(&f.fake, guards[i].other) != 0)
            fail_msg("%s: state %d, \"%s\"", guards[i].what, (int)f.child.state, f.child.err.text);
        fixture_end(&f);
    }
}

/* An object that vanished between the refusal and the read may be followed by another one: every
 * write has a guard. */
static void test_every_create_is_guarded(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "",
          "[{'match':'PATCH " PATH "','status':409,'body':{'kind':'Status','reason':'Conflict'}},"
          "{'match':'PATCH " PATH "','status':409,'body':{'kind':'Status','reason':'Conflict'}}]");
    f.child.applied_before = false;
    assert_int_equal(ensure(&f), STW_CHILD_FAILED);
    assert_int_equal(f.child.err.code, STW_ERR_CONFLICT);
    assert_int_equal(fake_count(&f.fake, NEW_GUARD), 2);
    assert_int_equal(fake_count(&f.fake, "PATCH /"), 2);
    fixture_end(&f);
}

/* Addresses of the server's memory, as Go prints them before and since 1.26. */
static void test_memory_addresses_in_messages_are_masked(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "",
          "[{'match':'PATCH " PATH "','status':422,'body':{'kind':'Status','reason':'Invalid',"
          "'message':'a (0xc008a440f0) b (0x1f8785a80c33), c 0x1F 0xabc'}}]");
    f.child.applied_before = false;
    assert_int_equal(ensure(&f), STW_CHILD_FAILED);
    assert_string_equal(f.child.err.text, "a (0x) b (0x), c 0x1F 0xabc");
    fixture_end(&f);
}

/* If a write finds no owner, the run ends, and starts again from a fresh read. */
static void test_vanished_owner_is_a_conflict(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "", "[]");
    assert_int_equal(ensure(&f), STW_CHILD_FAILED);
    assert_int_equal(f.child.err.code, STW_ERR_CONFLICT);
    fixture_end(&f);
}

#define EXTRA(version) APPLY(CHILD_WITH(version, "u-1", "'k':'v','added':'x'", ""))

/* The response to an apply has a key that another client added.  The removal holds for that version of
 * the object alone; for a response without a version it must be one that the server refuses. */
static void test_removal_names_the_resource_version(void **state)
{
    static const struct {
        const char *steps, *test;
    } answers[] = {
        {"[" EXTRA("'resourceVersion':'6',") "," REFUSE "]",
         "\"/metadata/resourceVersion\",\"value\":\"6\"},{\"op\":\"remove\""},
        {"[" EXTRA("") "," REFUSE "]",
         "\"/metadata/resourceVersion\",\"value\":\"\"},{\"op\":\"remove\""},
        {"[" EXTRA("'resourceVersion':'6\\n',") "," REFUSE "]",
         "\"/metadata/resourceVersion\",\"value\":\"6\\n\"},{\"op\":\"remove\""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(answers); i++) {
        struct fixture f;
        begin(&f, "", answers[i].steps);
        f.child.applied_before = false;
        f.run.controller = &stw_controller_app; /* all data of its ConfigMaps are its own */
        (void)ensure(&f);
        if (fake_count(&f.fake, answers[i].test) != 1)
            fail_msg("%s: no patch with %s", answers[i].steps, answers[i].test);
        fixture_end(&f);
    }
}

/* A value that the server normalises is accepted, and not applied again and again. */
static void test_value_normalised_by_the_server_is_accepted(void **state)
{
    struct fixture f;
    struct stw_hash digest;
    (void)state;
    begin(&f, "", "[" APPLY(CHILD("5", "u-1", "V", OURS)) "]");
    f.child.applied_before = false;
    assert_int_equal(ensure(&f), STW_CHILD_CREATED);
    f.child.applied_before = true;
    assert_int_equal(ensure(&f), STW_CHILD_SYNCED);
    assert_int_equal(fake_count(&f.fake, "PATCH /"), 1);
    assert_int_equal(stw_child_digest(f.desired, &digest), 0);
    assert_false(stw_hash_equal(digest, f.child.live.digest));
    assert_true(
        stw_child_as_wanted(&f.run, &stw_watch_configmaps, "shop/web", digest, &f.child.live));
    stw_child_forget(&f.run, &stw_watch_configmaps, "shop/web");
    assert_false(
        stw_child_as_wanted(&f.run, &stw_watch_configmaps, "shop/web", digest, &f.child.live));
    fixture_end(&f);
}

struct made {
    const char *value;
    unsigned times;
};

static json_t *make(const void *ctx)
{
    struct made *m = (struct made *)(uintptr_t)ctx;
    m->times++;
    return json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap",
                     "metadata", "namespace", "shop", "name", "web", "data", "k", m->value);
}

static enum stw_child_state ensure_made(struct fixture *f, struct made *m, uint64_t inputs)
{
    f->child = (struct stw_child){.watch = &stw_watch_configmaps,
                                  .name = "web",
                                  .make = make,
                                  .ctx = m,
                                  .inputs = {inputs, 0},
                                  .applied_before = true};
    enum stw_child_state state = ensure(f);
    stw_child_done(&f->child);
    return state;
}

/* A child whose inputs did not change is built only to be written. */
static void test_child_is_built_only_to_be_written(void **state)
{
    struct fixture f;
    struct made m = {.value = "v"};
    (void)state;
    begin(&f, CHILD("5", "u-1", "v", OURS),
          "[" GET(CHILD("5", "u-1", "v", OURS)) "," APPLY(CHILD("6", "u-1", "w", OURS)) "]");
    assert_int_equal(ensure_made(&f, &m, 0), STW_CHILD_SYNCED);
    assert_int_equal(ensure_made(&f, &m, 0), STW_CHILD_SYNCED);
    assert_int_equal(m.times, 2); /* unknown inputs */
    assert_int_equal(ensure_made(&f, &m, 7), STW_CHILD_SYNCED);
    assert_int_equal(ensure_made(&f, &m, 7), STW_CHILD_SYNCED);
    assert_int_equal(m.times, 3);
    m.value = "w";
    assert_int_equal(ensure_made(&f, &m, 8), STW_CHILD_REPAIRED);
    assert_int_equal(m.times, 4);
    assert_int_equal(fake_count(&f.fake, "PATCH /"), 1);
    fixture_end(&f);
}

/* --- a manifest that lacks a value */

static json_t *make_without_value(const void *ctx)
{
    const char *none = NULL;
    (void)ctx;
    return stw_tree_pack("{s:s,s:s,s:{s:s},s:{s:s}}", "apiVersion", "v1", "kind", "ConfigMap",
                         "metadata", "name", "web", "data", "page", none);
}

static void test_missing_manifest_value_is_named(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "", "[]");
    f.child.desired = NULL;
    f.child.make = make_without_value;
    assert_int_equal(ensure(&f), STW_CHILD_FAILED);
    assert_string_equal(f.child.err.text, "the manifest of ConfigMap has no value for data.page");
    fixture_end(&f);
}

/* --- children beyond the rows, of a kind that the library does not know */

static const struct stw_resource job = {"batch", "v1", "Job", "jobs", true};
static const struct stw_watch watch_jobs = STW_CHILD_WATCH(&job);
#define JOBS "/apis/batch/v1/namespaces/shop/jobs"
#define JOB(uid, value)                                                                            \
    "{'metadata':{'namespace':'shop','name':'web-1','uid':'j-1','resourceVersion':'5',"            \
    "'ownerReferences':[{" BY "'kind':'MyWeb','name':'web','uid':'" uid "','controller':true}],"   \
    "'managedFields':[{'manager':'steward-myweb','operation':'Apply','fieldsV1':{'f:spec':{"       \
    "'f:suspend':{}}}}]},'spec':{'suspend':" value "}}"
#define LEAVING                                                                                    \
    "{'metadata':{'namespace':'shop','name':'web-1','uid':'j-1','resourceVersion':'5',"            \
    "'deletionTimestamp':'2026-01-01T00:00:00Z','ownerReferences':[{" BY                           \
    "'kind':'MyWeb','name':'web',"                                                                 \
    "'uid':'u-1','controller':true}]}}"
#define EXISTS                                                                                     \
    "{'match':'POST " JOBS "','status':409,'body':{'kind':'Status','reason':'AlreadyExists'}}"

static const struct {
    const char *what, *cached, *steps;
    enum stw_child_state state;
    const char *said;
    unsigned reads, writes;
} created[] = {
    {"new", "", "[{'match':'POST " JOBS "','status':201,'body':" JOB("u-1", "true") "}]",
     STW_CHILD_CREATED, "", 0, 1},
    {"it is there, with another content", JOB("u-1", "false"), "[]", STW_CHILD_SYNCED, "", 0, 0},
    {"the cache does not have it yet", "",
     "[" EXISTS ",{'match':'GET " JOBS "/web-1','body':" JOB("u-1", "false") "}]", STW_CHILD_SYNCED,
     "", 1, 1},
    {"another one's", "",
     "[" EXISTS ",{'match':'GET " JOBS "/web-1','body':" JOB("u-9", "true") "}]", STW_CHILD_FOREIGN,
     "Job \"web-1\" exists and has another owner, or none", 1, 1},
    {"a former owner's", JOB("u-0", "true"), "[]", STW_CHILD_FOREIGN, "has another owner", 0, 0},
    {"it is being deleted", LEAVING, "[]", STW_CHILD_TERMINATING, "is being deleted", 0, 0},
    {"refused", "",
     "[{'match':'POST " JOBS "','status':403,'body':{'kind':'Status','message':'no'}}]",
     STW_CHILD_FAILED, "no", 0, 1},
};

static void test_create_once_child_is_not_repeated(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(created); i++) {
        struct fixture f;
        struct stw_error err = {0};
        json_t *desired = json_pack("{s:{s:s,s:s},s:{s:b}}", "metadata", "namespace", "shop",
                                    "name", "web-1", "spec", "suspend", 1);
        fixture_begin(&f, &watch_jobs, desired, created[i].cached, created[i].steps);
        enum stw_child_state got =
            stw_child_create_once(&f.run, &f.owner, &watch_jobs, desired, &err);
        if (got != created[i].state || !strstr(err.text, created[i].said) ||
            (got > STW_CHILD_CREATED) != (*err.text != '\0') ||
            fake_count(&f.fake, "GET /") != created[i].reads ||
            fake_count(&f.fake, "POST /") != created[i].writes)
            fail_msg("%s: state %d, \"%s\", %u reads, %u writes", created[i].what, (int)got,
                     err.text, fake_count(&f.fake, "GET /"), fake_count(&f.fake, "POST /"));
        fixture_end(&f);
    }
}

static void test_extra_child_is_written_when_it_differs(void **state)
{
    static const struct {
        const char *cached, *steps;
        enum stw_child_state state;
        unsigned writes;
    } rows[] = {
        {JOB("u-1", "true"), "[]", STW_CHILD_SYNCED, 0},
        {"", "[{'match':'PATCH " JOBS "/web-1','body':" JOB("u-1", "true") "}]", STW_CHILD_CREATED,
         1},
        {JOB("u-1", "false"), "[{'match':'PATCH " JOBS "/web-1','body':" JOB("u-1", "true") "}]",
         STW_CHILD_UPDATED, 1},
        {"",
         "[{'match':'PATCH','status':409,'body':{'kind':'Status'}},{'match':'GET','body'"
         ":" CHILD_OF_OTHER "}]",
         STW_CHILD_FOREIGN, 1},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct fixture f;
        struct stw_error err = {0};
        json_t *desired =
            json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:b}}", "apiVersion", "batch/v1", "kind", "Job",
                      "metadata", "namespace", "shop", "name", "web-1", "spec", "suspend", 1);
        fixture_begin(&f, &watch_jobs, desired, rows[i].cached, rows[i].steps);
        enum stw_child_state got = stw_child_write(&f.run, &f.owner, &watch_jobs, desired, &err);
        if (got != rows[i].state || fake_count(&f.fake, "PATCH /") != rows[i].writes ||
            (got == STW_CHILD_FOREIGN) != (*err.text != '\0'))
            fail_msg("row %zu: state %d, \"%s\", %u writes", i, (int)got, err.text,
                     fake_count(&f.fake, "PATCH /"));
        fixture_end(&f);
    }
}

static void test_unbuildable_child_is_not_written(void **state)
{
    struct fixture f;
    struct stw_error err = {0};
    const char *none = NULL;
    (void)state;
    fixture_begin(&f, &watch_jobs, NULL, "", "[]");
    assert_int_equal(stw_child_create_once(&f.run, &f.owner, &watch_jobs,
                                           stw_tree_pack("{s:{s:s}}", "spec", "image", none), &err),
                     STW_CHILD_FAILED);
    assert_string_equal(err.text, "the manifest of Job has no value for spec.image");
    assert_int_equal(stw_child_write(&f.run, &f.owner, &watch_jobs,
                                     stw_tree_pack("{s:{s:s}}", "spec", "name", none), &err),
                     STW_CHILD_FAILED);
    assert_string_equal(err.text, "the manifest of Job has no value for spec.name");
    fixture_end(&f);
}

/* --- a watch that no table names */

static void test_unlisted_watch_is_named(void **state)
{
    struct fixture f;
    int pipe_ends[2], status = 0;
    char said[1000];
    (void)state;
    begin(&f, "", "[]");
    assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(pipe_ends[1], STDERR_FILENO);
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        (void)stw_run_cache(&f.run, &watch_jobs);
        _exit(0);
    }
    (void)close(pipe_ends[1]);
    ssize_t got = read(pipe_ends[0], said, sizeof(said) - 1);
    said[got > 0 ? got : 0] = '\0';
    (void)close(pipe_ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(said, "the watch is not in .watches of the controller"));
    assert_non_null(strstr(said, "jobs"));
    fixture_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_child_is_applied_repaired_or_refused),
        cmocka_unit_test(test_create_has_its_precondition),
        cmocka_unit_test(test_every_create_is_guarded),
        cmocka_unit_test(test_memory_addresses_in_messages_are_masked),
        cmocka_unit_test(test_vanished_owner_is_a_conflict),
        cmocka_unit_test(test_removal_names_the_resource_version),
        cmocka_unit_test(test_value_normalised_by_the_server_is_accepted),
        cmocka_unit_test(test_child_is_built_only_to_be_written),
        cmocka_unit_test(test_missing_manifest_value_is_named),
        cmocka_unit_test(test_create_once_child_is_not_repeated),
        cmocka_unit_test(test_extra_child_is_written_when_it_differs),
        cmocka_unit_test(test_unbuildable_child_is_not_written),
        cmocka_unit_test(test_unlisted_watch_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
