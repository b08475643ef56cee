/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over an EtcdCluster.  Each file of the controller has a header of its own. */
#ifndef STW_KINDS_ETCDCLUSTER_RUN_H
#define STW_KINDS_ETCDCLUSTER_RUN_H

#include "base/hex.h"
#include "controller/manifest.h"
#include "controller/object.h"
#include "controller/reconcile.h"
#include "etcd/etcd.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/plan/view.h"
#include "kinds/etcdcluster/spec.h"
#include "kinds/etcdcluster/status/state.h"
#include "kinds/etcdcluster/tls/tls_state.h"

#define EC_ROUND_MS 10000  /* between two health rounds of a settled cluster */
#define EC_SOON_MS 1000    /* while an action is in progress */
#define EC_UNSURE_MS 10000 /* after a lost answer: etcd abandons a proposal after 7 s */

/* What else is known of the entries of the view; same index. */
struct ec_detail {
    struct ec_pod_live pod;
    struct ec_claim_live claim;
    bool has_pod, has_claim;
    bool asked;
    struct stw_etcd_health health;
    char peer_url[STW_ETCD_URL_MAX];
    char volume_text[300]; /* why its volume is not as large as the spec asks for; "" if it is */
    bool stale; /* still serves an old certificate after STALE_S; its pod must be recreated */
};

enum { EC_HEADLESS, EC_CLIENT, EC_BUDGET, EC_CHILDREN };

struct ec_runtime;

struct ec {
    STW_SUBJECT;             /* object: as of our last write */
    struct stw_object first; /* as before it: the spec points into this one */
    struct ec_runtime *runtime;
    struct ec_spec spec;
    struct stw_semver version;
    struct stw_naming naming;
    char force[EC_NAME_MAX], restored[EC_NAME_MAX]; /* from the annotations; "" for none */
    char replace_volumes[EC_NAME_MAX];              /* a size, from the annotation; "" for none */
    char defragment[EC_NAME_MAX];                   /* from the annotation; "" for none */
    char template_hash[STW_HASH_LEN], input_hash[STW_HASH_LEN];
    struct ec_tls tls;
    struct stw_etcd *etcd; /* owned by `runtime` */
    struct ec_state was, state;
    struct ec_view view;
    struct ec_detail details[EC_MEMBERS_MAX];
    json_t *desired[EC_CHILDREN];
    char quorum_text[40]; /* what the adoption of the client Service waits for */
    struct ec_move move;
    int64_t
        pass_from; /* a pass of upkeep is due, and begins then at the earliest; 0: none is due */
    enum stw_etcd_trouble trouble; /* of the last member that failed in this round */
    struct stw_error list_err;     /* why there is no member list */
    struct stw_error err;          /* why the run failed; STW_OK: it did not */
    struct {
        bool quorum_lost, quorum_restored, upgrade_started, upgrade_finished, member_upgraded;
        bool replacing, expanded, not_expanded;
        bool pass_began, pass_ended, compacted;
        bool ahead; /* the schedule goes on from an earlier instant */
    } news;
    bool mismatch; /* a member is in another cluster */
    bool acted;
};

#endif
