/* SPDX-License-Identifier: Apache-2.0
 *
 * Two bounded LRU tables: series (an event of an object, and how often it was repeated) and buckets
 * (how many events of an object are still allowed).  Any thread; one lock, never held during a
 * request. */
#include "kube/events.h"

#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "base/visible.h"

#include <pthread.h>
#include <stdio.h>

#define ENTRIES_MAX 1024
#define SERIES_MS (6u * 60 * 1000) /* a repeat later than this is a new event */
#define PATCH_EVERY_MS 30000u      /* the shortest time between patches of a series' count */
#define BUCKET_SIZE 25
#define BUCKET_REFILL_MS (5u * 60 * 1000) /* for one event */
#define NOTE_MAX_BYTES 1024
#define NAME_KEEP 230 /* bytes of the object's name in the event's name: 253 less the stamp */
#define BODY_MAX 8192

struct event_node {
    struct event_node *prev, *next;
    uint64_t first_ms, last_ms; /* series: created, last seen; bucket: last refill */
    uint64_t patched_ms;
    uint32_t count; /* series: how often seen; bucket: tokens left */
    uint32_t sent;  /* series: the count that the server has */
    char *path;     /* series: path of the Event, for the patch */
    char key[];
};

struct lru {
    struct stw_table table;
    struct event_node *newest, *oldest;
    uint32_t count;
};

struct stw_events {
    struct stw_client *client;
    const struct stw_clock *clock;
    char component[64], host[256];
    pthread_mutex_t lock;
    struct lru series, buckets;
    uint64_t swept_ms;
};

static const char *node_key(const void *entry)
{
    return ((const struct event_node *)entry)->key;
}

static void unlink_node(struct lru *l, struct event_node *n)
{
    *(n->prev ? &n->prev->next : &l->newest) = n->next;
    *(n->next ? &n->next->prev : &l->oldest) = n->prev;
}

static void link_newest_node(struct lru *l, struct event_node *n)
{
    n->prev = NULL;
    n->next = l->newest;
    *(l->newest ? &l->newest->prev : &l->oldest) = n;
    l->newest = n;
}

static void remove_node(struct lru *l, struct event_node *n)
{
    (void)stw_table_remove(&l->table, n->key);
    unlink_node(l, n);
    l->count--;
    free(n->path);
    free(n);
}

/* The node of a key, created (zeroed except for the key) when there is none; NULL: out of
 * memory. */
static struct event_node *find_or_add_node(struct lru *l, const char *key, bool *ret_new)
{
    struct event_node *n = stw_table_get(&l->table, key);
    size_t len = strlen(key) + 1;
    *ret_new = !n;
    if (n) {
        unlink_node(l, n);
        link_newest_node(l, n);
        return n;
    }
    n = calloc(1, sizeof(*n) + len);
    if (!n)
        return NULL;
    memcpy(n->key, key, len);
    if (stw_table_put(&l->table, n, NULL) != 0) {
        free(n);
        return NULL;
    }
    link_newest_node(l, n);
    if (++l->count > ENTRIES_MAX)
        remove_node(l, l->oldest);
    return n;
}

static void lru_done(struct lru *l)
{
    while (l->oldest)
        remove_node(l, l->oldest);
    stw_table_done(&l->table);
}

int stw_events_create(struct stw_client *client, const struct stw_clock *clock,
                      const char *component, struct stw_events **ret, struct stw_error *err)
{
    struct stw_events *e = calloc(1, sizeof(*e));
    if (!e)
        return stw_fail_memory(err);
    e->client = client;
    e->clock = clock;
    stw_format(e->component, sizeof(e->component), "%s", component);
    if (gethostname(e->host, sizeof(e->host) - 1) != 0)
        stw_format(e->host, sizeof(e->host), "unknown");
    e->series.table = STW_TABLE_INIT(node_key);
    e->buckets.table = STW_TABLE_INIT(node_key);
    (void)pthread_mutex_init(&e->lock, NULL);
    *ret = e;
    return 0;
}

/* --- requests */

/* False: the client did not accept it. */
static bool submit_event_request(struct stw_events *e, const char *method, const char *type,
                                 const char *path, const struct stw_buf *body)
{
    return !body->failed &&
           stw_client_submit(e->client, &(struct stw_request){.method = method,
                                                              .path = path,
                                                              .content_type = type,
                                                              .body = body->data,
                                                              .body_len = body->len});
}

/* Writes the new count of a series, if it has changed. */
static void patch_series(struct stw_events *e, struct event_node *n, uint64_t now)
{
    char stamp[STW_TIME_LEN];
    stw_autobuf struct stw_buf body = STW_BUF_INIT(BODY_MAX);
    if (!n->path || n->count == n->sent)
        return;
    int64_t ago_us = (int64_t)(now - n->last_ms) * 1000;
    stw_time_format_micro(stw_wall_us(e->clock) - ago_us, stamp);
    stw_buf_addf(&body, "{\"series\":{\"count\":%u,\"lastObservedTime\":\"%s\"}}", n->count, stamp);
    if (submit_event_request(e, "PATCH", "application/merge-patch+json", n->path, &body))
        n->sent = n->count;
    n->patched_ms = now;
}

static void add_text_member(struct stw_buf *out, const char *name, const char *value, size_t len)
{
    if (!value || out->failed)
        return;
    if (out->data[out->len - 1] != '{')
        stw_buf_addc(out, ',');
    stw_buf_json_strz(out, name);
    stw_buf_addc(out, ':');
    stw_buf_json_str(out, value, len);
}

static void add_text(struct stw_buf *out, const char *name, const char *value)
{
    add_text_member(out, name, value, value ? strlen(value) : 0);
}

/* The bytes of a note that fit, without splitting a UTF-8 character. */
static size_t note_len(const char *note)
{
    size_t len = strnlen(note, NOTE_MAX_BYTES + 1);
    if (len <= NOTE_MAX_BYTES)
        return len;
    len = NOTE_MAX_BYTES;
    while (len > 0 && ((unsigned char)note[len] & 0xc0) == 0x80)
        len--;
    return len;
}

static void add_regarding(struct stw_buf *out, const struct stw_event_object *o)
{
    stw_autobuf struct stw_buf version = STW_BUF_INIT(512);
    stw_resource_api_version(o->resource, &version);
    stw_buf_adds(out, ",\"regarding\":{");
    add_text(out, "apiVersion", stw_buf_str(&version));
    add_text(out, "kind", o->resource->kind);
    add_text(out, "namespace", o->resource->namespaced ? o->ns : NULL);
    add_text(out, "name", o->name);
    add_text(out, "uid", o->uid);
    add_text(out, "resourceVersion", o->resource_version);
    stw_buf_addc(out, '}');
}

static const char *event_namespace(const struct stw_event_object *o)
{
    return o->resource->namespaced && o->ns && *o->ns ? o->ns : "default";
}

struct event_text {
    bool warning;
    const char *reason, *action, *note;
};

static bool create_event(struct stw_events *e, const struct stw_event_object *o,
                         const struct event_text *t, const char *event_name)
{
    char stamp[STW_TIME_LEN];
    stw_autobuf struct stw_buf body = STW_BUF_INIT(BODY_MAX);
    stw_autobuf struct stw_buf path = STW_BUF_INIT(1024), note = STW_BUF_INIT(64 * 1024);
    stw_time_format_micro(stw_wall_us(e->clock), stamp);
    stw_buf_adds(&body, "{\"apiVersion\":\"events.k8s.io/v1\",\"kind\":\"Event\",\"metadata\":{");
    add_text(&body, "name", event_name);
    add_text(&body, "namespace", event_namespace(o));
    stw_buf_adds(&body, "}");
    add_text(&body, "eventTime", stamp);
    add_text(&body, "type", t->warning ? "Warning" : "Normal");
    add_text(&body, "reason", t->reason);
    add_text(&body, "action", t->action);
    stw_visible_add(&note, t->note, strlen(t->note));
    add_text_member(&body, "note", stw_buf_str(&note), note_len(stw_buf_str(&note)));
    add_text(&body, "reportingController", e->component);
    add_text(&body, "reportingInstance", e->host);
    add_regarding(&body, o);
    stw_buf_addc(&body, '}');
    body.failed |= note.failed;
    stw_resource_path(&stw_res_event, event_namespace(o), NULL, NULL, &path);
    return submit_event_request(e, "POST", NULL, stw_buf_str(&path), &body);
}

/* --- recording */

/* Whether another event of this object is allowed; takes one token from its bucket. */
static bool take_event_token(struct stw_events *e, const char *object_key, uint64_t now)
{
    bool is_new;
    struct event_node *b = find_or_add_node(&e->buckets, object_key, &is_new);
    if (!b)
        return false;
    if (is_new) {
        b->count = BUCKET_SIZE;
        b->last_ms = now;
    }
    uint64_t refill = (now - b->last_ms) / BUCKET_REFILL_MS;
    if (refill > 0) {
        b->count = (uint32_t)STW_MIN((uint64_t)b->count + refill, BUCKET_SIZE);
        b->last_ms += refill * BUCKET_REFILL_MS;
    }
    if (b->count == 0)
        return false;
    b->count--;
    return true;
}

/* Patches counts that are still to be written; called when any event is recorded. */
static void patch_due_series(struct stw_events *e, uint64_t now)
{
    if (now < e->swept_ms + PATCH_EVERY_MS)
        return;
    e->swept_ms = now;
    for (struct event_node *n = e->series.newest; n; n = n->next)
        if (now >= n->patched_ms + PATCH_EVERY_MS)
            patch_series(e, n, now);
}

static void start_series(struct event_node *n, const struct stw_event_object *o,
                         const char *event_name, uint64_t now)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(1024);
    stw_resource_path(&stw_res_event, event_namespace(o), event_name, NULL, &path);
    free(n->path);
    n->path = path.failed ? NULL : stw_buf_take(&path);
    n->first_ms = n->last_ms = n->patched_ms = now;
    n->count = n->sent = 1;
}

static void count_series_repeat(struct stw_events *e, struct event_node *n, uint64_t now)
{
    n->count++;
    n->last_ms = now;
    if (now >= n->patched_ms + PATCH_EVERY_MS)
        patch_series(e, n, now);
}

static void record_event(struct stw_events *e, const struct stw_event_object *o,
                         const struct event_text *t, const char *object_key, const char *key)
{
    bool is_new;
    uint64_t now = stw_now_ms(e->clock);
    struct event_node *n = find_or_add_node(&e->series, key, &is_new);
    if (!n)
        return;
    if (!is_new && now < n->last_ms + SERIES_MS) {
        count_series_repeat(e, n, now);
        return;
    }
    if (!take_event_token(e, object_key, now)) {
        remove_node(&e->series, n);
        return;
    }
    char event_name[NAME_KEEP + 32];
    stw_format(event_name, sizeof(event_name), "%.*s.%llx", NAME_KEEP, o->name,
               (unsigned long long)stw_wall_us(e->clock) * 1000);
    start_series(n, o, event_name, now);
    if (!create_event(e, o, t, event_name))
        remove_node(&e->series, n); /* the next occurrence counts as the first */
}

void stw_events_record(struct stw_events *e, const struct stw_event_object *o, bool warning,
                       const char *reason, const char *action, const char *note)
{
    stw_autobuf struct stw_buf object_key = STW_BUF_INIT(1024), key = STW_BUF_INIT(4096);
    struct stw_hash h = stw_hash_bytes(note, strlen(note));
    stw_buf_addf(&object_key, "%s/%s/%s/%s", o->resource->kind, o->ns ? o->ns : "", o->name,
                 o->uid ? o->uid : "");
    stw_buf_addf(&key, "%s/%d/%s/%s/%llx%llx", stw_buf_str(&object_key), warning, reason, action,
                 (unsigned long long)h.hi, (unsigned long long)h.lo);
    if (key.failed)
        return;
    STW_LOCKED(&e->lock);
    record_event(e, o, &(struct event_text){warning, reason, action, note},
                 stw_buf_str(&object_key), stw_buf_str(&key));
    patch_due_series(e, stw_now_ms(e->clock));
}

void stw_events_destroy(struct stw_events *e)
{
    if (!e)
        return;
    for (struct event_node *n = e->series.newest; n; n = n->next)
        patch_series(e, n, stw_now_ms(e->clock));
    lru_done(&e->series);
    lru_done(&e->buckets);
    (void)pthread_mutex_destroy(&e->lock);
    free(e);
}
