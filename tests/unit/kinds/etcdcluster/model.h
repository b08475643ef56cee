/* SPDX-License-Identifier: Apache-2.0
 *
 * A model of the cluster in which the plan of an EtcdCluster acts: members, their data, processes,
 * pods and claims, the status, and the behaviour of a kubelet, of etcd and of people.  It is small
 * enough to walk through all that can happen within a few faults.
 *
 * Left out: raft messages (a member that is connected to a quorum catches up, sooner or later), the
 * configuration that a cut-off member believes in (raft's own proof covers it), and clocks (either
 * little time has passed, or enough).
 *
 * Acknowledged writes: there is always a write in progress.  Whenever a quorum of voters that have
 * caught up is connected, they acknowledge a write, and the data of all other members is stale from
 * then on (`fresh` is cleared).  A quorum without a fresh member has lost writes. */
#ifndef STW_TESTS_KINDS_ETCDCLUSTER_MODEL_H
#define STW_TESTS_KINDS_ETCDCLUSTER_MODEL_H

#include "kinds/etcdcluster/plan/facts.h"
#include "kinds/etcdcluster/plan/plan.h"

#define MODEL_SLOTS 10

enum model_pod { WP_ABSENT, WP_STARTING, WP_RUNNING, WP_GOING, WP_ENDED };
enum model_late { LATE_NOT, LATE_ADD, LATE_PROMOTE, LATE_REMOVE, LATE_DEFRAGMENT };
/* A member that is being defragmented serves nothing.  steward may give up waiting for it. */
enum model_defrag { WD_NOT, WD_BUSY, WD_GIVEN_UP };
enum model_cut { CUT_NOT, CUT_OFF, CUT_FROM_STEWARD };
enum model_volume { WV_SMALL, WV_GROWS, WV_LARGE };
enum model_storage {
    STORAGE_SMALL,    /* all volumes are to be small */
    STORAGE_EXPANDS,  /* large, and claims can be expanded */
    STORAGE_REPLACES, /* large, claims cannot be expanded, and members may be replaced */
};
enum model_template { TEMPLATE_A, TEMPLATE_B, TEMPLATE_CRASHES, TEMPLATE_NO_IMAGE };

/* Everything with one name.  The order of slots has no meaning: states that differ only in it are
 * equal.  Therefore every reference to a member is a bit of that member. */
struct slot {
    uint64_t volume : 2; /* of the claim */
    uint64_t listed : 1, learner : 1, started : 1;
    uint64_t pod : 3, up : 1; /* up: etcd runs */
    uint64_t seed : 1, forced : 1, guarded : 1, template : 2, version : 2;
    uint64_t ran : 2;             /* version that it ran last, plus 1 */
    uint64_t claim : 1, data : 1; /* data: a data folder that etcd has written */
    uint64_t fresh : 1;
    uint64_t cut : 2;
    uint64_t long_down : 1; /* unhealthy for longer than failover waits; a learner: overdue */
    uint64_t leader : 1;
    uint64_t action : 1, force : 1, named : 1; /* status.currentAction, .force, the annotation */
    uint64_t voted : 1;                        /* it was a voter once */
    uint64_t lagging_view : 1;                 /* its pod is seen as `seen` has it */
    uint64_t strange : 1;                      /* a foreign pod or claim has its name */
    uint64_t late : 1;                   /* the subject of the call that etcd may still carry out */
    uint64_t trimmed : 1, old_log : 1;   /* old_log: requests of 3.4 are in its log */
    uint64_t defrag : 2, free_pages : 1; /* free_pages: a defragmentation would remove them */
};

struct model {
    struct slot slots[MODEL_SLOTS];
    struct slot seen;
    uint32_t latched : 1, formed : 1, durable : 1, failover : 1;
    uint32_t action : 4, overdue : 1, force_step : 2, quorum_lost : 1;
    uint32_t size : 3, version : 2, template : 2;
    uint32_t faults : 3, users : 2; /* that may still happen */
    uint32_t keep_scaled : 1, storage : 2;
    uint32_t late : 3, late_hurt : 1; /* hurt: something went wrong since that call was made */
    uint32_t asked : 1, pass : 1;     /* a person asks for a defragmentation; a pass is under way */
    uint32_t padding : 30;
};
_Static_assert(sizeof(struct slot) == 8, "a slot is one word");
_Static_assert(sizeof(struct model) == 96, "no padding");

enum event_kind {
    /* what happens by itself, sooner or later */
    EV_STEWARD,
    EV_STEWARD_CRASH, /* between the intent and the act */
    EV_START,         /* the kubelet starts the container */
    EV_GONE,          /* the deletion of a pod ends */
    EV_CATCH_UP,
    EV_RESIZED, /* a volume has the size that its claim asks for */
    EV_DEFRAGMENTED,
    EV_HEAL,
    EV_SEE,       /* the cache catches up */
    EV_LATE,      /* etcd carries out a call whose response was lost */
    EV_TOO_LATE,  /* or it never will */
    EV_TIME,      /* enough for a failover */
    EV_LONG_TIME, /* enough for a deadline */
    /* faults */
    EV_CRASH,
    EV_POD_DELETED,
    EV_EVICTED,
    EV_WIPED, /* the data folder is emptied */
    EV_CLAIM_LOST,
    EV_CUT,
    EV_CUT_FROM_STEWARD,
    EV_LAG, /* the cache falls behind */
    EV_ELECTION,
    EV_REMOVED_BY_HAND,
    EV_DEMOTED, /* a voter comes back as a learner */
    EV_LOST,    /* steward makes a move, and etcd's response is lost */
    EV_STRANGE, /* the name of an addition is already in use */
    /* people */
    EV_SIZE,
    EV_TEMPLATE,
    EV_VERSION,
    EV_STORAGE,
    EV_DEFRAGMENT,
    EV_FORCE,
    EV_KINDS
};
struct event {
    uint8_t kind, arg; /* a slot, a size, a template, a version, an enum model_storage */
};

/* A cluster of `size` members that does not exist yet, or that is settled. */
void model_new(struct model *w, unsigned size, bool durable, bool settled);
/* Sets `*e` to the next possible event after it, or to the first one if `first`.  False: there is
 * none. */
bool model_next(const struct model *w, struct event *e, bool first);
/* Applies an event.  Returns NULL, or the rule that was broken, a constant text. */
const char *model_apply(struct model *w, struct event e);
void model_canonical(struct model *w);
void model_event_text(const struct model *w, struct event e, char *out, size_t size);
void model_text(const struct model *w, char *out, size_t size);

void model_view(const struct model *w, struct ec_view *ret);
/* The move that the plan chooses in this state. */
void model_plan(const struct model *w, struct ec_move *ret);
/* Applies all events that happen by themselves, without steward and without time.  False: there are
 * none. */
bool model_flow(struct model *w, const char **broken);
void model_heal(struct model *w);
/* A quorum of the listed members still has its data, or the cluster is not latched yet. */
bool model_can_recover(const struct model *w);
/* The cluster matches the spec, and nothing is left over. */
bool model_at_goal(const struct model *w);
bool model_serves(const struct model *w);
/* No name is free, because too many volumes are left over: a limit of this model. */
bool model_cramped(const struct model *w);
/* The plan waits for a corrected spec. */
bool model_frozen_by_spec(const struct model *w);
bool model_demoted(const struct model *w); /* a member that has voted is a learner */

#endif
