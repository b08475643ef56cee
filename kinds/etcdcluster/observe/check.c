/* SPDX-License-Identifier: Apache-2.0
 *
 * What a move has to wait for, and the facts that must come from the API server instead of a cache.
 */
#include "kinds/etcdcluster/observe/check.h"
#include "kinds/etcdcluster/plan/facts.h"
#include "kinds/etcdcluster/plan/plan.h"

#include "base/fence.h"
#include "base/util.h"
#include "kinds/etcdcluster/act/maintenance_turn.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/plan/entries.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/runtime.h"

#define NAMES_TRIED 3

/* --- reads of the API server */

/* 1: an object of that name exists, with any owner; 0: none exists; -1: e->err. */
static int check_object_exists(struct ec *e, const struct stw_resource *r, const char *name)
{
    struct stw_error err = {0};
    if (stw_kube_get(e->run->client, r, e->owner.ns, name, NULL, &err) == 0)
        return 1;
    if (err.code == STW_ERR_NOT_FOUND)
        return 0;
    e->err = err;
    return stw_error_wrap(&e->err, "cannot see whether %s \"%s\" exists", r->kind, name);
}

int ec_check_cleared(struct ec *e)
{
    for (size_t i = 0; i < e->view.count; i++) {
        const char *name = e->view.members[i].name;
        int there = check_object_exists(e, &stw_res_pod, name);
        if (there < 0)
            return -1;
        if (there)
            return stw_fail(&e->err, STW_ERR_CONFLICT, "pod \"%s\" is still there", name);
    }
    return 0;
}

static int name_is_used(struct ec *e, const char *name)
{
    int pod = check_object_exists(e, &stw_res_pod, name);
    return pod != 0 ? pod : check_object_exists(e, &ec_res_claim, name);
}

/* --- the move */

/* Plans the move, with an unused name for a new member.  A pod or claim of that name, not cached
 * yet or of another owner, must not become the new member's: it might have data, or be in deletion.
 */
static int plan_with_unused_name(struct ec *e)
{
    for (int i = 0; i < NAMES_TRIED; i++) {
        ec_plan(&e->view, &e->move);
        if (e->move.act == EC_MEMBER_DEFRAGMENT && !ec_take_turn(e)) {
            e->view.upkeep.taken = true;
            ec_plan(&e->view, &e->move);
        }
        int used = e->move.act == EC_MEMBER_ADD ? name_is_used(e, e->move.member) : 0;
        if (used <= 0)
            return used;
        e->view.name_used = true;
        ec_fresh_name(e, e->view.fresh);
    }
    return stw_fail(&e->err, STW_ERR_CONFLICT, "found no unused name for a new member");
}

/* Whether an earlier call, by us or by a previous leader, may still take effect.  Before a term of
 * ours that is not the first, another replica may have led. */
static bool is_unsure(const struct ec *e, struct ec_kept *kept, uint64_t now)
{
    bool unsettled = ec_unsettled(&e->view);
    uint64_t term = stw_fence_current().term;
    if (!kept->seen || kept->term != term)
        kept->unsure_until_ms = now + EC_UNSURE_MS;
    kept->seen = true;
    kept->term = term;
    if (!unsettled)
        kept->unsure_until_ms = 0;
    return now < kept->unsure_until_ms;
}

int ec_decide(struct ec *e)
{
    struct ec_kept *kept = ec_runtime_get(e->runtime, e->run);
    uint64_t now = stw_now_ms(e->run->clock);
    if (!kept)
        return stw_fail_memory(&e->err);
    bool unsure = is_unsure(e, kept, now);
    if (!unsure)
        return plan_with_unused_name(e);
    ec_plan(&e->view, &e->move);
    if (!ec_decides(&e->move))
        return 0;
    /* No reason and text: the status already reports the current action, and is not written. */
    e->move = (struct ec_move){.act = EC_WAIT, .wait_ms = kept->unsure_until_ms - now};
    return 0;
}
