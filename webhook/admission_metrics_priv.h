/* SPDX-License-Identifier: Apache-2.0
 *
 * Webhook metrics. A route is one path with pointers to its series, so that the usual request needs
 * no lookup. */
#ifndef STW_WEBHOOK_ADMISSION_METRICS_PRIV_H
#define STW_WEBHOOK_ADMISSION_METRICS_PRIV_H

#include "base/metrics.h"
#include "schema/kind.h"
#include "webhook/conversion.h"
#include "webhook/review.h"

#include <stddef.h>

struct stw_admission_metrics {
    struct stw_family *requests, *in_flight, *latency, *reviews, *violations;
    struct stw_family *conversions; /* NULL: no kind has more than one version */
};

#define STW_TALLY_OPERATIONS 4U

struct stw_route {
    char *path;
    size_t path_len;
    const struct stw_kind *kind; /* NULL: conversion, of all kinds */
    bool mutate;
    const struct stw_admission_metrics *admission_metrics;
    struct stw_series *in_flight, *latency, *ok;
    /* [operation][allowed][dry run]; made on first use */
    struct stw_series *_Atomic reviews[STW_TALLY_OPERATIONS][2][2];
};

void stw_admission_metrics_init(struct stw_admission_metrics *t,
                                struct stw_metrics *metrics); /* NULL: no metrics */
/* The family that exists only where objects are converted. */
void stw_admission_metrics_add_conversions(struct stw_admission_metrics *t,
                                           struct stw_metrics *metrics);
/* Creates the series that must exist from the start. Takes ownership of `path`. */
void stw_route_init(struct stw_route *r, const struct stw_admission_metrics *t,
                    const struct stw_kind *kind, bool mutate, char *path);
void stw_route_done(struct stw_route *r);

void stw_admission_metrics_reply(const struct stw_route *r, int code, double seconds);
void stw_admission_metrics_verdict(struct stw_route *r, const struct stw_review_result *v);
void stw_admission_metrics_conversion(const struct stw_route *r,
                                      const struct stw_conversion_result *v);

/* "spec.ports[3].port" -> "spec.ports[].port", and "spec.labels[KEY]" -> "spec.labels[]": indexes and
 * keys would create unlimited series, and users choose the characters of keys.  `spec` is the table
 * of the kind; what it does not describe ends at its first bracket. */
void stw_admission_metrics_field(const struct stw_field *spec, const char *path, char *out,
                                 size_t size);

#endif
