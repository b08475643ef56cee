/* SPDX-License-Identifier: Apache-2.0
 *
 * The first member's volume claim, and its owner until the EtcdCluster adopts it.
 *
 * Until the restore is complete, the EtcdRestore owns the claim, which is deleted with it.  A claim
 * of an EtcdCluster must not be deleted with another object.  So the owner is removed just before
 * the EtcdCluster is created. */
#include "base/process/fault.h"
#include "base/util.h"
#include "kinds/etcdcluster/act/claims.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/reconcile.h"
#include "kinds/etcdrestore/run_priv.h"

static json_t *build_owner_references(const struct er *e)
{
    const struct stw_owner owner = {.kind = stw_kind_etcdrestore.kind,
                                    .ns = e->run->ns,
                                    .name = e->run->name,
                                    .uid = e->object.uid};
    json_t *reference = stw_owner_reference(e->run->controller->resource, &owner);
    (void)json_object_del(reference, "controller"); /* no controller reconciles it */
    (void)json_object_del(reference, "blockOwnerDeletion");
    return json_pack("[o]", reference);
}

int er_claim_ensure(struct er *e, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *claim = ec_claim_manifest(&e->cluster, e->state.seed);
    json_t *metadata = json_object_get(claim, "metadata");
    if (!metadata ||
        json_object_set_new(metadata, "ownerReferences", build_owner_references(e)) != 0)
        return stw_fail_memory(err);
    /* Without EC_CLUSTER_UID the cluster adopts it as the restored seed (etcdcluster/labels.h). */
    (void)json_object_del(metadata, "annotations");
    int rc = stw_kube_create(e->run->client, &ec_res_claim, e->run->ns, claim, &answer, err);
    stw_fault_point("claim");
    rc = stw_error_pass_over(rc, STW_ERR_EXISTS, err); /* it is ours: we chose a random name */
    return rc == 0 ? 0
                   : stw_error_wrap(err, "PersistentVolumeClaim \"%s\" could not be created",
                                    e->state.seed);
}

int er_claim_delete(struct er *e, struct stw_error *err)
{
    int rc =
        stw_kube_delete(e->run->client, &ec_res_claim, e->run->ns, e->state.seed, NULL, NULL, err);
    stw_fault_point("claim");
    return stw_error_pass_over(rc, STW_ERR_NOT_FOUND, err);
}

/* Takes ownership of `whose`; NULL: no owner. */
static int set_owners(struct er *e, json_t *whose, struct stw_buf *answer, struct stw_error *err)
{
    json_auto_t *patch =
        json_pack("{s:{s:o}}", "metadata", "ownerReferences", whose ? whose : json_null());
    if (!patch)
        return stw_fail_memory(err);
    int rc =
        stw_kube_merge_patch(e->run->client, STW_PLACE(&ec_res_claim, e->run->ns, e->state.seed),
                             patch, e->run->field_manager, answer, err);
    stw_fault_point("claim");
    return rc;
}

/* The object exists, with this uid (NULL: any), and is not being deleted. */
static bool is_live_object(const struct stw_buf *text, const char *uid)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (stw_json_scan(&doc, stw_buf_str(text), text->len, NULL) != 0)
        return false;
    struct stw_json metadata = stw_json_get(stw_json_root(&doc), "metadata");
    return !stw_json_there(stw_json_get(metadata, "deletionTimestamp")) &&
           (!uid || stw_json_is(stw_json_get(metadata, "uid"), uid));
}

static int give_away(struct er *e, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    if (set_owners(e, NULL, &answer, err) == 0 && is_live_object(&answer, NULL))
        return 0;
    if (err->code != STW_OK && err->code != STW_ERR_NOT_FOUND)
        return -1;
    return stw_fail(err, STW_ERR_NOT_FOUND,
                    "the volume claim %s, which held the restored data, has been deleted",
                    e->state.seed);
}

/* If the EtcdRestore was deleted while it owned the claim, the garbage collector may be about to
 * delete the claim.  If it exists now, it existed then. */
static int look_at_self(struct er *e, struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    int rc = stw_kube_get(e->run->client, e->run->controller->resource, e->run->ns, e->run->name,
                          &text, err);
    if (rc == 0 && is_live_object(&text, e->object.uid))
        return 0;
    if (rc != 0 && err->code != STW_ERR_NOT_FOUND)
        return -1;
    return stw_fail(err, STW_ERR_CANCELLED, "the EtcdRestore has been deleted");
}

/* Without an owner reference: the EtcdCluster stays when the EtcdRestore is deleted. */
static int create_target_cluster(struct er *e, struct stw_error *err)
{
    static const struct stw_origin origins[] = {{"spec", "spec.template"}, {0}};
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *cluster = stw_tree_pack(
        "{s:s,s:s,s:{s:s,s:s,s:{s:s}},s:o}", "apiVersion", "etcd.database.coreos.com/v1beta2",
        "kind", "EtcdCluster", "metadata", "name", e->spec.cluster, "namespace", e->run->ns,
        "annotations", EC_SEED_MEMBER, e->state.seed, "spec", stw_manifest_tree(e->spec.template));
    if (!cluster)
        return stw_tree_fail("the manifest of EtcdCluster", err);
    int rc = stw_kube_create(e->run->client, stw_controller_etcdcluster.resource, e->run->ns,
                             cluster, &answer, err);
    stw_fault_point("cluster");
    /* The watch wakes the EtcdCluster's controller.  If another client created it first, the watch
     * shows whose it is. */
    rc = stw_error_pass_over(rc, STW_ERR_EXISTS, err);
    if (rc == 0)
        return 0;
    stw_origin_name(origins, cluster, e->object.root, err);
    return stw_error_wrap(err, "EtcdCluster \"%s\" could not be created", e->spec.cluster);
}

/* Whether the server answered, and did not create the object. */
static bool is_refusal(const struct stw_error *err)
{
    return err->http >= 400 && err->http < 500;
}

int er_target_create(struct er *e, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    if (give_away(e, err) != 0)
        return -1;
    if (look_at_self(e, err) == 0 && create_target_cluster(e, err) == 0)
        return 0;
    if (err->code == STW_ERR_CANCELLED || is_refusal(err)) /* no cluster: own the claim again */
        (void)set_owners(e, build_owner_references(e), &answer, NULL);
    if (err->code == STW_ERR_NOT_FOUND) /* of the namespace; not the claim */
        err->code = STW_ERR_UNAVAILABLE;
    return -1;
}
