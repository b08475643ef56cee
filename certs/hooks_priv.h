/* SPDX-License-Identifier: Apache-2.0
 *
 * The webhook configurations: reading and writing their caBundles.  We write only
 * webhooks[*].clientConfig.caBundle, of the webhooks of our kinds; and of a CRD that is converted by
 * a webhook only the caBundle of that.  A write is valid only for the object as it was read
 * (resourceVersion).
 *
 * We own no field.  What a field manager has applied in an entry of a list keeps the entry, and who
 * owns the caBundle of a CRD keeps its conversion: what an installer leaves out by server-side apply
 * would then stay, incomplete, and the API server refuses the whole.  So each write is followed by a
 * release: it takes our entry out of metadata.managedFields, and changes nothing else. */
#ifndef STW_CERTS_HOOKS_PRIV_H
#define STW_CERTS_HOOKS_PRIV_H

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "decide_priv.h"
#include "kube/client.h"

/* Same as stw_client_do: the real one, or a test's. */
typedef int stw_rotation_call_fn(void *ctx, const struct stw_request *req, struct stw_buf *ret,
                                 struct stw_error *err);
struct stw_rotation_api {
    stw_rotation_call_fn *call;
    void *ctx;
    const struct stw_operator *op;
};

/* The field manager of the caBundles, for stw_operator_text. */
#define STW_HOOK_MANAGER "{operator}-certs"

struct stw_hook {
    const struct stw_operator *op; /* whose kinds our webhooks are of */
    const struct stw_resource *resource;
    const char *name; /* NULL or "": not configured */
    enum stw_hook_state state;
    bool owned; /* managedFields has an entry of ours */
    char rv[64];
    struct stw_buf object; /* as it was read */
};

/* Of a number below STW_ROTATION_HOOKS. */
const struct stw_resource *stw_hook_resource(unsigned number);
void stw_hook_init(struct stw_hook *h, const struct stw_operator *op,
                   const struct stw_resource *resource, const char *name);
void stw_hook_done(struct stw_hook *h);
/* -1: could not be read, the state is UNKNOWN.  A missing configuration is not an error. */
int stw_hook_read(struct stw_hook *h, const struct stw_rotation_api *api,
                  struct stw_error *err) STW_MUST_CHECK;
/* Every webhook of ours in it has exactly this text. */
bool stw_hook_exact(const struct stw_hook *h, const char *bundle);
/* Every webhook of ours in it trusts this leaf. */
bool stw_hook_trusts(const struct stw_hook *h, const char *leaf_pem);
/* Adds the CAs in the caBundles of our webhooks. */
void stw_hook_collect(const struct stw_hook *h, int64_t now_us, struct stw_buf *bundle);
int stw_hook_write(const struct stw_hook *h, const char *bundle, const struct stw_rotation_api *api,
                   struct stw_error *err) STW_MUST_CHECK;
/* Gives up the fields that managedFields says we own. */
int stw_hook_release(const struct stw_hook *h, const struct stw_rotation_api *api,
                     struct stw_error *err) STW_MUST_CHECK;

#endif
