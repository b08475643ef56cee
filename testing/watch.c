/* SPDX-License-Identifier: Apache-2.0
 *
 * Watches.  libmicrohttpd has a thread for each connection; that of a watch sleeps in read_events() until
 * there is something to send. */
#include "base/util.h"
#include "testing/server_priv.h"
#include "testing/tree_priv.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define LOOK_MS 1000 /* whether the client has gone */
#define TIMEOUT_DEFAULT_S 1800
#define LINES_MAX ((size_t)64 << 20)

struct stw_test_watch {
    struct stw_test_watch *next;
    struct stw_test_server *server;
    struct stw_test_call call; /* the scope; its pointers are owned */
    int fd;
    uint64_t seen;     /* changes up to this version were sent */
    uint64_t bookmark; /* one is due with this version */
    uint64_t end_ms;   /* system clock */
    bool expired, cut; /* end with 410 Gone; without an end */
    bool ended;
    struct stw_buf lines; /* from `sent` on, to be sent */
    size_t sent;
};

static void add_event(struct stw_test_watch *w, const char *type, json_t *object)
{
    json_auto_t *event = json_pack("{s:s,s:o}", "type", type, "object", object);
    stw_autofree char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;
    if (text) {
        stw_buf_adds(&w->lines, text);
        stw_buf_addc(&w->lines, '\n');
    }
}

/* An object that comes into the scope of a selector is added for this watch, one that leaves it is deleted. */
static void add_change(struct stw_test_watch *w, const struct stw_test_change *c)
{
    if (c->type != w->call.type)
        return;
    bool was = c->before && stw_test_call_selects(&w->call, c->before);
    bool is = c->after && stw_test_call_selects(&w->call, c->after);
    if (!was && !is)
        return;
    if (is) {
        add_event(w, was ? "MODIFIED" : "ADDED", stw_test_call_shown(&w->call, c->after, false));
        return;
    }
    char version[32];
    json_auto_t *last = json_deep_copy(c->before); /* as it was, with the version of the change */
    stw_format(version, sizeof(version), "%" PRIu64, c->version);
    json_object_set_new(stw_test_member(last, "metadata"), "resourceVersion", json_string(version));
    add_event(w, "DELETED", stw_test_call_shown(&w->call, last, false));
}

static void add_bookmark(struct stw_test_watch *w, uint64_t version)
{
    char text[32];
    stw_autobuf struct stw_buf api_version = STW_BUF_INIT(600);
    const struct stw_resource *r = w->call.type->resource;
    stw_format(text, sizeof(text), "%" PRIu64, version);
    stw_resource_api_version(r, &api_version);
    bool meta = w->call.metadata_only;
    add_event(w, "BOOKMARK",
              json_pack("{s:s,s:s,s:{s:s,s:n}}", "kind", meta ? "PartialObjectMetadata" : r->kind,
                        "apiVersion", meta ? "meta.k8s.io/v1" : stw_buf_str(&api_version),
                        "metadata", "resourceVersion", text, "creationTimestamp"));
}

static void add_gone(struct stw_test_watch *w)
{
    add_event(w, "ERROR",
              json_pack("{s:s,s:s,s:{},s:s,s:s,s:s,s:i}", "kind", "Status", "apiVersion", "v1",
                        "metadata", "status", "Failure", "message", "too old resource version",
                        "reason", "Expired", "code", 410));
}

/* Whatever is to be sent.  The caller holds the lock. */
static void collect(struct stw_test_watch *w)
{
    const struct stw_test_store *s = &w->server->store;
    stw_buf_clear(&w->lines);
    w->sent = 0;
    if (w->seen < s->forgotten && !w->ended) {
        add_gone(w);
        w->ended = true;
        return;
    }
    for (size_t i = stw_test_store_after(s, w->seen); i < s->change_count; i++)
        add_change(w, stw_test_store_change(s, i));
    w->seen = STW_MAX(w->seen, s->version);
    if (w->bookmark && w->call.bookmarks)
        add_bookmark(w, w->bookmark);
    w->bookmark = 0;
}

static bool has_client(const struct stw_test_watch *w)
{
    char byte;
    return recv(w->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

static ssize_t read_events(void *ctx, uint64_t position, char *out, size_t max)
{
    struct stw_test_watch *w = ctx;
    struct stw_test_server *s = w->server;
    (void)position;
    ssize_t n = MHD_CONTENT_READER_END_OF_STREAM;
    pthread_mutex_lock(&s->lock);
    while (w->sent == w->lines.len && !s->stopping && !w->cut && !w->ended) {
        collect(w);
        w->cut = w->cut || w->lines.failed; /* more than LINES_MAX: the client begins again */
        uint64_t now = stw_now_ms(&stw_clock_system);
        if (w->lines.len > 0)
            break;
        w->ended = now >= w->end_ms || !has_client(w);
        if (!w->ended)
            stw_cond_wait_until(&s->moved, &s->lock, STW_MIN(w->end_ms, now + LOOK_MS));
    }
    if (w->cut) {
        n = MHD_CONTENT_READER_END_WITH_ERROR;
    } else if (!s->stopping && w->sent < w->lines.len) {
        n = (ssize_t)STW_MIN(max, w->lines.len - w->sent);
        memcpy(out, w->lines.data + w->sent, (size_t)n);
        w->sent += (size_t)n;
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

static void free_watch(void *ctx)
{
    struct stw_test_watch *w = ctx;
    struct stw_test_server *s = w->server;
    pthread_mutex_lock(&s->lock);
    struct stw_test_watch **at = &s->watches;
    while (*at && *at != w)
        at = &(*at)->next;
    if (*at)
        *at = w->next;
    pthread_mutex_unlock(&s->lock);
    free((char *)(uintptr_t)w->call.labels);
    free((char *)(uintptr_t)w->call.fields);
    stw_buf_done(&w->lines);
    free(w);
}

/* The objects that there are, for a watch from no version. */
static void add_present(struct stw_test_watch *w)
{
    const char *key;
    json_t *object;
    json_object_foreach (w->call.type->objects, key, object)
        if (stw_test_call_selects(&w->call, object))
            add_event(w, "ADDED", stw_test_call_shown(&w->call, object, false));
}

struct MHD_Response *stw_test_watch_open(struct stw_test_server *s, const struct stw_test_call *c,
                                         struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int64_t version = 0, seconds = TIMEOUT_DEFAULT_S;
    struct stw_test_watch *w = calloc(1, sizeof(*w));
    if (!w)
        return NULL;
    w->server = s;
    w->call = *c;
    w->call.body = w->call.answer = NULL;
    w->call.labels = c->labels ? strdup(c->labels) : NULL;
    w->call.fields = c->fields ? strdup(c->fields) : NULL;
    w->lines = STW_BUF_INIT(LINES_MAX);
    w->fd = info ? info->connect_fd : -1;
    if (c->timeout)
        (void)stw_parse_int(c->timeout, 0, 86400, &seconds);
    w->end_ms = stw_now_ms(&stw_clock_system) + (uint64_t)seconds * 1000;
    pthread_mutex_lock(&s->lock);
    if (c->version && stw_parse_int(c->version, 1, INT64_MAX, &version) == 0) {
        w->seen = (uint64_t)version;
    } else {
        add_present(w);
        w->seen = s->store.version;
    }
    w->next = s->watches;
    s->watches = w;
    pthread_mutex_unlock(&s->lock);
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_events, w, free_watch);
    if (!response)
        free_watch(w);
    return response;
}

void stw_test_server_break_watches(struct stw_test_server *s, const struct stw_resource *r,
                                   bool expired)
{
    pthread_mutex_lock(&s->lock);
    if (expired)
        stw_test_store_forget(&s->store);
    for (struct stw_test_watch *w = s->watches; w; w = w->next) {
        const struct stw_resource *own = w->call.type->resource;
        if (!r || (stw_streq(own->plural, r->plural) && stw_streq(own->group, r->group)))
            w->cut = true;
    }
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
}

uint64_t stw_test_server_bookmark(struct stw_test_server *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t version = ++s->store.version;
    for (struct stw_test_watch *w = s->watches; w; w = w->next)
        w->bookmark = version;
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
    return version;
}
