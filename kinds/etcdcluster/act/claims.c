/* SPDX-License-Identifier: Apache-2.0
 *
 * Where members keep their data: the medium, decided once, and the claim of a member. */
#include "kinds/etcdcluster/act/claims.h"

#include "base/util.h"
#include "kinds/etcdcluster/labels.h"
#include "kinds/etcdcluster/names.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/runtime.h"
#include "kube/pages.h"
#include "schema/names.h"

#include <stdio.h>

#define SIZE_DEFAULT "8Gi"

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

void ec_size_text(struct stw_json size, char out[64])
{
    stw_quantity any;
    size_t len;
    out[0] = '\0';
    if (!stw_json_there(size) || stw_quantity_of(size, &any) != 0)
        return;
    if (stw_json_type(size) == STW_JSON_STRING) {
        (void)stw_json_strcpy(size, out, 64);
        return;
    }
    const char *digits = stw_json_raw(size, &len);
    stw_format(out, 64, "%.*s", (int)STW_MIN(len, 63), digits);
}

static bool is_smaller(const char *a, const char *b)
{
    stw_quantity x, y;
    return stw_quantity_parse(a, &x) == 0 && stw_quantity_parse(b, &y) == 0 && x < y;
}

static const char *size_or_default(const char *size)
{
    return *size ? size : SIZE_DEFAULT;
}

/* The first size stays in the hash of the pods' inputs, which a larger volume does not change. */
static void grow_size(struct ec *e)
{
    char wanted[64];
    ec_size_text(e->spec.storage.size, wanted);
    if (!e->state.storage.durable || !is_smaller(size_or_default(e->state.storage.size), wanted))
        return;
    if (!e->state.storage.grown)
        memcpy(e->state.storage.initial_size, e->state.storage.size,
               sizeof(e->state.storage.initial_size));
    e->state.storage.grown = true;
    memcpy(e->state.storage.size, wanted, sizeof(wanted));
}

int ec_latch_storage(struct ec *e, struct stw_error *err)
{
    const char *medium = e->spec.storage.medium, *class = e->spec.storage.storage_class;
    bool given = stw_json_there(e->spec.pod.claim_spec);
    char found[254] = "";
    if (e->state.storage.latched) {
        if (!given)
            grow_size(e);
        return 0;
    }
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
        ec_size_text(e->spec.storage.size, e->state.storage.size);
    e->state.storage.latched = true;
    return 0;
}

/* --- the claim */

static json_t *default_spec(const struct ec *e)
{
    json_t *spec = stw_tree_pack("{s:[s],s:{s:{s:s}}}", "accessModes", "ReadWriteOnce", "resources",
                                 "requests", "storage", size_or_default(e->state.storage.size));
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
        (void)json_object_set_new(given, "accessModes", stw_tree_pack("[s]", "ReadWriteOnce"));
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
        stw_tree_pack("{s:s,s:s,s:o,s:{s:s}}", "name", member, "namespace", e->owner.ns, "labels",
                      build_claim_labels(e, member), "annotations", EC_CLUSTER_UID, e->owner.uid);
    if (stw_streq(e->spec.volume_retention.when_deleted, "Delete"))
        (void)json_object_set_new(
            metadata, "ownerReferences",
            stw_tree_pack("[o]", stw_owner_reference(e->run->controller->resource, &e->owner)));
    return stw_tree_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "v1", "kind", "PersistentVolumeClaim",
                         "metadata", metadata, "spec", claim_spec(e));
}

/* --- the size of volumes */

void ec_wanted_size(const struct ec *e, char out[64])
{
    struct stw_json given = e->spec.pod.claim_spec;
    struct stw_json requests = stw_json_get(stw_json_get(given, "resources"), "requests");
    char size[64];
    ec_size_text(stw_json_there(given) ? stw_json_get(requests, "storage") : e->spec.storage.size,
                 size);
    stw_format(out, 64, "%s", size_or_default(size));
}

enum ec_volume ec_judge_volume(const struct ec_claim_live *claim, const char *wanted)
{
    if (claim->going ||
        !claim->bound) /* the API server refuses to expand a claim that is not bound */
        return EC_VOLUME_FINE;
    if (is_smaller(claim->requested, wanted))
        return EC_VOLUME_SMALL;
    if (!*claim->requested)
        return EC_VOLUME_FINE;
    return is_smaller(claim->capacity, wanted) ? EC_VOLUME_GROWS : EC_VOLUME_FINE;
}

/* Whether the StorageClass lets claims be expanded.  -1: `err`. */
static int read_class(struct ec *e, const char *name, bool *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    stw_autojson struct stw_json_doc doc = {0};
    *ret = false;
    if (!*name)
        return 0; /* a volume that was made by hand */
    int rc = stw_kube_get(e->run->client, &ec_res_storage_class, NULL, name, &answer, err);
    if (rc != 0)
        return stw_error_pass_over(rc, STW_ERR_NOT_FOUND, err);
    if (stw_json_scan(&doc, stw_buf_str(&answer), answer.len, err) != 0)
        return -1;
    *ret = stw_json_bool(stw_json_get(stw_json_root(&doc), "allowVolumeExpansion"), false);
    return 0;
}

/* The same from what was read a short time ago (EC_VOLUME_RETRY_MS), as a volume may stay small for years.  What was
 * known of the class stays while it cannot be read: else a member that replaces one with such a
 * volume would be given up.  With --namespaces steward may not read it, and the API server decides. */
static bool is_class_expanding(struct ec *e, struct ec_kept *kept, const char *name)
{
    uint64_t now = stw_now_ms(e->run->clock);
    struct stw_hash hash = stw_hash_bytes(name, strlen(name));
    bool known = stw_hash_equal(kept->class.name, hash), expands;
    struct stw_error err = {0};
    if (known && now < kept->class.until_ms)
        return kept->class.expands;
    int rc = read_class(e, name, &expands, &err);
    if (rc != 0 && err.code != STW_ERR_FORBIDDEN && !known) {
        kept->refused.until_ms = now + EC_VOLUME_RETRY_MS;
        stw_format(kept->refused.text, sizeof(kept->refused.text),
                   "cannot read StorageClass %.40s: %.100s", name, err.text);
        return true;
    }
    if (rc != 0)
        expands = known ? kept->class.expands : true;
    kept->class.name = hash;
    kept->class.until_ms = now + EC_VOLUME_RETRY_MS;
    kept->class.expands = expands;
    return expands;
}

static enum ec_volume judge_small(struct ec *e, const struct ec_claim_live *claim)
{
    struct ec_kept *kept = e->runtime ? ec_runtime_get(e->runtime, e->run) : NULL;
    if (!kept)
        return EC_VOLUME_SMALL;
    if (!is_class_expanding(e, kept, claim->class))
        return EC_VOLUME_FIXED;
    return stw_now_ms(e->run->clock) < kept->refused.until_ms ? EC_VOLUME_REFUSED : EC_VOLUME_SMALL;
}

static void say_volume(struct ec *e, size_t i, const char *wanted)
{
    const struct ec_member *m = &e->view.members[i];
    const struct ec_claim_live *c = &e->details[i].claim;
    const struct ec_kept *kept = e->runtime ? ec_runtime_get(e->runtime, e->run) : NULL;
    char *out = e->details[i].volume_text;
    size_t size = sizeof(e->details[i].volume_text);
    if (m->volume == EC_VOLUME_FIXED && *c->class)
        stw_format(out, size, "%s has %s; StorageClass %.60s does not allow to expand it", m->name,
                   c->requested, c->class);
    else if (m->volume == EC_VOLUME_FIXED)
        stw_format(out, size, "%s has %s; it has no StorageClass that could expand it", m->name,
                   c->requested);
    else if (m->volume == EC_VOLUME_REFUSED)
        stw_format(out, size, "%s has %s; %s", m->name, c->requested,
                   kept ? kept->refused.text : "");
    else if (m->volume == EC_VOLUME_GROWS)
        stw_format(out, size, "%s has %s of %s; %s", m->name, *c->capacity ? c->capacity : "0",
                   wanted, *c->resize ? c->resize : "the storage has not begun to resize it");
    else if (m->volume == EC_VOLUME_SMALL)
        stw_format(out, size, "%s has %s", m->name, c->requested);
}

void ec_judge_volumes(struct ec *e)
{
    char wanted[64];
    stw_quantity agreed, size;
    ec_wanted_size(e, wanted);
    e->view.replace_volumes = stw_quantity_parse(e->replace_volumes, &agreed) == 0 &&
                              stw_quantity_parse(wanted, &size) == 0 && agreed == size;
    for (size_t i = 0; e->view.durable && i < e->view.count; i++) {
        struct ec_member *m = &e->view.members[i];
        if (!e->details[i].has_claim || !m->listed)
            continue;
        m->volume = ec_judge_volume(&e->details[i].claim, wanted);
        if (m->volume == EC_VOLUME_SMALL)
            m->volume = judge_small(e, &e->details[i].claim);
        say_volume(e, i, wanted);
    }
}
