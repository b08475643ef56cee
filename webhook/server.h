/* SPDX-License-Identifier: Apache-2.0
 *
 * The door: HTTPS by libmicrohttpd (TLS by GnuTLS, 1.2 and up), the admission paths of every kind
 * in the table. Threads of its own; everything here may be called from any thread. */
#ifndef STW_WEBHOOK_SERVER_H
#define STW_WEBHOOK_SERVER_H

#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "kinds/kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_callers;
struct stw_server;

struct stw_server_config {
    const char *bind_address;            /* ":9443", "127.0.0.1:9443", "[::1]:0" */
    const struct stw_kind *const *kinds; /* ended by NULL; borrowed */
    const struct stw_env *env;           /* borrowed */
    const struct stw_clock *clock;
    struct stw_metrics *metrics; /* or NULL */
    size_t memory_bytes;   /* for all that clients can make it keep; 0: 256 MiB.  Beyond it: 503 */
    size_t body_max_bytes; /* 0: 7 MiB, as controller-runtime: beyond is 413 */
    uint32_t request_timeout_ms; /* TLS, head and body must be in by then; 0: 10000 */
    uint32_t idle_timeout_ms;    /* a kept connection without a request; 0: 120000 */
    uint32_t
        connection_limit; /* 0: 1024; beyond it the oldest that never finished a request goes */
    uint32_t threads;     /* 0: one a core, 2 to 8 */
    struct stw_callers *callers; /* who may call; borrowed.  NULL: whoever reaches the port */
};

/* Listens when it returns; without a certificate yet every handshake is refused. */
int stw_server_create(const struct stw_server_config *config, struct stw_server **ret,
                      struct stw_error *err);
/* Serves new handshakes with this pair; open connections stay.  A pair that does not fit together,
 * is not readable or has expired is refused and the old one kept. */
int stw_server_set_certificate(struct stw_server *s, const char *cert_pem, const char *key_pem,
                               struct stw_error *err);
uint16_t stw_server_port(const struct stw_server *s);
/* Its socket takes connections. */
bool stw_server_listening(struct stw_server *s);
/* From now on each reply closes its connection, and new ones are still let in: for the time between
 * readiness off and the endpoints' having moved. */
void stw_server_retire(struct stw_server *s);
/* Retires, lets in nobody who is not at the door already, and waits until no request is in flight,
 * `timeout_ms` at most.  For `linger_ms` it also waits for kept connections to be used once more.
 */
void stw_server_drain(struct stw_server *s, uint32_t timeout_ms, uint32_t linger_ms);
void stw_server_destroy(struct stw_server *s);

/* "/mutate-operator-k8s-summit-org-v1-myweb", "/validate-..." */
void stw_webhook_path(const struct stw_kind *k, bool mutate, struct stw_buf *out);

#endif
