/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of a thread, and the queue of those that have ended.  The lock is held for a few
 * instructions; the exporter's work is done outside of it. */
#include "base/telemetry/trace.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "base/util.h"

#include <assert.h>
#include <pthread.h>
#include <time.h>

#define NS_PER_S 1000000000

_Atomic(struct stw_tracer *) stw_tracer_installed;

struct stw_tracer {
    struct stw_sampler sampler;
    uint32_t max;
    struct stw_series *fates[STW_TRACE_FATES];
    _Atomic uint64_t counts[STW_TRACE_FATES];
    pthread_mutex_t lock;
    pthread_cond_t wake; /* the first span of a batch, a full batch, or closed */
    struct stw_span_record *first, **last;
    uint32_t count, wanted; /* wanted: the size of a batch that wakes the exporter */
    uint64_t first_ms;      /* when the first span was queued */
    bool closed;
};

static _Thread_local struct stw_span *current_span;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t = {0};
    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* --- counters */

static const char *const drop_reasons[] = {
    [STW_TRACE_EXPORTED] = NULL,
    [STW_TRACE_QUEUE_FULL] = "queue_full",
    [STW_TRACE_REJECTED] = "rejected",
    [STW_TRACE_UNREACHABLE] = "unreachable",
};
static_assert(STW_COUNT(drop_reasons) == STW_TRACE_FATES, "one reason for each fate");

static struct stw_series *fate_series(struct stw_metrics *m, enum stw_trace_fate fate)
{
    static const char *const labels[] = {"reason", NULL};
    if (fate == STW_TRACE_EXPORTED)
        return STW_SERIES0(stw_metrics_family(m, STW_COUNTER, "_trace_spans_exported_total",
                                              "Spans that the collector has accepted.", NULL,
                                              NULL));
    struct stw_family *dropped = stw_metrics_family(
        m, STW_COUNTER, "_trace_spans_dropped_total",
        "Spans that were not exported: the queue was full, or the collector rejected them or could "
        "not be reached.",
        labels, NULL);
    return STW_SERIES(dropped, drop_reasons[fate]);
}

void stw_tracer_make_metrics(struct stw_metrics *m)
{
    for (unsigned i = 0; m && i < STW_TRACE_FATES; i++)
        (void)fate_series(m, (enum stw_trace_fate)i);
}

void stw_tracer_count(struct stw_tracer *t, enum stw_trace_fate fate, uint64_t spans)
{
    assert(fate < STW_TRACE_FATES);
    if (spans == 0)
        return;
    atomic_fetch_add(&t->counts[fate], spans);
    stw_series_add(t->fates[fate], (double)spans);
}

uint64_t stw_tracer_counted(struct stw_tracer *t, enum stw_trace_fate fate)
{
    return atomic_load(&t->counts[fate]);
}

/* --- the tracer */

struct stw_tracer *stw_tracer_create(const struct stw_sampler *sampler, uint32_t queue_max,
                                     struct stw_metrics *metrics)
{
    struct stw_tracer *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->sampler = *sampler;
    t->max = queue_max;
    t->last = &t->first;
    t->wanted = STW_TRACE_BATCH_SPANS;
    for (unsigned i = 0; metrics && i < STW_TRACE_FATES; i++)
        t->fates[i] = fate_series(metrics, (enum stw_trace_fate)i);
    if (pthread_mutex_init(&t->lock, NULL) != 0)
        goto no_lock;
    if (stw_cond_init(&t->wake) != 0)
        goto no_wake;
    return t;
no_wake:
    (void)pthread_mutex_destroy(&t->lock);
no_lock:
    free(t);
    return NULL;
}

void stw_tracer_install(struct stw_tracer *t)
{
    atomic_store(&stw_tracer_installed, t);
}

void stw_tracer_free(struct stw_span_record *list)
{
    for (struct stw_span_record *r; (r = list);) {
        list = r->next;
        free(r);
    }
}

void stw_tracer_destroy(struct stw_tracer *t)
{
    struct stw_tracer *own = t;
    if (!t)
        return;
    (void)atomic_compare_exchange_strong(&stw_tracer_installed, &own, NULL);
    stw_tracer_free(t->first);
    (void)pthread_cond_destroy(&t->wake);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

/* Spans of admission get half of the queue: their number depends on clients, which must not be able
 * to displace the others. */
static bool has_room(const struct stw_tracer *t, const struct stw_span_record *r)
{
    return !t->closed && t->count < (r->kind == STW_SPAN_SERVER ? t->max / 2 : t->max);
}

/* Takes the record, or frees it. */
static void queue_record(struct stw_tracer *t, struct stw_span_record *r)
{
    pthread_mutex_lock(&t->lock);
    bool taken = has_room(t, r);
    if (taken) {
        *t->last = r;
        t->last = &r->next;
        t->first_ms = t->count == 0 ? stw_now_ms(&stw_clock_system) : t->first_ms;
        t->count++;
        if (t->count == 1 || t->count == t->wanted)
            pthread_cond_signal(&t->wake);
    }
    pthread_mutex_unlock(&t->lock);
    if (taken)
        return;
    free(r);
    stw_tracer_count(t, STW_TRACE_QUEUE_FULL, 1);
}

static struct stw_span_record *cut_list(struct stw_tracer *t, uint32_t most)
{
    struct stw_span_record *list = t->first, **end = &list;
    for (uint32_t i = 0; i < most && *end; i++, t->count--)
        end = &(*end)->next;
    t->first = *end;
    *end = NULL;
    if (!t->first)
        t->last = &t->first;
    t->first_ms = stw_now_ms(&stw_clock_system); /* of those that are left */
    return list;
}

struct stw_span_record *stw_tracer_take(struct stw_tracer *t, uint32_t most, uint64_t delay_ms)
{
    STW_LOCKED(&t->lock);
    t->wanted = most;
    while (!t->closed && t->count < most) {
        uint64_t due = t->count > 0 ? t->first_ms + delay_ms : UINT64_MAX;
        if (due <= stw_now_ms(&stw_clock_system))
            break;
        stw_cond_wait_until(&t->wake, &t->lock, due);
    }
    return cut_list(t, most);
}

void stw_tracer_close(struct stw_tracer *t)
{
    STW_LOCKED(&t->lock);
    t->closed = true;
    pthread_cond_broadcast(&t->wake);
}

bool stw_tracer_closed(struct stw_tracer *t)
{
    STW_LOCKED(&t->lock);
    return t->closed;
}

void stw_tracer_pause(struct stw_tracer *t, uint64_t until_ms)
{
    STW_LOCKED(&t->lock);
    while (!t->closed && stw_now_ms(&stw_clock_system) < until_ms)
        stw_cond_wait_until(&t->wake, &t->lock, until_ms);
}

/* --- spans */

static void random_bytes(uint8_t *out, size_t len)
{
    for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
        uint64_t word = stw_random();
        word += word == 0; /* an ID of zeros means that there is none */
        memcpy(out + at, &word, STW_MIN(len - at, sizeof(word)));
    }
}

/* Appends a text: cut at a character, and without bytes that are not UTF-8.  Returns where it is.
 * The first byte of `text` is an empty text, for those that do not fit. */
static uint32_t add_text(struct stw_span_record *r, const char *value)
{
    const unsigned char *p = (const unsigned char *)value;
    const unsigned char *end = p + strnlen(value, STW_SPAN_VALUE_MAX);
    uint32_t at = r->used, left = STW_SPAN_TEXT_MAX - r->used;
    if ((size_t)(end - p) >= left)
        return 0;
    for (size_t n; p < end; p += n) {
        n = stw_utf8_len(p, end);
        if (n == 0 && end - p < 4 && *p >= 0xC0)
            break; /* cut within a character */
        if (n == 0)
            r->text[r->used++] = '?';
        else
            memcpy(r->text + r->used, p, n);
        r->used += (uint32_t)n;
        n += n == 0;
    }
    r->text[r->used++] = '\0';
    return at;
}

static void start_record(struct stw_span *s, enum stw_span_kind kind, const char *name,
                         uint64_t age_ns)
{
    struct stw_span_record *r = &s->record;
    r->kind = (uint8_t)kind;
    r->failed = false;
    r->attribute_count = 0;
    r->text[0] = '\0';
    r->used = 1;
    r->message = 0;
    r->name = add_text(r, name);
    s->started_ns = (uint64_t)clock_ns(CLOCK_MONOTONIC) - age_ns;
    r->start_ns = clock_ns(CLOCK_REALTIME) - (int64_t)age_ns;
}

static void begin_span(struct stw_tracer *t, struct stw_span *s,
                       const struct stw_trace_context *parent)
{
    struct stw_trace_context *own = &s->record.context;
    bool has_parent = parent && stw_trace_context_is_set(parent);
    memset(s->record.parent_id, 0, sizeof(s->record.parent_id));
    if (has_parent) {
        memcpy(own->trace_id, parent->trace_id, sizeof(own->trace_id));
        memcpy(s->record.parent_id, parent->span_id, sizeof(s->record.parent_id));
    } else {
        random_bytes(own->trace_id, sizeof(own->trace_id));
    }
    random_bytes(own->span_id, sizeof(own->span_id));
    own->sampled = stw_sampler_decides(&t->sampler, own->trace_id, has_parent ? parent : NULL);
    s->active = true;
    s->recording = own->sampled;
    s->outer = current_span;
    current_span = s;
}

void stw_span_begin(struct stw_span *s, enum stw_span_kind kind, const char *name,
                    const struct stw_trace_context *remote, uint64_t age_ns)
{
    struct stw_tracer *t = atomic_load_explicit(&stw_tracer_installed, memory_order_acquire);
    s->active = s->recording = false;
    if (!t)
        return;
    bool given = stw_trace_context_is_set(remote);
    s->record.remote = given;
    begin_span(t, s, given ? remote : current_span ? &current_span->record.context : NULL);
    if (s->recording)
        start_record(s, kind, name, age_ns);
}

void stw_span_begin_child(struct stw_span *s, enum stw_span_kind kind, const char *name)
{
    s->active = s->recording = false;
    if (current_span)
        stw_span_begin(s, kind, name, NULL, 0);
}

void stw_span_name(struct stw_span *s, const char *name)
{
    if (s->recording)
        s->record.name = add_text(&s->record, name);
}

static struct stw_span_attribute *add_attribute(struct stw_span *s, const char *key)
{
    struct stw_span_record *r = &s->record;
    if (!s->recording || r->attribute_count == STW_SPAN_ATTRIBUTES_MAX)
        return NULL;
    struct stw_span_attribute *a = &r->attributes[r->attribute_count++];
    *a = (struct stw_span_attribute){.key = key};
    return a;
}

void stw_span_str(struct stw_span *s, const char *key, const char *value)
{
    struct stw_span_attribute *a = value ? add_attribute(s, key) : NULL;
    if (a)
        a->num = add_text(&s->record, value);
}

void stw_span_int(struct stw_span *s, const char *key, int64_t value)
{
    struct stw_span_attribute *a = add_attribute(s, key);
    if (a) {
        a->type = STW_ATTRIBUTE_INT;
        a->num = value;
    }
}

void stw_span_bool(struct stw_span *s, const char *key, bool value)
{
    struct stw_span_attribute *a = add_attribute(s, key);
    if (a) {
        a->type = STW_ATTRIBUTE_BOOL;
        a->num = value;
    }
}

void stw_span_fail(struct stw_span *s, const char *message)
{
    if (!s->recording)
        return;
    s->record.failed = true;
    s->record.message = message ? add_text(&s->record, message) : 0;
}

static void record_span(struct stw_tracer *t, struct stw_span *s)
{
    struct stw_span_record *r = &s->record;
    r->next = NULL;
    r->end_ns = r->start_ns + (int64_t)((uint64_t)clock_ns(CLOCK_MONOTONIC) - s->started_ns);
    size_t size = offsetof(struct stw_span_record, text) + r->used;
    struct stw_span_record *copy = malloc(size);
    if (!copy) {
        stw_tracer_count(t, STW_TRACE_QUEUE_FULL, 1);
        return;
    }
    memcpy(copy, r, size);
    queue_record(t, copy);
}

void stw_span_end(struct stw_span *s)
{
    if (!s->active)
        return;
    assert(current_span == s);
    current_span = s->outer;
    s->active = false;
    struct stw_tracer *t = atomic_load_explicit(&stw_tracer_installed, memory_order_acquire);
    if (s->recording && t)
        record_span(t, s);
    s->recording = false;
}

const char *stw_span_trace_id(char out[STW_TRACE_ID_LEN])
{
    if (!current_span || !current_span->recording)
        return NULL;
    stw_hex_encode(current_span->record.context.trace_id, 16, STW_HEX_LOWER, out);
    return out;
}
