/* SPDX-License-Identifier: Apache-2.0
 *
 * The watches of pods and claims: what a cache keeps of one. */
#ifndef STW_KINDS_ETCDCLUSTER_WATCH_H
#define STW_KINDS_ETCDCLUSTER_WATCH_H

#include "base/util.h"
#include "controller/controller.h"
#include "kinds/common/pod.h"
#include "kinds/etcdcluster/plan/view.h"

struct ec_pod_live {
    char cluster[STW_KEY_LEN]; /* "namespace/name", from its labels */
    char uid[64], resource_version[STW_RV_LEN], owner_uid[64];
    char ip[64], hash[40], inputs[40], version[STW_SEMVER_LEN];
    char node[254];  /* "" until it is scheduled */
    int64_t created; /* seconds since the epoch */
    bool going;      /* is being deleted */
    bool ended;      /* phase Failed or Succeeded */
    bool ran;        /* its container runs, or has */
    bool ready;      /* its condition Ready: false when its node is lost */
    bool guarded, forced, trimmed;
    bool voter;   /* from its label */
    bool refused; /* etcd ends because its data folder is empty, and not for the first time */
    bool full;    /* etcd ended because its volume was full; only for `text` */
    enum ec_trouble trouble;
    char reason[STW_POD_REASON_MAX], text[256]; /* of the trouble */
};
struct ec_claim_live {
    char cluster[STW_KEY_LEN];
    char uid[64], resource_version[STW_RV_LEN], cluster_uid[64];
    bool going, bound;
    char requested[64], capacity[64], class[254]; /* as the API server has them, such as "8Gi" */
    char resize[192];                             /* what a resize waits for, or why it failed */
    bool resize_failed;
};

extern const struct stw_watch ec_watch_pods, ec_watch_claims;
extern const struct stw_resource ec_res_claim;
/* Parse texts from the caches of these watches.  -1: not such a text. */
int ec_pod_read(const char *text, size_t len, struct ec_pod_live *ret);
int ec_claim_read(const char *text, size_t len, struct ec_claim_live *ret);

#endif
