/* SPDX-License-Identifier: Apache-2.0
 *
 * The server and its connections: set up by server.c, used by request.c. */
#ifndef STW_WEBHOOK_SERVER_PRIV_H
#define STW_WEBHOOK_SERVER_PRIV_H

#include "base/pulse.h"
#include "base/telemetry/trace.h"
#include "webhook/admission_metrics_priv.h"
#include "webhook/bundle_priv.h"
#include "webhook/conversion.h"
#include "webhook/discreet.h"
#include "webhook/gate_priv.h"
#include "webhook/review.h"
#include "webhook/server.h"
#include "webhook/tls_input_priv.h"

#include <microhttpd.h>

#define STW_WORKERS_MAX 8U

/* One library thread. */
struct stw_worker {
    struct stw_server *server;
    struct MHD_Daemon *daemon;
    struct stw_review_scratch scratch; /* used by its thread only */
    _Atomic unsigned open;             /* connections */
    struct stw_pulse pulse;
};

struct stw_server {
    struct stw_server_config c; /* with defaults filled in */
    struct stw_gate *gate;
    struct stw_worker workers[STW_WORKERS_MAX];
    struct stw_admission_metrics admission_metrics;
    struct stw_route *routes;
    size_t route_count;
    struct stw_bundle_slot bundle;
    _Atomic bool retiring; /* each reply closes its connection */
    struct stw_discreet discreet;
    struct stw_env env; /* of the config, with restricted lookups */
    size_t request_share;
    _Atomic size_t held_bytes; /* by current requests */
    _Atomic uint64_t complained_ms;
};

/* An error response that is not a decision; code 0: none. */
struct stw_refusal {
    int code;
    const char *reason, *message; /* static, or the request's `why` */
};

/* One per connection at a time; used on the library's thread. */
struct stw_http_request {
    struct stw_route *route; /* NULL: unknown path */
    struct stw_refusal refusal;
    char why[256]; /* the message of a refusal, if it is not a constant; the error of a 500 */
    char uid[65];  /* of the AdmissionReview, with the error of a 500 */
    bool begun, headed, answered;
    bool unclear;                    /* its framing: see framing_priv.h */
    int code;                        /* of the response */
    uint64_t started_ns;             /* CLOCK_MONOTONIC, for the latency */
    uint64_t deadline_ms;            /* of the caller's ?timeout=; UINT64_MAX: none */
    uint64_t length;                 /* Content-Length; UINT64_MAX: chunked */
    uint64_t got;                    /* bytes of the body so far */
    size_t charged;                  /* to held_bytes */
    struct stw_trace_context caller; /* of its traceparent header, while traces are recorded */
    struct stw_buf body;
    struct stw_buf reply;
};

struct stw_http_conn {
    struct stw_gate_entry entry;
    struct stw_tls_input input;
    struct stw_worker *worker;
    struct stw_bundle *bundle;
    uint64_t opened_ms;
    bool kept; /* this is not the first request */
    struct stw_http_request rq;
};

/* The library's callbacks. */
void *stw_request_begin(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result stw_request_handle(void *cls, struct MHD_Connection *mhd, const char *url,
                                   const char *method, const char *version, const char *data,
                                   size_t *data_size, void **state);
void stw_request_completed(void *cls, struct MHD_Connection *mhd, void **state,
                           enum MHD_RequestTerminationCode why);
/* Ends the current request and frees its memory. Also called when the connection closes. */
void stw_request_done(struct stw_http_conn *conn);

#endif
