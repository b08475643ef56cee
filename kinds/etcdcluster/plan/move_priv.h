/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the parts of the plan: what is decided so far, and how the move is made. */
#ifndef STW_KINDS_ETCDCLUSTER_PLAN_MOVE_PRIV_H
#define STW_KINDS_ETCDCLUSTER_PLAN_MOVE_PRIV_H

#include "base/error.h"
#include "kinds/etcdcluster/plan/view.h"

/* One run of ec_plan. */
struct ec_plan {
    const struct ec_view *v;
    struct ec_quorum q;
    struct ec_move *move;
    bool refused;           /* pods must not be created with the wanted version ... */
    struct stw_error why;   /* ... because */
    bool noted;             /* `move` has the reason why something has to wait */
    const char *pass_waits; /* see struct ec_move */
};

/* A step handles one concern.  True: the move is made; false: the next step runs. */
typedef bool (*ec_plan_step)(struct ec_plan *p);

/* --- making the move; all return true */
bool ec_plan_act(struct ec_plan *p, enum ec_act act, const struct ec_member *m);
bool ec_plan_intend(struct ec_plan *p, enum ec_act act, enum ec_kind kind,
                    const struct ec_member *m);
bool ec_plan_create_pod(struct ec_plan *p, const struct ec_member *m, struct stw_semver version);
bool ec_plan_wait(struct ec_plan *p, uint64_t wait_ms, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool ec_plan_freeze(struct ec_plan *p, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Something has to wait, but later steps do not.  The first note is reported if there is nothing
 * else to do.  Returns false. */
bool ec_plan_note(struct ec_plan *p, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define EC_PLAN_SOON_MS 2000     /* an action is in progress */
#define EC_PLAN_SETTLED_MS 10000 /* a health round */

#endif
