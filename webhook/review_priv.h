/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of review.c, envelope.c and reply.c. */
#ifndef STW_WEBHOOK_REVIEW_PRIV_H
#define STW_WEBHOOK_REVIEW_PRIV_H

#include "webhook/patch.h"
#include "webhook/review.h"

/* Nodes are borrowed from the document of the scratch. */
struct stw_envelope {
    struct stw_json uid;
    struct stw_admission admission;
    bool bypass; /* a subresource or CONNECT: always allowed */
};

/* Reads and checks the envelope. Returns 0, or -1 with a message for a 400 Status. */
int stw_envelope_read(const struct stw_kind *kind, const struct stw_json_doc *doc,
                      struct stw_envelope *ret, struct stw_review_result *v, struct stw_error *err);

/* The AdmissionReview response: allowed, with the patch if it has operations, or a denial. */
void stw_reply_write(const struct stw_envelope *e, const struct stw_review_result *v,
                     const struct stw_patch *patch, struct stw_buf *reply);

#endif
