/* SPDX-License-Identifier: Apache-2.0
 *
 * Access control for metrics. The bearer token is sent to the API server (TokenReview), then a
 * SubjectAccessReview asks whether its user may GET the path, as in kubebuilder projects.
 *
 * Answers are cached by a digest of token and path: a permission for one minute, a refusal for ten
 * seconds. While the API server cannot be reached, a permission stays valid for five minutes,
 * because that is when metrics are needed. All other tokens are refused.
 *
 * Each new token costs a request to the API server. Each address of a client may cause ten, then one
 * a second; all together forty, then ten a second. The more of its own an address has used, the
 * earlier it is refused from the sum, and a quarter of the sum is only for addresses that have shown
 * a token with the permission. So a client that tries many tokens keeps out only itself.
 *
 * Not thread-safe: one thread at a time. */
#ifndef STW_WEBHOOK_ACCESS_H
#define STW_WEBHOOK_ACCESS_H

#include "base/clock.h"
#include "base/util.h"
#include "kube/client.h"

struct stw_access;

/* Has the token of a request that comes through the API server's proxy, which removes
 * Authorization. */
#define STW_PROXIED_AUTHORIZATION "X-Proxied-Authorization"

/* POSTs a review and returns the object from the response. In `run` this is stw_client_do. */
typedef int stw_access_ask_fn(void *ctx, const char *path, const struct stw_buf *review,
                              struct stw_buf *ret, struct stw_error *err);

struct stw_access_config {
    stw_access_ask_fn *ask;
    void *ctx;
    const struct stw_clock *clock;
    const struct stw_operator *op; /* borrowed: the name of the ClusterRole */
};

struct stw_access_answer {
    int code; /* 200, 401, 403, 429, 503 */
    char text[512];
};

/* The RBAC rules that it needs; ended by a NULL resource. */
extern const struct stw_rule stw_access_rules[];

/* Sends requests through the struct stw_client in `ctx`. */
stw_access_ask_fn stw_access_ask_client;

int stw_access_create(const struct stw_access_config *config, struct stw_access **ret,
                      struct stw_error *err) STW_MUST_CHECK;
/* `peer` is the address of the client, as in stw_gate_entry; `authorization` is the value of the
 * header, or NULL; `path` is the requested path, such as "/metrics". */
void stw_access_check(struct stw_access *a, uint64_t peer, const char *authorization,
                      const char *path, struct stw_access_answer *ret);
void stw_access_destroy(struct stw_access *a); /* NULL is allowed */

#endif
