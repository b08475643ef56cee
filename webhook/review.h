/* SPDX-License-Identifier: Apache-2.0
 *
 * AdmissionReview v1 in, AdmissionReview v1 out; no sockets.  Strict about the envelope:
 * apiVersion, kind, a UID that is a string, the resource that the path is for. */
#ifndef STW_WEBHOOK_REVIEW_H
#define STW_WEBHOOK_REVIEW_H

#include "base/buf.h"
#include "base/json.h"
#include "kinds/kind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values in one review: it holds an object twice, and of each what its managers own. */
#define STW_REVIEW_VALUES_MAX 262144U

/* What the reply said, for metrics and logs. */
struct stw_verdict {
    bool allowed;
    bool dry_run;
    const char *operation;                      /* "CREATE", ... or "" ; a static */
    char uid[65], ns[64], name[254], user[128]; /* "" where there is none; user cut */
    struct stw_findings findings;
};

/* Memory that one thread uses again for each request. */
struct stw_review_scratch {
    struct stw_json_doc doc;
};

/* Writes the reply (an AdmissionReview, or a Status when the status is not 200) and returns the
 * HTTP status: 200 for every decision, 400 for a body that is no AdmissionReview v1, 500 for a
 * fault of ours. */
int stw_review_handle(const struct stw_kind *kind, bool mutate, const struct stw_env *env,
                      const char *body, size_t len, struct stw_review_scratch *scratch,
                      struct stw_buf *reply, struct stw_verdict *ret_verdict);
void stw_verdict_done(struct stw_verdict *v);

/* A metav1.Status of failure. */
void stw_status_write(struct stw_buf *out, int code, const char *reason, const char *message);

#endif
