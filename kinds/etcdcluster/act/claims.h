/* SPDX-License-Identifier: Apache-2.0
 *
 * Where members keep their data: the medium, the claim of a member, and the size of volumes. */
#ifndef STW_KINDS_ETCDCLUSTER_CLAIMS_H
#define STW_KINDS_ETCDCLUSTER_CLAIMS_H

#include "base/error.h"
#include "base/json.h"
#include "base/resource.h"
#include "kinds/etcdcluster/plan/view.h"

#include <jansson.h>

struct ec;
struct ec_claim_live;

/* Until a StorageClass, or a refused expansion, is looked at again. */
#define EC_VOLUME_RETRY_MS 30000

extern const struct stw_resource ec_res_storage_class;

/* A new tree, or NULL if out of memory. */
json_t *ec_claim_manifest(const struct ec *e, const char *member);
/* Decides e->state.storage, once; later only its size changes, to a larger one. */
int ec_latch_storage(struct ec *e, struct stw_error *err);
/* Compares a claim with the wanted size.  Never FIXED or REFUSED. */
enum ec_volume ec_judge_volume(const struct ec_claim_live *claim, const char *wanted);
/* Sets the volumes of the members, with their texts, and whether their replacement is agreed to. */
void ec_judge_volumes(struct ec *e);
/* A size as it is in a spec, a text or a number; "" if it is not a quantity. */
void ec_size_text(struct stw_json size, char out[64]);
/* The size that the spec asks for, such as "8Gi".  Volumes are expanded only to this one; the size in
 * the status is only for new claims, which are never smaller than those before. */
void ec_wanted_size(const struct ec *e, char out[64]);

#endif
