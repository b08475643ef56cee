/* SPDX-License-Identifier: Apache-2.0
 *
 * The first member's volume claim: whose it is, until the EtcdCluster takes it over.
 *
 * As long as the restore is not through, the claim goes with the EtcdRestore.  A claim that an
 * EtcdCluster has must go with nobody else: so it is given away just before that is made. */
#include "base/fault.h"
#include "base/util.h"
#include "controller/etcdrestore_priv.h"

static json_t *owners(const struct er *e)
{
    const struct stw_owner owner = {.kind = stw_kind_etcdrestore.kind,
                                    .ns = e->run->ns,
                                    .name = e->run->name,
                                    .uid = e->object.uid};
    json_t *reference = stw_owner_reference(e->run->controller->resource, &owner);
    (void)json_object_del(reference, "controller"); /* nobody reconciles it */
    (void)json_object_del(reference, "blockOwnerDeletion");
    return json_pack("[o]", reference);
}

int er_claim_ensure(struct er *e, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *claim = ec_claim_manifest(&e->cluster, e->state.seed);
    json_t *metadata = json_object_get(claim, "metadata");
    if (!metadata || json_object_set_new(metadata, "ownerReferences", owners(e)) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    /* Without it the cluster knows it for the restored seed (etcdcluster.h). */
    (void)json_object_del(metadata, "annotations");
    int rc = stw_kube_create(e->run->client, &ec_res_claim, e->run->ns, claim, &answer, err);
    stw_fault_point("claim");
    return stw_error_pass_over(rc, STW_ERR_EXISTS, err); /* the name is of our own dice */
}

int er_claim_delete(struct er *e, struct stw_error *err)
{
    int rc =
        stw_kube_delete(e->run->client, &ec_res_claim, e->run->ns, e->state.seed, NULL, NULL, err);
    stw_fault_point("claim");
    return stw_error_pass_over(rc, STW_ERR_NOT_FOUND, err);
}

/* Takes over `owners`; NULL: nobody's. */
static int set_owners(struct er *e, json_t *whose, struct stw_buf *answer, struct stw_error *err)
{
    json_auto_t *patch =
        json_pack("{s:{s:o}}", "metadata", "ownerReferences", whose ? whose : json_null());
    if (!patch)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    int rc = stw_kube_merge_patch(e->run->client, &ec_res_claim, e->run->ns, e->state.seed, NULL,
                                  patch, e->run->controller->field_manager, answer, err);
    stw_fault_point("claim");
    return rc;
}

/* An object that is there, and not on its way out. */
static bool stays(const struct stw_buf *text, const char *uid)
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
    if (set_owners(e, NULL, &answer, err) == 0 && stays(&answer, NULL))
        return 0;
    if (err->code != STW_OK && err->code != STW_ERR_NOT_FOUND)
        return -1;
    return stw_fail(err, STW_ERR_NOT_FOUND,
                    "the volume claim %s, which held the restored data, has been deleted",
                    e->state.seed);
}

/* Had the EtcdRestore been deleted while the claim was still its own, the garbage collector might
 * be about to delete that; if it is there now, it was there then. */
static int look_at_self(struct er *e, struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    int rc = stw_kube_get(e->run->client, e->run->controller->resource, e->run->ns, e->run->name,
                          &text, err);
    if (rc == 0 && stays(&text, e->object.uid))
        return 0;
    if (rc != 0 && err->code != STW_ERR_NOT_FOUND)
        return -1;
    return stw_fail(err, STW_ERR_CANCELLED, "the EtcdRestore has been deleted");
}

/* Not ours in the sense of owners: it stays when the EtcdRestore goes. */
static int create(struct er *e, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    json_auto_t *cluster =
        json_pack("{s:s,s:s,s:{s:s,s:s,s:{s:s}},s:o}", "apiVersion",
                  "etcd.database.coreos.com/v1beta2", "kind", "EtcdCluster", "metadata", "name",
                  e->spec.cluster, "namespace", e->run->ns, "annotations", STW_ETCD_SEED_MEMBER,
                  e->state.seed, "spec", stw_manifest_tree(e->spec.template));
    if (!cluster)
        return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
    int rc = stw_kube_create(e->run->client, stw_controller_etcdcluster.resource, e->run->ns,
                             cluster, &answer, err);
    stw_fault_point("cluster");
    /* The watch tells of it, and wakes the controller that makes it; and whose it is, if another
     * was faster. */
    return stw_error_pass_over(rc, STW_ERR_EXISTS, err);
}

/* Whether the server answered, and made none. */
static bool is_refusal(const struct stw_error *err)
{
    return err->http >= 400 && err->http < 500;
}

int er_target_create(struct er *e, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    if (give_away(e, err) != 0)
        return -1;
    if (look_at_self(e, err) == 0 && create(e, err) == 0)
        return 0;
    if (err->code == STW_ERR_CANCELLED || is_refusal(err)) /* there is no cluster: it is ours */
        (void)set_owners(e, owners(e), &answer, NULL);
    if (err->code == STW_ERR_NOT_FOUND) /* of the namespace; not the claim */
        err->code = STW_ERR_UNAVAILABLE;
    return -1;
}
