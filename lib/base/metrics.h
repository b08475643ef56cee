/* SPDX-License-Identifier: Apache-2.0
 *
 * A metrics registry in the Prometheus text format 0.0.4.  A family is created once, its series on
 * first use.  A series stays valid as long as the registry, or until it is removed.  Updating a
 * series takes no lock. */
#ifndef STW_BASE_METRICS_H
#define STW_BASE_METRICS_H

#include "base/buf.h"
#include "base/util.h"

#include <stddef.h>
#include <stdint.h>

struct stw_metrics; /* the registry */
struct stw_family;
struct stw_series;

/* The types of Prometheus. */
enum stw_metric_type { STW_COUNTER, STW_GAUGE, STW_HISTOGRAM, STW_METRIC_TYPES };

/* Of one family. */
#define STW_METRIC_LABELS_MAX 6

/* `prefix`, "steward": begins the names of the operator's own families. */
struct stw_metrics *stw_metrics_create(const char *prefix) STW_MUST_CHECK;
void stw_metrics_destroy(struct stw_metrics *m);

/* A name that begins with '_' gets the prefix of the registry.  `labels` ends with NULL; `buckets` (ascending upper bounds, without +Inf) ends with a negative
 * number.  Both are copied and may be NULL.  The same name returns the same family.  Returns NULL
 * when out of memory: every call below accepts NULL and does nothing. */
struct stw_family *stw_metrics_family(struct stw_metrics *m, enum stw_metric_type type,
                                      const char *name, const char *help, const char *const *labels,
                                      const double *buckets);
/* The series with these label values, one for each label of the family; created with 0 when new.
 * NULL beyond 1,000 series per family. */
struct stw_series *stw_series(struct stw_family *f, const char *const *values);
#define STW_SERIES(f, ...) stw_series((f), (const char *const[]){__VA_ARGS__, NULL})
#define STW_SERIES0(f) stw_series((f), (const char *const[]){NULL})

/* Removes a series, for example when the object that its labels name is gone.  With several
 * references the last call removes it.  The caller must not use it afterwards. */
void stw_series_remove(struct stw_series *s);

void stw_series_add(struct stw_series *s, double v);
void stw_series_set(struct stw_series *s, double v);
double stw_series_value(const struct stw_series *s); /* of a histogram: the count */
void stw_series_observe(struct stw_series *s, double v);

/* Registers `fn`, called before each rendering to set gauges from state kept elsewhere. */
int stw_metrics_on_collect(struct stw_metrics *m, void (*fn)(void *ctx), void *ctx);
void stw_metrics_render(struct stw_metrics *m, struct stw_buf *out);

/* process_cpu_seconds_total and the five other process metrics. */
void stw_metrics_add_process(struct stw_metrics *m);

#endif
