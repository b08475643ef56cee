/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/grants.h"

#include "base/util.h"

void stw_grants_plan_done(struct stw_grants_plan *p)
{
    stw_rights_done(&p->give);
    stw_rights_done(&p->take);
    stw_rights_done(&p->before);
    stw_rights_done(&p->after);
}

/* Revoking a right also revokes its grant option, so the option's own entry is removed. */
static void take_options_once(struct stw_rights *take)
{
    size_t kept = 0;
    for (size_t i = 0; i < take->count; i++) {
        struct stw_right plain = take->items[i];
        plain.option = false;
        if (take->items[i].option && kept > 0 && stw_right_cmp(&take->items[kept - 1], &plain) == 0)
            free(take->items[i].block);
        else
            take->items[kept++] = take->items[i];
    }
    take->count = kept;
}

static void plan_take(const struct stw_rights *want, const struct stw_rights *have,
                      const struct stw_rights *recorded, enum stw_grants_policy policy,
                      struct stw_rights *take)
{
    stw_autorights struct stw_rights stale = {0};
    if (policy == STW_GRANTS_EXACT) {
        stw_rights_minus(have, want, take);
    } else if (policy == STW_GRANTS_MANAGED) {
        stw_rights_minus(recorded, want, &stale);
        stw_rights_both(&stale, have, take);
        stw_rights_inherit(take, &stale);
    }
    take_options_once(take);
}

static void plan_after(const struct stw_rights *want, const struct stw_rights *have,
                       const struct stw_rights *recorded, enum stw_grants_policy policy,
                       struct stw_grants_plan *p)
{
    stw_autorights struct stw_rights kept = {0};
    stw_rights_both(recorded, policy == STW_GRANTS_ADDITIVE ? have : want, &kept);
    stw_rights_union(&kept, &p->give, &p->after);
    stw_rights_inherit(&p->after, &kept);
}

int stw_grants_plan_make(const struct stw_rights *want, const struct stw_rights *have,
                         const struct stw_rights *recorded, enum stw_grants_policy policy,
                         struct stw_grants_plan *ret)
{
    stw_rights_minus(want, have, &ret->give);
    plan_take(want, have, recorded, policy, &ret->take);
    stw_rights_union(recorded, &ret->give, &ret->before);
    plan_after(want, have, recorded, policy, ret);
    if (ret->give.failed || ret->take.failed || ret->before.failed || ret->after.failed)
        return -1;
    ret->write_before = !stw_rights_equal(&ret->before, recorded);
    ret->write_after = !stw_rights_equal(&ret->after, &ret->before);
    return 0;
}
