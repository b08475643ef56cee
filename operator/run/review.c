/* SPDX-License-Identifier: Apache-2.0
 *
 * A review without a server. */
#include "webhook/review.h"
#include "operator/main.h"

int stw_operator_review(const struct stw_operator *op, const struct stw_kind *kind, bool mutate,
                        const struct stw_lookup *lookup, const char *review, size_t len,
                        struct stw_buf *answer)
{
    struct stw_review_scratch scratch = {0};
    struct stw_review_result result;
    const struct stw_env env = {.op = op, .lookup = lookup};
    int status = stw_review_handle(
        &(struct stw_review){
            .kind = kind, .mutate = mutate, .env = &env, .body = review, .len = len},
        &scratch, answer, &result);
    stw_review_result_done(&result);
    stw_json_done(&scratch.doc);
    return status;
}
