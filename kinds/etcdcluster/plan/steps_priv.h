/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of the plan, in the files named after their concerns; plan.c has their order. */
#ifndef STW_KINDS_ETCDCLUSTER_PLAN_STEPS_PRIV_H
#define STW_KINDS_ETCDCLUSTER_PLAN_STEPS_PRIV_H

#include "kinds/etcdcluster/plan/move_priv.h"

bool ec_plan_bootstrap(struct ec_plan *p);
bool ec_plan_force(struct ec_plan *p);
bool ec_plan_learner(struct ec_plan *p);
bool ec_plan_replace(struct ec_plan *p);
bool ec_plan_shrink(struct ec_plan *p);
bool ec_plan_grow(struct ec_plan *p);
bool ec_plan_remake(struct ec_plan *p);
bool ec_plan_downgrade(struct ec_plan *p);
bool ec_plan_roll(struct ec_plan *p);
bool ec_plan_expand(struct ec_plan *p);
bool ec_plan_await_upkeep(struct ec_plan *p);
bool ec_plan_resume_upkeep(struct ec_plan *p);
bool ec_plan_upkeep(struct ec_plan *p);

#endif
