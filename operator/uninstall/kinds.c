/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward uninstall --kinds`: some kinds go, and steward goes on with the others. */
#include "operator/uninstall/uninstall.h"

#include "base/util.h"
#include "base/visible.h"
#include "certs/certs.h"
#include "operator/installed/installed.h"
#include "operator/installed/kind_choice.h"
#include "operator/main/names.h"

#define PATCH_MAX (256u << 10)

static bool is_of_ours(const struct stw_operator *op, struct stw_json hook)
{
    for (size_t i = 0; op->kinds[i]; i++)
        if (stw_webhook_is_of(hook, op->kinds[i]))
            return true;
    return false;
}

/* Each removal is guarded by the name, as another client may change the list meanwhile.  The last
 * comes first, so that no index moves. */
static void add_removals(const struct stw_operator *op, struct stw_json hooks, struct stw_buf *out)
{
    stw_buf_addc(out, '[');
    for (uint32_t i = stw_json_size(hooks); i-- > 0;) {
        char name[512];
        struct stw_json hook = stw_json_at(hooks, i);
        if (!is_of_ours(op, hook))
            continue;
        (void)stw_json_strcpy(stw_json_get(hook, "name"), name, sizeof(name));
        stw_buf_addf(out, "%s{\"op\":\"test\",\"path\":\"/webhooks/%u/name\",\"value\":",
                     out->len > 1 ? "," : "", i);
        stw_buf_json_strz(out, name);
        stw_buf_addf(out, "},{\"op\":\"remove\",\"path\":\"/webhooks/%u\"}", i);
    }
    stw_buf_addc(out, ']');
}

int stw_hooks_remove(const struct stw_remote *r, const struct stw_resource *configuration,
                     const char *name, struct stw_error *err)
{
    stw_autoanswer struct stw_answer now = {0}, then = {0};
    stw_autobuf struct stw_buf patch = STW_BUF_INIT(PATCH_MAX), path = STW_BUF_INIT(1024);
    struct stw_error e = {0};
    if (stw_remote_get(r, configuration, NULL, name, &now, &e) != 0) {
        *err = e;
        return e.code == STW_ERR_NOT_FOUND ? 0 : stw_error_wrap(err, "%s", name);
    }
    add_removals(r->op, stw_json_get(now.root, "webhooks"), &patch);
    if (patch.len <= 2)
        return 0;
    stw_resource_path(configuration, NULL, name, NULL, &path);
    struct stw_request req = {.method = "PATCH",
                              .path = stw_buf_str(&path),
                              .content_type = "application/json-patch+json",
                              .body = stw_buf_str(&patch),
                              .body_len = patch.len};
    if (patch.failed || path.failed)
        return stw_fail_memory(err);
    if (stw_remote_do(r, &req, &then, err) != 0)
        return stw_error_wrap(err, "%s %s", configuration->kind, name);
    stw_print_line(stdout, "removed the webhooks of these kinds from %s %s", configuration->kind,
                   name);
    return 0;
}

/* --- does another steward still add the finalizers? */

static bool has_rolled_out(struct stw_json deployment)
{
    int64_t generation = 0, observed = 0, all = 0, updated = 0;
    struct stw_json status = stw_json_get(deployment, "status");
    (void)stw_json_int(stw_json_path(deployment, "metadata.generation"), &generation);
    (void)stw_json_int(stw_json_get(status, "observedGeneration"), &observed);
    (void)stw_json_int(stw_json_get(status, "replicas"), &all);
    (void)stw_json_int(stw_json_get(status, "updatedReplicas"), &updated);
    return observed >= generation && all == updated;
}

/* The first kind that both have, or NULL. */
static const struct stw_kind *find_common(const struct stw_operator *a,
                                          const struct stw_operator *b)
{
    for (size_t i = 0; a->kinds[i]; i++)
        for (size_t n = 0; b->kinds[n]; n++)
            if (a->kinds[i] == b->kinds[n])
                return a->kinds[i];
    return NULL;
}

int stw_kinds_are_out(const struct stw_remote *r, const struct stw_operator *all, const char *ns,
                      struct stw_error *err)
{
    stw_autoanswer struct stw_answer deployment = {0};
    stw_autobuf struct stw_buf kinds = STW_BUF_INIT(8192);
    char name[STW_OWN_NAME_LEN];
    struct stw_kind_choice installed;
    struct stw_error e = {0};
    int64_t replicas = 1;
    stw_operator_text(r->op, STW_DEPLOYMENT, name);
    if (stw_remote_get(r, &stw_res_deployment, ns, name, &deployment, &e) != 0) {
        *err = e;
        return e.code == STW_ERR_NOT_FOUND ? 0 : stw_error_wrap(err, "Deployment %s/%s", ns, name);
    }
    stw_installed_kinds(deployment.root, &kinds);
    if (stw_kinds_choose(all, stw_buf_str(&kinds), &installed, err) != 0)
        return stw_error_wrap(err, "Deployment %s/%s", ns, name);
    const struct stw_kind *common = find_common(r->op, &installed.op);
    (void)stw_json_int(stw_json_path(deployment.root, "spec.replicas"), &replicas);
    if (common && replicas > 0)
        return stw_fail(err, STW_ERR_CONFLICT,
                        "Deployment %s/%s runs with %s and would put finalizers back: leave it out "
                        "of its --kinds first, or use --finalizers=wait",
                        ns, name, common->kind);
    if (!has_rolled_out(deployment.root))
        return stw_fail(err, STW_ERR_CONFLICT,
                        "Deployment %s/%s has not rolled out: run this again when it has", ns,
                        name);
    return 0;
}
