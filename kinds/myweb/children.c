/* SPDX-License-Identifier: Apache-2.0
 *
 * The desired children of a MyWeb.  They contain only fields that steward sets, each in the form in
 * which the API server returns it; the server sets the defaults. */
#include "base/hex.h"
#include "base/util.h"
#include "controller/manifest.h"
#include "kinds/myweb/run_priv.h"

#include <stdio.h>

#define PAGE_MAX (1u << 20)
#define CONTENT_MAX (16u << 20) /* with the files as JSON, in which a byte may take six */
#define HASH_ANNOTATION "{domain}/content-hash"

static void page_of(const struct myweb *w, struct stw_buf *out)
{
    stw_json_str(w->spec.page, out);
}

/* Nothing without files, so that the hash of older objects is the same. */
static void add_files(const struct myweb *w, struct stw_buf *out)
{
    json_auto_t *files = stw_manifest_tree(w->spec.files);
    stw_autofree char *text =
        json_object_size(files) > 0 ? json_dumps(files, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (text)
        stw_buf_adds(out, text);
}

void myweb_hash_content(struct myweb *w)
{
    stw_autobuf struct stw_buf page = STW_BUF_INIT(CONTENT_MAX);
    page_of(w, &page);
    add_files(w, &page);
    stw_hash_format(stw_hash_bytes(stw_buf_str(&page), page.len), w->content_hash);
}

static struct stw_naming build_myweb_naming(const struct myweb *w)
{
    return (struct stw_naming){.app = "myweb", .component = "web", .image = w->spec.image};
}

static json_t *build_myweb_selector(const struct myweb *w)
{
    struct stw_naming n = build_myweb_naming(w);
    return stw_manifest_selector(&n, &w->owner);
}

static json_t *build_myweb_labels(const struct myweb *w)
{
    struct stw_naming n = build_myweb_naming(w);
    return stw_manifest_labels(w->run, &w->owner, &n);
}

static json_t *build_myweb_metadata(const struct myweb *w)
{
    struct stw_naming n = build_myweb_naming(w);
    return stw_manifest_metadata(w->run, &w->owner, &n, w->owner.name);
}

json_t *myweb_configmap(const void *subject)
{
    const struct myweb *w = subject;
    stw_autobuf struct stw_buf page = STW_BUF_INIT(PAGE_MAX);
    page_of(w, &page);
    if (page.failed)
        return NULL;
    json_t *data = stw_json_there(w->spec.files) ? stw_manifest_tree(w->spec.files) : json_object();
    if (!data) /* out of memory: no file is left out silently */
        return NULL;
    (void)json_object_set_new(data, "index.html", json_stringn(stw_buf_str(&page), page.len));
    return stw_tree_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "ConfigMap", "metadata",
                         build_myweb_metadata(w), "data", data);
}

/* --- Deployment */

static json_t *build_myweb_resources(const struct myweb *w)
{
    if (stw_json_there(w->spec.resources))
        return stw_manifest_resources(w->spec.resources);
    return json_loads(MYWEB_RESOURCES, 0, NULL);
}

/* The page is mounted as a directory: a file mounted by subPath would never change
 * (kubernetes#50345). */
static json_t *build_myweb_container(const struct myweb *w)
{
    json_int_t port = (json_int_t)w->spec.container_port;
    json_t *container = stw_tree_pack(
        "{s:s,s:s,s:[{s:s,s:I,s:s}],s:o,s:o*,s:[{s:s,s:s,s:b}],s:{s:{s:I}}}", "name", "web",
        "image", w->spec.image, "ports", "name", "http", "containerPort", port, "protocol", "TCP",
        "resources", build_myweb_resources(w), "securityContext",
        stw_manifest_tree(w->spec.security_context), "volumeMounts", "name", "page", "mountPath",
        w->spec.mount_path, "readOnly", 1, "readinessProbe", "tcpSocket", "port", port);
    if (w->spec.pull_policy)
        (void)json_object_set_new(container, "imagePullPolicy", json_string(w->spec.pull_policy));
    return container;
}

static json_t *pod_metadata(const struct myweb *w)
{
    char hash[STW_OWN_NAME_LEN];
    json_t *all = build_myweb_labels(w);
    stw_operator_text(w->run->op, HASH_ANNOTATION, hash);
    if (!json_object_get(w->owner.selector, "app"))
        (void)json_object_set_new(all, "app", json_string(w->owner.name));
    if (!stw_streq(w->spec.content_update, "Roll"))
        return stw_tree_pack("{s:o}", "labels", all);
    return stw_tree_pack("{s:o,s:{s:s}}", "labels", all, "annotations", hash, w->content_hash);
}

static json_t *pod_spec(const struct myweb *w)
{
    return stw_tree_pack("{s:b,s:[o],s:o*,s:[{s:s,s:{s:s}}]}", "automountServiceAccountToken", 0,
                         "containers", build_myweb_container(w), "imagePullSecrets",
                         stw_manifest_tree(w->spec.image_pull_secrets), "volumes", "name", "page",
                         "configMap", "name", w->owner.name);
}

json_t *myweb_deployment(const void *subject)
{
    const struct myweb *w = subject;
    return stw_tree_pack("{s:s,s:s,s:o,s:{s:I,s:i,s:{s:o},s:{s:o,s:o}}}", "apiVersion", "apps/v1",
                         "kind", "Deployment", "metadata", build_myweb_metadata(w), "spec",
                         "replicas", (json_int_t)w->spec.replicas, "revisionHistoryLimit", 3,
                         "selector", "matchLabels", build_myweb_selector(w), "template", "metadata",
                         pod_metadata(w), "spec", pod_spec(w));
}

/* --- Service */

json_t *myweb_service(const void *subject)
{
    const struct myweb *w = subject;
    bool inside = myweb_is_inside(&w->spec);
    int64_t port = inside ? 0 : w->service_port;
    json_t *node_port = port ? json_integer((json_int_t)port) : NULL;
    return stw_tree_pack("{s:s,s:s,s:o,s:{s:s,s:o,s:[{s:s,s:i,s:s,s:I,s:o*}]}}", "apiVersion", "v1",
                         "kind", "Service", "metadata", build_myweb_metadata(w), "spec", "type",
                         inside ? MYWEB_CLUSTER_IP : "NodePort", "selector",
                         build_myweb_selector(w), "ports", "name", "http", "port", 80, "protocol",
                         "TCP", "targetPort", (json_int_t)w->spec.container_port, "nodePort",
                         node_port);
}

json_t *myweb_ingress(const void *subject)
{
    const struct myweb *w = subject;
    struct stw_ingress all = w->spec.ingress;
    all.path = "/";
    return stw_ingress_build(&all, w->owner.name, build_myweb_metadata(w));
}
