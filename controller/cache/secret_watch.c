/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/secret_watch.h"

static void project_version(const struct stw_operator *op, struct stw_json object,
                            struct stw_buf *out)
{
    size_t len;
    const char *version = stw_json_raw(stw_json_path(object, "metadata.resourceVersion"), &len);
    (void)op;
    stw_buf_addc(out, '[');
    stw_buf_add(out, version, len);
    stw_buf_addc(out, ']');
}

static void secret_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                           const char *old_text, const char *new_text)
{
    (void)w;
    (void)old_text;
    (void)new_text;
    stw_manager_wake(m, "secret", key);
    stw_manager_report_secret(m, key);
}

const struct stw_watch stw_watch_secrets = {
    .resource = &stw_res_secret,
    .metadata_only = true,
    .for_admission = true,
    .project = project_version,
    .changed = secret_changed,
};

static void configmap_changed(struct stw_manager *m, const struct stw_watch *w, const char *key,
                              const char *old_text, const char *new_text)
{
    (void)w;
    (void)old_text;
    (void)new_text;
    stw_manager_wake(m, "configmap", key);
}

const struct stw_watch stw_watch_configmap_versions = {
    .resource = &stw_res_configmap,
    .metadata_only = true,
    .metrics_name = "configmaps/metadata",
    .project = project_version,
    .changed = configmap_changed,
};
