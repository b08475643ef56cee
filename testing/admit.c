/* SPDX-License-Identifier: Apache-2.0 */
#include "testing/admit_priv.h"

#include "base/base64.h"
#include "base/util.h"
#include "operator/main.h"
#include "schema/kind.h"
#include "testing/tree_priv.h"

#define ANSWER_MAX (16u << 20)
#define UID "00000000-0000-4000-8000-000000000000"

static json_t *make_review(const struct stw_resource *r, const json_t *object, const json_t *old)
{
    return json_pack("{s:s,s:s,s:{s:s,s:{s:s,s:s,s:s},s:{s:s,s:s,s:s},s:O,s:O*,s:s,s:{s:s},s:O,"
                     "s:O?,s:b}}",
                     "apiVersion", "admission.k8s.io/v1", "kind", "AdmissionReview", "request",
                     "uid", UID, "kind", "group", r->group, "version", r->version, "kind", r->kind,
                     "resource", "group", r->group, "version", r->version, "resource", r->plural,
                     "name", stw_test_path(object, "metadata.name"), "namespace",
                     stw_test_path(object, "metadata.namespace"), "operation",
                     old ? "UPDATE" : "CREATE", "userInfo", "username", "test", "object", object,
                     "oldObject", old, "dryRun", 0);
}

static int apply_patch(json_t **object, const char *encoded, struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(ANSWER_MAX);
    if (!*encoded)
        return 0;
    json_auto_t *patch = stw_base64_decode(encoded, strlen(encoded), &text) == 0
                             ? json_loadb(stw_buf_str(&text), text.len, 0, NULL)
                             : NULL;
    json_t *patched = patch ? stw_test_json_patch(*object, patch) : NULL;
    if (!patched)
        return stw_fail(err, STW_ERR_INTERNAL, "the patch of the webhook cannot be applied: %s",
                        stw_buf_str(&text));
    json_decref(*object);
    *object = patched;
    return 0;
}

static int review(const struct stw_test_webhooks *h, const struct stw_kind *kind, bool mutate,
                  json_t **object, const json_t *old, struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(ANSWER_MAX);
    json_auto_t *request = make_review(&kind->resource, *object, old);
    stw_autofree char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    if (!body)
        return stw_fail(err, STW_ERR_INVALID, "the object has no name");
    int status = stw_operator_review(h->op, kind, mutate, h->lookup, body, strlen(body), &text);
    json_auto_t *answer = json_loadb(stw_buf_str(&text), text.len, 0, NULL);
    const json_t *response = json_object_get(answer, "response");
    if (status != 200 || !response)
        return stw_fail(err, STW_ERR_INTERNAL, "the webhook answered %d: %s", status,
                        stw_test_text_of(answer, "message"));
    if (!json_is_true(json_object_get(response, "allowed")))
        return stw_fail(err, STW_ERR_INVALID, "admission webhook denied the request: %s",
                        stw_test_text_at(response, "status.message"));
    return apply_patch(object, stw_test_text_of(response, "patch"), err);
}

int stw_test_admit(void *ctx, const struct stw_resource *resource, json_t **object,
                   const json_t *old, struct stw_error *err)
{
    struct stw_test_webhooks *h = ctx;
    const struct stw_kind *kind =
        stw_operator_kind(h->op, resource->group, resource->version, resource->kind);
    if (!kind)
        return 0;
    pthread_rwlock_rdlock(&h->lock);
    int rc = review(h, kind, true, object, old, err);
    if (rc == 0 && (kind->operations & (old ? STW_UPDATE : STW_CREATE)))
        rc = review(h, kind, false, object, old, err);
    pthread_rwlock_unlock(&h->lock);
    return rc;
}
