/* SPDX-License-Identifier: Apache-2.0
 *
 * A port for short requests without a body: a gate, and one thread of the library that answers.
 * The answers are charged to a share of memory until the client has read them. */
#ifndef STW_WEBHOOK_PORT_PRIV_H
#define STW_WEBHOOK_PORT_PRIV_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

struct stw_port;
struct stw_port_guest; /* a connection */

struct stw_port_request {
    const struct stw_port *port;
    struct stw_port_guest *guest;
    struct MHD_Connection *mhd;
    const char *url, *method;
    uint64_t peer; /* the address of the client, as in stw_gate_entry */
};

/* Sends one answer with stw_port_send; on the port's thread. */
typedef enum MHD_Result stw_port_answer_fn(void *ctx, const struct stw_port_request *rq);

struct stw_port_config {
    const char *what;    /* log message for cut connections */
    const char *address; /* see stw_listen; read by create only */
    const struct stw_clock *clock;
    bool tls;
    uint32_t connections;
    uint32_t request_timeout_ms, idle_timeout_ms;
    size_t pool_bytes; /* the library's memory of a connection; the head of a request has half */
    size_t text_bytes; /* for all answers that are being sent */
    stw_port_answer_fn *answer;
    void *ctx;
};

/* Listening on return. With TLS and without a certificate, every handshake fails. */
int stw_port_create(const struct stw_port_config *config, struct stw_port **ret,
                    struct stw_error *err) STW_MUST_CHECK;
/* Like stw_server_set_certificate; any thread. */
int stw_port_set_certificate(struct stw_port *p, const char *cert_pem, const char *key_pem,
                             struct stw_error *err) STW_MUST_CHECK;
uint16_t stw_port_number(const struct stw_port *p);
void stw_port_destroy(struct stw_port *p); /* NULL is allowed */

/* An empty text of at most the size that can be sent. */
struct stw_buf stw_port_text(const struct stw_port *p);
/* Takes ownership of the text. `headers`: name and value pairs, ended by NULL; or NULL. A text that
 * does not fit into the memory for answers is replaced by a 503 that says so. */
enum MHD_Result stw_port_send(const struct stw_port_request *rq, int code, const char *type,
                              const char *const *headers, struct stw_buf *text);

#endif
