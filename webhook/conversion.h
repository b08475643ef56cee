/* SPDX-License-Identifier: Apache-2.0
 *
 * ConversionReview v1 in, ConversionReview v1 out; no sockets.  The API server sends objects to
 * convert between the versions of a CRD.  A review is answered as a whole: all objects, or a failure
 * that names the first object that cannot be converted. */
#ifndef STW_WEBHOOK_CONVERSION_H
#define STW_WEBHOOK_CONVERSION_H

#include "base/buf.h"
#include "schema/kind.h"
#include "webhook/review.h"

#include <stdbool.h>
#include <stddef.h>

#define STW_CONVERSION_PATH "/convert"
/* Limit of JSON values in one object, and in the rest of a review: as many as admission accepts. */
#define STW_CONVERSION_VALUES_MAX STW_REVIEW_VALUES_MAX

struct stw_conversion_review {
    const struct stw_operator *op;
    const struct stw_kind *const *kinds; /* ended by NULL */
    const char *body;
    size_t len;
};

/* For metrics and logs. */
struct stw_conversion_result {
    const struct stw_kind *kind; /* of the objects; NULL: not known */
    const char *version;         /* that was asked for; a static; NULL: not known */
    size_t objects;              /* that were converted */
    bool converted;              /* all of the review */
    bool unreadable;             /* an object, or the list, is not valid JSON */
    char why[512];               /* not converted: the message */
};

/* Writes the reply (a ConversionReview, or a Status if the HTTP status is not 200) and returns the
 * HTTP status: 200 for every answer, 400 for a body that is not a ConversionReview v1, 500 for an
 * internal error. */
int stw_conversion_handle(const struct stw_conversion_review *r, struct stw_review_scratch *scratch,
                          struct stw_buf *reply, struct stw_conversion_result *ret);

/* The memory that the answer to this body takes, besides the body itself: the reply, and what is read
 * of the review. The objects are read one after the other, so the largest counts. */
size_t stw_conversion_memory(const char *body, size_t len);

/* Whether a kind has more than one version, so that the API server needs STW_CONVERSION_PATH. */
bool stw_conversion_needed(const struct stw_kind *const *kinds);

#endif
