/* SPDX-License-Identifier: Apache-2.0 */
#include "decide_priv.h"

#include "base/util.h"

#include <assert.h>

const char *const stw_rotation_action_names[] = {
    [STW_ROTATION_NONE] = "none",       [STW_ROTATION_STAGE] = "stage",
    [STW_ROTATION_ISSUE] = "issue",     [STW_ROTATION_WRITE] = "write",
    [STW_ROTATION_PROMOTE] = "promote", [STW_ROTATION_STAMP] = "stamp",
    [STW_ROTATION_RETIRE] = "retire",
};
static_assert(STW_COUNT(stw_rotation_action_names) == STW_ROTATION_ACTIONS,
              "one name for each action");

bool stw_rotation_due(int64_t not_before_us, int64_t not_after_us, int64_t now_us)
{
    return now_us >= not_after_us - (not_after_us - not_before_us) / 3;
}

bool stw_rotation_signs(const struct stw_rotation_ca *ca)
{
    return ca->cert && ca->key;
}

static bool is_fresh_ca(const struct stw_rotation_ca *ca, int64_t now_us)
{
    return stw_rotation_signs(ca) && !stw_rotation_due(ca->not_before_us, ca->not_after_us, now_us);
}

/* A leaf that ends with its CA is not renewed: this CA cannot issue a longer one. */
static bool leaf_wanted(const struct stw_rotation_facts *f, int64_t now_us)
{
    if (!f->leaf.pair || !f->leaf.covers || !f->leaf.by_ca)
        return true;
    return f->leaf.not_after_us < f->ca.not_after_us &&
           stw_rotation_due(f->leaf.not_before_us, f->leaf.not_after_us, now_us);
}

static bool any_hook(const struct stw_rotation_facts *f, enum stw_hook_state state, bool exact)
{
    for (unsigned i = 0; i < STW_ROTATION_HOOKS; i++)
        if (f->hooks[i].state == state && f->hooks[i].exact == exact)
            return true;
    return false;
}

/* Without a current or former CA no replica can be serving a leaf: do not wait. */
static int64_t settle_left_us(const struct stw_rotation_facts *f,
                              const struct stw_rotation_times *t)
{
    if (!f->ca.cert && !f->old)
        return 0;
    return STW_MAX(t->settle_us - f->exact_for_us, 0);
}

/* The successor is ready, every configuration could be read, and those that exist contain the
 * bundle. */
static bool can_promote_next(const struct stw_rotation_facts *f, int64_t now_us)
{
    return is_fresh_ca(&f->next, now_us) && !any_hook(f, STW_HOOK_UNKNOWN, false) &&
           !any_hook(f, STW_HOOK_FOUND, false);
}

static enum stw_rotation_action decide_old(const struct stw_rotation_facts *f, int64_t now_us,
                                           const struct stw_rotation_times *t)
{
    if (!f->old || !stw_rotation_signs(&f->ca))
        return STW_ROTATION_NONE;
    if (f->old_until_us <= 0 || f->old_until_us > now_us + t->overlap_us)
        return STW_ROTATION_STAMP;
    return now_us >= f->old_until_us ? STW_ROTATION_RETIRE : STW_ROTATION_NONE;
}

enum stw_rotation_action stw_rotation_decide(const struct stw_rotation_facts *f, int64_t now_us,
                                             const struct stw_rotation_times *t)
{
    bool lost = !f->ca.cert && !f->rescued;
    if (lost || (!is_fresh_ca(&f->ca, now_us) && !is_fresh_ca(&f->next, now_us)))
        return STW_ROTATION_STAGE;
    if (stw_rotation_signs(&f->ca) && leaf_wanted(f, now_us))
        return STW_ROTATION_ISSUE;
    if (any_hook(f, STW_HOOK_FOUND, false))
        return STW_ROTATION_WRITE;
    if (can_promote_next(f, now_us) && settle_left_us(f, t) == 0)
        return STW_ROTATION_PROMOTE;
    return decide_old(f, now_us, t);
}

int64_t stw_rotation_wait_us(const struct stw_rotation_facts *f, const struct stw_rotation_times *t,
                             int64_t max_us)
{
    int64_t left = stw_rotation_signs(&f->next) ? settle_left_us(f, t) : 0;
    return left > 0 ? STW_MIN(left, max_us) : max_us;
}
