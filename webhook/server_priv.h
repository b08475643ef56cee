/* SPDX-License-Identifier: Apache-2.0
 *
 * The server and its connections, as server.c sets them up and request.c uses them. */
#ifndef STW_WEBHOOK_SERVER_PRIV_H
#define STW_WEBHOOK_SERVER_PRIV_H

#include "webhook/bundle_priv.h"
#include "webhook/discreet.h"
#include "webhook/gate_priv.h"
#include "webhook/review.h"
#include "webhook/server.h"
#include "webhook/tally_priv.h"

#include <microhttpd.h>

#define STW_WORKERS_MAX 8U

/* Of the memory for clients one half is for connections.  The other is for requests: bodies, what
 * is made of them, and replies; those above this size leave a quarter of it to the others. */
#define STW_SMALL_BODY ((size_t)64 << 10)

/* One library thread. */
struct stw_worker {
    struct stw_server *server;
    struct MHD_Daemon *daemon;
    struct stw_review_scratch scratch; /* of its thread */
    _Atomic unsigned open;             /* connections */
};

struct stw_server {
    struct stw_server_config c; /* with defaults filled in */
    struct stw_gate *gate;
    struct stw_worker workers[STW_WORKERS_MAX];
    struct stw_tally tally;
    struct stw_route *routes;
    size_t route_count;
    struct stw_bundle_slot bundle;
    _Atomic bool retiring; /* each reply closes its connection */
    struct stw_discreet discreet;
    struct stw_env env;        /* of the config, with look-ups that tell no more than they may */
    _Atomic size_t held_bytes; /* by requests at this moment */
    _Atomic uint64_t complained_ms;
};

/* A refusal that is no decision; code 0: none. */
struct stw_refusal {
    int code;
    const char *reason, *message; /* static */
};

/* Of one connection, one at a time; the library's thread. */
struct stw_request {
    struct stw_route *route; /* NULL: unknown path */
    struct stw_refusal refusal;
    bool begun, headed, answered;
    int code;             /* of the answer */
    uint64_t started_ns;  /* CLOCK_MONOTONIC, for the latency */
    uint64_t deadline_ms; /* of the caller's ?timeout=; UINT64_MAX: none */
    uint64_t length;      /* of the body as announced; UINT64_MAX: chunked */
    uint64_t got;         /* of the body */
    size_t charged;       /* to held_bytes */
    struct stw_buf body;
    struct stw_buf reply;
};

struct stw_conn {
    struct stw_gate_entry entry;
    struct stw_worker *worker;
    struct stw_bundle *bundle;
    uint64_t opened_ms;
    bool kept; /* a request came before this one */
    struct stw_request rq;
};

/* The library's callbacks. */
void *stw_request_begin(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result stw_request_handle(void *cls, struct MHD_Connection *mhd, const char *url,
                                   const char *method, const char *version, const char *data,
                                   size_t *data_size, void **state);
void stw_request_completed(void *cls, struct MHD_Connection *mhd, void **state,
                           enum MHD_RequestTerminationCode why);
/* Ends what is in flight and gives its memory back; for a connection that goes as well. */
void stw_request_done(struct stw_conn *conn);

#endif
