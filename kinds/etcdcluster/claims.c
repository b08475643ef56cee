/* SPDX-License-Identifier: Apache-2.0
 *
 * Where members keep their data: the medium, decided once, and the claim of a member. */
#include "base/util.h"
#include "kinds/etcdcluster/reconcile.h"
#include "kinds/etcdcluster/run.h"
#include "kube/pages.h"
#include "schema/names.h"

#include <stdio.h>

const struct stw_resource ec_res_storage_class = {.group = "storage.k8s.io",
                                                  .version = "v1",
                                                  .kind = "StorageClass",
                                                  .plural = "storageclasses",
                                                  .namespaced = false};

/* --- the medium */

static int look_at_class(void *ctx, struct stw_json class)
{
    static const char *const marks[] = {"storageclass.kubernetes.io/is-default-class",
                                        "storageclass.beta.kubernetes.io/is-default-class"};
    char *found = ctx; /* as of default_class() */
    struct stw_json notes = stw_json_path(class, "metadata.annotations");
    for (size_t i = 0; i < STW_COUNT(marks); i++)
        if (stw_json_is(stw_json_get(notes, marks[i]), "true"))
            (void)stw_json_strcpy(stw_json_path(class, "metadata.name"), found, 254);
    return 0;
}

/* Name of the default StorageClass; "" if there is none. */
static int default_class(struct ec *e, char out[254], struct stw_error *err)
{
    const struct stw_pages classes = {.resource = &ec_res_storage_class, .metadata_only = true};
    out[0] = '\0';
    if (stw_pages_each(e->run->client, &classes, look_at_class, out, err) != 0)
        return stw_error_wrap(err, "cannot see which StorageClass is the default, so that storage "
                                   "must say its medium or storageClassName");
    return 0;
}

static void copy_size(struct ec *e)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(256);
    if (stw_json_type(e->spec.storage.size) == STW_JSON_STRING)
        stw_json_str(e->spec.storage.size, &text);
    stw_format(e->state.storage.size, sizeof(e->state.storage.size), "%s", stw_buf_str(&text));
}

int ec_latch_storage(struct ec *e, struct stw_error *err)
{
    const char *medium = e->spec.storage.medium, *class = e->spec.storage.storage_class;
    bool given = stw_json_there(e->spec.pod.claim_spec);
    char found[254] = "";
    if (e->state.storage.latched)
        return 0;
    bool ask = !given && medium && stw_streq(medium, "Auto") && !class;
    if (ask && default_class(e, found, err) != 0)
        return -1;
    e->state.storage.durable =
        given || class || *found || (medium && stw_streq(medium, "Persistent"));
    if (medium && stw_streq(medium, "EmptyDir"))
        e->state.storage.durable = false;
    stw_format(e->state.storage.class, sizeof(e->state.storage.class), "%s",
               !e->state.storage.durable ? ""
               : class                   ? class
                                         : found);
    if (!given && e->state.storage.durable)
        copy_size(e);
    e->state.storage.latched = true;
    return 0;
}

/* --- the claim */

static json_t *default_spec(const struct ec *e)
{
    const char *size = *e->state.storage.size ? e->state.storage.size : "8Gi";
    json_t *spec = json_pack("{s:[s],s:{s:{s:s}}}", "accessModes", "ReadWriteOnce", "resources",
                             "requests", "storage", size);
    if (*e->state.storage.class)
        (void)json_object_set_new(spec, "storageClassName", json_string(e->state.storage.class));
    return spec;
}

static json_t *claim_spec(const struct ec *e)
{
    json_t *given = stw_manifest_tree(e->spec.pod.claim_spec);
    if (!given)
        return default_spec(e);
    if (!json_object_get(given, "accessModes"))
        (void)json_object_set_new(given, "accessModes", json_pack("[s]", "ReadWriteOnce"));
    return given;
}

/* A tool that tracks its objects by the label of the instance would prune a claim that has no
 * owner. */
static json_t *build_claim_labels(const struct ec *e, const char *member)
{
    json_t *all = ec_labels(e, member);
    (void)json_object_del(all, "app.kubernetes.io/instance");
    return all;
}

json_t *ec_claim_manifest(const struct ec *e, const char *member)
{
    json_t *metadata =
        json_pack("{s:s,s:s,s:o,s:{s:s}}", "name", member, "namespace", e->owner.ns, "labels",
                  build_claim_labels(e, member), "annotations", STW_ETCD_CLUSTER_UID, e->owner.uid);
    if (stw_streq(e->spec.volume_retention.when_deleted, "Delete"))
        (void)json_object_set_new(
            metadata, "ownerReferences",
            json_pack("[o]", stw_owner_reference(e->run->controller->resource, &e->owner)));
    return json_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "PersistentVolumeClaim",
                     "metadata", metadata, "spec", claim_spec(e));
}
