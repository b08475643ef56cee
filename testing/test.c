/* SPDX-License-Identifier: Apache-2.0 */
#include "testing/test.h"

#include "base/metrics.h"
#include "base/util.h"
#include "controller/controller.h"
#include "kube/kubeconfig.h"
#include "kube/resource.h"
#include "schema/kind.h"
#include "testing/admit_priv.h"
#include "testing/tree_priv.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_MS 10000
#define POLL_NS 500000L
#define SEEN_MS 20 /* until another bookmark is sent: a watch may have begun after the last one */
#define SOON_MS 1000
#define JUMP_MAX_MS                                                                                \
    3000 /* in one wait, so that a run which is due again and again does not go on for ever */
#define ADVANCE_MAX_MS (10ull * 24 * 3600 * 1000)
#define STOP_MS 5000
#define TEXT_MAX (256u << 10)
#define RESOURCES_MAX 256

struct stw_test {
    struct stw_test_config config;
    _Atomic uint64_t ahead_ms; /* of the system's clock */
    struct stw_clock clock;
    struct stw_test_webhooks webhooks;
    const struct stw_resource *resources[RESOURCES_MAX + 1];
    struct stw_test_server *server;
    struct stw_metrics *metrics;
    struct stw_client *client;
    struct stw_manager *manager;
    json_t *kept; /* what was handed out */
    char *text;   /* of the last failure */
};

/* --- failures */

static void tell_errors(struct stw_test *t, struct stw_buf *out)
{
    stw_autobuf struct stw_buf facts = STW_BUF_INIT(16u << 20);
    const json_t *one;
    size_t i;
    stw_buf_addc(&facts, '{');
    if (t->manager)
        stw_manager_facts(t->manager, &facts);
    stw_buf_addc(&facts, '}');
    json_auto_t *all = json_loadb(stw_buf_str(&facts), facts.len, 0, NULL);
    json_array_foreach (json_object_get(all, "errors"), i, one) {
        stw_autofree char *text = json_dumps(one, JSON_COMPACT);
        stw_buf_addf(out, "  failed: %s\n", text ? text : "");
    }
}

/* Calls the test's function, which may not return. */
static bool fail(struct stw_test *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool fail(struct stw_test *t, const char *fmt, ...)
{
    struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    va_list ap;
    va_start(ap, fmt);
    stw_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    stw_buf_addc(&text, '\n');
    tell_errors(t, &text);
    if (t->server) {
        stw_buf_adds(&text, "writes so far:\n");
        stw_test_server_tell(t->server, &text);
    }
    free(t->text);
    t->text = stw_buf_take(&text);
    if (t->config.fail) {
        t->config.fail(t->text ? t->text : "the test failed, and its text was too long");
        return false;
    }
    (void)fputs(t->text ? t->text : "", stderr);
    abort();
}

/* Owns it until the end of the test. */
static const json_t *keep(struct stw_test *t, json_t *value)
{
    json_array_append_new(t->kept, value);
    return value;
}

/* --- the clock */

static uint64_t test_monotonic_ms(void *ctx)
{
    struct stw_test *t = ctx;
    return stw_now_ms(&stw_clock_system) + atomic_load(&t->ahead_ms);
}

static int64_t test_wall_us(void *ctx)
{
    struct stw_test *t = ctx;
    return stw_wall_us(&stw_clock_system) + (int64_t)atomic_load(&t->ahead_ms) * 1000;
}

static uint64_t test_boot_ms(void *ctx)
{
    struct stw_test *t = ctx;
    return stw_boot_ms(&stw_clock_system) + atomic_load(&t->ahead_ms);
}

/* --- begin and end */

static void add_resource(struct stw_test *t, size_t *count, const struct stw_resource *r)
{
    if (r && *count < RESOURCES_MAX)
        t->resources[(*count)++] = r;
}

/* Of one group and plural the first is served. */
static void choose_resources(struct stw_test *t)
{
    static const struct stw_resource *const common[] = {
        &stw_res_configmap,     &stw_res_service,
        &stw_res_secret,        &stw_res_deployment,
        &stw_res_lease,         &stw_res_event,
        &stw_res_namespace,     &stw_res_crd,
        &stw_res_mutating,      &stw_res_validating,
        &stw_res_pod,           &stw_res_ingress,
        &stw_res_autoscaler_v2, &stw_res_disruption_budget_v1};
    const struct stw_operator *op = t->config.op;
    size_t count = 0;
    for (const struct stw_resource *const *r = t->config.resources; r && *r; r++)
        add_resource(t, &count, *r);
    for (const struct stw_kind *const *k = op->kinds; k && *k; k++)
        add_resource(t, &count, &(*k)->resource);
    for (const struct stw_controller *const *c = op->controllers; c && *c; c++) {
        const struct stw_watch *w = (*c)->own;
        for (size_t i = 0; w; w = stw_controller_watch(*c, i++))
            if (!w->optional)
                add_resource(t, &count, w->alternatives ? w->alternatives[0] : w->resource);
    }
    for (size_t i = 0; i < STW_COUNT(common); i++)
        add_resource(t, &count, common[i]);
}

static int connect_client(struct stw_test *t, struct stw_error *err)
{
    stw_autofree char *url = strdup(stw_test_server_url(t->server));
    const struct stw_kubeconfig config = {.server = url};
    if (!url)
        return stw_fail_memory(err);
    return stw_client_create(t->config.op, &config, &t->clock, t->metrics, &t->client, err);
}

static int begin(struct stw_test *t, struct stw_error *err)
{
    choose_resources(t);
    if (stw_operator_check(t->config.op, err) != 0)
        return -1;
    t->metrics = stw_metrics_create(t->config.op->metric_prefix);
    if (!t->metrics || !t->kept)
        return stw_fail_memory(err);
    const struct stw_test_server_config config = {
        .resources = t->resources,
        .clock = &t->clock,
        .admit = t->config.no_webhooks ? NULL : stw_test_admit,
        .admit_ctx = &t->webhooks,
    };
    return stw_test_server_start(&config, &t->server, err) != 0 ? -1 : connect_client(t, err);
}

struct stw_test *stw_test_begin(const struct stw_test_config *config)
{
    struct stw_error err = {0};
    struct stw_test *t = calloc(1, sizeof(*t));
    if (!t)
        abort();
    t->config = *config;
    t->config.wait_ms = config->wait_ms ? config->wait_ms : WAIT_MS;
    t->clock = (struct stw_clock){.ctx = t,
                                  .monotonic_ms = test_monotonic_ms,
                                  .wall_us = test_wall_us,
                                  .boot_ms = test_boot_ms};
    t->kept = json_array();
    t->webhooks.op = config->op;
    (void)pthread_rwlock_init(&t->webhooks.lock, NULL);
    if (begin(t, &err) == 0)
        return t;
    (void)fail(t, "stw_test_begin: %s", err.text);
    stw_test_end(t);
    return NULL;
}

static void set_lookup(struct stw_test *t, const struct stw_lookup *lookup)
{
    pthread_rwlock_wrlock(&t->webhooks.lock);
    t->webhooks.lookup = lookup;
    pthread_rwlock_unlock(&t->webhooks.lock);
}

static void stop_manager(struct stw_test *t)
{
    set_lookup(t, NULL);
    if (t->manager)
        stw_manager_stop(t->manager, STOP_MS);
    stw_manager_destroy(t->manager); /* cancels the client */
    stw_client_destroy(t->client);
    t->manager = NULL;
    t->client = NULL;
}

void stw_test_end(struct stw_test *t)
{
    if (!t)
        return;
    stop_manager(t);
    stw_test_server_stop(t->server);
    stw_metrics_destroy(t->metrics);
    pthread_rwlock_destroy(&t->webhooks.lock);
    json_decref(t->kept);
    free(t->text);
    free(t);
}

static bool start_manager(struct stw_test *t)
{
    struct stw_error err = {0};
    const struct stw_manager_config config = {
        .op = t->config.op,
        .client = t->client,
        .clock = &t->clock,
        .metrics = t->metrics,
        .namespaces = t->config.namespaces,
        .workers = t->config.workers,
        .lease_ns = "default",
        .identity = "test",
        .product = t->config.product,
    };
    if (t->manager)
        return true;
    if (stw_manager_create(&config, &t->manager, &err) != 0 ||
        stw_manager_start(t->manager, &err) != 0)
        return fail(t, "the manager does not start: %s", err.text);
    set_lookup(t, stw_manager_lookup(t->manager));
    return true;
}

bool stw_test_restart(struct stw_test *t)
{
    struct stw_error err = {0};
    stop_manager(t);
    stw_metrics_destroy(t->metrics);
    t->metrics = stw_metrics_create(t->config.op->metric_prefix);
    if (!t->metrics || connect_client(t, &err) != 0)
        return fail(t, "stw_test_restart: %s", err.text);
    return start_manager(t);
}

/* --- objects */

bool stw_test_put(struct stw_test *t, json_t *object)
{
    struct stw_error err = {0};
    int rc = object ? stw_test_server_put(t->server, object, &err)
                    : stw_fail(&err, STW_ERR_INVALID,
                               "the object is NULL: see the format of json_pack()");
    json_decref(object);
    return rc == 0 || fail(t, "stw_test_put: %s", err.text);
}

const char *stw_test_refused(struct stw_test *t, json_t *object)
{
    struct stw_error err = {0};
    int rc = stw_test_server_put(t->server, object, &err);
    json_decref(object);
    if (rc == 0)
        (void)fail(t, "stw_test_refused: the object was accepted");
    return json_string_value(keep(t, json_string(err.text)));
}

const json_t *stw_test_get(struct stw_test *t, const struct stw_resource *r, const char *key)
{
    char ns[STW_KEY_LEN], name[STW_KEY_LEN];
    stw_key_split(key, ns, name);
    json_t *found = stw_test_server_get(t->server, r, ns, name);
    return found ? keep(t, found) : NULL;
}

const char *stw_test_text(struct stw_test *t, const struct stw_resource *r, const char *key,
                          const char *path)
{
    const json_t *v = stw_test_path(stw_test_get(t, r, key), path);
    if (!v || json_is_string(v))
        return v ? json_string_value(v) : "";
    stw_autofree char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    return json_string_value(keep(t, json_string(text ? text : "")));
}

const char *stw_test_condition(struct stw_test *t, const struct stw_resource *r, const char *key,
                               const char *type)
{
    const json_t *one;
    size_t i;
    json_array_foreach (stw_test_path(stw_test_get(t, r, key), "status.conditions"), i, one)
        if (stw_streq(stw_test_text_of(one, "type"), type))
            return stw_test_text_of(one, "status");
    return "";
}

bool stw_test_delete(struct stw_test *t, const struct stw_resource *r, const char *key)
{
    char ns[STW_KEY_LEN], name[STW_KEY_LEN];
    struct stw_error err = {0};
    stw_key_split(key, ns, name);
    return stw_test_server_delete(t->server, r, ns, name, &err) == 0 ||
           fail(t, "stw_test_delete: %s", err.text);
}

const char *stw_test_event(struct stw_test *t, const char *name, const char *reason)
{
    const json_t *events = keep(t, stw_test_server_list(t->server, &stw_res_event, NULL));
    for (size_t i = json_array_size(events); i > 0; i--) {
        const json_t *e = json_array_get(events, i - 1);
        if (stw_streq(stw_test_text_at(e, "regarding.name"), name) &&
            stw_streq(stw_test_text_of(e, "reason"), reason))
            return stw_test_text_of(e, "note");
    }
    return "";
}

/* --- waits */

struct wait {
    struct stw_test *t;
    uint64_t end_ms, jumped_ms;
    char why[512]; /* what is waited for */
};

static json_t *read_facts(struct stw_test *t)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(16u << 20);
    stw_buf_addc(&text, '{');
    stw_manager_facts(t->manager, &text);
    stw_buf_addc(&text, '}');
    return json_loadb(stw_buf_str(&text), text.len, 0, NULL);
}

static bool is_served(const struct stw_test *t, const json_t *cache)
{
    for (const struct stw_resource *const *r = t->resources; *r; r++)
        if (stw_streq((*r)->plural, stw_test_text_of(cache, "resource")) &&
            stw_streq((*r)->group, stw_test_text_of(cache, "group")))
            return true;
    return false;
}

static bool caches_have_seen(struct wait *w, uint64_t version)
{
    json_auto_t *facts = read_facts(w->t);
    const json_t *cache;
    size_t i;
    json_array_foreach (json_object_get(facts, "caches"), i, cache) {
        int64_t seen = 0;
        (void)stw_parse_int(stw_test_text_of(cache, "resourceVersion"), 0, INT64_MAX, &seen);
        if (!is_served(w->t, cache) || (uint64_t)seen >= version)
            continue;
        stw_format(w->why, sizeof(w->why), "the cache of %s has not seen all changes%s%s",
                   stw_test_text_of(cache, "resource"),
                   *stw_test_text_of(cache, "problem") ? ": " : "",
                   stw_test_text_of(cache, "problem"));
        return false;
    }
    return true;
}

static void sleep_a_little(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
}

static void move_clock(struct stw_test *t, uint64_t ms)
{
    atomic_fetch_add(&t->ahead_ms, ms);
    stw_manager_clock_moved(t->manager);
}

/* Whether no run is ready or under way; `ret_next_ms`: until the next one, UINT64_MAX: there is none. */
static bool queues_are_idle(struct wait *w, uint64_t *ret_next_ms)
{
    json_auto_t *facts = read_facts(w->t);
    const json_t *queue;
    size_t i;
    *ret_next_ms = UINT64_MAX;
    if (!json_is_true(json_object_get(facts, "reconciles"))) {
        stw_format(w->why, sizeof(w->why), "the manager has not begun");
        return false;
    }
    json_array_foreach (json_object_get(facts, "queues"), i, queue) {
        double next = json_number_value(json_object_get(queue, "nextDelayedInSeconds"));
        if (json_array_size(json_object_get(queue, "inWork")) > 0 ||
            json_integer_value(json_object_get(queue, "depth")) > 0) {
            stw_format(w->why, sizeof(w->why), "runs of %s go on and on",
                       stw_test_text_of(queue, "kind"));
            return false;
        }
        if (json_integer_value(json_object_get(queue, "delayed")) > 0)
            *ret_next_ms = STW_MIN(*ret_next_ms, (uint64_t)(next * 1000));
    }
    return true;
}

/* Whether the caches have seen all changes, and none has come since. */
static bool look(struct wait *w, uint64_t *ret_next_ms)
{
    struct stw_test *t = w->t;
    uint64_t first = stw_test_server_bookmark(t->server), more = 0;
    uint64_t again_ms = stw_now_ms(&stw_clock_system) + SEEN_MS;
    while (!caches_have_seen(w, first)) {
        uint64_t now = stw_now_ms(&stw_clock_system);
        if (now >= w->end_ms)
            return false;
        if (now >= again_ms) {
            (void)stw_test_server_bookmark(t->server);
            more++;
            again_ms = now + SEEN_MS;
        }
        sleep_a_little();
    }
    if (!queues_are_idle(w, ret_next_ms))
        return false;
    stw_format(w->why, sizeof(w->why), "events are still to be written, or changes go on");
    return !stw_client_is_submitting(t->client) &&
           stw_test_server_version(t->server) == first + more;
}

static bool settle(struct wait *w, uint64_t *ret_next_ms)
{
    while (stw_now_ms(&stw_clock_system) < w->end_ms) {
        if (!look(w, ret_next_ms)) {
            sleep_a_little();
            continue;
        }
        if (*ret_next_ms > SOON_MS || w->jumped_ms >= JUMP_MAX_MS)
            return true;
        w->jumped_ms += *ret_next_ms + 1;
        move_clock(w->t, *ret_next_ms + 1);
    }
    return fail(w->t, "not settled after %u ms: %s", w->t->config.wait_ms, w->why);
}

static struct wait make_wait(struct stw_test *t)
{
    return (struct wait){.t = t, .end_ms = stw_now_ms(&stw_clock_system) + t->config.wait_ms};
}

bool stw_test_settle(struct stw_test *t)
{
    uint64_t next_ms;
    struct wait w = make_wait(t);
    return start_manager(t) && settle(&w, &next_ms);
}

/* In steps from one run to the next, so that each has its time.  A long step ends watches, which were silent for
 * too long: they begin again. */
bool stw_test_advance(struct stw_test *t, uint64_t ms)
{
    uint64_t next_ms = 0, end_ms = stw_now_ms(&t->clock) + STW_MIN(ms, ADVANCE_MAX_MS);
    struct wait w = make_wait(t);
    if (!start_manager(t) || !settle(&w, &next_ms))
        return false;
    for (uint64_t now; (now = stw_now_ms(&t->clock)) < end_ms;) {
        w = make_wait(t);
        move_clock(t, STW_MIN(end_ms - now, STW_MAX(next_ms, 1)));
        if (!settle(&w, &next_ms))
            return false;
    }
    return true;
}

/* --- requests */

size_t stw_test_count(struct stw_test *t, const struct stw_test_request *pattern)
{
    return stw_test_server_requests(t->server, pattern);
}

void stw_test_forget(struct stw_test *t)
{
    stw_test_server_forget_requests(t->server);
}

bool stw_test_fail(struct stw_test *t, const struct stw_test_fault *fault)
{
    return stw_test_server_fail(t->server, fault) == 0 ||
           fail(t, "stw_test_fail: more than %u faults", STW_TEST_FAULTS_MAX);
}

struct stw_test_server *stw_test_server(struct stw_test *t)
{
    return t->server;
}

const struct stw_clock *stw_test_clock(struct stw_test *t)
{
    return &t->clock;
}

struct stw_client *stw_test_client(struct stw_test *t)
{
    return t->client;
}

struct stw_manager *stw_test_manager(struct stw_test *t)
{
    return t->manager;
}
