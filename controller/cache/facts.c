/* SPDX-License-Identifier: Apache-2.0
 *
 * The manager's part of /debug/state: queues, caches, the lease, the last errors.  All of it is
 * bounded: by the numbers of controllers, watches and workers, STW_FAILURES_MAX, STW_UNREADY_MAX
 * and UNREADABLE_SHOWN. */
#include "base/util.h"
#include "controller/manager/manager_priv.h"

#include <inttypes.h>

#define UNREADABLE_SHOWN 100U /* of each cache */

static void add_text(struct stw_buf *out, const char *name, const char *value)
{
    stw_buf_addf(out, "\"%s\":", name);
    stw_buf_json_strz(out, value);
    stw_buf_addc(out, ',');
}

/* Seconds with three digits. */
static void add_seconds(struct stw_buf *out, const char *name, uint64_t ms)
{
    stw_buf_addf(out, "\"%s\":%" PRIu64 ".%03u,", name, ms / 1000, (unsigned)(ms % 1000));
}

static void add_number(struct stw_buf *out, const char *name, uint64_t value)
{
    stw_buf_addf(out, "\"%s\":%" PRIu64 ",", name, value);
}

static void add_time(struct stw_buf *out, const char *name, int64_t us)
{
    char text[STW_TIME_LEN] = "";
    if (us > 0)
        stw_time_format(us, text);
    add_text(out, name, text);
}

static void add_key(struct stw_buf *out, const char *key)
{
    char ns[STW_KEY_LEN], name[STW_KEY_LEN];
    stw_key_split(key, ns, name);
    add_text(out, "namespace", ns);
    add_text(out, "name", name);
}

/* Replaces the comma after the last member. */
static void end_list(struct stw_buf *out, char bracket)
{
    if (out->len > 0 && out->data[out->len - 1] == ',')
        out->len--;
    stw_buf_addc(out, bracket);
    stw_buf_addc(out, ',');
}

/* --- queues */

static void add_work(void *ctx, const char *key, uint64_t ms)
{
    struct stw_buf *out = ctx;
    stw_buf_addc(out, '{');
    add_key(out, key);
    add_seconds(out, "seconds", ms);
    end_list(out, '}');
}

static void add_totals(const struct stw_worker_pool *pool, struct stw_buf *out)
{
    double runs = 0;
    for (size_t i = 0; i < STW_COUNT(pool->by_outcome); i++)
        runs += stw_series_value(pool->by_outcome[i]);
    add_number(out, "runs", (uint64_t)runs);
    add_number(out, "failedRuns", (uint64_t)stw_series_value(pool->errors));
}

static void add_queue(struct stw_worker_pool *pool, struct stw_buf *out)
{
    struct stw_queue_facts facts;
    stw_autobuf struct stw_buf work = STW_BUF_INIT(256u << 10);
    stw_buf_addc(out, '{');
    add_text(out, "kind", pool->controller->kind->kind);
    stw_buf_addc(&work, '[');
    stw_queue_facts(pool->queue, &facts, add_work, &work);
    add_number(out, "depth", facts.ready);
    add_seconds(out, "oldestSeconds", facts.oldest_ms);
    add_number(out, "delayed", facts.delayed);
    add_seconds(out, "nextDelayedInSeconds", facts.next_due_ms);
    add_number(out, "failing", facts.failing);
    add_number(out, "workersMax",
               stw_worker_pool_size(pool->controller, pool->manager->config.workers));
    add_totals(pool, out);
    end_list(&work, ']');
    stw_buf_addf(out, "\"inWork\":%s", stw_buf_str(&work));
    end_list(out, '}');
}

/* --- errors */

/* null: nothing has planned one. */
static void add_next_run(struct stw_worker_pool *pool, const char *key, struct stw_buf *out)
{
    int64_t ms = stw_queue_due_ms(pool->queue, key);
    if (ms < 0)
        stw_buf_adds(out, "\"nextRunInSeconds\":null,");
    else
        add_seconds(out, "nextRunInSeconds", (uint64_t)ms);
}

struct errors {
    struct stw_worker_pool *pool;
    struct stw_buf *out;
};

struct each_failure {
    void (*each)(void *ctx, const struct stw_kind *kind, const struct stw_failure *one);
    void *ctx;
    const struct stw_kind *kind;
};

static void pass_failure(void *ctx, const struct stw_failure *one)
{
    const struct each_failure *e = ctx;
    e->each(e->ctx, e->kind, one);
}

uint64_t stw_manager_each_failure(struct stw_manager *m,
                                  void (*each)(void *ctx, const struct stw_kind *kind,
                                               const struct stw_failure *one),
                                  void *ctx)
{
    uint64_t dropped = 0;
    for (uint32_t i = 0; i < m->pool_count; i++) {
        struct each_failure e = {.each = each, .ctx = ctx, .kind = m->pools[i].controller->kind};
        dropped += stw_failures_each(m->pools[i].failures, pass_failure, &e);
    }
    return dropped;
}

static void add_error(void *ctx, const struct stw_failure *one)
{
    const struct errors *e = ctx;
    struct stw_buf *out = e->out;
    stw_buf_addc(out, '{');
    add_text(out, "kind", e->pool->controller->kind->kind);
    add_key(out, one->key);
    add_text(out, "reason", stw_err_name(one->code));
    add_time(out, "since", one->since_us);
    add_time(out, "time", one->at_us);
    add_next_run(e->pool, one->key, out);
    add_number(out, "streak", one->streak);
    stw_buf_addf(out, "\"stalled\":%s,", one->stalled ? "true" : "false");
    add_text(out, "error", one->text);
    end_list(out, '}');
}

/* Returns how many were dropped. */
static uint64_t add_errors(struct stw_manager *m, struct stw_buf *out)
{
    uint64_t dropped = 0;
    for (uint32_t i = 0; i < m->pool_count; i++) {
        struct errors e = {.pool = &m->pools[i], .out = out};
        dropped += stw_failures_each(m->pools[i].failures, add_error, &e);
    }
    return dropped;
}

/* --- objects that are not ready */

struct looking {
    struct stw_unready *unready;
    uint32_t pool;
};

static void look_at_object(void *ctx, const char *key, struct stw_json root)
{
    const struct looking *l = ctx;
    stw_unready_look(l->unready, l->pool, key, root);
}

static void add_unready(const struct stw_manager *m, const struct stw_unready_object *o,
                        struct stw_buf *out)
{
    struct stw_worker_pool *pool = &m->pools[o->pool];
    stw_buf_addc(out, '{');
    add_text(out, "kind", pool->controller->kind->kind);
    add_key(out, o->key);
    add_text(out, "state", o->state);
    add_text(out, "reason", o->reason);
    add_text(out, "since", o->since);
    add_next_run(pool, o->key, out);
    add_text(out, "message", o->message);
    end_list(out, '}');
}

/* Returns how many were left out. */
static uint32_t add_all_unready(const struct stw_manager *m, struct stw_buf *out)
{
    struct stw_unready *unready = stw_unready_create(m);
    uint32_t left_out = 0;
    for (uint32_t i = 0; unready && i < m->pool_count; i++)
        stw_manager_each_object(&m->pools[i], look_at_object,
                                &(struct looking){.unready = unready, .pool = i});
    for (uint32_t i = 0; unready && i < unready->count; i++)
        add_unready(m, &unready->all[i], out);
    for (uint32_t i = 0; unready && i < m->pool_count; i++)
        left_out += unready->left_out[i];
    stw_unready_destroy(unready);
    return left_out;
}

/* --- caches */

/* The kinds whose controllers read it. */
static void add_readers(const struct stw_manager *m, const struct stw_watch *watch,
                        struct stw_buf *out)
{
    stw_buf_adds(out, "\"kinds\":[");
    for (uint32_t i = 0; i < m->pool_count; i++) {
        const struct stw_controller *c = m->pools[i].controller;
        const struct stw_watch *one;
        for (size_t w = 0; (one = stw_controller_watch(c, w)); w++)
            if (one == watch) {
                stw_buf_json_strz(out, c->kind->kind);
                stw_buf_addc(out, ',');
            }
    }
    end_list(out, ']');
}

static void add_watch(const struct stw_manager *m, const struct stw_watch_cache *cache,
                      struct stw_buf *out)
{
    struct stw_informer_facts facts;
    const struct stw_resource *r = stw_informer_resource(cache->informer);
    stw_informer_facts(cache->informer, &facts);
    stw_buf_addc(out, '{');
    add_text(out, "group", r->group);
    add_text(out, "version", r->version);
    add_text(out, "resource", r->plural);
    add_text(out, "selector", cache->selector);
    add_readers(m, cache->watch, out);
    add_number(out, "objects", facts.objects);
    add_number(out, "bytes", facts.bytes);
    stw_buf_addf(out, "\"synced\":%s,", facts.synced ? "true" : "false");
    add_text(out, "resourceVersion", facts.resource_version);
    add_time(out, "lastEvent", facts.last_event_us);
    add_number(out, "lists", facts.lists);
    add_number(out, "failures", facts.failures);
    add_number(out, "unreadable", facts.unreadable);
    add_text(out, "problem", facts.problem);
    end_list(out, '}');
}

/* --- objects that cannot be read */

struct unreadable {
    const struct stw_resource *resource;
    struct stw_buf *out;
    uint32_t shown, left_out;
};

static void add_unreadable(void *ctx, const char *key, const char *place, const char *why)
{
    struct unreadable *u = ctx;
    if (u->shown == UNREADABLE_SHOWN) {
        u->left_out++;
        return;
    }
    u->shown++;
    stw_buf_addc(u->out, '{');
    add_text(u->out, "group", u->resource->group);
    add_text(u->out, "resource", u->resource->plural);
    add_key(u->out, key ? key : "");
    add_text(u->out, "place", place);
    add_text(u->out, "reason", why);
    end_list(u->out, '}');
}

/* Returns how many were left out. */
static uint32_t add_all_unreadable(const struct stw_manager *m, struct stw_buf *out)
{
    uint32_t left_out = 0;
    for (uint32_t i = 0; i < m->cache_count; i++) {
        struct unreadable u = {.resource = stw_informer_resource(m->caches[i].informer),
                               .out = out};
        left_out += stw_informer_each_unreadable(m->caches[i].informer, add_unreadable, &u);
        left_out += u.left_out;
    }
    return left_out;
}

/* --- all */

static void add_lease(const struct stw_manager *m, struct stw_buf *out)
{
    char name[STW_OWN_NAME_LEN];
    if (!m->lease)
        return;
    stw_operator_text(m->config.op, STW_MANAGER_LEASE, name);
    stw_buf_addc(out, '{');
    add_text(out, "namespace", m->config.lease_ns);
    add_text(out, "name", name);
    stw_buf_addf(out, "\"held\":%s,", stw_lease_held(m->lease) ? "true" : "false");
    end_list(out, '}');
}

void stw_manager_facts(struct stw_manager *m, struct stw_buf *out)
{
    bool working = stw_manager_works(m);
    stw_buf_adds(out, "\"identity\":");
    stw_buf_json_strz(out, m->config.identity ? m->config.identity : "");
    stw_buf_addf(out, ",\"reconciles\":%s,\"leases\":[", working ? "true" : "false");
    add_lease(m, out);
    end_list(out, ']');
    stw_buf_adds(out, "\"queues\":[");
    for (uint32_t i = 0; i < m->pool_count; i++)
        add_queue(&m->pools[i], out);
    end_list(out, ']');
    stw_buf_adds(out, "\"caches\":[");
    for (uint32_t i = 0; i < m->cache_count; i++)
        add_watch(m, &m->caches[i], out);
    end_list(out, ']');
    stw_buf_adds(out, "\"unreadable\":[");
    uint32_t left_out = add_all_unreadable(m, out);
    end_list(out, ']');
    stw_buf_addf(out, "\"unreadableLeftOut\":%" PRIu32 ",", left_out);
    stw_buf_adds(out, "\"notReady\":[");
    left_out = add_all_unready(m, out);
    end_list(out, ']');
    stw_buf_addf(out, "\"notReadyLeftOut\":%" PRIu32 ",", left_out);
    stw_buf_adds(out, "\"errors\":[");
    uint64_t dropped = add_errors(m, out);
    end_list(out, ']');
    stw_buf_addf(out, "\"errorsDropped\":%" PRIu64, dropped);
}

/* A conflict is repeated at once; a longer delay waits for time to pass, not for another run. */
#define SOON_MS 1000

bool stw_manager_settled(struct stw_manager *m)
{
    bool settled = stw_manager_works(m);
    for (uint32_t i = 0; settled && i < m->pool_count; i++) {
        struct stw_queue_facts facts;
        stw_queue_facts(m->pools[i].queue, &facts, NULL, NULL);
        settled = !facts.ready && !facts.working && (!facts.delayed || facts.next_due_ms > SOON_MS);
    }
    return settled;
}
