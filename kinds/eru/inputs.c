/* SPDX-License-Identifier: Apache-2.0
 *
 * What the pods of a workload read: one GET of the workload, and one of the metadata of each
 * ConfigMap and Secret.  Values are neither requested nor kept.  Then what they run (images.c). */
#include "kinds/eru/inputs.h"

#include "base/hex.h"
#include "base/util.h"
#include "kinds/common/inputs.h"
#include "kinds/eru/images.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/workloads.h"

#include <stdio.h>

/* Without "application/json" the server refuses rather than sends the whole object. */
#define METADATA_ONLY "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"

#define VERSIONS_MAX (64u << 10)

/* The resourceVersion of the object as it is now; "" if there is none. */
static int read_version(struct eru *e, const struct stw_input *input, char out[STW_RV_LEN],
                        struct stw_error *err)
{
    bool secret = stw_input_is_secret(input);
    const struct stw_resource *resource = secret ? &stw_res_secret : &stw_res_configmap;
    stw_autobuf struct stw_buf path = STW_BUF_INIT(4096);
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    out[0] = '\0';
    stw_resource_path(resource, e->run->ns, stw_input_name(input), NULL, &path);
    if (path.failed)
        return stw_fail_memory(err);
    const struct stw_request req = {
        .method = "GET", .path = stw_buf_str(&path), .accept = METADATA_ONLY, .secret = secret};
    if (stw_client_do(e->run->client, &req, &text, err) != 0) {
        if (err->code != STW_ERR_NOT_FOUND)
            return -1;
        *err = (struct stw_error){0};
        return 0;
    }
    if (stw_json_scan(&doc, stw_buf_str(&text), text.len, err) != 0)
        return -1;
    if (stw_json_strcpy(stw_json_path(stw_json_root(&doc), "metadata.resourceVersion"), out,
                        STW_RV_LEN) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "the answer is not a %s", resource->kind);
    return 0;
}

static int read_versions(struct eru *e, const struct stw_inputs *inputs, struct eru_inputs *ret,
                         struct stw_error *err)
{
    stw_autobuf struct stw_buf versions = STW_BUF_INIT(VERSIONS_MAX);
    char version[STW_RV_LEN];
    for (size_t i = 0; i < inputs->count; i++) {
        const struct stw_input *input = &inputs->all[i];
        if (read_version(e, input, version, err) != 0)
            return -1;
        if (!*version && input->required && !*ret->missing)
            stw_format(ret->missing, sizeof(ret->missing), "%s \"%s\"",
                       stw_input_is_secret(input) ? "Secret" : "ConfigMap", stw_input_name(input));
        stw_buf_addf(&versions, "%s %s\n", input->name, *version ? version : "-");
    }
    if (versions.failed)
        return stw_fail_memory(err);
    stw_hash_format(stw_hash_bytes(stw_buf_str(&versions), versions.len), ret->digest);
    return 0;
}

/* Reads the workload again, because e->target has no pod template; it must be the same version. */
static int read_workload(struct eru *e, const char *name, struct stw_buf *text,
                         struct stw_json_doc *doc, struct stw_error *err)
{
    struct eru_target now;
    if (stw_kube_get(e->run->client, e->workload->resource, e->run->ns, name, text, err) != 0)
        return err->code == STW_ERR_NOT_FOUND
                   ? stw_fail(err, STW_ERR_CONFLICT, "%s \"%s\" was deleted", e->workload->kind,
                              name)
                   : -1;
    if (stw_json_scan(doc, stw_buf_str(text), text->len, err) != 0)
        return -1;
    if (eru_target_read(e->workload, stw_json_root(doc), &now) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "the answer is not a %s", e->workload->kind);
    if (!stw_streq(now.uid, e->target.uid) ||
        !stw_streq(now.resource_version, e->target.resource_version))
        return stw_fail(err, STW_ERR_CONFLICT, "%s \"%s\" has changed", e->workload->kind, name);
    return 0;
}

static int read_pod(struct eru *e, struct stw_json pod, struct eru_inputs *ret,
                    struct stw_error *err)
{
    struct stw_inputs inputs = {0};
    stw_inputs_add_pod(&inputs, pod);
    *ret = (struct eru_inputs){.count = inputs.count, .more = inputs.more};
    int rc = inputs.failed ? stw_fail_memory(err) : 0;
    if (rc == 0 && !inputs.more)
        rc = read_versions(e, &inputs, ret, err);
    stw_inputs_done(&inputs);
    return rc;
}

int eru_inputs_read(struct eru *e, const char *name, struct eru_inputs *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    if (read_workload(e, name, &text, &doc, err) != 0)
        return -1;
    struct stw_json pod = stw_json_path(stw_json_root(&doc), "spec.template.spec");
    if (read_pod(e, pod, ret, err) != 0)
        return -1;
    return ret->more ? 0 : eru_images_read(e, pod, ret, err);
}
