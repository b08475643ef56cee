/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server's REST interface over libcurl.  A request runs on its caller's thread, which
 * blocks in stw_client_do, over one of a few persistent HTTP/1.1 connections.  Lists, watches and
 * submitted requests run on one thread of the client, driven by events.  After a 429, or a 503 with
 * Retry-After, the request is repeated within its deadline.  The token file is read again each
 * minute and after a 401.  Metrics: rest_client_requests_total and
 * rest_client_request_duration_seconds. */
#ifndef STW_KUBE_CLIENT_H
#define STW_KUBE_CLIENT_H

#include "base/clock.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/operator.h"
#include "base/util.h"
#include "kube/kubeconfig.h"
#include "kube/resource.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_client;

#define STW_CLIENT_TIMEOUT_MS 30000
/* One response other than a watch, when the operator sets no limit (struct stw_limits). */
#define STW_RESPONSE_MAX_BYTES (64u << 20)

/* Copies the strings of `config` and borrows the rest.  `op` is the user agent; `metrics` may be
 * NULL. */
int stw_client_create(const struct stw_operator *op, const struct stw_kubeconfig *config,
                      const struct stw_clock *clock, struct stw_metrics *metrics,
                      struct stw_client **ret, struct stw_error *err) STW_MUST_CHECK;
/* Ends requests in flight with STW_ERR_CANCELLED and refuses new ones.  Any thread; may be called
 * twice. */
void stw_client_cancel(struct stw_client *c);
/* Names the part of the program for which this thread sends requests: the API server's audit log
 * then has the user agent "steward/1.0.0 (databaseuser)".  Borrowed until the next call; NULL: none. */
void stw_client_set_part(const char *part);
void stw_client_destroy(struct stw_client *c); /* cancels, joins the thread; NULL is allowed */

struct stw_request {
    const char *method;       /* "GET" */
    const char *path;         /* "/api/v1/..." encoded, with its query */
    const char *content_type; /* of the body; NULL: application/json */
    const char *accept;       /* NULL: application/json */
    const char *body;         /* NULL: none; borrowed until the call returns, copied by submit */
    size_t body_len;
    const char *header;  /* one more, "Name: value", or NULL; not for submit */
    uint32_t timeout_ms; /* 0: STW_CLIENT_TIMEOUT_MS */
    bool no_retry;       /* return a 429 at once */
    bool secret;         /* the response is wiped when freed */
    size_t
        answer_max; /* bytes of the response, beyond it STW_ERR_TOO_LARGE; 0: the client's limit */
    int64_t *ret_date_us; /* if not NULL: gets the response's Date, the server's clock */
};

/* Blocks.  A status of 300 or more is an error: its text is the Status message of the server, its
 * code depends on status and reason.  `ret` (may be NULL) gets the body, owned by the caller. */
int stw_client_do(struct stw_client *c, const struct stw_request *req, struct stw_buf *ret,
                  struct stw_error *err) STW_MUST_CHECK;

/* The same, but the response is processed while it arrives: `fn` gets its pieces in order, on this
 * thread.  A non-zero result ends the request with the error that `fn` set in `err`. */
typedef int stw_read_fn(void *ctx, const char *data, size_t len, struct stw_error *err);
int stw_client_read(struct stw_client *c, const struct stw_request *req, stw_read_fn *fn, void *ctx,
                    struct stw_error *err) STW_MUST_CHECK;

/* Fire and forget, for events.  The queue holds at most 8 MiB, some thousand events.  Its requests
 * are sent after those for which callers wait, but at least ten a second, and without delay while
 * it is half full.  When it is full the request is dropped: it is counted in
 * PREFIX_client_dropped_total, a warning is logged at most once a minute, and false is returned.
 * Never blocks. */
bool stw_client_submit(struct stw_client *c, const struct stw_request *req);
/* Whether some of them still wait or are under way.  Any thread. */
bool stw_client_is_submitting(struct stw_client *c);

/* --- verbs.  They block the calling thread, which must not be the client's own (a callback of a
 * watch), up to the client's timeout.  What is passed is borrowed.  `ret` may be NULL; it gets the
 * object as the server returned it, owned by the caller.  They return 0, or -1 with `err`, as
 * stw_client_do() does.  A write whose leader term has ended fails with STW_ERR_CANCELLED and sends
 * nothing. */

/* An object, or with a sub its subresource: "status", "scale".
 * STW_PLACE(resource, ns, name) or STW_PLACE(resource, ns, name, sub) */
struct stw_place {
    const struct stw_resource *resource;
    const char *ns, *name, *sub;
};
#define STW_PLACE(...) STW_PLACE_OF(__VA_ARGS__, NULL, NULL)
#define STW_PLACE_OF(resource_, ns_, name_, sub_, ...)                                             \
    (&(const struct stw_place){(resource_), (ns_), (name_), (sub_)})

/* Reads an object.  Any thread except the client's own.  STW_ERR_NOT_FOUND: there is none.  A Secret over
 * ret->max bytes: STW_ERR_TOO_LARGE. */
int stw_kube_get(struct stw_client *c, const struct stw_resource *r, const char *ns,
                 const char *name, struct stw_buf *ret, struct stw_error *err) STW_MUST_CHECK;
/* The same from the server's memory, without a read of its store: the object is at least as new as
 * `version`, which a watch has reported. */
int stw_kube_get_since(struct stw_client *c, const struct stw_resource *r, const char *ns,
                       const char *name, const char *version, struct stw_buf *ret,
                       struct stw_error *err) STW_MUST_CHECK;
/* Creates `object` (borrowed), which has apiVersion, kind and metadata.name.  Any thread except the
 * client's own.  STW_ERR_EXISTS: one of this name is there. */
int stw_kube_create(struct stw_client *c, const struct stw_resource *r, const char *ns,
                    const json_t *object, struct stw_buf *ret,
                    struct stw_error *err) STW_MUST_CHECK;
/* Deletes an object, with background propagation.  `uid` and `resource_version` are preconditions,
 * or NULL.  Any thread except the client's own.  STW_ERR_CONFLICT: a precondition does not hold;
 * STW_ERR_NOT_FOUND: it is gone. */
int stw_kube_delete(struct stw_client *c, const struct stw_resource *r, const char *ns,
                    const char *name, const char *uid, const char *resource_version,
                    struct stw_error *err) STW_MUST_CHECK;
/* Server-side apply with force; `object` has apiVersion, kind, metadata.name.  When it has
 * metadata.resourceVersion or metadata.uid, it is a conflict if these differ on the server.  If there is
 * no such object, metadata.uid is a conflict; an apply with resourceVersion alone creates it on current servers. */
int stw_kube_apply(struct stw_client *c, const struct stw_place *at, const json_t *object,
                   const char *manager, struct stw_buf *ret, struct stw_error *err) STW_MUST_CHECK;
/* JSON patch (RFC 6902), as text.  It is a conflict if one of its tests fails. */
int stw_kube_json_patch(struct stw_client *c, const struct stw_place *at, const char *patch,
                        const char *manager, struct stw_buf *ret,
                        struct stw_error *err) STW_MUST_CHECK;
/* JSON merge patch. */
int stw_kube_merge_patch(struct stw_client *c, const struct stw_place *at, const json_t *patch,
                         const char *manager, struct stw_buf *ret,
                         struct stw_error *err) STW_MUST_CHECK;

/* The server's minor version, 24 for Kubernetes 1.24; INT_MAX when it is unknown.  Requested once
 * in ten minutes: servers are upgraded while we run, by one minor version at a time. */
int stw_kube_minor(struct stw_client *c, int *ret, struct stw_error *err) STW_MUST_CHECK;

/* The merge patch that changes `from` to `to` (null for removed members); NULL when they are
 * equal.  It shares values with `to`: the caller may set members of the patch, but nothing within
 * them. */
json_t *stw_merge_diff(const json_t *from, const json_t *to);

#endif
