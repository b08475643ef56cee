/* SPDX-License-Identifier: Apache-2.0
 *
 * The webhook: HTTPS with libmicrohttpd (GnuTLS, TLS 1.2 and later), with the admission paths of
 * every kind in the table, and the conversion path if a kind has several versions.  It has its own
 * threads.  Any thread may call these functions. */
#ifndef STW_WEBHOOK_SERVER_H
#define STW_WEBHOOK_SERVER_H

#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "schema/kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_client_auth;
struct stw_server;

struct stw_server_config {
    const char *bind_address;            /* ":9443", "127.0.0.1:9443", "[::1]:0" */
    const struct stw_kind *const *kinds; /* ended by NULL; borrowed */
    const struct stw_env *env;           /* borrowed; conversion needs its `op` */
    const struct stw_clock *clock;
    struct stw_metrics *metrics; /* or NULL */
    size_t memory_bytes;         /* for all clients, of every port: see shares.h. Beyond it: 503 */
    size_t body_max_bytes;       /* 0: 7 MiB, as controller-runtime. Beyond it: 413 */
    uint32_t request_timeout_ms; /* for TLS, headers and body; 0: 10000 */
    uint32_t idle_timeout_ms;    /* a kept connection without a request; 0: 120000 */
    uint32_t connection_limit; /* 0: 1024; beyond it the oldest without a finished request is cut */
    uint32_t threads;          /* 0: one per core, 2 to 8 */
    struct stw_client_auth *client_auth; /* who may call; borrowed. NULL: any client */
};

/* Listening on return. Without a certificate, every handshake fails. */
int stw_server_create(const struct stw_server_config *config, struct stw_server **ret,
                      struct stw_error *err) STW_MUST_CHECK;
/* Uses this pair for new handshakes; open connections stay. A pair that does not match, cannot be
 * read or has expired is refused, and the old one stays in use. */
int stw_server_set_certificate(struct stw_server *s, const char *cert_pem, const char *key_pem,
                               struct stw_error *err) STW_MUST_CHECK;
uint16_t stw_server_port(const struct stw_server *s);
/* Whether its socket is listening. */
bool stw_server_listening(struct stw_server *s);
/* Whether its threads get round their loops: each admission thread, and the gate.  One that has not
 * for three times the timeout of requests is stuck, and `why` names it; a slow review, or several in
 * one round, take less: what waited longer than its caller does is refused unread.  Fast; a thread
 * that is asked now is judged by the next call. */
bool stw_server_alive(struct stw_server *s, char *why, size_t why_size);
/* From now on each reply closes its connection; new connections are still accepted. For the time
 * between failing readiness and the update of the endpoints. */
void stw_server_retire(struct stw_server *s);
/* Retires, accepts only connections already pending, and waits up to `timeout_ms` until no request
 * is in flight. For up to `linger_ms` it also waits for kept connections to be used once more. */
void stw_server_drain(struct stw_server *s, uint32_t timeout_ms, uint32_t linger_ms);
void stw_server_destroy(struct stw_server *s);

/* "/mutate-operator-k8s-summit-org-v1-myweb", "/validate-..." */
void stw_webhook_path(const struct stw_kind *k, bool mutate, struct stw_buf *out);

#endif
