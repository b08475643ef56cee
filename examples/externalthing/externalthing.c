/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator with one kind, ExternalThing: a thing in a system outside of the cluster, which has an
 * API over HTTP.
 *
 *   GET, PUT, DELETE  ENDPOINT/things/UID  {"size": 3}
 *
 * A finalizer keeps the object until its thing is deleted.  The endpoint is an option of `run`. */
#include <steward/base.h>
#include <steward/controller.h>
#include <steward/kind.h>
#include <steward/operator.h>

#include <curl/curl.h>

#define FINALIZER "externalthing.example.org/thing"
#define CALL_MS 5000
#define CHECK_MS 60000 /* the system does not report changes */
#define ANSWER_MAX 4096

/* --- what the kinds of this program share */

struct stw_product {
    const char *endpoint;
};

struct options {
    char *endpoint;
};

static const struct stw_extra_flag flags[] = {
    {.command = "run",
     .flag = {.name = "endpoint",
              .arg = "URL",
              .def = "http://127.0.0.1:8900",
              .offset = offsetof(struct options, endpoint),
              .help = "of the external system"}},
    {0},
};

static int open_product(struct stw_host *host, struct stw_error *err)
{
    static struct stw_product product;
    const struct options *o = host->options;
    (void)err;
    if (o)
        product.endpoint = o->endpoint;
    host->product = &product;
    return 0;
}

static const struct stw_extension extension = {
    .options_size = sizeof(struct options), .flags = flags, .open = open_product};

/* --- the kind */

struct thing {
    int64_t size;
};

static const struct stw_field spec[] = {
    {.name = "size",
     .type = STW_T_INT,
     STW_FIELD_OFFSET(struct thing, size),
     .help = "Size of the thing.",
     .required = true,
     STW_RANGE(1, 100)},
    {0},
};

static const struct stw_field status[] = {
    {.name = "size", .type = STW_T_INT, .format = "int64", .help = "Size that the thing has."},
    {0},
};
static const struct stw_column columns[] = {STW_COLUMN_READY, STW_COLUMN_AGE, {0}};

static const struct stw_kind kind = {
    .group = "example.org",
    .version = "v1",
    .kind = "ExternalThing",
    .plural = "externalthings",
    .namespaced = true,
    .singular = "externalthing",
    .help = "ExternalThing is a thing in a system outside of the cluster.",
    .spec = spec,
    .spec_size = sizeof(struct thing),
    .status = status,
    .columns = columns,
    .operations = STW_CREATE | STW_UPDATE,
    .finalizer = FINALIZER,
};

/* --- the external system */

static size_t take_answer(char *data, size_t size, size_t count, void *ctx)
{
    struct stw_buf *answer = ctx;
    stw_buf_add(answer, data, size * count);
    return answer->failed ? 0 : size * count;
}

/* One request; 0 with the HTTP status, or -1. */
static int call_system(const struct stw_run *run, const char *uid, const char *method,
                       const char *body, long *ret_status, struct stw_buf *answer,
                       struct stw_error *err)
{
    char url[1024];
    CURL *curl = curl_easy_init();
    stw_format(url, sizeof(url), "%s/things/%s", run->env->product->endpoint, uid);
    if (!curl)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CALL_MS);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    if (body)
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    CURLcode code = curl_easy_perform(curl);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, ret_status);
    curl_easy_cleanup(curl);
    if (code != CURLE_OK)
        return stw_fail(err, STW_ERR_UNAVAILABLE, "%s %s: %s", method, url,
                        curl_easy_strerror(code));
    if (*ret_status >= 500 || (*ret_status >= 400 && *ret_status != 404))
        return stw_fail(err, STW_ERR_UNAVAILABLE, "%s %s: status %ld", method, url, *ret_status);
    return 0;
}

/* --- one run */

struct thing_run {
    STW_SUBJECT;
    struct thing spec;
    struct stw_error err;
    bool failed;
};

static int read_size(struct thing_run *r, int64_t *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(ANSWER_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    long code = 0;
    *ret = 0; /* there is none */
    if (call_system(r->run, r->uid, "GET", NULL, &code, &answer, err) != 0)
        return -1;
    if (code == 404)
        return 0;
    if (stw_json_scan(&doc, stw_buf_str(&answer), answer.len, err) != 0)
        return -1;
    (void)stw_json_int(stw_json_get(stw_json_root(&doc), "size"), ret);
    return 0;
}

static int write_size(struct thing_run *r, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(ANSWER_MAX);
    char body[64];
    long code = 0;
    if (!stw_run_may_write(r->run))
        return stw_fail(err, STW_ERR_CANCELLED, "this replica does not lead any more");
    stw_format(body, sizeof(body), "{\"size\": %lld}", (long long)r->spec.size);
    return call_system(r->run, r->uid, "PUT", body, &code, &answer, err);
}

/* The finalizer is set before the thing is created: it cannot be left over. */
static int sync_thing(struct thing_run *r, struct stw_error *err)
{
    int64_t size;
    if (stw_finalizer_add(r->run, &r->object, FINALIZER, err) < 0 || read_size(r, &size, err) != 0)
        return -1;
    return size == r->spec.size ? 0 : write_size(r, err);
}

static void ensure_thing(struct stw_subject *subject)
{
    struct thing_run *r = (struct thing_run *)subject;
    r->failed = sync_thing(r, &r->err) != 0;
}

static void find_aspects(const struct stw_subject *subject, struct stw_aspect *all)
{
    const struct thing_run *r = (const struct thing_run *)subject;
    all[0] =
        (struct stw_aspect){.type = "ThingSynced", .level = STW_LEVEL_FINE, .reason = "Synced"};
    STW_ASPECT_SAY(&all[0], "the thing has size %lld", (long long)r->spec.size);
    if (!r->failed)
        return;
    all[0].level = STW_LEVEL_RETRYING;
    all[0].truth = STW_FALSE;
    all[0].reason = "CallFailed";
    all[0].err = &r->err;
    STW_ASPECT_SAY(&all[0], "%s", r->err.text);
}

static void summarize(const struct stw_subject *subject, struct stw_verdict *v)
{
    (void)subject;
    v->reason = "Synced";
    v->again_ms = CHECK_MS;
    stw_format(v->message, sizeof(v->message), "the thing is as wanted");
}

static void report(const struct stw_subject *subject, const struct stw_verdict *v, json_t *tree)
{
    const struct thing_run *r = (const struct thing_run *)subject;
    (void)v;
    if (!r->failed)
        (void)json_object_set_new(tree, "size", json_integer(r->spec.size));
}

/* Also when the spec cannot be decoded: only the uid is needed. */
static void delete_thing(struct stw_subject *subject, struct stw_result *result)
{
    struct thing_run *r = (struct thing_run *)subject;
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(ANSWER_MAX);
    struct stw_error err = {0};
    long code = 0;
    if (!stw_finalizer_has(&r->object, FINALIZER))
        return;
    if (call_system(r->run, r->uid, "DELETE", NULL, &code, &answer, &err) != 0 ||
        stw_finalizer_remove(r->run, &r->object, FINALIZER, &err) < 0)
        stw_run_fail(r->run, &err, result);
}

/* The cache has to keep metadata.finalizers. */
static void project(const struct stw_controller *const *all, struct stw_json object,
                    struct stw_buf *out)
{
    static const char *const labels[] = {NULL};
    (void)all;
    stw_object_project_keeping(object, labels, NULL, out);
}

static const struct stw_watch own = {
    .resource = &kind.resource, .project = project, .changed = stw_watch_own_changed};

static const struct stw_rule rules[] = {
    {.resource = &kind.resource, .verbs = "get,list,watch,patch"},
    {0},
};

static const struct stw_controller controller = {
    STW_CONTROLLER_OF("externalthing", kind),
    .own = &own,
    .rules = rules,
    .conditions = (const char *const[]){"ThingSynced", NULL},
    STW_RUN_STATE(struct thing_run, spec),
    .ensure = ensure_thing,
    .find = find_aspects,
    .aspect_count = 1,
    .summarize = summarize,
    .report = report,
    .deleting = delete_thing,
};

static const struct stw_operator program = {
    .name = "externalthing",
    .domain = "externalthing.example.org",
    .metric_prefix = "externalthing",
    .version = "0.1.0",
    .about = "externalthing keeps things of an external system as objects describe them.\n",
    .kinds = (const struct stw_kind *const[]){&kind, NULL},
    .controllers = (const struct stw_controller *const[]){&controller, NULL},
    .extension = &extension,
};

int main(int argc, char **argv)
{
    return stw_operator_main(&program, argc, argv);
}
