/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain HTTP for the kubelet and Prometheus: /healthz, /readyz (also /livez, ?verbose, ?exclude=,
 * /readyz/<check>) and /metrics, each on its own address. */
#ifndef STW_WEBHOOK_PROBES_H
#define STW_WEBHOOK_PROBES_H

#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_probe {
    const char *name;                                  /* "webhook", "certificate", "caches" */
    bool (*ok)(void *ctx, char *why, size_t why_size); /* any thread, fast */
    void *ctx;
};

struct stw_probes_config {
    const char *health_address;    /* ":8081"; "0": off */
    const char *metrics_address;   /* ":8080"; "0": off */
    const struct stw_probe *live;  /* ended by a NULL name; or NULL */
    const struct stw_probe *ready; /* the same */
    struct stw_metrics *metrics;
    size_t memory_bytes; /* for all clients, of every port: see shares.h */
};

struct stw_probes;
int stw_probes_create(const struct stw_probes_config *config, struct stw_probes **ret,
                      struct stw_error *err) STW_MUST_CHECK;
uint16_t stw_probes_health_port(const struct stw_probes *p);
uint16_t stw_probes_metrics_port(const struct stw_probes *p);
/* From now on /readyz fails with "shutting down". */
void stw_probes_stopping(struct stw_probes *p);
void stw_probes_destroy(struct stw_probes *p);

#endif
