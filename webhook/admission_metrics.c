/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/admission_metrics_priv.h"

#include "base/util.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

/* controller-runtime uses decades; these allow reading a p99 between 100 us and 10 s. */
static const double latency_buckets[] = {
    0.00001, 0.000025, 0.00005, 0.0001, 0.00015, 0.00025, 0.0005, 0.00075, 0.001, 0.0015,
    0.0025,  0.005,    0.0075,  0.01,   0.015,   0.025,   0.05,   0.075,   0.1,   0.15,
    0.25,    0.5,      0.75,    1,      1.5,     2.5,     5,      7.5,     10,    -1};

static const char *const operation_names[] = {"CREATE", "UPDATE", "DELETE", "CONNECT"};
static_assert(STW_COUNT(operation_names) == STW_TALLY_OPERATIONS, "one name for each operation");

void stw_admission_metrics_init(struct stw_admission_metrics *t, struct stw_metrics *m)
{
    t->requests = stw_metrics_family(m, STW_COUNTER, "controller_runtime_webhook_requests_total",
                                     "Total number of admission requests by HTTP status code.",
                                     (const char *const[]){"webhook", "code", NULL}, NULL);
    t->in_flight = stw_metrics_family(m, STW_GAUGE, "controller_runtime_webhook_requests_in_flight",
                                      "Current number of admission requests being served.",
                                      (const char *const[]){"webhook", NULL}, NULL);
    t->latency = stw_metrics_family(m, STW_HISTOGRAM, "controller_runtime_webhook_latency_seconds",
                                    "Latency of processing admission requests.",
                                    (const char *const[]){"webhook", NULL}, latency_buckets);
    t->reviews = stw_metrics_family(
        m, STW_COUNTER, "_admission_reviews_total", "Decisions on admission reviews.",
        (const char *const[]){"webhook", "kind", "operation", "allowed", "dry_run", NULL}, NULL);
    t->violations = stw_metrics_family(m, STW_COUNTER, "_admission_violations_total",
                                       "Findings that objects were refused for.",
                                       (const char *const[]){"kind", "field", "code", NULL}, NULL);
}

void stw_admission_metrics_add_conversions(struct stw_admission_metrics *t, struct stw_metrics *m)
{
    t->conversions = stw_metrics_family(
        m, STW_COUNTER, "_conversion_objects_total",
        "Objects that the API server sent for conversion to a version, by result.",
        (const char *const[]){"kind", "version", "result", NULL}, NULL);
}

static const char *format_bool(bool v)
{
    return v ? "true" : "false";
}

static struct stw_series *review_series(struct stw_route *r, unsigned operation, bool allowed,
                                        bool dry_run)
{
    assert(operation < STW_TALLY_OPERATIONS);
    struct stw_series *_Atomic *place = &r->reviews[operation][allowed][dry_run];
    struct stw_series *s = atomic_load_explicit(place, memory_order_acquire);
    if (!s) {
        s = STW_SERIES(r->admission_metrics->reviews, r->path, r->kind->kind,
                       operation_names[operation], format_bool(allowed), format_bool(dry_run));
        atomic_store_explicit(place, s, memory_order_release);
    }
    return s;
}

void stw_route_init(struct stw_route *r, const struct stw_admission_metrics *t,
                    const struct stw_kind *kind, bool mutate, char *path)
{
    r->path = path;
    r->path_len = strlen(path);
    r->kind = kind;
    r->mutate = mutate;
    r->admission_metrics = t;
    r->in_flight = STW_SERIES(t->in_flight, path);
    r->latency = STW_SERIES(t->latency, path);
    r->ok = STW_SERIES(t->requests, path, "200");
    (void)STW_SERIES(t->requests, path, "500");
    for (unsigned op = 0; kind && op < STW_TALLY_OPERATIONS; op++) {
        unsigned asked = mutate ? STW_CREATE | STW_UPDATE : kind->operations;
        if (!(asked & 1U << op))
            continue;
        (void)review_series(r, op, true, false);
        (void)review_series(r, op, false, false);
    }
}

void stw_route_done(struct stw_route *r)
{
    free(r->path);
}

void stw_admission_metrics_reply(const struct stw_route *r, int code, double seconds)
{
    char text[12];
    stw_series_observe(r->latency, seconds);
    if (code == 200) {
        stw_series_add(r->ok, 1);
        return;
    }
    stw_format(text, sizeof(text), "%d", code);
    stw_series_add(STW_SERIES(r->admission_metrics->requests, r->path, text), 1);
}

static const struct stw_field *find_member(const struct stw_field *object, const char *name,
                                           size_t len)
{
    const struct stw_field *rows = !object ? NULL : object->fields ? object->fields : object->known;
    for (; rows && rows->name; rows++)
        if (strlen(rows->name) == len && memcmp(rows->name, name, len) == 0)
            return rows;
    return NULL;
}

/* The text alone does not show where a map's key ends, as a key may contain brackets and dots.  The
 * table shows what is a list: only there the text between brackets is an index. */
void stw_admission_metrics_field(const struct stw_field *spec, const char *path, char *out,
                                 size_t size)
{
    const struct stw_field top[] = {{.name = "spec", .fields = spec}, {0}},
                           object = {.fields = top};
    const struct stw_field *row = &object;
    size_t n = 0;
    while (*path && n + 2 < size) {
        size_t len = strcspn(path, ".[");
        if (*path == '.') {
            out[n++] = *path++;
        } else if (*path != '[') {
            row = find_member(row, path, len);
            len = STW_MIN(len, size - 2 - n);
            memcpy(out + n, path, len);
            n += len;
            path += len;
        } else {
            const char *end = path + 1 + strspn(path + 1, "0123456789");
            out[n++] = '[';
            out[n++] = ']';
            if (!row || row->type != STW_T_LIST || *end != ']')
                break;
            row = row->item;
            path = end + 1;
        }
    }
    out[n] = '\0';
}

void stw_admission_metrics_verdict(struct stw_route *r, const struct stw_review_result *v)
{
    char field[256];
    for (unsigned op = 0; op < STW_TALLY_OPERATIONS; op++) {
        if (stw_streq(v->operation, operation_names[op]))
            stw_series_add(review_series(r, op, v->allowed, v->dry_run), 1);
    }
    for (size_t i = 0; i < v->findings.error_count; i++) {
        const struct stw_finding *f = &v->findings.errors[i];
        stw_admission_metrics_field(r->kind->spec, f->path, field, sizeof(field));
        stw_series_add(STW_SERIES(r->admission_metrics->violations, r->kind->kind, field,
                                  stw_finding_cause(f->code)),
                       1);
    }
}

void stw_admission_metrics_conversion(const struct stw_route *r,
                                      const struct stw_conversion_result *v)
{
    if (v->kind && v->version)
        stw_series_add(STW_SERIES(r->admission_metrics->conversions, v->kind->kind, v->version,
                                  v->converted ? "success" : "failure"),
                       (double)v->objects);
}
