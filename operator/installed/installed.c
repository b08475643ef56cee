/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/installed/installed.h"

#include "base/util.h"
#include "controller/manager.h"
#include "operator/main/names.h"

int stw_installed_leader(const struct stw_remote *r, const char *ns, struct stw_leader *ret,
                         struct stw_error *err)
{
    stw_autoanswer struct stw_answer lease = {0};
    struct stw_error e = {0};
    int64_t seconds = 0;
    char renewed[64];
    *ret = (struct stw_leader){0};
    if (stw_remote_get(r, &stw_res_lease, ns, STW_MANAGER_LEASE, &lease, &e) != 0) {
        if (err)
            *err = e;
        return e.code == STW_ERR_NOT_FOUND ? 0 : -1;
    }
    struct stw_json spec = stw_json_get(lease.root, "spec");
    ret->there = true;
    (void)stw_json_strcpy(stw_json_get(spec, "holderIdentity"), ret->holder, sizeof(ret->holder));
    if (stw_json_strcpy(stw_json_get(spec, "renewTime"), renewed, sizeof(renewed)) == 0)
        (void)stw_time_parse(renewed, &ret->renewed_us);
    (void)stw_json_int(stw_json_get(spec, "leaseDurationSeconds"), &seconds);
    ret->duration_us = seconds * 1000000;
    return 0;
}

void stw_installed_kinds(struct stw_json deployment, struct stw_buf *out)
{
    static const char flag[] = "--kinds=";
    struct stw_json key, arg;
    struct stw_json container =
        stw_json_at(stw_json_path(deployment, "spec.template.spec.containers"), 0);
    stw_json_foreach (stw_json_get(container, "args"), key, arg) {
        stw_autofree char *text = stw_json_strdup(arg);
        if (text && strncmp(text, flag, sizeof(flag) - 1) == 0)
            stw_buf_addf(out, "%s%s", out->len ? "," : "", text + sizeof(flag) - 1);
    }
}
