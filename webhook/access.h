/* SPDX-License-Identifier: Apache-2.0
 *
 * Who may read metrics: a bearer token is shown to the API server (TokenReview), which then says
 * whether its user may GET the path (SubjectAccessReview), as kubebuilder's projects do it.
 *
 * Answers are kept, by the token's digest: a permission for a minute, a refusal for ten seconds.
 * When the API server cannot be asked, who was let in within the last five minutes still is, since
 * that is when metrics are needed, and nobody else.  New tokens cost the API server at most five
 * questions a second.
 *
 * One thread at a time. */
#ifndef STW_WEBHOOK_ACCESS_H
#define STW_WEBHOOK_ACCESS_H

#include "base/clock.h"
#include "kube/client.h"

struct stw_access;

/* POSTs a review and gives back the object as answered; stw_client_do does it for `run`. */
typedef int stw_access_ask_fn(void *ctx, const char *path, const struct stw_buf *review,
                              struct stw_buf *ret, struct stw_error *err);

struct stw_access_config {
    stw_access_ask_fn *ask;
    void *ctx;
    const struct stw_clock *clock;
};

struct stw_access_answer {
    int code; /* 200, 401, 403, 429, 503 */
    char text[512];
};

/* What it asks for; ended by a NULL resource. */
extern const struct stw_rule stw_access_rules[];

/* Asks by way of a struct stw_client, which is `ctx`. */
stw_access_ask_fn stw_access_ask_client;

int stw_access_create(const struct stw_access_config *config, struct stw_access **ret,
                      struct stw_error *err);
/* `authorization` is the header's value, or NULL; `path` is what is read, such as "/metrics". */
void stw_access_check(struct stw_access *a, const char *authorization, const char *path,
                      struct stw_access_answer *ret);
void stw_access_destroy(struct stw_access *a); /* NULL is fine */

#endif
