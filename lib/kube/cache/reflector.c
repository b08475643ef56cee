/* SPDX-License-Identifier: Apache-2.0
 *
 * List and watch.  The rules are those of client-go's reflector, with two differences.  Every list
 * is paged and reads the latest state (resourceVersion ""), never the server's cache at "0": that
 * ignores paging and may go back in time after a 410.  Objects are processed one by one while a
 * page arrives, so that no page is ever held as a whole. */
#include "kube/cache/reflector_priv.h"

#include "base/backoff.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/process/footprint.h"
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "kube/api/discovery.h"

#include <assert.h>
#include <stdio.h>

#define PATH_MAX_BYTES 3072
#define CONTINUE_MAX_BYTES (64u << 10)
#define TEXT_MAX_BYTES (8u << 20)
#define KEEP_BYTES (32u << 10) /* scratch memory kept from event to event */
#define LIST_TIMEOUT_MS 60000
#define LIST_ANSWER_MS 20000 /* it may wait in the server's queue for 15 s */
#define WATCH_MIN_S 300
#define WATCH_SPREAD_S 300
#define BACKOFF_MAX_MS 30000
#define BACKOFF_AWAY_MAX_MS 5000 /* no server is reached: attempts cost it nothing */
/* A watch that lasted this long was successful, with or without events. */
#define WATCH_GOOD_MS 5000
/* After this many watches in a row that could not begin, their resourceVersion may be wrong. */
#define WATCH_FAILURES_MAX 5
/* Watches in a row that end before they are good, but with an event, begin again at once; those after
 * these pause. */
#define WATCH_SHORT_MAX 10

static const char *const accept_list =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;"
    "v=v1,application/json";
static const char *const accept_watch = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;"
                                        "v=v1,application/json";

/* 800 ms doubled for each failure up to the maximum, plus up to half of that.  The first answer of a
 * server that was away begins with the shortest: it is often 429, while it starts. */
uint64_t stw_reflector_wait_ms(struct stw_reflector *r, const struct stw_error *err)
{
    bool away = err->code == STW_ERR_UNAVAILABLE && err->http == 0;
    if (away != r->away)
        r->waits = 0;
    r->away = away;
    uint64_t base = stw_backoff(r->inf->config.backoff_ms, r->waits++,
                                away ? BACKOFF_AWAY_MAX_MS : BACKOFF_MAX_MS);
    uint64_t wait = base + stw_random() % (base / 2 + 1);
    return STW_MAX(wait, (uint64_t)err->retry_after_ms);
}

uint64_t stw_reflector_pause_ms(struct stw_reflector *r)
{
    if (stw_now_ms(r->inf->clock) >= r->began_ms + WATCH_GOOD_MS)
        r->short_watches = 0;
    else
        r->short_watches++;
    return r->short_watches <= WATCH_SHORT_MAX
               ? 0
               : stw_backoff(r->inf->config.backoff_ms, r->short_watches - WATCH_SHORT_MAX - 1,
                             WATCH_GOOD_MS);
}

/* --- memory */

/* A page with large objects takes the server as much memory as us time: its size follows from this. */
#define PAGE_BYTES (4u << 20)
#define FIRST_PAGE 100U
#define SLOWER_MAX 9                 /* halves 500 to 1 */
#define HELD_FREE_BYTES (128u << 10) /* not counted: a part of the base */

static void begin_page(struct stw_reflector *r)
{
    r->page_objects = 0;
    r->page_bytes = 0;
}

/* The size of the next page follows from the objects of this one. */
static void size_page(struct stw_reflector *r)
{
    size_t each = r->page_objects > 0 ? r->page_bytes / r->page_objects + 1 : 1;
    size_t fit = STW_MAX(PAGE_BYTES / each, (size_t)1);
    r->page_size = (uint32_t)STW_MIN(fit, (size_t)stw_page_limit(&r->pages, r->pages.most));
}

/* The one that goes on whatever others keep, until its object is complete; NULL: none has to.  With it,
 * no two wait for each other, and no run keeps a resource from being read. */
static struct stw_reflector *_Atomic goes_first;

static void keep_only(struct stw_reflector *r, size_t bytes)
{
    struct stw_reflector *self = r;
    stw_share_give_back(STW_SHARE_ANSWERS, r->held - bytes);
    r->held = bytes;
    if (bytes == 0)
        (void)atomic_compare_exchange_strong(&goes_first, &self, NULL);
}

static void let_go(struct stw_reflector *r)
{
    keep_only(r, 0);
}

static size_t counted(size_t bytes)
{
    return bytes > HELD_FREE_BYTES ? bytes : 0;
}

/* What a buffer has when `len` bytes more are in it. */
static size_t cap_with(const struct stw_buf *b, size_t len)
{
    size_t need = STW_MIN(b->len + len, b->max) + 1;
    return need <= b->cap ? b->cap : STW_MAX(need, STW_MIN(2 * b->cap, b->max));
}

static bool share_has(size_t bytes)
{
    struct stw_share_facts f = stw_share_facts(STW_SHARE_ANSWERS);
    return f.used + bytes <= f.limit && stw_share_take(STW_SHARE_ANSWERS, bytes);
}

static bool may_go_first(struct stw_reflector *r)
{
    struct stw_reflector *first = NULL;
    return atomic_compare_exchange_strong(&goes_first, &first, r) || first == r;
}

/* Counts what is kept of an object whose end has not arrived when `len` bytes more are there.  False:
 * there is no memory for them now, and the server waits. */
static bool make_room(struct stw_reflector *r, const struct stw_buf *kept, size_t len)
{
    size_t now = counted(cap_with(kept, len));
    size_t more = now > r->held ? now - r->held : 0;
    bool waited = r->waits_for_room;
    r->waits_for_room = more > 0 && !share_has(more);
    if (r->waits_for_room && may_go_first(r)) {
        stw_share_add(STW_SHARE_ANSWERS, more);
        r->waits_for_room = false;
    }
    if (!r->waits_for_room)
        r->held += more;
    else if (!waited)
        stw_share_note_wait(STW_SHARE_ANSWERS);
    return !r->waits_for_room;
}

/* The data has been taken: less may be kept. */
static void settle(struct stw_reflector *r, const struct stw_buf *kept)
{
    size_t now = counted(kept->cap);
    if (now < r->held)
        keep_only(r, now);
}

/* --- requests */

static void add_query(struct stw_buf *path, const char *name, const char *value)
{
    if (!value)
        return;
    stw_buf_addc(path, memchr(path->data, '?', path->len) ? '&' : '?');
    stw_buf_adds(path, name);
    stw_buf_addc(path, '=');
    stw_url_escape(value, path);
}

static void make_path(struct stw_reflector *r)
{
    const struct stw_informer_config *c = &r->inf->config;
    char number[16];
    const struct stw_resource *resource = atomic_load(&r->inf->resource);
    stw_buf_clear(&r->path);
    if (r->phase == STW_CHOOSING) {
        stw_discovery_path(resource, &r->path);
        return;
    }
    stw_resource_path(resource, r->scope.ns, NULL, NULL, &r->path);
    add_query(&r->path, "labelSelector", c->label_selector);
    add_query(&r->path, "fieldSelector", c->field_selector);
    if (r->phase == STW_LISTING) {
        stw_format(number, sizeof(number), "%u", r->page_size);
        add_query(&r->path, "limit", number);
        add_query(&r->path, "continue", r->paging ? stw_buf_str(&r->next) : NULL);
        return;
    }
    stw_format(number, sizeof(number), "%u",
               WATCH_MIN_S + (unsigned)(stw_random() % WATCH_SPREAD_S));
    add_query(&r->path, "watch", "1");
    add_query(&r->path, "allowWatchBookmarks", "true");
    add_query(&r->path, "timeoutSeconds", number);
    add_query(&r->path, "resourceVersion", r->rv);
}

static int on_watch_data(struct stw_http_call *call, const char *data, size_t len);
static int on_list_data(struct stw_http_call *call, const char *data, size_t len);
static void on_open(struct stw_http_call *call);
static void on_done(struct stw_http_call *call);

/* Begins the request for `phase`, after a wait. */
static void go_on(struct stw_reflector *r, uint64_t wait_ms)
{
    struct stw_informer *inf = r->inf;
    bool watch = r->phase == STW_WATCHING, list = r->phase == STW_LISTING;
    make_path(r);
    r->call.req =
        (struct stw_request){.method = "GET", .path = stw_buf_str(&r->path), .no_retry = true};
    if (inf->config.metadata_only && r->phase != STW_CHOOSING)
        r->call.req.accept = watch ? accept_watch : accept_list;
    r->call.req.timeout_ms = watch ? (WATCH_MIN_S + WATCH_SPREAD_S + 30) * 1000 : LIST_TIMEOUT_MS;
    r->call.watch = watch;
    r->call.answer_ms = watch ? inf->config.silence_ms : LIST_ANSWER_MS;
    r->call.silence_ms = watch ? inf->config.silence_ms : inf->config.list_silence_ms;
    r->call.on_body = watch ? on_watch_data : list ? on_list_data : NULL;
    r->call.on_open = watch ? on_open : NULL;
    r->call.on_done = on_done;
    r->call.ctx = r;
    r->began_ms = stw_now_ms(inf->clock) + wait_ms;
    r->call.start_at_ms = wait_ms > 0 ? r->began_ms : 0;
    r->alive = false;
    begin_page(r);
    stw_items_reset(&r->items);
    stw_lines_reset(&r->lines);
    let_go(r);
    stw_call_start(inf->client, &r->call);
}

static void begin_pages(struct stw_reflector *r, uint64_t wait_ms)
{
    r->phase = STW_LISTING;
    r->listed = atomic_load(&r->inf->resource);
    r->paging = false;
    r->nameless = false;
    r->progress = (struct stw_page_progress){0};
    stw_unreadable_list_begin(&r->inf->unreadable, &r->list);
    r->page_size = stw_page_limit(&r->pages, FIRST_PAGE);
    stw_buf_clear(&r->next);
    stw_cache_list_begin(&r->inf->cache, &r->scope);
    go_on(r, wait_ms);
}

static void begin_choice(struct stw_reflector *r, bool must_list, uint64_t wait_ms)
{
    r->phase = STW_CHOOSING;
    r->must_list = must_list;
    go_on(r, wait_ms);
}

static void begin_list(struct stw_reflector *r, uint64_t wait_ms)
{
    if (r->inf->config.alternatives)
        begin_choice(r, true, wait_ms);
    else
        begin_pages(r, wait_ms);
}

static void begin_watch(struct stw_reflector *r, uint64_t wait_ms)
{
    r->phase = STW_WATCHING;
    go_on(r, wait_ms);
}

/* --- failures */

/* A server that sends Retry-After is busy, for example with the storage of a new CRD. */
#define BUSY_TIMES 5U

static uint64_t failing_ms(const struct stw_reflector *r)
{
    return stw_now_ms(r->inf->clock) - r->failing_since_ms;
}

static void log_failure(struct stw_reflector *r, const char *what, const struct stw_error *err)
{
    struct stw_informer *inf = r->inf;
    /* A lasting fault is logged when it begins, and once more when it lasts; /readyz and the metrics
     * show it after that. */
    unsigned warn_at = err->code == STW_ERR_THROTTLED ? BUSY_TIMES : 1;
    bool tells = r->failures >= warn_at && r->told < 2;
    r->told += tells;
    stw_log(tells ? STW_LOG_WARN : STW_LOG_DEBUG, what,
            STW_STR("resource", inf->config.resource->plural), STW_STR("namespace", r->scope.ns),
            STW_STR("error", err->text), STW_INT("failures", r->failures),
            STW_INT("failingForMs", failing_ms(r)));
}

static uint64_t record_failure(struct stw_reflector *r, const char *what,
                               const struct stw_error *err)
{
    char text[sizeof(r->problem)];
    if (r->failures++ == 0)
        r->failing_since_ms = stw_now_ms(r->inf->clock);
    log_failure(r, what, err);
    stw_format(text, sizeof(text), "%s: %.180s", r->inf->config.resource->plural, err->text);
    stw_informer_set_problem(r, text, err->code == STW_ERR_FORBIDDEN);
    return stw_reflector_wait_ms(r, err);
}

static void record_recovery(struct stw_reflector *r)
{
    if (r->failures > 0)
        stw_log(STW_LOG_INFO, "watching again",
                STW_STR("resource", r->inf->config.resource->plural),
                STW_STR("namespace", r->scope.ns), STW_INT("failures", r->failures),
                STW_INT("failedForMs", failing_ms(r)));
    r->failures = r->told = r->waits = r->watch_failures = 0;
}

/* --- objects that cannot be read */

static_assert(STW_UNREADABLE_RV_LEN == STW_RV_LEN, "one length of a resourceVersion");

/* What was kept of it is no longer the present version: who uses it looks again, and sees the mark. */
static void announce_unreadable(struct stw_reflector *r, const char *key)
{
    stw_autobuf struct stw_buf kept = STW_BUF_INIT(STW_ITEM_MAX_BYTES);
    if (stw_cache_get(&r->inf->cache, key, &kept, NULL) == 0)
        stw_informer_changed(r->inf, key, stw_buf_str(&kept), stw_buf_str(&kept));
}

/* Marks, logs and announces one: that of this key, or one at a place when the key is unknown (""). */
static void mark_unreadable(struct stw_reflector *r, const char *key, const char *place,
                            const char *why)
{
    struct stw_informer *inf = r->inf;
    struct stw_unreadable_report report = {
        .key = *key ? key : place, .why = why, .placed = *key == '\0'};
    uint32_t unlogged = 0;
    bool logged =
        stw_unreadable_mark(&inf->unreadable, &r->list, &report, stw_now_ms(inf->clock), &unlogged);
    if (*key)
        announce_unreadable(r, key);
    if (!logged)
        return;
    stw_log(STW_LOG_WARN, "an object cannot be read and is skipped",
            STW_STR("resource", inf->config.resource->plural), STW_STR("object", report.key),
            STW_STR("error", why), STW_INT("unlogged", unlogged));
}

/* --- lists */

static int take_unreadable(void *ctx, const struct stw_unreadable_item *u, struct stw_error *err)
{
    struct stw_reflector *r = ctx;
    struct stw_unreadable_id id;
    char place[64];
    (void)err;
    stw_unreadable_identify(u->text, u->len, &id);
    stw_format(place, sizeof(place), "object %u of a page of the list", u->number);
    mark_unreadable(r, id.key, place, u->why);
    if (*id.key)
        stw_cache_list_keep(&r->inf->cache, id.key);
    else
        r->nameless = true;
    return 0;
}

static int take_item(void *ctx, struct stw_json object, struct stw_error *err)
{
    struct stw_reflector *r = ctx;
    struct stw_informer *inf = r->inf;
    struct stw_object_id id;
    struct stw_version v;
    struct stw_entry *old;
    r->page_objects++;
    if (stw_informer_read(inf, object, &id, &r->text, &v) != 0)
        return 0;
    stw_unreadable_clear(&inf->unreadable, id.key);
    /* An object that could not be stored is not one that is gone: the list is read again. */
    if (r->text.failed)
        return stw_fail_memory(err);
    int changed = stw_cache_listed(&inf->cache, &r->scope, &v, stw_now_ms(inf->clock), &old);
    if (changed < 0)
        return stw_fail_memory(err);
    if (changed > 0)
        stw_informer_changed(inf, v.key, old ? stw_entry_text(old) : NULL, v.text);
    stw_entry_free(old);
    return 0;
}

static int on_list_data(struct stw_http_call *call, const char *data, size_t len)
{
    struct stw_reflector *r = call->ctx;
    const struct stw_items_sink to = {.item = take_item, .unreadable = take_unreadable, .ctx = r};
    if (!make_room(r, &r->items.pending, len))
        return STW_BODY_LATER;
    r->page_bytes += len;
    int rc = stw_items_feed(&r->items, data, len, &to, &call->err);
    settle(r, &r->items.pending);
    return rc;
}

static void report_vanished(struct stw_reflector *r)
{
    struct stw_informer *inf = r->inf;
    struct stw_cache_sweep sweep = {0};
    stw_unreadable_sweep(&inf->unreadable, &r->list);
    if (r->nameless) { /* it may be any of those that were not listed */
        stw_cache_reached(&inf->cache, &r->scope, r->rv);
        return;
    }
    for (struct stw_entry *e; (e = stw_cache_list_end(&inf->cache, &r->scope, r->rv, &sweep));) {
        stw_informer_changed(inf, stw_entry_key(e), stw_entry_text(e), NULL);
        stw_entry_free(e);
    }
}

/* After a page.  1: there is another, 0: that was the last, -1: it is not a list. */
static int end_page(struct stw_reflector *r, struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (stw_items_end(&r->items, &doc, err) != 0)
        return -1;
    struct stw_json meta = stw_json_get(stw_json_root(&doc), "metadata");
    if (stw_json_strcpy(stw_json_get(meta, "resourceVersion"), r->rv, sizeof(r->rv)) != 0)
        return stw_fail(err, STW_ERR_INVALID, "the answer is not a list");
    stw_buf_clear(&r->next);
    stw_json_str(stw_json_get(meta, "continue"), &r->next);
    if (r->next.failed)
        return stw_fail(err, STW_ERR_INVALID, "the list's continue token is too long");
    return r->next.len > 0 ? 1 : 0;
}

static void set_availability(struct stw_reflector *r, enum stw_availability now)
{
    struct stw_informer *inf = r->inf;
    if (atomic_exchange(&r->availability, (int)now) != (int)now && inf->config.available)
        inf->config.available(inf->config.ctx);
}

/* An optional resource cannot be listed: there are no objects of it. */
static void begin_absence(struct stw_reflector *r, const struct stw_error *err)
{
    static const char *const texts[] = {
        [STW_NOT_SERVED] = "the API server does not serve it; looking again now and then",
        [STW_NOT_ALLOWED] = "listing it is not allowed; looking again now and then"};
    struct stw_informer *inf = r->inf;
    enum stw_availability now = err->code == STW_ERR_FORBIDDEN ? STW_NOT_ALLOWED : STW_NOT_SERVED;
    if (atomic_load(&r->availability) != (int)now || !atomic_load(&r->synced))
        stw_log(STW_LOG_INFO, texts[now], STW_STR("resource", inf->config.resource->plural),
                STW_STR("namespace", r->scope.ns));
    else
        stw_footprint_drop_code(); /* often the only request in 15 s; it needs 3 MiB of code */
    r->failures = r->told = r->waits = r->watch_failures = 0;
    report_vanished(r);
    stw_items_done(&r->items);
    stw_informer_gauges(inf);
    stw_informer_set_problem(r, "", false);
    stw_informer_note(r, false);
    set_availability(r, now);
    atomic_store(&r->synced, true);
    begin_list(r, inf->config.absent_ms + stw_random() % (inf->config.absent_ms / 10 + 1));
}

static void list_failed(struct stw_reflector *r, const struct stw_error *err)
{
    if (r->inf->config.optional &&
        (err->code == STW_ERR_NOT_FOUND || err->code == STW_ERR_FORBIDDEN)) {
        begin_absence(r, err);
        return;
    }
    /* The continue token has expired while we paged: start again, the first time without a wait. */
    bool expired = err->code == STW_ERR_GONE && r->paging && r->failures == 0;
    (void)stw_page_shrink(&r->pages, r->page_size, err->code);
    uint64_t wait = record_failure(r, "cannot list", err);
    begin_list(r, expired ? 0 : wait);
}

static void list_done(struct stw_reflector *r)
{
    struct stw_error err = {0};
    int more = end_page(r, &err);
    if (more < 0 || (more > 0 && stw_page_progress(&r->progress, r->items.count,
                                                   stw_buf_str(&r->next), &err) != 0)) {
        list_failed(r, &err);
        return;
    }
    stw_informer_note(r, more == 0);
    if (more > 0) {
        size_page(r);
        r->paging = true;
        go_on(r, 0);
        return;
    }
    r->pages.slower -= r->pages.slower > 0;
    report_vanished(r);
    stw_items_done(&r->items);
    if (r->text.cap > KEEP_BYTES)
        stw_buf_done(&r->text);
    let_go(r);
    stw_footprint_trim();
    stw_informer_gauges(r->inf);
    set_availability(r, STW_AVAILABLE);
    atomic_store(&r->synced, true);
    begin_watch(r, 0);
}

/* --- watches */

static bool goes_back(const char *from, const char *to)
{
    int64_t a, b;
    return stw_parse_int(from, 1, INT64_MAX, &a) == 0 && stw_parse_int(to, 1, INT64_MAX, &b) == 0 &&
           b < a;
}

/* Only the resourceVersion of a bookmark counts. */
static int on_bookmark(struct stw_reflector *r, struct stw_json object)
{
    char rv[STW_RV_LEN];
    if (stw_json_strcpy(stw_json_path(object, "metadata.resourceVersion"), rv, sizeof(rv)) != 0)
        return 0;
    /* The store was restored from a backup: our objects may not exist in it. */
    if (goes_back(r->rv, rv))
        return stw_fail(&r->call.err, STW_ERR_GONE,
                        "the server's resourceVersion went back from %s to %s", r->rv, rv);
    memcpy(r->rv, rv, sizeof(rv));
    stw_cache_reached(&r->inf->cache, &r->scope, rv);
    return 0;
}

static int on_error_event(struct stw_reflector *r, struct stw_json status)
{
    stw_status_object_error(0, status, &r->call.err);
    return 1;
}

static int on_change(struct stw_reflector *r, struct stw_json object, bool deleted)
{
    struct stw_informer *inf = r->inf;
    struct stw_object_id id;
    struct stw_version v;
    struct stw_entry *old;
    if (stw_informer_identify(object, &id) != 0)
        return 0;
    stw_unreadable_clear(&inf->unreadable, id.key);
    /* Usually the event of our own write, whose response is already in the cache. */
    if (!deleted && stw_cache_confirmed(&inf->cache, &r->scope, id.key, id.rv)) {
        memcpy(r->rv, id.rv, sizeof(r->rv));
        return 0;
    }
    if (stw_informer_read(inf, object, &id, &r->text, &v) != 0)
        return 0;
    if (deleted)
        v.text = NULL;
    else if (r->text.failed) /* the watch resumes before this event */
        return stw_fail_memory(&r->call.err);
    int changed = stw_cache_watched(&inf->cache, &r->scope, &v, stw_now_ms(inf->clock), &old);
    if (changed < 0)
        return stw_fail_memory(&r->call.err);
    if (changed > 0 || (deleted && inf->config.reports_gone))
        stw_informer_changed(inf, v.key, old ? stw_entry_text(old) : NULL, v.text);
    stw_entry_free(old);
    memcpy(r->rv, id.rv, sizeof(r->rv));
    return 0;
}

static int dispatch_event(struct stw_reflector *r, struct stw_json event)
{
    struct stw_json type = stw_json_get(event, "type"), object = stw_json_get(event, "object");
    if (stw_json_is(type, "BOOKMARK"))
        return on_bookmark(r, object);
    if (stw_json_is(type, "ERROR"))
        return on_error_event(r, object);
    if (stw_json_is(type, "ADDED") || stw_json_is(type, "MODIFIED"))
        return on_change(r, object, false);
    return stw_json_is(type, "DELETED") ? on_change(r, object, true) : 0;
}

/* An object that cannot be read is deleted. */
static int on_unreadable_deleted(struct stw_reflector *r, const struct stw_unreadable_id *id)
{
    struct stw_informer *inf = r->inf;
    struct stw_entry *old = NULL;
    const struct stw_version gone = {.key = id->key, .rv = id->rv};
    stw_unreadable_clear(&inf->unreadable, id->key);
    int changed = stw_cache_watched(&inf->cache, &r->scope, &gone, stw_now_ms(inf->clock), &old);
    if (changed < 0)
        return stw_fail_memory(&r->call.err);
    if (changed > 0 || inf->config.reports_gone)
        stw_informer_changed(inf, id->key, old ? stw_entry_text(old) : NULL, NULL);
    stw_entry_free(old);
    return 0;
}

/* A line that is not valid JSON, or only the start of one.  If it is the event of an object, the watch
 * goes on after it. */
static int on_unreadable_event(struct stw_reflector *r, const char *line, size_t len,
                               const struct stw_error *why)
{
    struct stw_unreadable_id id;
    char type[16], place[128];
    int rc = 0;
    stw_unreadable_identify_event(line, len, type, &id);
    bool deleted = stw_streq(type, "DELETED");
    if (why->code == STW_ERR_INTERNAL ||
        (!deleted && !stw_streq(type, "ADDED") && !stw_streq(type, "MODIFIED"))) {
        r->call.err = *why;
        return stw_error_wrap(&r->call.err, "an event of the watch");
    }
    stw_format(place, sizeof(place), "the event after resourceVersion %s", r->rv);
    if (deleted && *id.key && *id.rv)
        rc = on_unreadable_deleted(r, &id);
    else
        mark_unreadable(r, id.key, place, why->text);
    if (rc == 0 && *id.rv) {
        stw_cache_reached(&r->inf->cache, &r->scope, id.rv);
        memcpy(r->rv, id.rv, sizeof(r->rv));
    }
    return rc;
}

static int on_event_line(void *ctx, const char *line, size_t len, bool cut)
{
    struct stw_reflector *r = ctx;
    struct stw_error why = {0};
    int end;
    r->doc.trusted = true;
    r->doc.max = STW_ITEM_VALUES_MAX;
    if (cut)
        (void)stw_fail(&why, STW_ERR_TOO_LARGE, "it has more than %u MiB of JSON",
                       STW_LINE_MAX_BYTES >> 20);
    if (cut || stw_json_scan(&r->doc, line, len, &why) != 0)
        end = on_unreadable_event(r, line, len, &why);
    else
        end = dispatch_event(r, stw_json_root(&r->doc));
    if (r->doc.cap * sizeof(struct stw_json_token) > KEEP_BYTES)
        stw_json_done(&r->doc);
    if (r->text.cap > KEEP_BYTES)
        stw_buf_done(&r->text);
    if (end)
        return 1;
    r->alive = true;
    if (r->failures > 0 || r->watch_failures > 0)
        record_recovery(r);
    return 0;
}

/* A batch of events. */
static int on_watch_data(struct stw_http_call *call, const char *data, size_t len)
{
    struct stw_reflector *r = call->ctx;
    if (!make_room(r, &r->lines.partial, len))
        return STW_BODY_LATER;
    int end = stw_lines_feed(&r->lines, data, len, on_event_line, r);
    if (end < 0 && call->err.code == STW_OK)
        return stw_fail_memory(&call->err);
    stw_informer_gauges(r->inf);
    stw_informer_note(r, false);
    settle(r, &r->lines.partial);
    return end;
}

/* Clears the reported problem.  The backoff is not reset before something arrives. */
static void on_open(struct stw_http_call *call)
{
    struct stw_reflector *r = call->ctx;
    stw_informer_set_problem(r, "", false);
}

/* Whether the end of a watch makes its resourceVersion unusable for the next. */
static bool must_relist(struct stw_reflector *r, const struct stw_error *err)
{
    bool bad = err->code == STW_ERR_GONE || err->code == STW_ERR_INVALID ||
               err->code == STW_ERR_NOT_FOUND || err->code == STW_ERR_TOO_LARGE;
    /* A server that lags our resourceVersion refuses it with a 504 every time. */
    bool stuck = err->http > 0 && r->watch_failures >= WATCH_FAILURES_MAX;
    return bad || stuck;
}

static void watch_done(struct stw_reflector *r)
{
    struct stw_error err = r->call.err;
    const uint64_t pause = stw_reflector_pause_ms(r);
    bool lasted = r->alive || stw_now_ms(r->inf->clock) >= r->began_ms + WATCH_GOOD_MS;
    if (err.code == STW_OK && lasted) { /* its timeoutSeconds have passed */
        if (r->failures > 0)
            record_recovery(r);
        if (r->inf->config.alternatives)
            begin_choice(r, false, pause);
        else
            begin_watch(r, pause);
        return;
    }
    if (err.code == STW_OK)
        (void)stw_fail(&err, STW_ERR_UNAVAILABLE, "the server ended the watch at once");
    r->watch_failures++;
    bool relist = must_relist(r, &err);
    bool first = r->failures == 0;
    uint64_t wait =
        record_failure(r, relist ? "the watch ended, listing again" : "the watch failed", &err);
    if (relist)
        begin_list(r, first ? pause : STW_MAX(wait, pause));
    else
        begin_watch(r, first && r->alive && err.retry_after_ms == 0 ? pause : STW_MAX(wait, pause));
}

/* --- versions */

/* Logged once, and again when the version in use changes. */
static void tell_choice(const struct stw_informer *inf, const struct stw_resource *found)
{
    const struct stw_resource *best = inf->config.alternatives[0];
    if (found != best && found != atomic_load(&inf->resource))
        stw_log(STW_LOG_INFO, "the API server does not serve the newer version, using an older one",
                STW_STR("group", best->group), STW_STR("resource", best->plural),
                STW_STR("lacks", best->version), STW_STR("uses", found->version));
}

/* When discovery is forbidden, the current choice stays, initially the best version. */
static void choose_api_version(struct stw_reflector *r, const struct stw_error *err)
{
    struct stw_informer *inf = r->inf;
    struct stw_error none = {0};
    struct stw_buf body = r->call.body;
    const struct stw_resource *found = NULL;
    r->call.body = STW_BUF_INIT(0); /* the client sets its limit */
    if (err->code == STW_OK)
        found = stw_discovery_pick(inf->config.alternatives, &body);
    else if (err->code == STW_ERR_FORBIDDEN)
        found = atomic_load(&inf->resource);
    stw_buf_done(&body);
    if (!found) {
        (void)stw_fail(&none, STW_ERR_NOT_FOUND, "the server serves no known version of it");
        begin_choice(r, r->must_list,
                     record_failure(r, "cannot list", err->code == STW_OK ? &none : err));
        return;
    }
    tell_choice(inf, found);
    atomic_store(&inf->resource, found);
    if (r->must_list || found != r->listed)
        begin_pages(r, 0);
    else
        begin_watch(r, 0);
}

/* --- one step */

static void on_done(struct stw_http_call *call)
{
    struct stw_reflector *r = call->ctx;
    struct stw_error err = call->err;
    if (atomic_load(&r->inf->stopping) || err.code == STW_ERR_CANCELLED) {
        stw_informer_ended(r->inf);
        return;
    }
    if (r->phase == STW_CHOOSING)
        choose_api_version(r, &err);
    else if (r->phase == STW_WATCHING)
        watch_done(r);
    else if (err.code != STW_OK)
        list_failed(r, &err);
    else
        list_done(r);
}

int stw_reflector_init(struct stw_reflector *r, struct stw_informer *inf, const char *ns,
                       struct stw_error *err)
{
    r->inf = inf;
    r->scope.ns = ns;
    r->pages = (struct stw_page_size){.most = inf->config.page_size, .slower_max = SLOWER_MAX};
    r->path = STW_BUF_INIT(PATH_MAX_BYTES + CONTINUE_MAX_BYTES);
    r->next = STW_BUF_INIT(CONTINUE_MAX_BYTES);
    r->text = STW_BUF_INIT(TEXT_MAX_BYTES);
    stw_lines_init(&r->lines, STW_LINE_MAX_BYTES);
    r->phase = STW_LISTING;
    atomic_init(&r->synced, false);
    make_path(r);
    if (r->path.failed || r->path.len > PATH_MAX_BYTES)
        return stw_fail(err, STW_ERR_INVALID, "the selector for %s is too long",
                        inf->config.resource->plural);
    return 0;
}

void stw_reflector_done(struct stw_reflector *r)
{
    stw_buf_done(&r->path);
    stw_buf_done(&r->next);
    stw_buf_done(&r->text);
    stw_buf_done(&r->call.body);
    stw_lines_done(&r->lines);
    stw_items_done(&r->items);
    stw_json_done(&r->doc);
    let_go(r);
}

void stw_reflector_start(struct stw_reflector *r)
{
    begin_list(r, 0);
}
