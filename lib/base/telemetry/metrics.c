/* SPDX-License-Identifier: Apache-2.0
 *
 * Families and series are created and removed under one lock; their values are atomics.  Rendering
 * reads the values one by one: samples of a histogram may be from slightly different moments, as in
 * Prometheus' own clients. */
#include "base/metrics.h"

#include "base/thread.h"
#include "base/util.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#define SERIES_MAX 1000U
#define BUCKETS_MAX 64U
#define NAME_MAX_BYTES 200

struct stw_series {
    struct stw_series *next; /* in order of creation */
    struct stw_family *family;
    char *labels;               /* rendered: name="value",... ; "" without labels */
    unsigned holders;           /* references: stw_series() minus stw_series_remove() */
    _Atomic uint64_t bits;      /* the value as a double; of a histogram: the sum */
    _Atomic uint64_t buckets[]; /* counts, not cumulative; the last is +Inf */
};

struct stw_family {
    struct stw_family *next;
    struct stw_metrics *registry;
    enum stw_metric_type type;
    char *name, *help;
    char *labels[STW_METRIC_LABELS_MAX];
    double *bounds;
    unsigned label_count, bound_count, series_count;
    struct stw_series *series, **series_end;
};

struct collector {
    struct collector *next;
    void (*fn)(void *ctx);
    void *ctx;
};

struct stw_metrics {
    pthread_mutex_t lock;      /* the lists; held to create, remove and render, not to update */
    pthread_mutex_t rendering; /* one rendering at a time, as collectors share their state */
    struct stw_family *families;
    struct collector *collectors;
    char *prefix;
};

struct stw_metrics *stw_metrics_create(const char *prefix)
{
    /* A mutex with default attributes cannot fail to initialise in the C library. */
    struct stw_metrics *m = calloc(1, sizeof(*m));
    char *copy = strdup(prefix);
    if (!m || !copy) {
        free(m);
        free(copy);
        return NULL;
    }
    m->prefix = copy;
    (void)pthread_mutex_init(&m->lock, NULL);
    (void)pthread_mutex_init(&m->rendering, NULL);
    return m;
}

static void destroy_family(struct stw_family *f)
{
    if (!f)
        return;
    for (struct stw_series *s = f->series, *next; s; s = next) {
        next = s->next;
        free(s->labels);
        free(s);
    }
    for (unsigned i = 0; i < f->label_count; i++)
        free(f->labels[i]);
    free(f->bounds);
    free(f->name);
    free(f->help);
    free(f);
}

void stw_metrics_destroy(struct stw_metrics *m)
{
    if (!m)
        return;
    for (struct stw_family *f = m->families, *next; f; f = next) {
        next = f->next;
        destroy_family(f);
    }
    for (struct collector *c = m->collectors, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    (void)pthread_mutex_destroy(&m->rendering);
    (void)pthread_mutex_destroy(&m->lock);
    free(m->prefix);
    free(m);
}

static int copy_labels(struct stw_family *f, const char *const *labels)
{
    for (unsigned i = 0; labels && labels[i]; i++) {
        if (i == STW_METRIC_LABELS_MAX)
            return -1;
        f->labels[i] = strdup(labels[i]);
        if (!f->labels[i])
            return -1;
        f->label_count = i + 1;
    }
    return 0;
}

static int copy_bounds(struct stw_family *f, const double *buckets)
{
    unsigned n = 0;
    while (buckets && buckets[n] >= 0 && n < BUCKETS_MAX)
        n++;
    f->bounds = calloc(n + 1, sizeof(*f->bounds));
    if (!f->bounds)
        return -1;
    if (n > 0)
        memcpy(f->bounds, buckets, n * sizeof(*f->bounds));
    f->bound_count = n;
    return 0;
}

static struct stw_family *make_family(struct stw_metrics *m, enum stw_metric_type type,
                                      const char *name, const char *help, const char *const *labels,
                                      const double *buckets)
{
    struct stw_family *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    f->registry = m;
    f->type = type;
    f->name = strdup(name);
    f->help = strdup(help);
    f->series_end = &f->series;
    if (!f->name || !f->help || copy_labels(f, labels) != 0 || copy_bounds(f, buckets) != 0) {
        destroy_family(f);
        return NULL;
    }
    return f;
}

struct stw_family *stw_metrics_family(struct stw_metrics *m, enum stw_metric_type type,
                                      const char *name, const char *help, const char *const *labels,
                                      const double *buckets)
{
    char full[NAME_MAX_BYTES + 1];
    if (!m ||
        stw_format_whole(full, sizeof(full), "%s%s", *name == '_' ? m->prefix : "", name) != 0)
        return NULL;
    STW_LOCKED(&m->lock);
    /* Sorted by name, which is the rendering order. */
    struct stw_family **at = &m->families, *f;
    while (*at && strcmp((*at)->name, full) < 0)
        at = &(*at)->next;
    f = *at;
    if (!f || !stw_streq(f->name, full)) {
        f = make_family(m, type, full, help, labels, buckets);
        if (f) {
            f->next = *at;
            *at = f;
        }
    }
    return f;
}

/* Escapes backslash, quote and newline in a label value.  The caller must pass valid UTF-8: values
 * are our own names, codes and paths. */
static void add_escaped(struct stw_buf *b, const char *text)
{
    for (; *text; text++) {
        if (*text == '\n')
            stw_buf_adds(b, "\\n");
        else {
            if (*text == '\\' || *text == '"')
                stw_buf_addc(b, '\\');
            stw_buf_addc(b, *text);
        }
    }
}

static int render_labels(const struct stw_family *f, const char *const *values, struct stw_buf *b)
{
    for (unsigned i = 0; i < f->label_count; i++) {
        if (!values[i])
            return -1;
        stw_buf_adds(b, i ? "," : "");
        stw_buf_adds(b, f->labels[i]);
        stw_buf_adds(b, "=\"");
        add_escaped(b, values[i]);
        stw_buf_addc(b, '"');
    }
    return values[f->label_count] || b->failed ? -1 : 0;
}

static struct stw_series *make_series(struct stw_family *f, const char *labels)
{
    size_t buckets = f->type == STW_HISTOGRAM ? f->bound_count + 1 : 0;
    struct stw_series *s = calloc(1, sizeof(*s) + buckets * sizeof(s->buckets[0]));
    char *copy = strdup(labels);
    if (!s || !copy || f->series_count == SERIES_MAX) {
        free(s);
        free(copy);
        return NULL;
    }
    s->family = f;
    s->labels = copy;
    *f->series_end = s;
    f->series_end = &s->next;
    f->series_count++;
    return s;
}

struct stw_series *stw_series(struct stw_family *f, const char *const *values)
{
    stw_autobuf struct stw_buf key = STW_BUF_INIT(4096);
    struct stw_series *s;

    if (!f || render_labels(f, values, &key) != 0)
        return NULL;
    STW_LOCKED(&f->registry->lock);
    for (s = f->series; s && !stw_streq(s->labels, stw_buf_str(&key)); s = s->next)
        ;
    if (!s)
        s = make_series(f, stw_buf_str(&key));
    if (s)
        s->holders++;
    return s;
}

void stw_series_remove(struct stw_series *s)
{
    if (!s)
        return;
    struct stw_family *f = s->family;
    (void)pthread_mutex_lock(&f->registry->lock);
    if (--s->holders > 0) {
        (void)pthread_mutex_unlock(&f->registry->lock);
        return;
    }
    struct stw_series **at = &f->series;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (f->series_end == &s->next)
        f->series_end = at;
    f->series_count--;
    (void)pthread_mutex_unlock(&f->registry->lock);
    free(s->labels);
    free(s);
}

static double load_double(const _Atomic uint64_t *bits)
{
    uint64_t raw = atomic_load_explicit(bits, memory_order_relaxed);
    double v;
    memcpy(&v, &raw, sizeof(v));
    return v;
}

static uint64_t bits_of(double v)
{
    uint64_t raw;
    memcpy(&raw, &v, sizeof(raw));
    return raw;
}

static void add_to(_Atomic uint64_t *bits, double v)
{
    uint64_t old = atomic_load_explicit(bits, memory_order_relaxed);
    double sum;
    do {
        memcpy(&sum, &old, sizeof(sum));
        sum += v;
    } while (!atomic_compare_exchange_weak_explicit(bits, &old, bits_of(sum), memory_order_relaxed,
                                                    memory_order_relaxed));
}

void stw_series_add(struct stw_series *s, double v)
{
    if (s)
        add_to(&s->bits, v);
}

void stw_series_set(struct stw_series *s, double v)
{
    if (s)
        atomic_store_explicit(&s->bits, bits_of(v), memory_order_relaxed);
}

static uint64_t count_of(const struct stw_series *s, unsigned bucket)
{
    return atomic_load_explicit(&s->buckets[bucket], memory_order_relaxed);
}

double stw_series_value(const struct stw_series *s)
{
    if (!s)
        return 0;
    if (s->family->type != STW_HISTOGRAM)
        return load_double(&s->bits);
    uint64_t count = 0;
    for (unsigned i = 0; i <= s->family->bound_count; i++)
        count += count_of(s, i);
    return (double)count;
}

void stw_series_observe(struct stw_series *s, double v)
{
    unsigned i = 0;
    if (!s || s->family->type != STW_HISTOGRAM)
        return;
    while (i < s->family->bound_count && v > s->family->bounds[i])
        i++;
    (void)atomic_fetch_add_explicit(&s->buckets[i], 1, memory_order_relaxed);
    add_to(&s->bits, v);
}

int stw_metrics_on_collect(struct stw_metrics *m, void (*fn)(void *ctx), void *ctx)
{
    struct collector *c = m ? calloc(1, sizeof(*c)) : NULL;
    if (!c)
        return -1;
    c->fn = fn;
    c->ctx = ctx;
    STW_LOCKED(&m->lock);
    struct collector **at = &m->collectors;
    while (*at)
        at = &(*at)->next;
    *at = c;
    return 0;
}

/* The shortest decimal form that reads back as the same double: 0.005, 1, 1e+20, +Inf, NaN. */
static void add_number(struct stw_buf *out, double v)
{
    char text[40];
    if (v > -1e15 && v < 1e15 && !(v < trunc(v)) && !(v > trunc(v))) {
        stw_buf_addi(out, (int64_t)v);
    } else if (isnan(v)) {
        stw_buf_adds(out, "NaN");
    } else if (isinf(v)) {
        stw_buf_adds(out, v > 0 ? "+Inf" : "-Inf");
    } else {
        for (int digits = 15; digits <= 17; digits++) {
            stw_format(text, sizeof(text), "%.*g", digits, v);
            double back = strtod(text, NULL);
            if (!(back < v) && !(back > v))
                break;
        }
        stw_buf_adds(out, text);
    }
}

static void render_sample(const struct stw_series *s, struct stw_buf *out)
{
    stw_buf_adds(out, s->family->name);
    if (*s->labels)
        stw_buf_addf(out, "{%s}", s->labels);
    stw_buf_addc(out, ' ');
    add_number(out, load_double(&s->bits));
    stw_buf_addc(out, '\n');
}

static void render_histogram(const struct stw_series *s, struct stw_buf *out)
{
    const struct stw_family *f = s->family;
    const char *comma = *s->labels ? "," : "";
    uint64_t count = 0;

    for (unsigned i = 0; i <= f->bound_count; i++) {
        count += count_of(s, i);
        stw_buf_addf(out, "%s_bucket{%s%sle=\"", f->name, s->labels, comma);
        if (i < f->bound_count)
            add_number(out, f->bounds[i]);
        else
            stw_buf_adds(out, "+Inf");
        stw_buf_adds(out, "\"} ");
        stw_buf_addi(out, (int64_t)count);
        stw_buf_addc(out, '\n');
    }
    const char *open = *s->labels ? "{" : "", *close = *s->labels ? "}" : "";
    stw_buf_addf(out, "%s_sum%s%s%s ", f->name, open, s->labels, close);
    add_number(out, load_double(&s->bits));
    stw_buf_addf(out, "\n%s_count%s%s%s ", f->name, open, s->labels, close);
    stw_buf_addi(out, (int64_t)count);
    stw_buf_addc(out, '\n');
}

static void render_family(const struct stw_family *f, struct stw_buf *out)
{
    static const char *const types[] = {
        [STW_COUNTER] = "counter", [STW_GAUGE] = "gauge", [STW_HISTOGRAM] = "histogram"};
    static_assert(STW_COUNT(types) == STW_METRIC_TYPES, "one name for each type");
    assert(f->type < STW_METRIC_TYPES);
    if (!f->series)
        return;
    stw_buf_addf(out, "# HELP %s ", f->name);
    for (const char *p = f->help; *p; p++) {
        if (*p == '\n' || *p == '\\')
            stw_buf_adds(out, *p == '\n' ? "\\n" : "\\\\");
        else
            stw_buf_addc(out, *p);
    }
    stw_buf_addf(out, "\n# TYPE %s %s\n", f->name, types[f->type]);
    for (const struct stw_series *s = f->series; s; s = s->next)
        (f->type == STW_HISTOGRAM ? render_histogram : render_sample)(s, out);
}

/* A collector may create series, so it runs without the lock; the list only grows at its end. */
static void run_collectors(struct stw_metrics *m)
{
    struct collector *c;
    (void)pthread_mutex_lock(&m->lock);
    for (c = m->collectors; c; c = c->next) {
        (void)pthread_mutex_unlock(&m->lock);
        c->fn(c->ctx);
        (void)pthread_mutex_lock(&m->lock);
    }
    (void)pthread_mutex_unlock(&m->lock);
}

void stw_metrics_render(struct stw_metrics *m, struct stw_buf *out)
{
    if (!m)
        return;
    (void)pthread_mutex_lock(&m->rendering);
    run_collectors(m);
    (void)pthread_mutex_lock(&m->lock);
    for (const struct stw_family *f = m->families; f; f = f->next)
        render_family(f, out);
    (void)pthread_mutex_unlock(&m->lock);
    (void)pthread_mutex_unlock(&m->rendering);
}
