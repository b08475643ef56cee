/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports DatabaseUsers that are invalid, such as those created before a rule or a target changed.
 * Their accounts are kept, but not managed. */
#include "cmd/doctor_targets.h"

#include "base/util.h"
#include "kinds/common/product.h"
#include "kinds/databaseuser/spec.h"
#include "kinds/kinds.h"
#include "kube/pages.h"
#include "operator/doctor/doctor.h"
#include "sql/target/target.h"

#define SHOWN_MAX 20

struct user_walk {
    struct doctor *d;
    struct stw_targets *targets;
    unsigned refused;
};

static void report_refused_user(struct user_walk *w, const char *ns, const char *name,
                                const struct stw_findings *f)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
    if (w->refused++ >= SHOWN_MAX)
        return;
    stw_finding_text(&f->errors[0], &text);
    stw_checkup_add(&w->d->report, STW_CHECK_WARN, "DatabaseUser",
                    doctor_advice(w->d,
                                  "Change the object (kubectl -n %s edit databaseuser %s) or its "
                                  "target; until then its account stays as it is.",
                                  ns, name),
                    "%s/%s is refused: %s", ns, name, stw_buf_str(&text));
}

static int check_stored_user(void *ctx, struct stw_json object)
{
    struct user_walk *w = ctx;
    char ns[254] = "", name[254] = "";
    stw_autofindings struct stw_findings f = {0};
    const struct stw_product product = {.targets = stw_targets_now, .targets_ctx = w->targets};
    const struct stw_env env = {.op = &stw_operator_steward, .product = &product};
    (void)stw_json_strcpy(stw_json_path(object, "metadata.namespace"), ns, sizeof(ns));
    (void)stw_json_strcpy(stw_json_path(object, "metadata.name"), name, sizeof(name));
    const struct stw_admission a = {.kind = &stw_kind_databaseuser,
                                    .operation = STW_CREATE,
                                    .ns = ns,
                                    .name = name,
                                    .object = object,
                                    .env = &env,
                                    .quiet = true};
    stw_kind_validate(&a, &f);
    if (f.error_count > 0)
        report_refused_user(w, ns, name, &f);
    return 0;
}

static int walk_namespace(struct doctor *d, const char *ns, stw_page_fn *fn, void *ctx,
                          struct stw_error *err)
{
    static const struct stw_resource resource = {.group = "handsomeguy.cn",
                                                 .version = "v1alpha1",
                                                 .kind = "DatabaseUser",
                                                 .plural = "databaseusers",
                                                 .namespaced = true};
    struct stw_pages q = {
        .resource = &resource, .ns = ns, .timeout_ms = (uint32_t)d->remote.timeout_ms};
    int rc = stw_pages_each(d->remote.client, &q, fn, ctx, err);
    return rc < 0 && err->code == STW_ERR_NOT_FOUND ? 0 : rc; /* reported by the CRD check */
}

int stw_doctor_each_user(struct doctor *d, stw_page_fn *fn, void *ctx, struct stw_error *err)
{
    static char *all[] = {NULL, NULL};
    char **ns = d->namespaces ? d->namespaces : all;
    int rc = 0;
    do
        rc = walk_namespace(d, *ns, fn, ctx, err);
    while (rc == 0 && *ns && *++ns);
    return rc;
}

void stw_doctor_users(struct doctor *d, struct stw_targets *targets)
{
    struct user_walk w = {.d = d, .targets = targets};
    struct stw_error err = {0};
    if (stw_doctor_each_user(d, check_stored_user, &w, &err) != 0)
        doctor_unread(d, "DatabaseUsers", &err);
    if (w.refused > SHOWN_MAX)
        stw_checkup_add(&d->report, STW_CHECK_WARN, "DatabaseUser", NULL, "%u more are refused",
                        w.refused - SHOWN_MAX);
}
