/* SPDX-License-Identifier: Apache-2.0
 *
 * What the children of a MyWeb should be.  Only fields that we mean are in here, each in the form
 * in which the API server gives it back: what it defaults is left to it. */
#include "base/util.h"
#include "controller/myweb_priv.h"
#include "kinds/names.h"

#include <stdio.h>

#define PAGE_MAX (1u << 20)
#define APP "myweb"
#define HASH_ANNOTATION "steward.dev/content-hash"

static void page_of(const struct myweb *w, struct stw_buf *out)
{
    stw_json_str(w->spec.page, out);
}

void myweb_hash_content(struct myweb *w)
{
    stw_autobuf struct stw_buf page = STW_BUF_INIT(PAGE_MAX);
    page_of(w, &page);
    struct stw_hash h = stw_hash_bytes(stw_buf_str(&page), page.len);
    (void)snprintf(w->content_hash, sizeof(w->content_hash), "%016llx%016llx",
                   (unsigned long long)h.hi, (unsigned long long)h.lo);
}

/* A label value: at most 63 of [A-Za-z0-9-_.], with a letter or digit at both ends. */
static bool is_label_value(const char *s)
{
    static const char alnum[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strlen(s);
    return len > 0 && len <= 63 && strchr(alnum, s[0]) && strchr(alnum, s[len - 1]) &&
           strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") == len;
}

static json_t *selector(const struct myweb *w)
{
    return json_pack("{s:s,s:s}", "app.kubernetes.io/name", APP, "app.kubernetes.io/instance",
                     w->owner.name);
}

static json_t *labels(const struct myweb *w)
{
    char tag[130];
    json_t *all = selector(w);
    (void)json_object_set_new(all, "app.kubernetes.io/component", json_string("web"));
    (void)json_object_set_new(all, "app.kubernetes.io/part-of", json_string(w->owner.name));
    (void)json_object_set_new(all, "app.kubernetes.io/managed-by", json_string("steward"));
    stw_image_tag(w->spec.image, tag, sizeof(tag));
    if (is_label_value(tag))
        (void)json_object_set_new(all, "app.kubernetes.io/version", json_string(tag));
    return all;
}

static json_t *metadata(const struct myweb *w)
{
    return json_pack("{s:s,s:s,s:o,s:[o]}", "name", w->owner.name, "namespace", w->owner.ns,
                     "labels", labels(w), "ownerReferences",
                     stw_owner_reference(w->run->controller->resource, &w->owner));
}

json_t *myweb_configmap(const struct myweb *w)
{
    stw_autobuf struct stw_buf page = STW_BUF_INIT(PAGE_MAX);
    page_of(w, &page);
    if (page.failed)
        return NULL;
    return json_pack("{s:s,s:s,s:o,s:{s:o}}", "apiVersion", "v1", "kind", "ConfigMap", "metadata",
                     metadata(w), "data", "index.html", json_stringn(stw_buf_str(&page), page.len));
}

/* --- the Deployment */

/* Members that are null mean "not there" to the API server, and so they are left out. */
static void drop_nulls(json_t *value)
{
    const char *key;
    void *next;
    json_t *member;
    size_t i;
    json_array_foreach (value, i, member)
        drop_nulls(member);
    json_object_foreach_safe(value, next, key, member)
    {
        if (json_is_null(member))
            (void)json_object_del(value, key);
        else
            drop_nulls(member);
    }
}

/* A part of the spec that is passed on as it stands; NULL when it is absent. */
static json_t *tree_of(struct stw_json value)
{
    size_t len;
    if (!stw_json_there(value))
        return NULL;
    const char *raw = stw_json_raw(value, &len);
    json_t *tree = json_loadb(raw, len, 0, NULL);
    drop_nulls(tree);
    return tree;
}

/* The form in which the server stores it, so that it does not look like drift. */
static json_t *canonical_quantity(const json_t *value)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(256);
    stw_autofree char *number = json_is_number(value) ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    const char *text = number ? number : json_string_value(value);
    if (!text || stw_quantity_canonical(text, &out) != 0 || out.failed)
        return json_deep_copy(value);
    return json_string(stw_buf_str(&out));
}

static json_t *resources(const struct myweb *w)
{
    static const char *const parts[] = {"limits", "requests"};
    json_t *tree = tree_of(w->spec.resources);
    if (!tree)
        tree = json_loads(STW_MYWEB_RESOURCES, 0, NULL);
    for (size_t i = 0; i < STW_COUNT(parts); i++) {
        const char *key;
        void *next;
        json_t *value, *part = json_object_get(tree, parts[i]);
        json_object_foreach_safe(part, next, key, value)(void)
            json_object_set_new(part, key, canonical_quantity(value));
    }
    return tree;
}

/* The page is a directory mount: a file mounted by subPath would never change (kubernetes#50345).
 */
static json_t *container(const struct myweb *w)
{
    json_int_t port = (json_int_t)w->spec.container_port;
    return json_pack("{s:s,s:s,s:[{s:s,s:I,s:s}],s:o,s:o*,s:[{s:s,s:s,s:b}],s:{s:{s:I}}}", "name",
                     "web", "image", w->spec.image, "ports", "name", "http", "containerPort", port,
                     "protocol", "TCP", "resources", resources(w), "securityContext",
                     tree_of(w->spec.security_context), "volumeMounts", "name", "page", "mountPath",
                     w->spec.mount_path, "readOnly", 1, "readinessProbe", "tcpSocket", "port",
                     port);
}

static json_t *pod_metadata(const struct myweb *w)
{
    json_t *all = labels(w);
    (void)json_object_set_new(all, "app", json_string(w->owner.name));
    if (!stw_streq(w->spec.content_update, "Roll"))
        return json_pack("{s:o}", "labels", all);
    return json_pack("{s:o,s:{s:s}}", "labels", all, "annotations", HASH_ANNOTATION,
                     w->content_hash);
}

static json_t *pod_spec(const struct myweb *w)
{
    return json_pack("{s:b,s:[o],s:o*,s:[{s:s,s:{s:s}}]}", "automountServiceAccountToken", 0,
                     "containers", container(w), "imagePullSecrets",
                     tree_of(w->spec.image_pull_secrets), "volumes", "name", "page", "configMap",
                     "name", w->owner.name);
}

json_t *myweb_deployment(const struct myweb *w)
{
    return json_pack("{s:s,s:s,s:o,s:{s:I,s:i,s:{s:o},s:{s:o,s:o}}}", "apiVersion", "apps/v1",
                     "kind", "Deployment", "metadata", metadata(w), "spec", "replicas",
                     (json_int_t)w->spec.replicas, "revisionHistoryLimit", 3, "selector",
                     "matchLabels", selector(w), "template", "metadata", pod_metadata(w), "spec",
                     pod_spec(w));
}

/* --- the Service */

json_t *myweb_service(const struct myweb *w, int64_t port)
{
    json_t *node_port = port ? json_integer((json_int_t)port) : NULL;
    return json_pack("{s:s,s:s,s:o,s:{s:s,s:o,s:[{s:s,s:i,s:s,s:I,s:o*}]}}", "apiVersion", "v1",
                     "kind", "Service", "metadata", metadata(w), "spec", "type", "NodePort",
                     "selector", selector(w), "ports", "name", "http", "port", 80, "protocol",
                     "TCP", "targetPort", (json_int_t)w->spec.container_port, "nodePort",
                     node_port);
}
