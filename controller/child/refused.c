/* SPDX-License-Identifier: Apache-2.0
 *
 * Deployments whose pods the API server refuses: for a quota, a policy, or because their
 * PriorityClass or ServiceAccount does not exist.  The ReplicaSet controller tries again after waits
 * that double to 17 minutes, and watches none of these.  A change of the ReplicaSet makes it try at
 * once, and the Deployment controller copies the annotations of a Deployment to its ReplicaSet.  So an
 * annotation with the time is enough: the pod template stays the same, and no pod restarts.
 *
 * Users can cause refusals that last for ever.  Each retry makes Kubernetes write twice and try to
 * create a pod, so the retries of one namespace are limited. */
#include "base/hex.h"
#include "base/log.h"
#include "base/util.h"
#include "controller/child/child_priv.h"
#include "controller/queue/guard.h"
#include "controller/verdict.h"

/* Another field manager than that of the children: the digest of what we own does not change. */
#define MANAGER_SUFFIX "-retry"

/* Of what the user asks for; never zero. */
static struct stw_hash hash_asked(const struct stw_owner *owner)
{
    return (struct stw_hash){.lo = owner->asked, .hi = 1};
}

static bool is_due(const struct stw_run *run, const struct stw_owner *owner,
                   const struct stw_rollout *r, uint64_t *ret_wait_ms)
{
    int64_t age_ms = (stw_wall_us(run->clock) - r->refused_us) / 1000;
    bool asked_again =
        stw_hash_is_set(r->retried_for) && !stw_hash_equal(r->retried_for, hash_asked(owner));
    bool from_future = age_ms < 0; /* a clock was set */
    bool due = asked_again || from_future || age_ms >= STW_REFUSED_AGAIN_MS;
    *ret_wait_ms = due ? STW_REFUSED_AGAIN_MS : STW_REFUSED_AGAIN_MS - (uint64_t)age_ms;
    return due;
}

/* STW_GUARD_WRITES a minute; then none for a minute. */
static bool namespace_may(const struct stw_run *run)
{
    char what[STW_KEY_LEN + 64];
    stw_format(what, sizeof(what), "retries of pods/%s", run->ns);
    return stw_guard_write(stw_run_guard(run), what, 0, stw_now_ms(run->clock),
                           STW_GUARD_WINDOW_MS) == STW_GUARD_GO;
}

static int write_retry(struct stw_run *run, const struct stw_owner *owner,
                       const struct stw_child *c, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    char annotation[STW_OWN_NAME_LEN], manager[STW_OWN_NAME_LEN + 16];
    char now[STW_TIME_LEN], hash[STW_HASH_LEN], value[STW_TIME_LEN + STW_HASH_LEN];
    struct stw_informer *cache = stw_run_cache(run, c->watch);
    stw_operator_text(run->op, STW_PODS_RETRIED, annotation);
    stw_time_format(stw_wall_us(run->clock), now);
    stw_hash_format(hash_asked(owner), hash);
    stw_format(value, sizeof(value), "%s %s", now, hash);
    stw_format(manager, sizeof(manager), "%s" MANAGER_SUFFIX, run->field_manager);
    json_auto_t *patch = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "uid", c->live.uid,
                                   "annotations", annotation, value);
    if (!patch)
        return stw_fail_memory(err);
    if (stw_kube_merge_patch(run->client,
                             STW_PLACE(stw_informer_resource(cache), owner->ns, c->name), patch,
                             manager, &answer, err) != 0)
        return -1;
    stw_informer_saw(cache, &answer, NULL);
    return 0;
}

void stw_child_retry_pods(struct stw_run *run, const struct stw_owner *owner,
                          struct stw_child *child)
{
    struct stw_rollout *r = &child->live.rollout;
    struct stw_error err = {0};
    if (child->state > STW_CHILD_REPAIRED || r->refused_us == 0 || stw_run_in_shadow(run))
        return;
    if (!is_due(run, owner, r, &r->retry_ms) || !namespace_may(run) ||
        write_retry(run, owner, child, &err) == 0)
        return;
    stw_log(STW_LOG_DEBUG, "refused pods cannot be retried", STW_STR("error", err.text));
}
