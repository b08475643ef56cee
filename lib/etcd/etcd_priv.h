/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of this module: the handle with its lanes, one exchange with one member, and
 * the parsers of answers and of the snapshot stream. */
#ifndef STW_ETCD_ETCD_PRIV_H
#define STW_ETCD_ETCD_PRIV_H

#include "base/http_head.h"
#include "base/json.h"
#include "base/util.h"
#include "etcd/etcd.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>

/* Longer answers than a member's.  A round keeps the answers of all members until it ends. */
#define STW_ETCD_ANSWER_MAX_BYTES (64u << 10)
#define STW_ETCD_ROUND_ANSWER_MAX_BYTES (16u << 10)
#define STW_ETCD_CHAIN_MAX_BYTES 24576L /* of a server's certificates, which a connection keeps */
/* Of one call at a time, and that a lane keeps: as many as an etcd has members. */
#define STW_ETCD_CONNECTIONS 9L
/* Those that all clients keep may take a quarter of the base, at this size with TLS. */
#define STW_ETCD_CONNECTION_BYTES (64u << 10)
/* A line of the stream holds 32 KiB of the database in base64; no server is known to send more. */
#define STW_ETCD_LINE_MAX_BYTES (256u << 10)
/* Values of one JSON text: each takes 28 bytes of memory. */
#define STW_ETCD_ANSWER_VALUES_MAX 8192U
#define STW_ETCD_LINE_VALUES_MAX 256U
#define STW_ETCD_STALL_MS 30000
#define STW_ETCD_TOKEN_MAX 2048 /* simple tokens have about 20 bytes, JWTs some hundreds */

/* --- the handle */

/* A multi handle keeps connections.  Each call borrows one, so that threads share connections one
 * after the other and never at the same time. */
struct stw_etcd_lane {
    struct stw_etcd_lane *next;
    CURLM *multi;
    bool busy;
    uint32_t kept; /* connections that it may keep, counted for all clients together */
};

struct stw_etcd {
    char user_agent[STW_USER_AGENT_LEN];     /* "": none */
    char *ca, *cert, *key, *user, *password; /* own copies; NULL if not given */
    uint32_t timeout_ms;
    uint32_t stall_ms; /* of a stream; tests shorten it */
    const struct stw_reach *reach;
    atomic_bool cancelled;
    pthread_mutex_t lock; /* guards all below */
    struct stw_etcd_lane *lanes;
    char token[STW_ETCD_TOKEN_MAX]; /* "" when there is none */
    bool auth_off;                  /* the server reported that authentication is disabled */
};

/* NULL: out of memory. */
struct stw_etcd_lane *stw_etcd_lane_take(struct stw_etcd *e) STW_MUST_CHECK;
/* It was used for up to `count` connections at a time, and keeps them while there is memory. */
void stw_etcd_lane_give(struct stw_etcd *e, struct stw_etcd_lane *lane, size_t count);

/* --- an exchange: one request and its answer, with a log-in before it if needed */

enum stw_etcd_phase { STW_ETCD_LOGGING_IN, STW_ETCD_ASKING, STW_ETCD_DONE };

struct stw_etcd_exchange;
typedef void stw_etcd_then_fn(struct stw_etcd_exchange *x);
/* Bytes of an answer with status 200; -1 with x->err ends the transfer. */
typedef int stw_etcd_data_fn(struct stw_etcd_exchange *x, const char *data, size_t len);

struct stw_etcd_exchange {
    /* set by the caller */
    const struct stw_etcd_endpoint *at;
    const char *path; /* "/v3/..." */
    const char *body; /* borrowed until done */
    uint64_t deadline_ms;
    bool change;            /* changes state: uses its own connection, see transfer.c */
    uint32_t answer_max;    /* 0: STW_ETCD_ANSWER_MAX_BYTES */
    stw_etcd_data_fn *data; /* NULL: the answer is collected */
    stw_etcd_then_fn *then; /* gets the answer; may set another path and body, and `again` */
    void *ctx;
    bool again;

    /* the result */
    struct stw_buf answer;
    enum stw_etcd_trouble trouble;
    struct stw_error err;

    /* private to run.c and transfer.c */
    enum stw_etcd_phase phase;
    bool logged_in; /* do not log in again */
    bool unknown;   /* the user or the token was refused: a log-in may help */
    CURL *easy;
    struct curl_slist *headers, *connect_to;
    struct stw_buf login;
    struct stw_http_head head;
    uint64_t heard_ms;
    const struct stw_reach *reach; /* NULL: any address */
    bool refused;
    char curl_text[CURL_ERROR_SIZE];
};

/* Runs all of them in parallel until each is done.  The results are in `x->answer`, `x->trouble`
 * and `x->err`. */
void stw_etcd_run(struct stw_etcd *e, struct stw_etcd_exchange *x, size_t count);
/* One request to one member, with the default timeout; 0 if the answer has status 200. */
int stw_etcd_ask(struct stw_etcd *e, struct stw_etcd_exchange *x,
                 const struct stw_etcd_endpoint *at, const char *path, const char *body);
void stw_etcd_exchange_done(struct stw_etcd_exchange *x);
/* A linearizable read of one key that does not exist: only a member with a quorum can answer it. */
#define STW_ETCD_READ_PATH "/v3/kv/range"
#define STW_ETCD_READ_BODY                                                                         \
    "{\"key\":\"AHN0ZXdhcmQgaGVhbHRo\",\"keys_only\":true}" /* "\0steward health" */
bool stw_etcd_read_proved(const struct stw_etcd_exchange *x);
/* Sets trouble and err; -1. */
int stw_etcd_refuse(struct stw_etcd_exchange *x, enum stw_etcd_trouble trouble, enum stw_err code,
                    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

int stw_etcd_transfer_begin(struct stw_etcd *e, CURLM *multi, struct stw_etcd_exchange *x,
                            const char *path, const char *body, const char *token);
void stw_etcd_transfer_end(CURLM *multi, struct stw_etcd_exchange *x);
/* Turns libcurl's result and the HTTP status into trouble and err. */
void stw_etcd_transfer_result(struct stw_etcd_exchange *x, CURLcode code);

/* --- parsers; on failure, each leaves its result unchanged */

/* What a refusal means: the gateway's JSON {"error","code","message"}, in a stream
 * {"error":{"grpc_code","message"}}. */
struct stw_etcd_refusal {
    enum stw_etcd_trouble trouble;
    bool login; /* a log-in may help */
    int code;   /* of gRPC; 0: none in the answer */
    char text[256];
};
void stw_etcd_refusal_read(int http, const char *text, size_t len, struct stw_etcd_refusal *ret);

int stw_etcd_read_u64(struct stw_json v, uint64_t *ret); /* absent: 0 */
int stw_etcd_read_status(const char *text, size_t len, struct stw_etcd_health *ret,
                         struct stw_error *err) STW_MUST_CHECK;
int stw_etcd_read_revision(const char *text, size_t len, uint64_t *ret,
                           struct stw_error *err) STW_MUST_CHECK;
int stw_etcd_read_members(const char *text, size_t len, struct stw_etcd_members *ret,
                          struct stw_error *err) STW_MUST_CHECK;
int stw_etcd_read_added(const char *text, size_t len, uint64_t *ret_id,
                        struct stw_error *err) STW_MUST_CHECK;
int stw_etcd_read_alarms(const char *text, size_t len, struct stw_etcd_alarms *ret,
                         struct stw_error *err) STW_MUST_CHECK;
int stw_etcd_read_token(const char *text, size_t len, char ret[STW_ETCD_TOKEN_MAX],
                        struct stw_error *err) STW_MUST_CHECK;

/* --- the stream of a snapshot: one line of JSON per piece, {"result":{"blob":"..."}} */

struct stw_etcd_stream {
    struct stw_buf line, piece;
    stw_etcd_sink_fn *sink;
    void *ctx;
    struct stw_etcd_check *check;
    bool sink_failed;
    struct stw_etcd_refusal refusal; /* a line that is an error; text "" until then */
};
/* -1: out of memory. */
int stw_etcd_stream_init(struct stw_etcd_stream *s, stw_etcd_sink_fn *sink, void *ctx);
void stw_etcd_stream_done(struct stw_etcd_stream *s);
int stw_etcd_stream_add(struct stw_etcd_stream *s, const char *data, size_t len,
                        struct stw_error *err) STW_MUST_CHECK;
/* Call at the end of the transfer: checks that the snapshot is complete and undamaged. */
int stw_etcd_stream_end(struct stw_etcd_stream *s, uint64_t *ret_size, char ret_sha256[65],
                        struct stw_error *err) STW_MUST_CHECK;

#endif
