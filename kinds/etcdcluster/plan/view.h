/* SPDX-License-Identifier: Apache-2.0
 *
 * What the plan of an EtcdCluster decides from (the view), and what it decides (the move). */
#ifndef STW_KINDS_ETCDCLUSTER_VIEW_H
#define STW_KINDS_ETCDCLUSTER_VIEW_H

#include "kinds/etcdcluster/spec.h"

#define EC_NAME_MAX 64
#define EC_MEMBERS_MAX 24    /* members, and pods and volumes that once were of one */
#define EC_QUORUM_GRACE_S 30 /* a quorum may be missing for that long before it is reported */

/* --- observed */

enum ec_pod {
    EC_POD_ABSENT,
    EC_POD_STARTING, /* not scheduled, or its container does not run yet */
    EC_POD_RUNNING,  /* its container runs, or has run and is restarted by the kubelet */
    EC_POD_ENDED,    /* phase Failed or Succeeded: evicted, node gone; it never runs again */
    EC_POD_GOING,    /* being deleted */
};

/* Why a pod does not come up, as far as the kubelet or the scheduler reports. */
enum ec_trouble {
    EC_TROUBLE_NONE,
    EC_TROUBLE_IMAGE, /* not the member's fault: a replacement would have the same problem */
    EC_TROUBLE_UNSCHEDULABLE,
    EC_TROUBLE_VOLUME,
    EC_TROUBLE_CRASH,
};

enum ec_data {
    EC_DATA_NONE,  /* there has never been a volume */
    EC_DATA_THERE, /* a volume claim that is not being deleted, or the emptyDir of an existing pod
                    */
    EC_DATA_LOST,  /* the claim or emptyDir is gone, or the member refuses to start with an empty
                      one */
};

/* The volume of a member, compared with the size that the spec asks for. */
enum ec_volume {
    EC_VOLUME_FINE,    /* as large, or there is none, or nothing is known */
    EC_VOLUME_SMALL,   /* its claim asks for less, and may be expanded */
    EC_VOLUME_FIXED,   /* its claim asks for less, and its StorageClass forbids to expand it */
    EC_VOLUME_REFUSED, /* the API server has refused to expand it a short time ago */
    EC_VOLUME_GROWS,   /* its claim asks for as much, and the volume is not that large yet */
};

/* All that is known under one name: an entry of etcd's list, a pod, a claim.  Any of them may be
 * missing. */
struct ec_member {
    char name[EC_NAME_MAX]; /* from its peer URL if etcd does not know its name yet */
    bool listed;            /* in the linearizable list, or, if there is none, in the last one */
    bool foreign;           /* its peer URL is not one of ours: it was added by hand */
    uint64_t id;            /* 0: not listed */
    bool learner;
    bool promoted; /* it has voted, and must not be a learner again (lesson E6, etcd#19557) */
    bool doubts;   /* listed as a voter for a while, but it believes that it is a learner */
    bool started;  /* etcd has its name: it has been up once */
    bool answers;  /* in this round */
    bool healthy;  /* a voter that served a linearizable read now, or a learner that answers */
    bool leader;
    bool lagging;                   /* its applied index is far behind the leader's */
    uint64_t raft_term, raft_index; /* as it reports, if it answers: how far its log goes */
    uint64_t cluster_id;            /* as it reports; 0: not known */
    unsigned alarms;                /* STW_ETCD_ALARM_... */
    bool space;                     /* its database is below its quota, after a NOSPACE */
    struct stw_semver version;      /* as it reports, or reported last (status); 0.0.0: never did */
    struct stw_semver pod_version;  /* that its pod should run */
    struct stw_semver storage;      /* version that its data is written for, or was last; 0.0.0: not
                                     * reported, as before 3.6 */
    enum ec_pod pod;
    enum ec_trouble trouble;
    bool pod_ready;    /* the kubelet reports it ready: etcd reports a quorum to its probe */
    bool pod_template; /* created from the current template, apart from the version */
    bool pod_guarded;  /* would not start with an empty data folder (see EC_GUARD) */
    bool pod_forced;   /* created with --force-new-cluster */
    bool pod_trimmed;  /* its log begins after its start (see ec_plan_trims) */
    enum ec_data data;
    bool claim;       /* its claim object exists, bound or not */
    bool claim_going; /* and is being deleted */
    enum ec_volume volume;
    /* In the pass under way its database is still to be defragmented.  Of the member whose
     * defragmentation was begun: its database still has the free pages that it had. */
    bool to_defragment;
    int64_t unhealthy_since; /* seconds since the epoch; 0: it is healthy */
    int64_t created;         /* of the pod, or when it was first listed; orders the members */
};

/* --- status: the last intent */

enum ec_kind {
    EC_IDLE,
    EC_SEED,       /* the first member; shown to users as "AddMember" */
    EC_ADD,        /* AddMember */
    EC_PROMOTE,    /* PromoteMember */
    EC_REMOVE,     /* RemoveMember: one too many */
    EC_REPLACE,    /* ReplaceMember: dead, removed first; the addition that follows is an EC_ADD */
    EC_UPGRADE,    /* UpgradeMember: its pod is recreated with another version */
    EC_ROLL,       /* RollMember: its pod is recreated from another template */
    EC_LEADER,     /* MoveLeader */
    EC_FORCE,      /* the survivor of a lost quorum becomes a cluster of one, on a user's request */
    EC_ABANDON,    /* AbandonMember: removes a failed learner with its pod and its volume */
    EC_EXPAND,     /* ExpandVolume */
    EC_DEFRAGMENT, /* DefragmentMember */
    EC_COMPACT, /* CompactHistory: old revisions are removed, so that a defragmentation makes space */
    EC_KINDS
};
extern const char *const ec_kind_names[EC_KINDS]; /* as in status.currentAction.kind */

struct ec_action {
    enum ec_kind kind;
    char member[EC_NAME_MAX];
    uint64_t id;   /* of the member; 0: it has none */
    int64_t start; /* seconds since the epoch */
};

/* --- upkeep: passes in which the members are defragmented one after the other */

enum ec_why { /* why a pass was begun; in status.defragmentation.reason */
              EC_WHY_NOT,
              EC_WHY_SCHEDULE,
              EC_WHY_REQUEST, /* the annotation */
              EC_WHY_SPACE,   /* the alarm NOSPACE, and maintenance.recoverSpace */
              EC_WHYS
};

enum ec_result {
    EC_RESULT_NONE, /* not known, or not ended */
    EC_RESULT_DONE,
    EC_RESULT_FAILED,
    EC_RESULT_STOPPED, /* its window has ended */
    EC_RESULTS
};

struct ec_upkeep {
    enum ec_why due;     /* a pass is to begin */
    enum ec_why open;    /* the pass under way, from the status */
    bool compact;        /* old revisions are to be removed before this pass */
    const char *ends;    /* why the pass must not go on; NULL: it may */
    bool busy;           /* a backup is made: it would hold up a defragmentation */
    bool taken;          /* another cluster with members on the same nodes is defragmented */
    int64_t limit_s;     /* that the call in `action` may take */
    int64_t tries;       /* how often it was made */
    enum ec_result call; /* what etcd has answered to it, if this process made it */
};

enum ec_force_step { /* of EC_FORCE, in status.forceNewCluster.step */
                     EC_FORCE_NOT,
                     EC_FORCE_CLEAR,   /* all pods are deleted; their claims stay */
                     EC_FORCE_START,   /* the survivor runs with --force-new-cluster, once */
                     EC_FORCE_RESTART, /* its pod is recreated without it */
                     EC_FORCE_STEPS
};

struct ec_view {
    /* spec */
    int64_t size;
    struct stw_semver version; /* wanted */
    bool paused;
    bool durable; /* claims, not emptyDirs; latched */
    bool failover;
    int64_t unhealthy_s, max_per_hour, deadline_s, pause_s;
    bool keep_scaled;     /* volumeRetention.whenScaled: Retain */
    const char *force;    /* the force-new-cluster annotation: a member's name; or NULL */
    const char *restored; /* the seed whose volume holds a restored snapshot; or NULL */
    bool replace_volumes; /* the replace-volumes annotation: a user agrees that members whose volume
                           * cannot be expanded are replaced */

    /* status */
    uint64_t cluster_id;       /* latched; 0: not bootstrapped yet */
    struct stw_semver current; /* last version that all members ran; 0.0.0: none yet */
    struct stw_semver oldest;  /* that any member has ever run; 0.0.0: not known */
    struct ec_action action;
    enum ec_force_step force_step;
    char force_member[EC_NAME_MAX];
    int64_t failovers_last_hour;
    int64_t quorum_lost_since; /* 0: not lost; counts only after EC_QUORUM_GRACE_S */
    struct ec_upkeep upkeep;
    int64_t last_rolled; /* when the last recreated pod was healthy again; 0: never */

    /* observed */
    int64_t now;
    bool listed; /* a linearizable member list was read in this round */
    struct stw_semver cluster_version;
    struct stw_semver downgrade_to; /* target of an enabled downgrade; 0.0.0: none */
    unsigned stray_alarms;          /* of a removed member: they apply until they are disarmed */
    uint64_t stray_id;              /* that member */
    bool disarm_rests;              /* NOSPACE was disarmed a short time ago */
    size_t count;
    struct ec_member members[EC_MEMBERS_MAX];
    bool name_used; /* a pod or a claim already has the name of the intended addition, so that it is
                     * not used for another member (see EC_MEMBER_ADD above) */
    char fresh[EC_NAME_MAX]; /* an unused name for a new member; "" when there is no space in
                              * `members` for it */
};

/* --- the move */

enum ec_act {
    EC_WAIT,         /* nothing to do; look again after wait_ms or when something changes */
    EC_FREEZE,       /* nothing may be done; a user has to act (reason, text) */
    EC_INTEND,       /* write the intent only */
    EC_LATCH,        /* write the cluster ID `id`: the seed answers and is alone in its list, or the
                      * status was lost and all members that answer agree */
    EC_CREATE_CLAIM, /* the member's volume claim */
    EC_CREATE_POD,
    EC_DELETE_POD,
    EC_DELETE_CLAIM,
    EC_EXPAND_CLAIM, /* to the size that the spec asks for */
    EC_GUARD,      /* annotate the pod: its member has data.  From now on etcd refuses to start with
                    * an empty folder, also when the kubelet restarts it */
    EC_MEMBER_ADD, /* as a learner */
    EC_MEMBER_PROMOTE,
    EC_MEMBER_REMOVE,
    EC_MOVE_LEADER,       /* from `member` to `to` */
    EC_MEMBER_DEFRAGMENT, /* it serves nothing until it has ended */
    EC_COMPACT_HISTORY,
    EC_DOWNGRADE,  /* enable the downgrade to the minor version of `version`; 0.0.0: cancel it */
    EC_DISARM,     /* NOSPACE of the member `id`, once there is space again */
    EC_FORCE_NEXT, /* write the next step of EC_FORCE */
    EC_BEGIN_PASS, /* write that a pass has begun, for `why` */
    EC_END_PASS,   /* write its `result`, with `text` */
    EC_FINISH,     /* the intent has been achieved: clear it.  Of EC_DEFRAGMENT and EC_COMPACT with
                     * their `result`; NONE: it is tried again later */
};

struct ec_move {
    enum ec_act act;
    struct ec_action intent; /* must be in the status before the act; EC_IDLE: none is needed */
    char member[EC_NAME_MAX], to[EC_NAME_MAX];
    uint64_t id, to_id;
    bool seed;                     /* CREATE_POD: initial-cluster-state=new */
    bool guarded;                  /* CREATE_POD: the member has data; guarded from the start (see
                                    * EC_GUARD).  Neither: existing, with the whole list */
    struct stw_semver version;     /* CREATE_POD: of its image; not always the spec's.  DOWNGRADE */
    bool forced;                   /* CREATE_POD: with --force-new-cluster */
    bool trimmed;                  /* CREATE_POD: its log must begin after its start */
    enum ec_force_step force_step; /* FORCE_NEXT */
    enum ec_why why;               /* BEGIN_PASS */
    enum ec_result result;         /* END_PASS, FINISH */
    const char *pass_waits;        /* what the pass under way waits for; NULL: nothing */
    uint64_t wait_ms;
    const char *reason; /* CamelCase.  FREEZE: reason of Stalled; WAIT: what it waits for */
    char text[768];     /* for users */
};

/* Of the members. */
struct ec_quorum {
    int voters, healthy, needed, margin; /* needed: voters / 2 + 1; margin: healthy - needed */
    int learners;
};

#endif
