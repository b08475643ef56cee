/* SPDX-License-Identifier: Apache-2.0
 *
 * The body of an AdmissionReview through both webhooks of every kind.  The reply is valid JSON, its
 * status is one of three, and a request is allowed if and only if there are no errors. */
#include "kinds/kinds.h"
#include "webhook/review.h"

#include <stdlib.h>

static void check(bool condition)
{
    if (!condition)
        abort();
}

static void check_reply(int status, const struct stw_buf *reply, const struct stw_review_result *v)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err;
    check(stw_json_scan(&doc, stw_buf_str(reply), reply->len, &err) == 0);
    struct stw_json root = stw_json_root(&doc), response = stw_json_get(root, "response");
    check(status == 200 || status == 400 || status == 500);
    if (status != 200) {
        check(stw_json_is(stw_json_get(root, "kind"), "Status"));
        return;
    }
    check(stw_json_type(stw_json_get(response, "uid")) == STW_JSON_STRING);
    check(stw_json_bool(stw_json_get(response, "allowed"), false) == v->allowed);
    check(v->allowed == (v->findings.error_count == 0));
    check(v->allowed || stw_json_size(stw_json_path(response, "status.details.causes")) ==
                            v->findings.error_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct stw_review_scratch scratch;
    static const struct stw_env env;
    for (const struct stw_kind *const *k = stw_kinds; *k; k++) {
        for (int mutate = 0; mutate < 2; mutate++) {
            stw_autobuf struct stw_buf reply = STW_BUF_INIT((size_t)64 << 20);
            struct stw_review_result v;
            int status =
                stw_review_handle(&(struct stw_review){*k, mutate, &env, (const char *)data, size},
                                  &scratch, &reply, &v);
            check_reply(status, &reply, &v);
            stw_review_result_done(&v);
        }
    }
    return 0;
}
