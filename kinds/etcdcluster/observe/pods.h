/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cache says of the pods of a cluster. */
#ifndef STW_KINDS_ETCDCLUSTER_PODS_H
#define STW_KINDS_ETCDCLUSTER_PODS_H

#include "kube/informer.h"

struct ec;
struct ec_pod_live;

/* Every member in the status has a ready pod of the wanted template, according to the caches. */
bool ec_has_template_everywhere(struct ec *e);
/* A pod of the cluster runs or may run, according to the cache. */
bool ec_has_running_pod(struct ec *e);
/* What the Services would select, according to the cache. */
struct ec_endpoints {
    unsigned members, ready_voters; /* pods with an address; those for clients */
};
struct ec_endpoints ec_count_endpoints(struct ec *e);
/* The pod was made by another version of steward from the same inputs.  It is not recreated for that
 * without consent. */
bool ec_is_outdated(const struct ec *e, const struct ec_pod_live *pod);
/* The pod was made from the wanted template, or is outdated in this sense. */
bool ec_has_template(const struct ec *e, const struct ec_pod_live *pod);
/* The keys of the cluster's objects in the cache of a watch. */
void ec_cached_keys(const struct ec *e, struct stw_informer *cache, struct stw_buf *ret);

#endif
