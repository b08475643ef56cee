/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the client, for the rest of this room: calls that end in a callback on the client's
 * thread, watches among them.
 *
 * A call is memory of its owner.  From stw_call_start to on_done it belongs to the client's thread;
 * in on_done it is the owner's again, who may start it once more or free it. */
#ifndef STW_KUBE_CLIENT_PRIV_H
#define STW_KUBE_CLIENT_PRIV_H

#include "base/fence.h"
#include "kube/client.h"
#include "kube/lines_priv.h"

#include <curl/curl.h>

enum stw_call_state { STW_CALL_IDLE, STW_CALL_WAITING, STW_CALL_ACTIVE };

struct stw_call {
    /* Set by the owner; the strings of `req` must live until on_done. */
    struct stw_request req;
    uint64_t start_at_ms; /* not before this time of the client's clock; 0: at once */
    uint32_t silence_ms;  /* ended with STW_ERR_TIMEOUT when nothing came for so long; 0: never */
    bool background;      /* waits its turn: few of these are under way, behind all others */
    size_t bytes;         /* of a submitted one: what it holds until it is done */
    /* A watch: called for each line of a 200 answer; non-zero ends the call, with what it
     * put into `err`, or else with STW_ERR_CANCELLED.
     * Not this call, nor any other, may be started or ended from within. */
    int (*on_line)(struct stw_call *call, const char *line, size_t len);
    void (*on_open)(struct stw_call *call); /* a watch: the server has taken it; or NULL */
    /* On the client's thread.  `err.code` is STW_OK, or what went wrong. */
    void (*on_done)(struct stw_call *call);
    void *ctx;

    /* The result, for on_done, which may take the body. */
    struct stw_buf body;
    struct stw_error err;

    /* The client's own. */
    struct stw_client *client;
    struct stw_fence_ticket fence; /* of a request that changes something */
    enum stw_call_state state;
    struct stw_call *next, *prev;
    bool cancelled; /* under the client's lock; stays */
    bool retried_auth, retried_reset, counted;
    CURL *easy;
    struct curl_slist *headers;
    struct stw_lines lines;
    uint64_t started_ms, deadline_ms, heard_ms;
    char curl_text[CURL_ERROR_SIZE];
};

/* Any thread.  After stw_client_cancel, on_done is still called, with STW_ERR_CANCELLED. */
void stw_call_start(struct stw_client *c, struct stw_call *call);
/* Any thread; returns before on_done was called.  A call cancelled once never runs again. */
void stw_call_cancel(struct stw_client *c, struct stw_call *call);

/* What a list of calls is made of. */
struct stw_call_list {
    struct stw_call *first, *last;
};

/* Who we are and whom we trust: read from files that are replaced under us. */
struct stw_auth {
    struct stw_kubeconfig *config; /* a copy; ca_pem, cert_pem and key_pem are kept up to date */
    char *token;                   /* read from token_path */
    uint64_t read_ms;              /* when the files were looked at */
    int64_t ca_stamp;              /* modification time of ca_path */
    int64_t cert_stamp, key_stamp; /* likewise */
};
int stw_auth_init(struct stw_auth *a, const struct stw_kubeconfig *config, uint64_t now_ms,
                  struct stw_error *err);
void stw_auth_done(struct stw_auth *a);
/* Looks at the files again when a minute has passed, or now for `force`.  What cannot be read
 * leaves the old in use. */
void stw_auth_refresh(struct stw_auth *a, uint64_t now_ms, bool force);
/* "Authorization: ..." or nothing. */
void stw_auth_header(const struct stw_auth *a, struct stw_buf *out);

#define STW_EASY_POOL 8
#define STW_SUBMITTED_MAX_BYTES (8u << 20)

struct stw_client {
    const struct stw_clock *clock;
    struct stw_auth auth;          /* of the client's thread */
    char *host;                    /* "127.0.0.1:6443", for metrics and the Host header */
    char *url;                     /* what paths are put behind */
    struct curl_slist *connect_to; /* for tls-server-name, or NULL */
    bool no_proxy;                 /* the server is on this host */
    bool secure;
    struct stw_family *requests, *durations;
    struct stw_series *dropped;
    CURLM *multi;
    pthread_t thread;
    bool running;

    pthread_mutex_t lock;
    struct stw_call_list inbox; /* lock */
    bool cancelled, ending;     /* lock */
    bool cancels;               /* lock: some call was cancelled */
    size_t submitted_bytes;     /* lock: of fire-and-forget calls that are not done */
    int minor;                  /* lock: of the server, 24 for Kubernetes 1.24 */
    uint64_t minor_until_ms;    /* lock: when to ask for it again; 0: not asked yet */
    uint64_t drop_told_ms;      /* lock: when the log was last told of dropped ones; 0: never */

    /* of the client's thread */
    struct stw_call_list calls, backlog; /* backlog: background calls whose turn has not come */
    unsigned background;                 /* in `calls` */
    unsigned urgent;                     /* under way, that somebody waits for */
    uint64_t urgent_ms;                  /* when the last such ended */
    uint64_t backlog_ms;                 /* when the last left the backlog */
    CURL *pool[STW_EASY_POOL];
    unsigned pooled;
    uint64_t heard_ms; /* when anything last came from the server */
};

/* --- client_transfer.c: one call as one libcurl transfer.  On the client's thread. */

/* Gives the call a handle and adds it to the multi.  -1 with call->err. */
int stw_transfer_begin(struct stw_client *c, struct stw_call *call);
/* Takes the handle away again, whether the transfer ended or not. */
void stw_transfer_end(struct stw_client *c, struct stw_call *call);
/* The transfer ended by itself: sets call->err.  Returns true when it is to be done again at
 * call->start_at_ms. */
bool stw_transfer_result(struct stw_client *c, struct stw_call *call, CURLcode code);
/* Nothing at all was heard on the call's connection: closes it under libcurl, which else would go
 * on putting requests onto it. */
void stw_transfer_hang_up(struct stw_client *c, struct stw_call *call);

/* --- client_status.c: what went wrong, as an error of ours. */

/* Of an HTTP status of 300 or more and its body; always sets `err`. */
void stw_status_error(int http, const struct stw_buf *body, struct stw_error *err);
/* Of a Status object, as in a watch's ERROR event. */
struct stw_json;
void stw_status_object_error(int http, struct stw_json status, struct stw_error *err);
/* Of a transfer that brought no answer. */
void stw_curl_error(CURLcode code, const char *server, const char *curl_text, CURL *easy,
                    struct stw_error *err);

#endif
