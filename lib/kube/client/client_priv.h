/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of the client, for the rest of lib/kube.
 *
 * There are two kinds of calls.  A blocking one (stw_client_do) runs on its caller's thread, on its
 * own handle with a persistent HTTP/1.1 connection: no other thread is woken for it.  A call that
 * ends in a callback (a list, a watch, the creation of an event) runs on the client's thread.
 *
 * The owner allocates the latter.  From stw_call_start to on_done it belongs to the client's
 * thread; in on_done it belongs to the owner again, which may restart or free it. */
#ifndef STW_KUBE_CLIENT_PRIV_H
#define STW_KUBE_CLIENT_PRIV_H

#include "base/fence.h"
#include "base/http_head.h"
#include "base/pulse.h"
#include "base/telemetry/trace.h"
#include "base/util.h"
#include "kube/client.h"

#include <curl/curl.h>
#include <openssl/types.h>
#include <stdatomic.h>

enum stw_call_state { STW_CALL_IDLE, STW_CALL_WAITING, STW_CALL_ACTIVE };

struct stw_http_call {
    /* Set by the owner; the strings of `req` must live until on_done. */
    struct stw_request req;
    uint64_t start_at_ms; /* not before this time of the client's clock; 0: at once */
    uint32_t answer_ms;   /* STW_ERR_TIMEOUT if the response has not begun by then; 0: no limit */
    uint32_t silence_ms;  /* likewise if it has begun and then nothing arrives; 0: no limit */
    bool background;      /* low priority: only a few of these run, after all others */
    bool watch;           /* its response comes in bursts, which may be batched */
    size_t bytes;         /* of a submitted call: memory that it holds until it is done */
    /* Called with the body of a 200 response as it arrives; the body is then not stored.  A
     * non-zero result ends the call with the error that was set in `err`, else with
     * STW_ERR_CANCELLED; STW_BODY_LATER: nothing was taken, and it is called again soon, with the
     * same data.  It must not start or end this or any other call. */
    int (*on_body)(struct stw_http_call *call, const char *data, size_t len);
    void (*on_open)(struct stw_http_call *call); /* the response is a 200; or NULL */
    /* On the client's thread.  `err.code` is STW_OK, or the failure. */
    void (*on_done)(struct stw_http_call *call);
    void *ctx;

    /* The result, for on_done, which may take the body. */
    struct stw_buf body;
    struct stw_error err;
    long status; /* HTTP; 0: no response */

    /* Private to the client. */
    struct stw_client *client;
    struct stw_fence_ticket fence;         /* of a request that changes something */
    const struct stw_trace_context *trace; /* sent as traceparent; NULL: none */
    enum stw_call_state state;
    struct stw_http_call *next, *prev;
    bool cancelled; /* under the client's lock; never reset */
    bool retried_auth, retried_reset, counted, heard;
    bool paused; /* on_body takes no more now */
    struct stw_handle *handle;
    uint64_t started_ms, deadline_ms, heard_ms;
    struct stw_http_head head;
    size_t held; /* of `body`, counted against STW_SHARE_ANSWERS until the transfer ends */
    bool given;  /* the caller gets `body` */
    char curl_text[CURL_ERROR_SIZE];
};

#define STW_BODY_LATER 2

/* Any thread.  After stw_client_cancel, on_done is still called, with STW_ERR_CANCELLED. */
void stw_call_start(struct stw_client *c, struct stw_http_call *call);
/* Any thread; returns before on_done was called.  A call cancelled once never runs again. */
void stw_call_cancel(struct stw_client *c, struct stw_http_call *call);

/* A list of calls. */
struct stw_call_list {
    struct stw_http_call *first, *last;
};

/* Credentials and CA, read from files that may be replaced at any time. */
struct stw_auth {
    struct stw_kubeconfig *config; /* a copy; ca_pem, cert_pem and key_pem are kept up to date */
    char *token;                   /* read from token_path */
    uint64_t read_ms;              /* when the files were last checked */
    unsigned generation;           /* grows when ca_pem, cert_pem or key_pem changes */
    int64_t ca_stamp;              /* modification time and inode of ca_path */
    int64_t cert_stamp, key_stamp; /* likewise */
    int64_t expires_us;            /* of what a credential plugin returned, by the wall clock */
    uint64_t ran_ms;               /* when the plugin was last run */
};
int stw_auth_init(struct stw_auth *a, const struct stw_kubeconfig *config, uint64_t now_ms,
                  struct stw_error *err) STW_MUST_CHECK;
void stw_auth_done(struct stw_auth *a);
/* Checks the files again when a minute has passed, or now with `force`.  When a file cannot be
 * read, the old content stays in use.  A credential plugin is run again when its credentials have
 * expired, or now with `force`: this blocks. */
void stw_auth_refresh(struct stw_auth *a, uint64_t now_ms, bool force);
/* Whether a failed login may succeed after a refresh. */
bool stw_auth_replaceable(const struct stw_auth *a);
/* pair.c: whether certificate and key match.  They do not while the pair is being replaced. */
bool stw_auth_is_pair(const char *cert_pem, const char *key_pem);
/* "Authorization: ..." or nothing. */
void stw_auth_header(const struct stw_auth *a, struct stw_buf *out);

/* A libcurl handle whose options are set once; only what differs between requests is set again. */
struct stw_handle {
    CURL *easy;
    struct curl_slist *headers; /* of the request that runs */
    unsigned generation;        /* of the credentials that are set */
    bool trusts;                /* whether any are set */
    X509_STORE *trust;          /* the shared CA, or NULL; see trust.c */
    struct stw_handle *next;    /* in a pool */
    /* Of a blocking handle: */
    struct stw_client *client;
    struct stw_handle *prev; /* in the list of busy handles */
    int fd;                  /* its socket, or -1; under the client's lock */
    uint64_t used_ms;        /* when it became idle */
};

/* The metric series of a method and a status.  A lookup by labels costs more than counting. */
struct stw_client_tally {
    char method[16];
    long status; /* 0: no response */
    struct stw_series *requests, *durations;
};

#define STW_TALLIES 32
#define STW_HANDLE_POOL 8
/* An idle connection is closed before the API server closes it after 90 s: a request sent at that
 * moment would fail. */
#define STW_HANDLE_IDLE_MS 30000
#define STW_SUBMITTED_MAX_BYTES (8u << 20)

struct stw_client {
    char user_agent[STW_USER_AGENT_LEN];
    size_t response_max; /* bytes of one response that is not a watch */
    const struct stw_clock *clock;
    char *server;                  /* for errors */
    char *host;                    /* "127.0.0.1:6443", for metrics and the Host header */
    char *url;                     /* paths are appended to it */
    struct curl_slist *connect_to; /* for tls-server-name, or NULL */
    bool no_proxy;                 /* the server is on this host */
    bool secure;
    struct stw_shadow *shadow; /* or NULL; set before other threads use the client */
    struct stw_family *requests, *durations;
    struct stw_series *dropped;
    struct stw_client_tally tallies[STW_TALLIES]; /* lock: the most common ones, which come first */
    unsigned count_admission;                     /* lock */
    pthread_t thread;
    bool running;

    CURLSH *sessions; /* TLS sessions; later connections resume them without certificates */
    pthread_mutex_t sessions_lock;

    pthread_mutex_t auth_lock;
    struct stw_auth auth;      /* auth_lock */
    X509_STORE *trust;         /* auth_lock: the CA; NULL: libcurl has to read it */
    bool trust_tried;          /* auth_lock */
    unsigned trust_generation; /* auth_lock: of the credentials that it was read from */

    pthread_mutex_t lock;
    pthread_cond_t changed;         /* the client was cancelled, or a blocking call has ended */
    struct stw_handle *idle, *busy; /* lock: of blocking calls; the most recently used first */
    struct stw_call_list inbox;     /* lock */
    bool cancelled, ending;         /* lock */
    bool cancels;                   /* lock: a call was cancelled */
    size_t submitted_bytes;         /* lock: of fire-and-forget calls that are not done */
    int minor;                      /* lock: of the server, 24 for Kubernetes 1.24 */
    uint64_t minor_until_ms;        /* lock: when to request it again; 0: not requested yet */
    uint64_t pause_logged_ms;       /* lock: when a pause was last logged; 0: never */
    uint64_t drop_logged_ms;        /* lock: when drops were last logged; 0: never */

    struct stw_pulse pulse;         /* of the client's thread */
    atomic_bool answered;           /* the server has responded once: there is a TLS session */
    atomic_uint urgent;             /* blocking calls under way */
    atomic_uint_fast64_t urgent_ms; /* when the last of them ended */

    /* of the client's thread */
    CURLM *multi;
    int epoll, wake;      /* file descriptors: the epoll instance and an eventfd */
    uint64_t batch_ms;    /* system clock: when the sockets were last polled */
    uint64_t curl_due_ms; /* system clock: when libcurl must be called; UINT64_MAX: never */
    struct stw_call_list calls, backlog; /* backlog: background calls not started yet */
    unsigned background;                 /* in `calls` */
    uint64_t backlog_ms;                 /* when the last left the backlog */
    struct stw_handle *pool;
    unsigned pooled;
};

/* --- handle.c: libcurl handles, and their pools */

/* `blocking`: for a request on its caller's thread, which a cancel can end.  NULL: out of
 * memory. */
struct stw_handle *stw_handle_create(struct stw_client *c, bool blocking) STW_MUST_CHECK;
void stw_handle_destroy(struct stw_handle *h); /* closes its connection */
/* Must be called before the first handle is created: sets up the client's TLS sessions.  -1: out of
 * memory. */
int stw_handle_share_sessions(struct stw_client *c);
/* A handle for a blocking call, in the busy list until it is given back.  NULL with `err`: out of
 * memory, or the client was cancelled. */
struct stw_handle *stw_handle_take(struct stw_client *c, struct stw_error *err) STW_MUST_CHECK;
void stw_handle_give_back(struct stw_client *c, struct stw_handle *h);
/* Closes idle handles that were not used for STW_HANDLE_IDLE_MS, or all.  Returns when the next one
 * is due, or UINT64_MAX. */
uint64_t stw_handle_expire(struct stw_client *c, uint64_t now_ms, bool all);
/* Ends the requests on busy handles.  Called with the client's lock held. */
void stw_handle_interrupt(struct stw_client *c);

/* --- trust.c: the CA, read once for all connections */

/* Makes new connections of the handle trust the CA of the credentials, and only it.  libcurl
 * compares the folder of CAs, which is never read, and so reuses neither a connection nor a TLS
 * session that another CA has vouched for.  False: libcurl must read the CA itself.  Called with
 * auth_lock held. */
bool stw_trust_share(struct stw_client *c, struct stw_handle *h) STW_MUST_CHECK;
void stw_trust_drop(struct stw_handle *h); /* new connections use what libcurl has read */

/* --- transfer.c: one call as one libcurl transfer, on the thread that runs it */

/* Sets the request of `call` on its handle.  -1 with call->err. */
int stw_transfer_prepare(struct stw_client *c, struct stw_http_call *call);
/* After the transfer: frees what belongs to this request only. */
void stw_transfer_clear(struct stw_http_call *call);
/* The transfer has ended: sets call->err.  Returns true when it must be repeated at
 * call->start_at_ms. */
bool stw_transfer_result(struct stw_client *c, struct stw_http_call *call, CURLcode code);

/* --- call.c: one blocking request */

/* As stw_client_do, and also sent when the client writes nothing (owned/shadow.h). */
int stw_client_ask(struct stw_client *c, const struct stw_request *req, struct stw_buf *ret,
                   struct stw_error *err) STW_MUST_CHECK;

/* --- trace.c: the span of a blocking request */

/* When the caller's thread has a current span, such as a reconcile. */
void stw_client_trace_begin(struct stw_client *c, struct stw_http_call *call,
                            struct stw_span *span);
void stw_client_trace_end(struct stw_http_call *call, struct stw_span *span);
/* The path without its query, with "{namespace}" and "{name}" for the names in it, so that spans of
 * different objects have the same name. */
void stw_client_path_template(const char *path, char *out, size_t size);

/* --- status.c: failures as struct stw_error */

/* From an HTTP status of 300 or more and its body; always sets `err`. */
void stw_status_error(int http, const struct stw_buf *body, struct stw_error *err);
/* From a Status object, as in a watch's ERROR event. */
struct stw_json;
void stw_status_object_error(int http, struct stw_json status, struct stw_error *err);
/* From a transfer without a response. */
void stw_curl_error(CURLcode code, const char *server, const char *curl_text, CURL *easy,
                    struct stw_error *err);

#endif
