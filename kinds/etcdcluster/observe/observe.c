/* SPDX-License-Identifier: Apache-2.0
 *
 * Observes the members: pods and claims from the caches, answers of etcd (ask.c), and
 * what both together mean for each member and for the cluster. */
#include "kinds/etcdcluster/observe/observe.h"
#include "kinds/etcdcluster/plan/facts.h"

#include "base/util.h"
#include "kinds/etcdcluster/act/claims.h"
#include "kinds/etcdcluster/observe/ask.h"
#include "kinds/etcdcluster/observe/pods.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/plan/entries.h"
#include "kinds/etcdcluster/plan/maintenance_limits.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/status/state.h"
#include "kinds/etcdcluster/tls/tls.h"
#include "schema/names.h"

#include <stdio.h>

#define KEYS_MAX (16u << 20)
#define TEXT_MAX (64u << 10)
#define DOUBT_S 30       /* a promotion may take that long to reach all members */
#define SPACE_PERCENT 90 /* of the quota; a smaller database has space again */

/* --- pods and claims */

static const char *name_of(const char *key)
{
    const char *slash = strchr(key, '/');
    return slash ? slash + 1 : key;
}

static void take_pod(struct ec *e, const char *key, struct stw_informer *cache)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    struct ec_pod_live pod;
    struct ec_detail *d;
    char rv[STW_RV_LEN];
    if (stw_informer_get(cache, key, &text, rv) != 0 ||
        ec_pod_read(stw_buf_str(&text), text.len, &pod) != 0 ||
        !stw_streq(pod.owner_uid, e->object.uid) || !ec_entry(e, name_of(key), &d))
        return;
    stw_format(pod.resource_version, sizeof(pod.resource_version), "%s", rv);
    d->pod = pod;
    d->has_pod = true;
}

/* A volume of an earlier cluster of this name is not ours.  Exception: the restored volume, which
 * was created before the cluster. */
static bool is_our_claim(const struct ec *e, const char *name, const struct ec_claim_live *c)
{
    if (*c->cluster_uid)
        return stw_streq(c->cluster_uid, e->object.uid);
    return stw_streq(e->restored, name) || ec_state_find(&e->state, name);
}

static void take_claim(struct ec *e, const char *key, struct stw_informer *cache)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    struct ec_claim_live claim;
    struct ec_detail *d;
    char rv[STW_RV_LEN];
    if (stw_informer_get(cache, key, &text, rv) != 0 ||
        ec_claim_read(stw_buf_str(&text), text.len, &claim) != 0 ||
        !is_our_claim(e, name_of(key), &claim) || !ec_entry(e, name_of(key), &d))
        return;
    stw_format(claim.resource_version, sizeof(claim.resource_version), "%s", rv);
    d->claim = claim;
    d->has_claim = true;
}

static void take_all(struct ec *e, const struct stw_watch *w,
                     void (*take)(struct ec *, const char *, struct stw_informer *))
{
    struct stw_informer *cache = stw_run_cache(e->run, w);
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(KEYS_MAX);
    size_t at = 0;
    ec_cached_keys(e, cache, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));)
        take(e, key, cache);
}

/* In the first run, without a seed that has data, or pods or volumes of a lost status. */
static bool is_new(const struct ec *e)
{
    return !e->was.storage.latched && !e->was.cluster_id && !*e->was.current_version &&
           !*e->restored && e->view.count == 0;
}

void ec_note_never_ran(struct ec *e)
{
    if (is_new(e))
        e->state.never_ran = true;
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_detail *d = &e->details[i];
        if (e->view.members[i].answers || (d->has_pod && (d->pod.ran || d->pod.ended)))
            e->state.never_ran = false;
    }
    if (e->state.cluster_id)
        e->state.never_ran = false;
}

/* Members first: if there are too many entries, others are left out. */
static void collect_entries(struct ec *e)
{
    struct ec_detail *d;
    for (size_t i = 0; i < e->state.member_count; i++)
        (void)ec_entry(e, e->state.members[i].name, &d);
    if (e->state.action.kind != EC_IDLE && *e->state.action.member)
        (void)ec_entry(e, e->state.action.member, &d);
    take_all(e, &ec_watch_pods, take_pod);
    take_all(e, &ec_watch_claims, take_claim);
}

/* --- one member */

static enum ec_pod pod_of(const struct ec_detail *d)
{
    if (!d->has_pod)
        return EC_POD_ABSENT;
    if (d->pod.going)
        return EC_POD_GOING;
    if (d->pod.ended)
        return EC_POD_ENDED;
    return d->pod.ran ? EC_POD_RUNNING : EC_POD_STARTING;
}

/* `refused` counts only for a guarded pod: its data folder was empty.  Another pod may legitimately
 * have started with an empty folder and reached no member. */
static enum ec_data data_of(const struct ec_seen *s, const struct ec_detail *d,
                            const struct ec_member *m)
{
    enum ec_data gone = m->started ? EC_DATA_LOST : EC_DATA_NONE;
    if (d->has_pod && d->pod.guarded && d->pod.refused && !m->answers)
        return EC_DATA_LOST;
    if (s->durable)
        return d->has_claim && !d->claim.going ? EC_DATA_THERE : gone;
    return d->has_pod && !d->pod.ended ? EC_DATA_THERE : gone;
}

static void set_health(const struct ec_seen *s, const struct ec_detail *d, struct ec_member *m)
{
    const struct stw_etcd_health *h = &d->health;
    bool same = !s->state->cluster_id || h->cluster_id == s->state->cluster_id;
    m->answers = d->asked && h->answers;
    m->cluster_id = m->answers ? h->cluster_id : 0;
    m->healthy =
        m->answers && m->listed && same && h->member_id == m->id && (m->learner || h->linearizable);
    if (!m->answers)
        return;
    m->version = h->version;
    m->storage = h->storage_version;
    m->raft_term = h->raft_term;
    m->raft_index = h->raft_index;
}

/* A member may learn of its promotion later than the others: `doubts` only after DOUBT_S. */
static void set_promoted(const struct ec_seen *s, const struct ec_remembered *r,
                         const struct ec_detail *d, struct ec_member *m)
{
    m->promoted = r && r->promoted && r->id == m->id;
    m->doubts = m->promoted && !m->learner && m->answers && d->health.learner &&
                s->now - r->since >= DOUBT_S;
}

void ec_judge_member(const struct ec_seen *s, const struct ec_detail *d, struct ec_member *m)
{
    const struct ec_remembered *r = ec_state_find(s->state, m->name);
    if (r)
        (void)stw_semver_parse(r->version, &m->version);
    if (r)
        (void)stw_semver_parse(r->storage_version, &m->storage);
    set_health(s, d, m);
    set_promoted(s, r, d, m);
    m->pod = pod_of(d);
    m->trouble = d->has_pod ? d->pod.trouble : EC_TROUBLE_NONE;
    if (d->has_pod) {
        (void)stw_semver_parse(d->pod.version, &m->pod_version);
        m->pod_ready = d->pod.ready && !d->pod.going;
        m->pod_guarded = d->pod.guarded;
        m->pod_forced = d->pod.forced;
        m->pod_trimmed = d->pod.trimmed;
        m->created = d->pod.created;
    }
    m->claim = d->has_claim;
    m->claim_going = d->has_claim && d->claim.going;
    m->data = data_of(s, d, m);
    int64_t since = r && r->healthy == m->healthy && r->since ? r->since : s->now;
    m->unhealthy_since = m->healthy ? 0 : since;
    if (m->created == 0)
        m->created = since;
}

static void set_leader(struct ec *e)
{
    size_t index;
    const struct ec_detail *contact = ec_contact(e, &index), *leader = NULL;
    for (size_t i = 0; contact && i < e->view.count; i++) {
        struct ec_member *m = &e->view.members[i];
        m->leader = m->id && m->answers && m->id == contact->health.leader_id;
        if (m->leader)
            leader = &e->details[i];
    }
    for (size_t i = 0; i < e->view.count; i++) {
        const struct stw_etcd_health *h = &e->details[i].health;
        e->view.members[i].lagging = leader && e->view.members[i].answers &&
                                     h->raft_applied_index + EC_LAG < leader->health.raft_index;
    }
}

static void set_space(struct ec *e)
{
    stw_quantity quota = ec_quota(e);
    for (size_t i = 0; i < e->view.count; i++) {
        stw_quantity size = e->details[i].health.db_size;
        e->view.members[i].space = e->view.members[i].answers && size < quota * SPACE_PERCENT / 100;
    }
}

/* --- what must not be taken from a cache */

static bool is_absent(struct ec *e, const struct stw_resource *r, const char *name)
{
    struct stw_error err = {0};
    return stw_kube_get(e->run->client, r, e->owner.ns, name, NULL, &err) != 0 &&
           err.code == STW_ERR_NOT_FOUND;
}

/* Data counts as lost because an object is missing only if the API server confirms it. */
static void confirm_losses(struct ec *e)
{
    const struct stw_resource *r = e->view.durable ? &ec_res_claim : &stw_res_pod;
    for (size_t i = 0; i < e->view.count; i++) {
        struct ec_member *m = &e->view.members[i];
        bool there = e->view.durable ? e->details[i].has_claim : e->details[i].has_pod;
        if (m->listed && m->data == EC_DATA_LOST && !there && !is_absent(e, r, m->name))
            m->data = EC_DATA_THERE;
    }
}

/* --- the view */

static void set_spec(struct ec *e)
{
    struct ec_view *v = &e->view;
    v->size = e->spec.size;
    v->version = e->version;
    v->paused = e->spec.paused;
    v->durable = e->state.storage.durable;
    v->failover = e->spec.failover.enabled;
    v->unhealthy_s = e->spec.failover.unhealthy_s;
    v->max_per_hour = e->spec.failover.max_per_hour;
    v->deadline_s = e->spec.progress_deadline_s;
    v->pause_s = e->spec.upgrade.pause_between_s;
    v->keep_scaled = stw_streq(e->spec.volume_retention.when_scaled, "Retain");
    v->force = *e->force ? e->force : NULL;
    v->restored = *e->restored ? e->restored : NULL;
}

static void set_status(struct ec *e)
{
    struct ec_view *v = &e->view;
    v->cluster_id = e->state.cluster_id;
    (void)stw_semver_parse(e->state.current_version, &v->current);
    (void)stw_semver_parse(e->state.oldest_version, &v->oldest);
    v->action = e->state.action;
    v->force_step = e->state.force_step;
    stw_format(v->force_member, sizeof(v->force_member), "%s", e->state.force_member);
    v->failovers_last_hour = ec_state_failovers(&e->state, v->now);
    v->last_rolled = e->state.last_rolled;
}

/* Which versions ever ran is known only for a cluster that steward has seen from its start. */
static void set_oldest(struct ec *e, struct stw_semver least)
{
    struct ec_view *v = &e->view;
    bool first = !stw_semver_known(v->current) && v->action.kind == EC_SEED;
    bool older = stw_semver_known(v->oldest) && stw_semver_compare(least, v->oldest) < 0;
    if (!stw_semver_known(least) || !(first || older))
        return;
    v->oldest = least;
    stw_semver_text(least, e->state.oldest_version);
}

/* The cluster version is the lowest minor version of the voters that answer. */
static void set_versions(struct ec *e)
{
    struct ec_view *v = &e->view;
    struct stw_semver least = {0}, one = {0};
    bool whole = v->listed, same = true;
    for (size_t i = 0; i < v->count; i++) {
        const struct ec_member *m = &v->members[i];
        if (!m->listed || m->learner)
            continue;
        whole = whole && m->healthy;
        if (!m->answers)
            continue;
        same = same && (!stw_semver_known(one) || stw_semver_compare(one, m->version) == 0);
        one = m->version;
        if (stw_semver_known(e->details[i].health.downgrade_to))
            v->downgrade_to = e->details[i].health.downgrade_to;
        if (!stw_semver_known(least) || stw_semver_compare(m->version, least) < 0)
            least = m->version;
    }
    set_oldest(e, least);
    least.patch = 0;
    v->cluster_version = least;
    if (whole && same && stw_semver_known(one)) {
        v->current = one;
        stw_semver_text(one, e->state.current_version);
    }
}

static void set_quorum(struct ec *e)
{
    struct ec_view *v = &e->view;
    struct ec_quorum q = ec_quorum_of(v);
    bool lost = v->cluster_id && (!v->listed || q.healthy < q.needed);
    if (!e->etcd) /* no member could be asked: nothing is known */
        lost = e->state.quorum_lost_since != 0;
    if (lost && e->state.quorum_lost_since == 0) {
        e->state.quorum_lost_since = v->now;
    } else if (!lost && e->state.quorum_lost_since != 0) {
        e->state.quorum_lost_since = 0;
        e->state.quorum_since = v->now;
    }
    v->quorum_lost_since = e->state.quorum_lost_since;
}

/* A lost quorum is seldom one member's fault, and the kubelet may start the last member up to five
 * minutes after the others.  So the time without a quorum does not count against a member. */
void ec_forgive(struct ec_view *v, int64_t quorum_since)
{
    for (size_t i = 0; i < v->count; i++) {
        struct ec_member *m = &v->members[i];
        if (m->unhealthy_since && m->unhealthy_since < quorum_since)
            m->unhealthy_since = quorum_since;
    }
}

static void set_mismatch(struct ec *e)
{
    const struct ec_view *v = &e->view;
    for (size_t i = 0; i < v->count; i++) {
        const struct ec_member *m = &v->members[i];
        e->mismatch = e->mismatch || (v->cluster_id && m->cluster_id && m->listed &&
                                      m->cluster_id != v->cluster_id);
    }
}

void ec_judge_members(struct ec *e)
{
    set_mismatch(e);
    set_leader(e);
    set_space(e);
    set_versions(e);
    set_quorum(e);
}

void ec_observe(struct ec *e)
{
    struct ec_view *v = &e->view;
    *v = (struct ec_view){.now = stw_wall_us(e->run->clock) / 1000000};
    set_spec(e);
    set_status(e);
    collect_entries(e);
    ec_ask(e);
    v->listed = ec_ask_members(e);
    const struct ec_seen seen = {.state = &e->state, .durable = v->durable, .now = v->now};
    for (size_t i = 0; i < v->count; i++) {
        struct ec_member *m = &v->members[i];
        ec_judge_member(&seen, &e->details[i], m);
        m->pod_template = ec_has_template(e, &e->details[i].pod);
    }
    ec_ask_alarms(e);
    confirm_losses(e);
    ec_tls_prove(e);
    for (size_t i = 0; i < v->count; i++)
        v->members[i].pod_template = v->members[i].pod_template && !e->details[i].stale;
    ec_judge_members(e);
    ec_judge_volumes(e);
    ec_forgive(v, e->state.quorum_since);
    if (v->count < EC_MEMBERS_MAX) /* else there is no space for another entry */
        ec_fresh_name(e, v->fresh);
}
