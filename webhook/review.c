/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/review.h"

#include "base/util.h"
#include "webhook/review_priv.h"

#define SCRATCH_KEEP_TOKENS 16384U
#define CPU_MS 150U /* CPU time to check one object */

static void add_default(void *patch, const char *pointer, const char *json)
{
    stw_patch_add(patch, pointer, json);
}

/* The API server checks an object against its schema after this step and before the validating one,
 * with its own messages. So invalid objects are denied here already, with all findings and our
 * messages. The validating step still checks the final object, and adds the warnings. */
static void mutate_object(struct stw_envelope *e, struct stw_patch *patch, struct stw_findings *f)
{
    if (e->admission.operation != STW_CREATE && e->admission.operation != STW_UPDATE)
        return;
    e->admission.quiet = true;
    stw_kind_validate(&e->admission, f);
    if (f->error_count > 0 || f->failed)
        return;
    stw_findings_done(f);
    stw_kind_default(&e->admission, &(struct stw_defaults){.add = add_default, .ctx = patch});
}

/* Not a decision: the body is not a review that can be answered. */
static int write_error_reply(struct stw_buf *reply, struct stw_review_result *v,
                             const struct stw_error *err)
{
    bool ours = err->code == STW_ERR_INTERNAL;
    if (ours)
        stw_format(v->why, sizeof(v->why), "%.191s", err->text);
    stw_buf_clear(reply);
    stw_status_write(reply, ours ? 500 : 400, ours ? "InternalError" : "BadRequest", err->text);
    return ours ? 500 : 400;
}

static int reply_no_decision(struct stw_buf *reply, struct stw_review_result *v)
{
    struct stw_error err;
    v->allowed = false;
    (void)stw_fail(&err, STW_ERR_INTERNAL,
                   "no decision could be made on this object for lack of memory; try again");
    return write_error_reply(reply, v, &err);
}

/* Frees the tokens and decoded keys of a huge body, so that not every thread keeps them. */
static void release_scratch(struct stw_review_scratch *scratch, size_t len)
{
    if (scratch->doc.cap > SCRATCH_KEEP_TOKENS || len > STW_SMALL_BODY)
        stw_json_done(&scratch->doc);
}

static int decide_review(struct stw_envelope *e, bool mutate, struct stw_buf *reply,
                         struct stw_review_result *v)
{
    struct stw_patch patch;
    stw_patch_init(&patch);
    if (!e->bypass && mutate)
        mutate_object(e, &patch, &v->findings);
    else if (!e->bypass)
        stw_kind_validate(&e->admission, &v->findings);
    v->allowed = v->findings.error_count == 0 && v->findings.errors_left_out == 0;
    stw_reply_write(e, v, &patch, reply);
    bool failed = v->findings.failed || patch.ops.failed || reply->failed;
    stw_patch_done(&patch);
    return failed ? reply_no_decision(reply, v) : 200;
}

int stw_review_handle(const struct stw_review *r, struct stw_review_scratch *scratch,
                      struct stw_buf *reply, struct stw_review_result *v)
{
    struct stw_error err = {0};
    struct stw_envelope e = {.admission = {.env = r->env}};
    int status;
    *v = (struct stw_review_result){.operation = ""};
    stw_findings_limit(&v->findings, CPU_MS);
    scratch->doc.max = STW_REVIEW_VALUES_MAX;
    if (stw_json_scan(&scratch->doc, r->body, r->len, &err) != 0) {
        (void)stw_error_wrap(&err, err.code == STW_ERR_TOO_LARGE
                                       ? "the body is not valid JSON, or too complex"
                                       : "the body is not valid JSON");
        status = write_error_reply(reply, v, &err);
    } else if (stw_envelope_read(r->kind, &scratch->doc, &e, v, &err) != 0) {
        (void)stw_error_wrap(&err, "the body is not an AdmissionReview that can be answered");
        status = write_error_reply(reply, v, &err);
    } else {
        status = decide_review(&e, r->mutate, reply, v);
    }
    release_scratch(scratch, r->len);
    return status;
}

void stw_review_result_done(struct stw_review_result *v)
{
    stw_findings_done(&v->findings);
}
