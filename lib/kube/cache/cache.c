/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of two versions of an object is kept. */
#include "kube/cache/cache_priv.h"

#include "base/thread.h"
#include "base/util.h"

#include "kube/cache/usage.h"

#include <assert.h>

/* An object that we deleted. */
struct tomb {
    uint64_t until_ms;
    char rv[STW_RV_LEN]; /* of the object when we deleted it */
    char key[];
};

static const char *tomb_key(const void *tomb)
{
    return ((const struct tomb *)tomb)->key;
}

/* --- versions */

/* A resourceVersion as a number; 0 when it is not one. */
static uint64_t parse_version_number(const char *rv)
{
    int64_t n;
    return stw_parse_int(rv, 1, INT64_MAX, &n) == 0 ? (uint64_t)n : 0;
}

enum order { OLDER, SAME, NEWER, UNKNOWN };

static enum order compare_versions(const char *rv, const char *with)
{
    uint64_t a = parse_version_number(rv), b = parse_version_number(with);
    if (stw_streq(rv, with))
        return SAME;
    if (a == 0 || b == 0)
        return UNKNOWN;
    return a < b ? OLDER : NEWER;
}

static bool in_scope(const struct stw_cache_scope *scope, const char *key)
{
    size_t len = scope->ns ? strlen(scope->ns) : 0;
    return len == 0 || (strncmp(key, scope->ns, len) == 0 && key[len] == '/');
}

/* Whether `rv`, from a watch or list, is older than our own write of the object. */
static bool before_our_write(struct stw_entry *e, const char *rv, bool gone, uint64_t now_ms)
{
    if (e->gate_s == 0)
        return false;
    enum order o = compare_versions(rv, stw_entry_rv(e));
    if (e->gate_s < now_ms / 1000 || o == SAME || o == NEWER || (o == UNKNOWN && gone)) {
        e->gate_s = 0;
        return false;
    }
    return true;
}

/* The same for an object that we deleted.  Any version newer than the deleted one is accepted:
 * either a finalizer keeps the object alive, or its DELETED event follows. */
static bool before_our_delete(struct stw_cache *c, const struct stw_version *v, uint64_t now_ms)
{
    struct tomb *t = stw_table_get(&c->deleted, v->key);
    if (!t)
        return false;
    enum order o = compare_versions(v->rv, t->rv);
    if (v->text && t->until_ms > now_ms && (o == OLDER || o == SAME))
        return true;
    free(stw_table_remove(&c->deleted, v->key));
    return false;
}

/* --- changes, under the lock */

static struct stw_entry *take_out(struct stw_cache *c, const char *key)
{
    STW_ASSERT_LOCKED(&c->lock);
    struct stw_entry *e = stw_table_get(&c->entries, key);
    if (!e)
        return NULL;
    size_t size = stw_entry_real_size(e);
    stw_cache_index_remove(c, e);
    (void)stw_table_remove(&c->entries, key);
    c->bytes -= stw_entry_size(e);
    stw_cache_usage_change(e->data, size, 0);
    return e;
}

static bool is_same_version(const struct stw_entry *e, const struct stw_version *v)
{
    return e->text_len == v->text_len && memcmp(stw_entry_text(e), v->text, v->text_len) == 0;
}

/* Stores a version.  Returns the new entry (NULL: out of memory, the old one stays) and the old
 * one. */
static struct stw_entry *put_in(struct stw_cache *c, const struct stw_version *v,
                                struct stw_entry **ret_old)
{
    struct stw_entry *e = stw_entry_create(v), *old = stw_table_get(&c->entries, v->key);
    size_t before = old ? stw_entry_real_size(old) : 0;
    void *replaced = NULL;
    if (!e)
        return NULL;
    if (old)
        stw_cache_index_remove(c, old);
    if (stw_table_put(&c->entries, e, &replaced) != 0) {
        if (old) {
            stw_cache_index_add(c, old);
            stw_cache_usage_change(old->data, before, stw_entry_real_size(old));
        }
        free(e);
        return NULL;
    }
    stw_cache_index_add(c, e);
    c->bytes += stw_entry_size(e) - (old ? stw_entry_size(old) : 0);
    stw_cache_usage_change(e->data, before, stw_entry_real_size(e));
    *ret_old = old;
    return e;
}

/* Applies a version; `*ret_entry` is its entry (NULL: none).  1: the text has changed, 0: it has
 * not; -1: out of memory, everything is as before. */
static int take_in(struct stw_cache *c, const struct stw_version *v, struct stw_entry **ret_entry,
                   struct stw_entry **ret_old)
{
    struct stw_entry *old = stw_table_get(&c->entries, v->key), *e = NULL;
    STW_ASSERT_LOCKED(&c->lock);
    *ret_old = NULL;
    *ret_entry = NULL;
    if (!v->text) {
        *ret_old = take_out(c, v->key);
        return *ret_old ? 1 : 0;
    }
    size_t rv_len = strlen(v->rv);
    if (old && is_same_version(old, v) && rv_len <= old->rv_room) {
        memcpy(old->data + old->key_len + 1, v->rv, rv_len + 1);
        *ret_entry = old;
        return 0;
    }
    e = put_in(c, v, &old);
    if (!e)
        return -1;
    *ret_entry = e;
    if (old && is_same_version(old, v)) { /* only its resourceVersion is longer */
        free(old);
        return 0;
    }
    *ret_old = old;
    return 1;
}

/* --- updates from the server */

void stw_cache_init(struct stw_cache *c, stw_index_fn *index_fn, void *ctx)
{
    *c = (struct stw_cache){.entries = STW_TABLE_INIT(stw_entry_table_key),
                            .deleted = STW_TABLE_INIT(tomb_key),
                            .index_fn = index_fn,
                            .ctx = ctx};
    stw_index_init(&c->index);
    (void)pthread_mutex_init(&c->lock, NULL);
}

void stw_cache_done(struct stw_cache *c)
{
    uint32_t pos = 0;
    for (const struct stw_entry *e; (e = stw_table_next(&c->entries, &pos));)
        stw_cache_usage_change(e->data, stw_entry_real_size(e), 0);
    stw_index_done(&c->index);
    stw_table_release(&c->entries, free);
    stw_table_release(&c->deleted, free);
    stw_json_done(&c->doc);
    (void)pthread_mutex_destroy(&c->lock);
}

/* For lists and watches. */
static int apply_server_version(struct stw_cache *c, const struct stw_version *v, bool listed,
                                uint64_t now_ms, struct stw_entry **ret_old)
{
    struct stw_entry *e = stw_table_get(&c->entries, v->key);
    *ret_old = NULL;
    if (e && before_our_write(e, v->rv, !v->text, now_ms)) {
        e->listed |= listed;
        return 0;
    }
    if (before_our_delete(c, v, now_ms))
        return 0;
    int changed = take_in(c, v, &e, ret_old);
    if (e)
        e->listed |= listed;
    return changed;
}

int stw_cache_listed(struct stw_cache *c, const struct stw_cache_scope *scope,
                     const struct stw_version *v, uint64_t now_ms, struct stw_entry **ret_old)
{
    if (!in_scope(scope, v->key)) {
        *ret_old = NULL;
        return 0;
    }
    STW_LOCKED(&c->lock);
    return apply_server_version(c, v, true, now_ms, ret_old);
}

int stw_cache_watched(struct stw_cache *c, struct stw_cache_scope *scope,
                      const struct stw_version *v, uint64_t now_ms, struct stw_entry **ret_old)
{
    if (!in_scope(scope, v->key)) {
        *ret_old = NULL;
        return 0;
    }
    STW_LOCKED(&c->lock);
    int changed = apply_server_version(c, v, false, now_ms, ret_old);
    if (changed >= 0)
        scope->seen = parse_version_number(v->rv);
    return changed;
}

bool stw_cache_confirmed(struct stw_cache *c, struct stw_cache_scope *scope, const char *key,
                         const char *rv)
{
    STW_LOCKED(&c->lock);
    struct stw_entry *e = stw_table_get(&c->entries, key);
    bool same = e && stw_streq(stw_entry_rv(e), rv);
    if (same) {
        e->gate_s = 0;
        scope->seen = parse_version_number(rv);
    }
    return same;
}

void stw_cache_reached(struct stw_cache *c, struct stw_cache_scope *scope, const char *rv)
{
    STW_LOCKED(&c->lock);
    scope->seen = parse_version_number(rv);
}

/* --- our own writes */

void stw_cache_saw(struct stw_cache *c, const struct stw_cache_scope *scope,
                   const struct stw_version *v, uint64_t now_ms)
{
    struct stw_entry *old = NULL, *e;
    uint64_t n = parse_version_number(v->rv);
    pthread_mutex_lock(&c->lock);
    e = stw_table_get(&c->entries, v->key);
    enum order o = e ? compare_versions(v->rv, stw_entry_rv(e)) : NEWER;
    /* The watch is already past this version, so its state is newer: the object may be gone by
     * now. */
    bool passed = n > 0 && n <= scope->seen;
    if (!passed && o != SAME && o != OLDER) {
        free(stw_table_remove(&c->deleted, v->key));
        (void)take_in(c, v, &e, &old); /* out of memory: the watch delivers it again */
        if (e) {
            e->gate_s = (uint32_t)((now_ms + STW_CACHE_GATE_MS) / 1000) + 1;
            e->fresh = 1;
        }
    }
    pthread_mutex_unlock(&c->lock);
    free(old);
}

/* Drops expired tombs, so that there are never more than the deletes within STW_CACHE_GATE_MS. */
static void sweep_tombs(struct stw_cache *c, uint64_t now_ms)
{
    uint32_t pos = 0;
    for (struct tomb *t; (t = stw_table_next(&c->deleted, &pos));)
        if (t->until_ms <= now_ms)
            free(stw_table_remove(&c->deleted, t->key));
}

void stw_cache_saw_delete(struct stw_cache *c, const char *key, const char *rv, uint64_t now_ms)
{
    size_t len = strlen(key);
    void *former = NULL;
    struct tomb *t = malloc(sizeof(*t) + len + 1);
    pthread_mutex_lock(&c->lock);
    struct stw_entry *e = stw_table_get(&c->entries, key);
    /* A newer one may be another object: what is deleted is reported by the watch anyway. */
    e = e && compare_versions(stw_entry_rv(e), rv) != NEWER ? take_out(c, key) : NULL;
    if (e && t) {
        t->until_ms = now_ms + STW_CACHE_GATE_MS;
        memcpy(t->key, key, len + 1);
        stw_format(t->rv, sizeof(t->rv), "%s", rv);
        sweep_tombs(c, now_ms);
        if (stw_table_put(&c->deleted, t, &former) == 0)
            t = NULL;
    }
    pthread_mutex_unlock(&c->lock);
    free(former);
    free(t);
    free(e);
}

/* --- lists */

void stw_cache_list_begin(struct stw_cache *c, const struct stw_cache_scope *scope)
{
    uint32_t pos = 0;
    STW_LOCKED(&c->lock);
    for (struct stw_entry *e; (e = stw_table_next(&c->entries, &pos));)
        if (in_scope(scope, e->data))
            e->listed = e->fresh = 0;
}

void stw_cache_list_keep(struct stw_cache *c, const char *key)
{
    STW_LOCKED(&c->lock);
    struct stw_entry *e = stw_table_get(&c->entries, key);
    if (e)
        e->listed = 1;
}

/* Neither in the list of `rv` nor written by us after it was taken, however long reading it
 * took. */
static bool has_entry_vanished(const struct stw_entry *e, const char *rv)
{
    if (e->listed)
        return false;
    enum order o = compare_versions(stw_entry_rv(e), rv);
    return !e->fresh || o == OLDER || o == SAME;
}

struct stw_entry *stw_cache_list_end(struct stw_cache *c, struct stw_cache_scope *scope,
                                     const char *rv, struct stw_cache_sweep *sweep)
{
    struct stw_entry *e;
    assert(sweep);
    STW_LOCKED(&c->lock);
    /* A new object has moved the others, some of them to a place that the sweep has passed. */
    if (sweep->moves != c->entries.moves)
        *sweep = (struct stw_cache_sweep){.moves = c->entries.moves};
    while ((e = stw_table_next(&c->entries, &sweep->pos)))
        if (in_scope(scope, e->data) && has_entry_vanished(e, rv))
            break;
    if (e)
        (void)take_out(c, e->data);
    else
        scope->seen = parse_version_number(rv);
    return e;
}

/* --- reading */

int stw_cache_get(struct stw_cache *c, const char *key, struct stw_buf *out, char *ret_rv)
{
    stw_buf_clear(out);
    STW_LOCKED(&c->lock);
    const struct stw_entry *e = stw_table_get(&c->entries, key);
    if (e) {
        stw_buf_add(out, stw_entry_text(e), e->text_len);
        if (ret_rv)
            memcpy(ret_rv, stw_entry_rv(e), strlen(stw_entry_rv(e)) + 1);
    }
    return e && !out->failed ? 0 : -1;
}

void stw_cache_keys(struct stw_cache *c, const char *index_key, struct stw_buf *out)
{
    uint32_t pos = 0;
    STW_LOCKED(&c->lock);
    if (index_key)
        stw_index_keys(&c->index, index_key, out);
    for (struct stw_entry *e; !index_key && (e = stw_table_next(&c->entries, &pos));) {
        stw_buf_adds(out, e->data);
        stw_buf_addc(out, '\n');
    }
}

uint32_t stw_cache_count(struct stw_cache *c, size_t *ret_bytes)
{
    STW_LOCKED(&c->lock);
    uint32_t n = stw_table_size(&c->entries);
    if (ret_bytes)
        *ret_bytes = c->bytes;
    return n;
}
