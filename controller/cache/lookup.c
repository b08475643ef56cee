/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries of the caches: look-ups by index for admission rules and for waking waiting objects, and
 * the metric PREFIX_objects. */
#include "base/thread.h"
#include "base/util.h"
#include "controller/cache/stub.h"
#include "controller/manager/manager_priv.h"
#include "controller/object.h"
#include "controller/object/finalizer_priv.h"
#include "controller/packed.h"

#include <stdio.h>

#define KEYS_MAX (64u << 20)
#define TEXT_MAX (8u << 20)

struct stw_watch_cache *stw_manager_cache(struct stw_manager *m, const struct stw_watch *w)
{
    for (uint32_t i = 0; i < m->cache_count; i++)
        if (m->caches[i].watch == w)
            return &m->caches[i];
    return NULL;
}

void *stw_manager_state(struct stw_manager *m, const struct stw_controller *c)
{
    for (uint32_t i = 0; i < m->pool_count; i++)
        if (m->pools[i].controller == c)
            return m->pools[i].state;
    return NULL;
}

/* Finds the cache of a resource.  Of several it prefers one with an index, then one without a label
 * selector. */
static struct stw_watch_cache *find_cache(struct stw_manager *m, const char *plural, size_t len)
{
    struct stw_watch_cache *found = NULL;
    for (uint32_t i = 0; i < m->cache_count; i++) {
        const struct stw_watch *w = m->caches[i].watch;
        if (strncmp(w->resource->plural, plural, len) == 0 && w->resource->plural[len] == '\0' &&
            (!found || w->index || (!*m->caches[i].selector && !found->watch->index)))
            found = &m->caches[i];
    }
    return found;
}

/* The keys of the objects that are indexed under `value` of a field. */
static void keys_under(struct stw_informer *inf, const char *field, const char *value,
                       struct stw_buf *ret_keys)
{
    stw_autobuf struct stw_buf key = STW_BUF_INIT(64 * 1024);
    stw_index_add(&key, field, value);
    if (key.failed)
        return;
    key.data[key.len - 1] = '\0'; /* replaces the '\n' */
    stw_informer_keys(inf, key.data, ret_keys);
}

void stw_name_to(const char *self, const char *key, char *out, size_t size)
{
    size_t len = self ? strcspn(self, "/") : 0;
    bool same = self && len == strcspn(key, "/") && memcmp(self, key, len) == 0;
    stw_format(out, size, "%s", same ? key : "in another namespace");
}

bool stw_manager_find(void *ctx, const char *index, const char *key, const char *self,
                      char *ret_holder)
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    const char *dot = strchr(index, '.');
    struct stw_watch_cache *cache = dot ? find_cache(ctx, index, (size_t)(dot - index)) : NULL;
    size_t at = 0;
    if (!cache)
        return false;
    keys_under(cache->informer, dot + 1, key, &keys);
    for (const char *k; (k = stw_keys_next(&keys, &at));) {
        if (self && stw_streq(k, self))
            continue;
        stw_name_to(self, k, ret_holder, 512);
        return true;
    }
    return false;
}

/* Objects of other namespaces are not cached, so their absence from the cache means nothing. */
static bool looks_after(const struct stw_manager *m, const char *key)
{
    size_t len = strcspn(key, "/");
    const char *const *ns = m->config.namespaces;
    for (; ns && *ns; ns++)
        if (strlen(*ns) == len && strncmp(*ns, key, len) == 0)
            return true;
    return !m->config.namespaces;
}

int stw_manager_has(void *ctx, const char *plural, const char *key)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    struct stw_watch_cache *cache = find_cache(ctx, plural, strlen(plural));
    if (!looks_after(ctx, key) || !cache || !stw_informer_synced(cache->informer))
        return -1;
    return stw_informer_get(cache->informer, key, &text, NULL) == 0;
}

const struct stw_lookup *stw_manager_lookup(struct stw_manager *m)
{
    return &m->lookup;
}

/* --- enqueueing */

static struct stw_worker_pool *pool_of_kind(struct stw_manager *m, const char *kind)
{
    for (uint32_t i = 0; i < m->pool_count; i++)
        if (stw_streq(m->pools[i].controller->kind->kind, kind))
            return &m->pools[i];
    return NULL;
}

void stw_manager_enqueue(struct stw_manager *m, const char *kind, const char *key)
{
    struct stw_worker_pool *pool = pool_of_kind(m, kind);
    if (pool)
        (void)stw_queue_add(pool->queue, key, 0);
}

void *stw_manager_state_of(struct stw_manager *m, const char *kind)
{
    struct stw_worker_pool *pool = pool_of_kind(m, kind);
    return pool ? pool->state : NULL;
}

static bool has_watch(const struct stw_controller *c, const struct stw_watch *w)
{
    const struct stw_watch *one;
    for (size_t i = 0; (one = stw_controller_watch(c, i)); i++)
        if (one == w)
            return true;
    return false;
}

void stw_manager_enqueue_namesakes(struct stw_manager *m, const struct stw_watch *w,
                                   const char *key)
{
    for (uint32_t i = 0; i < m->pool_count; i++) {
        const struct stw_worker_pool *pool = &m->pools[i];
        stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
        if (has_watch(pool->controller, w) && pool->own &&
            stw_informer_get(pool->own->informer, key, &text, NULL) == 0)
            (void)stw_queue_add(pool->queue, key, 0);
    }
}

void stw_manager_enqueue_all(struct stw_manager *m, const struct stw_controller *c)
{
    struct stw_worker_pool *pool = pool_of_kind(m, c->kind->kind);
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    size_t at = 0;
    if (!pool || !pool->own)
        return;
    stw_informer_keys(pool->own->informer, NULL, &keys);
    for (const char *k; (k = stw_keys_next(&keys, &at));)
        (void)stw_queue_add(pool->queue, k, 0);
}

/* Of two stubs, or of none. */
static bool same_digest(struct stw_json a, struct stw_json b)
{
    return stw_json_there(a) == stw_json_there(b) && (!stw_json_there(a) || stw_json_equal(a, b));
}

/* Compares two texts of stw_object_project or its variants: true if they differ at most in the
 * status. */
static bool only_status_differs(const char *old_text, const char *new_text)
{
    stw_autojson struct stw_json_doc was = {0}, is = {0};
    stw_autobuf struct stw_buf old_buf = STW_BUF_INIT(TEXT_MAX), new_buf = STW_BUF_INIT(TEXT_MAX);
    if (stw_unpack_scan(old_text, strlen(old_text), &old_buf, &was) != 0 ||
        stw_unpack_scan(new_text, strlen(new_text), &new_buf, &is) != 0)
        return false;
    struct stw_json a = stw_json_root(&was), b = stw_json_root(&is);
    return stw_json_equal(stw_json_get(a, "metadata"), stw_json_get(b, "metadata")) &&
           stw_json_equal(stw_json_get(a, "spec"), stw_json_get(b, "spec")) &&
           same_digest(stw_json_path(a, "stub.spec"), stw_json_path(b, "stub.spec"));
}

/* While a run of this key is active, a change of only the status is taken for its own write, whose
 * event can arrive before the response.  At other times a status written by another client enqueues
 * the key, so that it is corrected. */
static bool is_own_write(const struct stw_worker_pool *pool, const char *key, const char *old_text,
                         const char *new_text)
{
    return old_text && new_text && stw_queue_is_working(pool->queue, key) &&
           only_status_differs(old_text, new_text);
}

/* A deletion that we have to run, although the object is gone. */
static void keep_remains(const struct stw_worker_pool *pool, const char *key, const char *text)
{
    const char *finalizer = pool->controller->kind->finalizer;
    char name[STW_REMAINS_KEY_LEN];
    if (!finalizer || !pool->controller->deleting || !stw_finalizer_overtaken(text, finalizer))
        return;
    stw_remains_key(pool->controller, key, name);
    stw_remains_keep(pool->manager->remains, name, text);
}

void stw_watch_own_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                           const char *old_text, const char *new_text)
{
    struct stw_worker_pool *pool = pool_of_kind(m, w->resource->kind);
    if (pool && old_text && !new_text)
        keep_remains(pool, key, old_text);
    if (pool && !is_own_write(pool, key, old_text, new_text))
        (void)stw_queue_add(pool->queue, key, 0);
}

void stw_manager_wake(struct stw_manager *m, const char *field, const char *value)
{
    for (uint32_t i = 0; i < m->pool_count; i++) {
        stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
        size_t at = 0;
        if (!m->pools[i].controller->own->index || !m->pools[i].own)
            continue;
        keys_under(m->pools[i].own->informer, field, value, &keys);
        for (const char *k; (k = stw_keys_next(&keys, &at));)
            (void)stw_queue_add(m->pools[i].queue, k, 0);
    }
}

void stw_manager_report_secret(struct stw_manager *m, const char *key)
{
    for (uint32_t i = 0; i < m->pool_count; i++) {
        const struct stw_controller *c = m->pools[i].controller;
        if (c->secret_changed && m->pools[i].state)
            c->secret_changed(m->pools[i].state, key);
    }
}

/* --- PREFIX_objects: the number of objects by condition, counted from the caches at each scrape,
 * so that it cannot drift from the actual state */

static const char *const states[] = {"True", "False", "Unknown"};

#define TYPES_MAX 32

struct census {
    uint32_t of[TYPES_MAX][STW_COUNT(states)];
    uint32_t stubs;
};

struct counting {
    struct census census;
    struct stw_unready *unready;
    const struct stw_controller *controller;
    uint32_t pool;
};

static void count_object(void *ctx, const char *object, struct stw_json root)
{
    struct counting *to = ctx;
    struct stw_json key, condition;
    to->census.stubs += stw_stub_is(root);
    stw_unready_look(to->unready, to->pool, object, root);
    stw_json_foreach (stw_json_path(root, "status.conditions"), key, condition) {
        struct stw_json type = stw_json_at(condition, STW_CONDITION_TYPE);
        struct stw_json status = stw_json_at(condition, STW_CONDITION_STATUS);
        const char *name;
        for (size_t t = 0; t < TYPES_MAX && (name = stw_controller_condition(to->controller, t));
             t++) {
            if (!stw_json_is(type, name))
                continue;
            for (size_t s = 0; s < STW_COUNT(states); s++)
                to->census.of[t][s] += stw_json_is(status, states[s]);
        }
    }
}

void stw_manager_each_object(const struct stw_worker_pool *pool,
                             void (*each)(void *ctx, const char *key, struct stw_json root),
                             void *ctx)
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    size_t at = 0;
    stw_informer_keys(pool->own->informer, NULL, &keys);
    for (const char *k; (k = stw_keys_next(&keys, &at));) {
        stw_autobuf struct stw_buf unpacked = STW_BUF_INIT(TEXT_MAX);
        stw_buf_clear(&text);
        if (stw_informer_get(pool->own->informer, k, &text, NULL) == 0 &&
            stw_unpack_scan(stw_buf_str(&text), text.len, &unpacked, &doc) == 0)
            each(ctx, k, stw_json_root(&doc));
    }
}

bool stw_manager_works(struct stw_manager *m)
{
    STW_LOCKED(&m->lock);
    return m->working;
}

/* A replica that does not reconcile names no object: the one that does names them. */
void stw_manager_measure(void *ctx)
{
    struct stw_manager *m = ctx;
    struct stw_unready *unready = stw_manager_works(m) ? stw_unready_create(m) : NULL;
    for (uint32_t i = 0; i < m->pool_count; i++) {
        const struct stw_controller *c = m->pools[i].controller;
        struct counting now = {.unready = unready, .controller = c, .pool = i};
        stw_queue_measure(m->pools[i].queue);
        stw_manager_each_object(&m->pools[i], count_object, &now);
        stw_series_set(STW_SERIES(m->stubs, c->kind->kind), now.census.stubs);
        const char *name;
        for (size_t t = 0; t < TYPES_MAX && (name = stw_controller_condition(c, t)); t++)
            for (size_t s = 0; s < STW_COUNT(states); s++)
                stw_series_set(STW_SERIES(m->objects, c->kind->kind, name, states[s]),
                               now.census.of[t][s]);
    }
    stw_unready_publish(m, unready);
    stw_unready_destroy(unready);
}
