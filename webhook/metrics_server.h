/* SPDX-License-Identifier: Apache-2.0
 *
 * /metrics over HTTPS, and pages of the operator, with access checks by the API server (access.h).
 * Uses a gate and one more thread. That thread also sends the access reviews, so only other metrics
 * clients wait for them. */
#ifndef STW_WEBHOOK_METRICS_SERVER_H
#define STW_WEBHOOK_METRICS_SERVER_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "webhook/access.h"

#include <stdint.h>

/* A JSON document that is written for each request, on the server's thread. */
struct stw_metrics_page {
    const char *path; /* "/debug/state"; the right is to `get` this path */
    void (*write)(void *ctx, struct stw_buf *out);
    void *ctx;
};

struct stw_metrics_server_config {
    const char *address; /* ":8443" */
    const struct stw_clock *clock;
    struct stw_metrics *metrics;
    size_t memory_bytes;          /* for all clients, of every port: see shares.h */
    struct stw_access *access;    /* owned, also when create fails */
    struct stw_metrics_page page; /* path NULL: none */
};

struct stw_metrics_server;

/* Listening on return. Without a certificate, every handshake fails. */
int stw_metrics_server_create(const struct stw_metrics_server_config *config,
                              struct stw_metrics_server **ret,
                              struct stw_error *err) STW_MUST_CHECK;
/* Like stw_server_set_certificate; any thread. */
int stw_metrics_server_set_certificate(struct stw_metrics_server *s, const char *cert_pem,
                                       const char *key_pem, struct stw_error *err) STW_MUST_CHECK;
uint16_t stw_metrics_server_port(const struct stw_metrics_server *s);
void stw_metrics_server_destroy(struct stw_metrics_server *s); /* NULL is allowed */

#endif
