/* SPDX-License-Identifier: Apache-2.0
 *
 * What an EtcdCluster needs next: a pure function (spec, status, observed) -> one move.  No I/O, no
 * clock, no memory of its own; the tests walk through all states that small clusters can get into.
 *
 * The rules that it keeps are the invariants I1 to I14 (docs/etcdcluster.md): above all, nothing is
 * stopped or removed by our own hand unless the healthy voters that remain are a quorum, and
 * nothing is concluded from silence.
 *
 * A move that changes something is made in two steps, each of which may be the last before a crash:
 * its intent is written to status.currentAction, then it is carried out.  Carrying it out twice
 * does no harm. */
#ifndef STW_CONTROLLER_ETCDCLUSTER_PLAN_H
#define STW_CONTROLLER_ETCDCLUSTER_PLAN_H

#include "kinds/etcdcluster.h"

#define EC_NAME_MAX 64
#define EC_MEMBERS_MAX 24    /* members, and pods and volumes that once were of one */
#define EC_QUORUM_GRACE_S 30 /* so long may a quorum be missing before anybody is told */

/* What whoever fills the view and carries moves out has to keep, for the rules to hold:
 *
 * - The status is what the API server has, not what a cache had: read since our last write, or that
 *   write's own answer.  Intents are written with a resourceVersion, so that a second writer fails.
 * - `listed` is set only by a list that the latched cluster (its ID is in the answer) gave after a
 *   linearizable read, asked for in this pass.
 * - Pods and claims may come from a cache that lags, with exceptions that need a read of the API
 *   server in this pass: EC_DATA_LOST because something is not there; that no pod is left when
 *   EC_FORCE goes on from EC_FORCE_CLEAR; that there is no pod of the name before EC_DELETE_CLAIM:
 *   if there is, look again.  And that there is neither pod nor claim of the name, whoever's,
 * before EC_MEMBER_ADD: if there is, the plan is asked again with `name_used` and another `fresh`.
 * - EC_CREATE_POD and EC_CREATE_CLAIM of a name that exists do nothing.  EC_DELETE_POD and
 *   EC_DELETE_CLAIM carry uid and resourceVersion of what the view showed as preconditions; a
 *   conflict means: look again.  No pod is deleted by force (grace period 0).
 * - Only pods and claims that bear this object's UID are in the view: volumes that an earlier
 *   cluster of the same name left are nobody's.
 * - After a call to etcd whose answer was lost, neither is anything asked of etcd nor another
 * intent written for 10 s (its own limit for a proposal is 7 s), or until the list shows that it
 * was carried out: so a late one cannot meet another decision.  What a steward before us asked for
 * is not known; where the status has an intent that etcd is asked for (ec_unsettled), an answer
 * counts as lost when it is seen first.
 * - Failovers are counted when the intent EC_REPLACE is first written.
 * - EC_FORCE_NEXT to EC_FORCE_NOT takes the annotation away before it writes the status, so that an
 *   old word is not obeyed again. */

/* --- observed */

enum ec_pod {
    EC_POD_ABSENT,
    EC_POD_STARTING, /* not scheduled, or its container does not run yet */
    EC_POD_RUNNING,  /* its container runs, or has run and is restarted by the kubelet */
    EC_POD_ENDED,    /* phase Failed or Succeeded: evicted, its node gone; it never runs again */
    EC_POD_GOING,    /* being deleted */
};

/* Why a pod does not come up, as far as the kubelet or the scheduler says. */
enum ec_trouble {
    EC_TROUBLE_NONE,
    EC_TROUBLE_IMAGE, /* not the member's fault: a replacement would fare no better */
    EC_TROUBLE_UNSCHEDULABLE,
    EC_TROUBLE_VOLUME,
    EC_TROUBLE_CRASH,
};

enum ec_data {
    EC_DATA_NONE,  /* there has never been a volume */
    EC_DATA_THERE, /* a volume claim that is not being deleted; or the emptyDir of a pod that is
                      there */
    EC_DATA_LOST,  /* the claim or emptyDir is gone, or the member refuses to start on an empty one
                    */
};

/* Everything known under one name: an entry of etcd's list, a pod, a claim; any of them may be
 * missing. */
struct ec_member {
    char name[EC_NAME_MAX]; /* by its peer URL when etcd does not know its name yet */
    bool listed;            /* in the linearizable list, or, when there is none, in the last one */
    bool foreign;           /* its peer URL is none of ours: somebody added it by hand */
    uint64_t id;            /* 0: not listed */
    bool learner;
    bool promoted; /* it has voted: etcd makes no learner of it again (lesson E6, etcd#19557) */
    bool doubts;   /* listed as a voter that has voted for a while, it takes itself for a learner */
    bool started;  /* etcd has its name: it has been up once */
    bool answers;  /* asked just now */
    bool healthy;  /* a voter that served a linearizable read just now, or a learner that answers */
    bool leader;
    bool lagging;                   /* its applied index is far behind the leader's */
    uint64_t raft_term, raft_index; /* as it tells, if it answers: how far it has got */
    uint64_t cluster_id;            /* that it believes to be in; 0: not known */
    unsigned alarms;                /* STW_ETCD_ALARM_... */
    bool space;                     /* its database is below its quota, after a NOSPACE */
    struct stw_semver version;      /* that answers, or answered last (status); 0.0.0: never did */
    struct stw_semver pod_version;  /* that its pod is to run */
    struct stw_semver storage; /* that its data is written for, or was at last; 0.0.0: etcd does
                                * not tell, as before 3.6 */
    enum ec_pod pod;
    enum ec_trouble trouble;
    bool pod_ready;    /* the kubelet says so: etcd has told it that there is a quorum */
    bool pod_template; /* made from today's template, the version left out of account */
    bool pod_guarded;  /* would not start on an empty data folder (see EC_GUARD) */
    bool pod_forced;   /* made with --force-new-cluster */
    bool pod_trimmed;  /* its log begins after it was started (see plan_trims) */
    enum ec_data data;
    bool claim;              /* its claim object is there, whether bound or not */
    bool claim_going;        /* and is being deleted */
    int64_t unhealthy_since; /* seconds since the epoch; 0: it is healthy */
    int64_t created;         /* of the pod, or when it was listed first; orders the members */
};

/* --- status: what was intended last */

enum ec_kind {
    EC_IDLE,
    EC_SEED,    /* the first member; "AddMember" to people */
    EC_ADD,     /* AddMember */
    EC_PROMOTE, /* PromoteMember */
    EC_REMOVE,  /* RemoveMember: one too many */
    EC_REPLACE, /* ReplaceMember: dead, removed first; the addition that follows is an EC_ADD */
    EC_UPGRADE, /* UpgradeMember: its pod is made anew with another version */
    EC_ROLL,    /* RollMember: its pod is made anew from another template */
    EC_LEADER,  /* MoveLeader */
    EC_FORCE,   /* the survivor of a lost quorum becomes a cluster of one, by a person's word */
    EC_ABANDON, /* AbandonMember: a learner that came to nothing, its pod and its volume */
    EC_KINDS
};
extern const char *const ec_kind_names[EC_KINDS]; /* as in status.currentAction.kind */

struct ec_action {
    enum ec_kind kind;
    char member[EC_NAME_MAX];
    uint64_t id;   /* of the member, where it has one */
    int64_t start; /* seconds since the epoch */
};

enum ec_force_step { /* of EC_FORCE, in status.forceNewCluster.step */
                     EC_FORCE_NOT,
                     EC_FORCE_CLEAR,   /* all pods go; their claims stay */
                     EC_FORCE_START,   /* the survivor runs with --force-new-cluster, once */
                     EC_FORCE_RESTART, /* its pod goes and comes again without it */
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
    const char *force;    /* the annotation: a member's name; or NULL */
    const char *restored; /* the seed whose volume holds a restored snapshot; or NULL */

    /* status */
    uint64_t cluster_id;       /* latched; 0: not bootstrapped yet */
    struct stw_semver current; /* version that all members ran last; 0.0.0: none yet */
    struct stw_semver oldest;  /* that any of them has ever run; 0.0.0: not known */
    struct ec_action action;
    enum ec_force_step force_step;
    char force_member[EC_NAME_MAX];
    int64_t failovers_last_hour;
    int64_t quorum_lost_since; /* 0: it is not; that long and no shorter than 30 s counts */
    int64_t last_rolled;       /* when the last pod was made anew and well again; 0: never */

    /* observed */
    int64_t now;
    bool listed; /* a linearizable list of members was had just now */
    struct stw_semver cluster_version;
    struct stw_semver downgrade_to; /* etcd has been told to prepare a downgrade; 0.0.0: no */
    unsigned stray_alarms; /* of a member that was removed: they hold until they are disarmed */
    uint64_t stray_id;     /* that member */
    size_t count;
    struct ec_member members[EC_MEMBERS_MAX];
    bool
        name_used; /* a pod or a claim bears the name of the addition that is intended: it was given
                    * away once, and is not used for another member (see EC_MEMBER_ADD above) */
    char fresh[EC_NAME_MAX]; /* a name that nobody has had, for a new member; "" when there is no
                              * room in `members` for it */
};

/* --- the move */

enum ec_act {
    EC_WAIT,         /* nothing to do; look again after wait_ms or when something changes */
    EC_FREEZE,       /* nothing may be done; a person is needed (reason, text) */
    EC_INTEND,       /* write the intent only */
    EC_LATCH,        /* write the cluster ID, which is `id`: the seed answers and is alone in its
                      * list, or the status was lost and all that answer agree */
    EC_CREATE_CLAIM, /* the member's volume claim */
    EC_CREATE_POD,
    EC_DELETE_POD,
    EC_DELETE_CLAIM,
    EC_GUARD,      /* tell the pod that its member has data: from now on etcd refuses to start on
                    * an empty folder, also when the kubelet restarts it */
    EC_MEMBER_ADD, /* as a learner */
    EC_MEMBER_PROMOTE,
    EC_MEMBER_REMOVE,
    EC_MOVE_LEADER, /* from `member` to `to` */
    EC_DOWNGRADE,   /* tell etcd to prepare for the line of `version`; 0.0.0: to stop that */
    EC_DISARM,      /* NOSPACE of the member `id`, once there is space again */
    EC_FORCE_NEXT,  /* write the next step of EC_FORCE */
    EC_FINISH,      /* the intent has come true: clear it */
};

struct ec_move {
    enum ec_act act;
    struct ec_action intent; /* to be in status before the act; EC_IDLE: none is needed */
    char member[EC_NAME_MAX], to[EC_NAME_MAX];
    uint64_t id, to_id;
    bool seed;                     /* CREATE_POD: initial-cluster-state=new */
    bool guarded;                  /* CREATE_POD: the member has data; guarded from the start (see
                                    * EC_GUARD).  Neither: existing, with the whole list */
    struct stw_semver version;     /* CREATE_POD: of its image; not always the spec's.  DOWNGRADE */
    bool forced;                   /* CREATE_POD: with --force-new-cluster */
    bool trimmed;                  /* CREATE_POD: its log is to begin after its start */
    enum ec_force_step force_step; /* FORCE_NEXT */
    uint64_t wait_ms;
    const char *reason; /* CamelCase: of FREEZE that of Stalled, of WAIT what is waited for */
    char text[768];     /* for people */
};

void ec_plan(const struct ec_view *v, struct ec_move *ret);

/* Whether the status holds the move's intent already (or it needs none). */
bool ec_intended(const struct ec_view *v, const struct ec_move *move);

/* The status holds an intent that etcd is asked for, and the list of now, if there is one, does not
 * show that it did it: a call of it may still be on its way. */
bool ec_unsettled(const struct ec_view *v);
/* A move that must not meet a call which is on its way: one that asks etcd for something, or writes
 * another intent. */
bool ec_decides(const struct ec_move *move);

/* --- numbers, also for status and the disruption budget */
struct ec_quorum {
    int voters, healthy, needed, margin; /* needed: voters / 2 + 1; margin: healthy - needed */
    int learners;
};
struct ec_quorum ec_quorum_of(const struct ec_view *v);
const struct ec_member *ec_find(const struct ec_view *v, const char *name); /* or NULL */

#endif
