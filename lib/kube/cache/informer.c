/* SPDX-License-Identifier: Apache-2.0
 *
 * The informer: one cache, and a reflector for each namespace that fills it. */
#include "base/thread.h"
#include "base/util.h"
#include "kube/cache/reflector_priv.h"

#include <assert.h>
#include <stdio.h>

#define PAGE_SIZE 500
#define SILENCE_MS 230000
/* The bytes of a list arrive without long pauses: a pause means a network fault, and another
 * connection is tried. */
#define LIST_SILENCE_MS 5000
#define BACKOFF_MS 800
#define ABSENT_MS 15000
#define TEXT_MAX_BYTES (8u << 20)

/* --- create and destroy */

static void register_watch_metrics(struct stw_informer *inf, struct stw_metrics *m)
{
    static const char *const labels[] = {"resource", NULL};
    const char *plural =
        inf->config.metrics_name ? inf->config.metrics_name : inf->config.resource->plural;
    if (!m)
        return;
    inf->last_event = STW_SERIES(
        stw_metrics_family(m, STW_GAUGE, "_watch_last_event_timestamp_seconds",
                           "When the last list, event or bookmark of a resource came in, or the "
                           "answer that an optional one is not there.",
                           labels, NULL),
        plural);
    inf->objects = STW_SERIES(
        stw_metrics_family(m, STW_GAUGE, "_cache_objects", "Objects in the cache.", labels, NULL),
        plural);
    inf->bytes = STW_SERIES(stw_metrics_family(m, STW_GAUGE, "_cache_bytes",
                                               "Bytes of the objects in the cache, keys included.",
                                               labels, NULL),
                            plural);
    inf->skipped =
        STW_SERIES(stw_metrics_family(m, STW_GAUGE, "_unreadable_objects",
                                      "Objects that the API server has and that cannot be read.",
                                      labels, NULL),
                   plural);
}

static int make_reflectors(struct stw_informer *inf, struct stw_error *err)
{
    static const char *const everywhere[] = {"", NULL};
    const char *const *ns = inf->config.namespaces;
    if (!ns || !ns[0] || !inf->config.resource->namespaced)
        ns = everywhere;
    unsigned n = 0;
    while (ns[n])
        n++;
    inf->reflectors = calloc(n, sizeof(*inf->reflectors));
    if (!inf->reflectors)
        return stw_fail_memory(err);
    for (unsigned i = 0; i < n; i++) {
        inf->reflector_count++;
        if (stw_reflector_init(&inf->reflectors[i], inf, ns[i], err) < 0)
            return -1;
        stw_format(inf->reflectors[i].problem, sizeof(inf->reflectors[i].problem),
                   "%s: not listed yet", inf->config.resource->plural);
    }
    return 0;
}

int stw_informer_create(struct stw_client *client, const struct stw_informer_config *config,
                        const struct stw_clock *clock, struct stw_metrics *metrics,
                        struct stw_informer **ret, struct stw_error *err)
{
    struct stw_informer *inf = calloc(1, sizeof(*inf));
    assert(config->resource || config->alternatives);
    assert(config->project && ret);
    if (!inf)
        return stw_fail_memory(err);
    inf->client = client;
    inf->config = *config;
    inf->clock = clock;
    atomic_init(&inf->resource, config->alternatives ? config->alternatives[0] : config->resource);
    if (inf->config.page_size == 0)
        inf->config.page_size = PAGE_SIZE;
    if (inf->config.silence_ms == 0)
        inf->config.silence_ms = SILENCE_MS;
    if (inf->config.list_silence_ms == 0)
        inf->config.list_silence_ms = LIST_SILENCE_MS;
    if (inf->config.backoff_ms == 0)
        inf->config.backoff_ms = BACKOFF_MS;
    if (inf->config.absent_ms == 0)
        inf->config.absent_ms = ABSENT_MS;
    (void)pthread_mutex_init(&inf->lock, NULL);
    (void)pthread_cond_init(&inf->ended, NULL);
    stw_cache_init(&inf->cache, config->index, config->ctx);
    stw_unreadable_init(&inf->unreadable);
    register_watch_metrics(inf, metrics);
    if (make_reflectors(inf, err) < 0) {
        stw_informer_destroy(inf);
        return -1;
    }
    *ret = inf;
    return 0;
}

int stw_informer_start(struct stw_informer *inf, struct stw_error *err)
{
    pthread_mutex_lock(&inf->lock);
    bool again = inf->running > 0;
    if (!again)
        inf->running = inf->reflector_count;
    pthread_mutex_unlock(&inf->lock);
    if (again)
        return stw_fail(err, STW_ERR_INTERNAL, "the informer for %s was started before",
                        inf->config.resource->plural);
    for (unsigned i = 0; i < inf->reflector_count; i++)
        stw_reflector_start(&inf->reflectors[i]);
    return 0;
}

void stw_informer_destroy(struct stw_informer *inf)
{
    if (!inf)
        return;
    atomic_store(&inf->stopping, true);
    for (unsigned i = 0; i < inf->reflector_count; i++)
        stw_call_cancel(inf->client, &inf->reflectors[i].call);
    pthread_mutex_lock(&inf->lock);
    while (inf->running > 0)
        pthread_cond_wait(&inf->ended, &inf->lock);
    pthread_mutex_unlock(&inf->lock);
    for (unsigned i = 0; i < inf->reflector_count; i++)
        stw_reflector_done(&inf->reflectors[i]);
    free(inf->reflectors);
    stw_cache_done(&inf->cache);
    stw_unreadable_done(&inf->unreadable);
    (void)pthread_cond_destroy(&inf->ended);
    (void)pthread_mutex_destroy(&inf->lock);
    free(inf);
}

/* --- public functions */

bool stw_informer_synced(const struct stw_informer *inf)
{
    for (unsigned i = 0; i < inf->reflector_count; i++)
        if (!atomic_load(&inf->reflectors[i].synced))
            return false;
    return true;
}

enum stw_availability stw_informer_availability(const struct stw_informer *inf)
{
    enum stw_availability worst = STW_AVAILABLE;
    for (unsigned i = 0; i < inf->reflector_count && worst == STW_AVAILABLE; i++)
        worst = (enum stw_availability)atomic_load(&inf->reflectors[i].availability);
    return worst;
}

const struct stw_resource *stw_informer_resource(const struct stw_informer *inf)
{
    return atomic_load(&((struct stw_informer *)(uintptr_t)inf)->resource);
}

void stw_informer_problem(const struct stw_informer *inf, char *out, size_t out_size)
{
    /* const does not cover the lock here. */
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&inf->lock;
    STW_LOCKED(lock);
    out[0] = '\0';
    for (unsigned i = 0; i < inf->reflector_count && out[0] == '\0'; i++)
        stw_format(out, out_size, "%s", inf->reflectors[i].problem);
}

int stw_informer_get(struct stw_informer *inf, const char *key, struct stw_buf *out, char *ret_rv)
{
    return stw_cache_get(&inf->cache, key, out, ret_rv);
}

void stw_informer_keys(struct stw_informer *inf, const char *index_key, struct stw_buf *out)
{
    stw_cache_keys(&inf->cache, index_key, out);
}

const char *stw_keys_next(struct stw_buf *keys, size_t *at)
{
    if (*at >= keys->len)
        return NULL;
    char *key = keys->data + *at;
    size_t len = strcspn(key, "\n");
    key[len] = '\0';
    *at += len + 1;
    return key;
}

void stw_index_add(struct stw_buf *out, const char *field, const char *value)
{
    stw_buf_adds(out, field);
    stw_buf_addc(out, ':');
    stw_buf_adds(out, value);
    stw_buf_addc(out, '\n');
}

uint32_t stw_informer_count(const struct stw_informer *inf)
{
    return stw_cache_count((struct stw_cache *)(uintptr_t)&inf->cache, NULL);
}

void stw_informer_facts(struct stw_informer *inf, struct stw_informer_facts *ret)
{
    *ret = (struct stw_informer_facts){.synced = stw_informer_synced(inf)};
    ret->objects = stw_cache_count(&inf->cache, &ret->bytes);
    ret->unreadable = stw_unreadable_count(&inf->unreadable);
    stw_informer_problem(inf, ret->problem, sizeof(ret->problem));
    STW_LOCKED(&inf->lock);
    memcpy(ret->resource_version, inf->reflectors[0].seen_rv, sizeof(ret->resource_version));
    ret->last_event_us = stw_informer_last_seen_us(inf);
    for (unsigned i = 0; i < inf->reflector_count; i++) {
        const struct stw_reflector *r = &inf->reflectors[i];
        ret->forbidden |= r->forbidden;
        ret->lists += r->lists;
        ret->failures += r->failed;
    }
}

bool stw_informer_unreadable(struct stw_informer *inf, const char *key, char *why, size_t why_size)
{
    return stw_unreadable_get(&inf->unreadable, key, why, why_size);
}

uint32_t stw_informer_each_unreadable(struct stw_informer *inf, stw_unreadable_fn *fn, void *ctx)
{
    return stw_unreadable_each(&inf->unreadable, fn, ctx);
}

static const struct stw_cache_scope *scope_of(const struct stw_informer *inf, const char *key)
{
    for (unsigned i = 0; i < inf->reflector_count; i++) {
        const struct stw_cache_scope *s = &inf->reflectors[i].scope;
        size_t len = strlen(s->ns);
        if (len == 0 || (strncmp(key, s->ns, len) == 0 && key[len] == '/'))
            return s;
    }
    return NULL;
}

void stw_informer_saw(struct stw_informer *inf, const struct stw_buf *object, struct stw_buf *ret)
{
    stw_autojson struct stw_json_doc doc = {.trusted = true};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX_BYTES);
    struct stw_object_id id;
    struct stw_version v;
    if (stw_json_scan(&doc, stw_buf_str(object), object->len, NULL) < 0 ||
        stw_informer_read(inf, stw_json_root(&doc), &id, ret ? ret : &text, &v) < 0 ||
        (ret ? ret : &text)->failed) /* out of memory: the watch delivers it later */
        return;
    const struct stw_cache_scope *scope = scope_of(inf, v.key);
    if (scope)
        stw_cache_saw(&inf->cache, scope, &v, stw_now_ms(inf->clock));
}

void stw_informer_saw_delete(struct stw_informer *inf, const char *key, const char *rv)
{
    stw_cache_saw_delete(&inf->cache, key, rv, stw_now_ms(inf->clock));
}
