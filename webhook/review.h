/* SPDX-License-Identifier: Apache-2.0
 *
 * AdmissionReview v1 in, AdmissionReview v1 out; no sockets. The envelope is checked strictly:
 * apiVersion, kind, a string UID, the resource of the path. */
#ifndef STW_WEBHOOK_REVIEW_H
#define STW_WEBHOOK_REVIEW_H

#include "base/buf.h"
#include "base/json.h"
#include "schema/kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limit of JSON values in one review: it has the object twice, each with its managedFields. */
#define STW_REVIEW_VALUES_MAX 262144U

/* Per-thread memory is not kept after a larger body; and requests with larger bodies leave a quarter
 * of the share of requests to smaller ones. */
#define STW_SMALL_BODY ((size_t)64 << 10)

/* The decision, for metrics and logs. */
struct stw_review_result {
    bool allowed;
    bool dry_run;
    const char *operation;                      /* "CREATE", ... or ""; a static */
    char uid[65], ns[64], name[254], user[128]; /* "" if absent; user truncated */
    char why[192];                              /* of an HTTP status of 500: the error */
    struct stw_findings findings;
};

/* Per-thread memory, reused by each request. */
struct stw_review_scratch {
    struct stw_json_doc doc;
};

struct stw_review {
    const struct stw_kind *kind;
    bool mutate;
    const struct stw_env *env;
    const char *body;
    size_t len;
};
/* Writes the reply (an AdmissionReview, or a Status if the HTTP status is not 200) and returns the
 * HTTP status: 200 for every decision, 400 for a body that is not an AdmissionReview v1, 500 for an
 * internal error. */
int stw_review_handle(const struct stw_review *r, struct stw_review_scratch *scratch,
                      struct stw_buf *reply, struct stw_review_result *ret_verdict);
void stw_review_result_done(struct stw_review_result *v);

/* A metav1.Status of a failure. */
void stw_status_write(struct stw_buf *out, int code, const char *reason, const char *message);

#endif
