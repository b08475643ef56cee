/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the status of an EtcdCluster.  No I/O. */
#include "kinds/etcdcluster/status/status.h"
#include "kinds/etcdcluster/plan/facts.h"

#include "base/util.h"
#include "controller/status.h"
#include "kinds/common/product.h"
#include "kinds/etcdcluster/backups.h"
#include "kinds/etcdcluster/labels.h"
#include "kinds/etcdcluster/maintenance.h"
#include "kinds/etcdcluster/observe/watch.h"
#include "kinds/etcdcluster/plan/entries.h"
#include "kinds/etcdcluster/plan/maintenance_limits.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/runtime.h"
#include "kinds/etcdcluster/status/conditions.h"
#include "kinds/etcdcluster/status/state.h"
#include "kinds/etcdcluster/tls/tls_state.h"
#include "kube/tree.h"

#include <stdio.h>

#define MIB (1 << 20)

/* --- the verdict */

static bool is_cluster_settled(const struct ec *e)
{
    return e->move.act == EC_WAIT && e->move.reason && stw_streq(e->move.reason, "Settled") &&
           ec_all_healthy(e);
}

static void say_act(const struct ec *e, struct stw_aspect *a)
{
    const struct ec_action *now = &e->state.action;
    a->reason = STW_REASON_PROGRESSING;
    if (now->kind != EC_IDLE)
        STW_ASPECT_SAY(a, "%s %s is under way", ec_kind_names[now->kind], now->member);
    else
        STW_ASPECT_SAY(a, "steward is working on %s",
                       *e->move.member ? e->move.member : e->owner.name);
}

/* What keeps the cluster from becoming ready, after what it waits for. */
static void say_trouble(const struct ec *e, struct stw_aspect *a)
{
    char text[STW_CONDITION_MESSAGE_MAX];
    if (ec_is_degraded(e, &a->reason, text, sizeof(text)))
        stw_aspect_append(a, text);
}

static void find_plan(const struct ec *e, struct stw_aspect *a)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    *a = (struct stw_aspect){.level = STW_LEVEL_PROGRESSING, .truth = STW_FALSE};
    a->again_ms = e->move.wait_ms ? e->move.wait_ms : EC_SOON_MS;
    if (is_cluster_settled(e)) {
        a->level = STW_LEVEL_FINE;
        a->truth = STW_TRUE;
        a->reason = "Succeeded";
        STW_ASPECT_SAY(a, "%d of %d members are healthy at version %s", q.healthy, q.voters,
                       e->state.current_version);
    } else if (e->move.act == EC_FREEZE) {
        a->level = STW_LEVEL_STALLED;
        a->reason = e->move.reason;
        STW_ASPECT_SAY(a, "%s", e->move.text);
    } else if (e->move.act == EC_WAIT && e->move.reason) {
        a->reason = e->move.reason;
        STW_ASPECT_SAY(a, "%s", e->move.text);
    } else {
        say_act(e, a);
    }
    if (a->level == STW_LEVEL_PROGRESSING)
        say_trouble(e, a);
}

/* With an expired certificate, open connections go on, but no new one can be made. */
static void find_tls(const struct ec *e, struct stw_aspect *a)
{
    enum ec_tls_state state = e->tls.state;
    *a = (struct stw_aspect){.level = STW_LEVEL_FINE};
    if (state == EC_TLS_FAILED) {
        stw_aspect_error(a, &e->tls.err);
    } else if (state == EC_TLS_MISSING || state == EC_TLS_BAD || state == EC_TLS_EXPIRED ||
               state == EC_TLS_LOST) {
        a->level = STW_LEVEL_WAITING; /* the watch of Secrets wakes us */
        a->reason = ec_tls_reason(e);
        a->again_ms = 60000;
        STW_ASPECT_SAY(a, "%s", e->tls.text);
    }
}

static void find_alarm(const struct ec *e, struct stw_aspect *a)
{
    *a = (struct stw_aspect){.level = STW_LEVEL_FINE};
    if (!(ec_alarms(e) & STW_ETCD_ALARM_NOSPACE))
        return;
    a->level = STW_LEVEL_WAITING;
    a->reason = "NoSpace";
    a->again_ms = EC_ROUND_MS;
    STW_ASPECT_SAY(a, "a database has reached its quota: see the condition AlarmActive");
}

static void find_error(const struct ec *e, struct stw_aspect *a)
{
    *a = (struct stw_aspect){.level = STW_LEVEL_FINE};
    if (e->err.code != STW_OK)
        stw_aspect_error(a, &e->err);
}

static bool is_child_wrong(const struct ec *e, int child)
{
    enum stw_child_state state = e->children[child].state;
    return state > STW_CHILD_REPAIRED && state != STW_CHILD_HELD;
}

bool ec_children_failed(const struct ec *e)
{
    return is_child_wrong(e, EC_HEADLESS) || is_child_wrong(e, EC_CLIENT);
}

enum { FIND_PLAN = EC_CHILDREN, FIND_TLS, FIND_ALARM, FIND_ERROR, ASPECTS };

static void find_all(const struct ec *e, struct stw_aspect *all)
{
    for (int i = 0; i < EC_CHILDREN; i++) {
        all[i] = (struct stw_aspect){.level = STW_LEVEL_FINE};
        if (e->children[i].watch)
            stw_aspect_child(&all[i], &e->children[i]);
    }
    find_plan(e, &all[FIND_PLAN]);
    find_tls(e, &all[FIND_TLS]);
    find_alarm(e, &all[FIND_ALARM]);
    find_error(e, &all[FIND_ERROR]);
}

static void give_verdict(const struct ec *e, struct stw_verdict *v, struct stw_conditions *c)
{
    const json_t *ready = stw_condition_find(c->old, STW_READY);
    struct stw_aspect *all = calloc(ASPECTS, sizeof(*all));
    *v = (struct stw_verdict){.level = STW_LEVEL_PROGRESSING, .reason = STW_REASON_PROGRESSING};
    if (!all)
        return;
    find_all(e, all);
    stw_verdict_of(all, ASPECTS, v);
    if (v->level == STW_LEVEL_FINE || v->level == STW_LEVEL_PROGRESSING) {
        v->reason = all[FIND_PLAN].reason;
        stw_format(v->message, sizeof(v->message), "%s", all[FIND_PLAN].message);
        v->again_ms = all[FIND_PLAN].again_ms;
    }
    free(all);
    if (!e->spec.paused || v->level < STW_LEVEL_WAITING) {
        stw_verdict_conditions(v, c);
        return;
    }
    v->level = STW_LEVEL_FINE;
    v->again_ms = EC_ROUND_MS;
    stw_condition_set(c, STW_READY, stw_condition_is(ready, STW_TRUE) ? STW_TRUE : STW_FALSE,
                      STW_REASON_PAUSED, "%s", "reconciling is paused by spec.paused");
}

/* --- members */

static void set_optional_field(json_t *o, const char *key, json_t *value)
{
    if (value)
        (void)json_object_set_new(o, key, value);
}

static json_t *alarm_names(unsigned all)
{
    json_t *list = json_array();
    if (all & STW_ETCD_ALARM_NOSPACE)
        (void)json_array_append_new(list, json_string("NOSPACE"));
    if (all & STW_ETCD_ALARM_CORRUPT)
        (void)json_array_append_new(list, json_string("CORRUPT"));
    return list;
}

static json_t *time_json(int64_t at)
{
    char text[STW_TIME_LEN];
    stw_time_format(at * 1000000, text);
    return json_string(text);
}

static const json_t *old_member(const struct ec *e, const char *name)
{
    size_t i;
    const json_t *entry;
    json_array_foreach (json_object_get(e->object.status, "memberList"), i, entry) {
        const char *text = json_string_value(json_object_get(entry, "name"));
        if (text && stw_streq(text, name))
            return entry;
    }
    return NULL;
}

/* Numbers that change all the time are updated only together with another change, or when they are
 * much different. */
static void set_numbers(const struct ec *e, size_t i, json_t *o)
{
    static const char *const keys[] = {"dbSize", "dbSizeInUse", "raftLag"};
    const struct stw_etcd_health *h = &e->details[i].health;
    const json_t *old = old_member(e, e->view.members[i].name);
    json_auto_t *rest = json_copy((json_t *)(uintptr_t)old);
    int64_t was = stw_tree_count(old, "dbSize");
    for (size_t n = 0; n < STW_COUNT(keys); n++)
        (void)json_object_del(rest, keys[n]);
    int64_t grown = h->db_size > was ? h->db_size - was : was - h->db_size;
    bool much = e->view.members[i].answers && grown > 16 * MIB && grown > was / 4;
    if (old && json_equal(rest, o) && !much) {
        for (size_t n = 0; n < STW_COUNT(keys); n++)
            if (json_object_get(old, keys[n]))
                (void)json_object_set(o, keys[n], json_object_get(old, keys[n]));
        return;
    }
    if (!e->view.members[i].answers)
        return;
    set_optional_field(o, "dbSize", json_integer((json_int_t)h->db_size));
    set_optional_field(o, "dbSizeInUse", json_integer((json_int_t)h->db_size_in_use));
    set_optional_field(o, "raftLag",
                       json_integer(h->raft_index > h->raft_applied_index
                                        ? (json_int_t)(h->raft_index - h->raft_applied_index)
                                        : 0));
}

/* NULL: it has no claim, or one whose size is not known. */
static json_t *volume_json(const struct ec_claim_live *claim)
{
    if (!*claim->requested)
        return NULL;
    json_t *o = json_pack("{s:s}", "requested", claim->requested);
    if (*claim->capacity)
        set_optional_field(o, "capacity", json_string(claim->capacity));
    return o;
}

static json_t *member_json(const struct ec *e, size_t i)
{
    const struct ec_member *m = &e->view.members[i];
    const struct ec_remembered *r = ec_state_find(&e->state, m->name);
    char version[STW_SEMVER_LEN];
    bool leader = m->leader || (!e->view.listed && r && r->leader);
    const char *role = m->learner ? "Learner" : leader ? "Leader" : "Follower";
    int64_t since = r && r->since && r->healthy == m->healthy ? r->since : e->view.now;
    json_t *o = json_pack("{s:s,s:o,s:s,s:b,s:o}", "name", m->name, "id", ec_id_json(m->id), "role",
                          role, "healthy", m->healthy, "since", time_json(since));
    stw_semver_text(m->version, version);
    if (stw_semver_known(m->version))
        set_optional_field(o, "version", json_string(version));
    stw_semver_text(m->storage, version);
    if (stw_semver_known(m->storage))
        set_optional_field(o, "storageVersion", json_string(version));
    if (m->learner && m->promoted) /* implied for a voter */
        set_optional_field(o, "promoted", json_true());
    if (m->pod != EC_POD_ABSENT)
        set_optional_field(o, "pod", json_string(m->name));
    if (m->claim)
        set_optional_field(o, "pvc", json_string(m->name));
    set_optional_field(o, "volume", volume_json(&e->details[i].claim));
    if (m->alarms)
        set_optional_field(o, "alarms", alarm_names(m->alarms));
    if (e->tls.not_after)
        set_optional_field(o, "certNotAfter", time_json(e->tls.not_after));
    set_numbers(e, i, o);
    return o;
}

static int by_name(const void *a, const void *b)
{
    const struct ec_member *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void add_members(const struct ec *e, json_t *status)
{
    const struct ec_member *order[EC_MEMBERS_MAX] = {NULL};
    json_t *list = json_array(), *ready = json_array(), *unready = json_array();
    size_t n = 0;
    for (size_t i = 0; i < e->view.count; i++)
        if (e->view.members[i].listed)
            order[n++] = &e->view.members[i];
    qsort(order, n, sizeof(*order), by_name); /* NOLINT(bugprone-sizeof-expression) */
    for (size_t i = 0; i < n; i++) {
        (void)json_array_append_new(list, member_json(e, (size_t)(order[i] - e->view.members)));
        (void)json_array_append_new(order[i]->healthy ? ready : unready,
                                    json_string(order[i]->name));
    }
    set_optional_field(status, "size", json_integer((json_int_t)n));
    set_optional_field(status, "members",
                       json_pack("{s:o,s:o}", "ready", ready, "unready", unready));
    set_optional_field(status, "memberList", list);
}

/* --- the rest */

static void add_quorum(const struct ec *e, json_t *status)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    struct ec_kept *kept = e->runtime ? ec_runtime_get(e->runtime, e->run) : NULL;
    set_optional_field(status, "quorum",
                       json_pack("{s:i,s:i,s:i,s:i}", "voters", q.voters, "healthy", q.healthy,
                                 "needed", q.voters ? q.needed : 0, "margin",
                                 q.voters ? q.margin : 0));
    if (kept && e->view.cluster_id)
        ec_runtime_report_margin(e->runtime, e->run, kept, q.margin);
}

static void add_deadline(const struct ec *e, json_t *status)
{
    json_t *action = json_object_get(status, "currentAction");
    json_t *failovers = json_object_get(status, "failovers");
    if (action)
        set_optional_field(action, "deadline",
                           time_json(e->state.action.start + ec_action_limit(e)));
    if (failovers)
        set_optional_field(failovers, "lastHour",
                           json_integer((json_int_t)ec_state_failovers(&e->state, e->view.now)));
}

static void add_phase(const struct ec *e, const struct stw_verdict *v, json_t *status)
{
    bool failed = v->level == STW_LEVEL_STALLED;
    set_optional_field(status, "phase",
                       json_string(failed                 ? "Failed"
                                   : !e->state.cluster_id ? "Creating"
                                                          : "Running"));
    if (failed)
        set_optional_field(status, "reason", json_string(v->message));
    if (e->spec.paused)
        set_optional_field(status, "controlPaused", json_true());
}

static void add_names(const struct ec *e, json_t *status)
{
    char version[STW_SEMVER_LEN];
    set_optional_field(status, "serviceName", json_sprintf("%s-client", e->owner.name));
    set_optional_field(status, "clientPort", json_integer(EC_CLIENT_PORT));
    set_optional_field(status, "selector",
                       json_sprintf("app.kubernetes.io/name=" EC_APP
                                    ",app.kubernetes.io/instance=%s",
                                    e->owner.name));
    if (ec_upgrading(e))
        set_optional_field(status, "targetVersion", json_string(e->spec.version));
    stw_semver_text(e->view.cluster_version, version);
    if (stw_semver_known(e->view.cluster_version))
        set_optional_field(
            status, "clusterVersion",
            json_sprintf("%d.%d", e->view.cluster_version.major, e->view.cluster_version.minor));
    else if (json_object_get(e->object.status, "clusterVersion"))
        (void)json_object_set(status, "clusterVersion",
                              json_object_get(e->object.status, "clusterVersion"));
}

void ec_judge(struct ec *e, struct stw_verdict *v, json_t **ret_status)
{
    static const char *const keep[] = {"lastBackup", "repairs", "lastRepair", NULL};
    const struct ec_backups *backups = stw_product_etcd_backups(e->run->env);
    struct stw_status s;
    stw_status_begin(&s, e->run, &e->object, keep);
    give_verdict(e, v, &s.conditions);
    ec_conditions(e, &s.conditions);
    ec_state_write(&e->state, s.tree);
    add_members(e, s.tree);
    add_quorum(e, s.tree);
    add_deadline(e, s.tree);
    ec_add_upkeep(e, s.tree);
    add_phase(e, v, s.tree);
    add_names(e, s.tree);
    stw_status_add_repairs(&s, e->children, EC_CHILDREN);
    if (backups)
        set_optional_field(s.tree, "lastBackup", backups->newest(e->run, e->run->key));
    *ret_status = stw_status_end(&s);
}

json_t *ec_status_paused(json_t *status, bool paused)
{
    if (status)
        (void)json_object_set_new(status, "controlPaused", json_boolean(paused));
    return status;
}

/* --- events: what is new compared with the previous status */

static bool was_true(const json_t *status, const char *type)
{
    return stw_condition_is(stw_condition_find(json_object_get(status, "conditions"), type),
                            STW_TRUE);
}

static bool is_volume_fine(const struct ec *e, const char *name)
{
    const struct ec_member *m = ec_find(&e->view, name);
    return m && m->listed && m->volume == EC_VOLUME_FINE;
}

/* A volume cannot be expanded, which needs a user, for another reason than in the last status. */
static bool has_become_stuck(const struct ec *e)
{
    const json_t *old =
        stw_condition_find(json_object_get(e->object.status, "conditions"), "Resizing");
    const char *reason = ec_resizing(e);
    return reason && strncmp(reason, "Expansion", strlen("Expansion")) == 0 &&
           !stw_streq(stw_tree_text(old, "reason"), reason);
}

void ec_note_news(struct ec *e)
{
    const struct ec_move *m = &e->move;
    const json_t *old = e->object.status;
    bool lost = was_true(old, "QuorumLost"), target = json_object_get(old, "targetVersion");
    e->news.quorum_lost = !lost && ec_quorum_lost(e);
    e->news.quorum_restored = lost && !ec_quorum_lost(e);
    e->news.upgrade_started = !target && ec_upgrading(e);
    e->news.upgrade_finished = target && !ec_upgrading(e);
    e->news.member_upgraded = m->act == EC_FINISH && e->was.action.kind == EC_UPGRADE;
    e->news.expanded = m->act == EC_FINISH && e->was.action.kind == EC_EXPAND &&
                       is_volume_fine(e, e->was.action.member);
    e->news.not_expanded = has_become_stuck(e);
    ec_note_upkeep_news(e);
    e->news.replacing = m->intent.kind == EC_REPLACE && !ec_intended(&e->view, m);
}

static void report_news(const struct ec *e, bool news, bool warning, const char *reason,
                        const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static void report_news(const struct ec *e, bool news, bool warning, const char *reason,
                        const char *fmt, ...)
{
    char note[STW_CONDITION_MESSAGE_MAX];
    va_list ap;
    if (!news)
        return;
    va_start(ap, fmt);
    stw_vformat(note, sizeof(note), fmt, ap);
    va_end(ap);
    stw_object_event(e->run, &e->object, warning, reason, "Reconcile", "%s", note);
}

static const char *capacity_of(const struct ec *e, const char *name)
{
    size_t i = ec_index(e, name);
    return i == EC_MEMBERS_MAX ? "" : e->details[i].claim.capacity;
}

void ec_tell(struct ec *e)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    report_news(e, e->news.quorum_lost, true, "QuorumLost", "%s",
                e->move.act == EC_FREEZE ? e->move.text
                                         : "fewer members answer than a quorum needs");
    report_news(e, e->news.quorum_restored, false, "QuorumRestored", "%d of %d members are healthy",
                q.healthy, q.voters);
    report_news(e, e->news.upgrade_started, false, "UpgradeStarted", "members go to version %s",
                e->spec.version);
    report_news(e, e->news.upgrade_finished, false, "UpgradeFinished", "all members run version %s",
                e->spec.version);
    report_news(e, e->news.member_upgraded, false, "MemberUpgraded", "member %s runs version %s",
                e->was.action.member, e->spec.version);
    report_news(e, e->news.expanded, false, "VolumeExpanded", "the volume of member %s has %s",
                e->was.action.member, capacity_of(e, e->was.action.member));
    if (e->news.not_expanded) {
        char text[STW_CONDITION_MESSAGE_MAX];
        ec_resizing_text(e, text, sizeof(text));
        report_news(e, true, true, ec_resizing(e), "%s", text);
    }
    report_news(e, e->news.replacing, true, "ReplacingDeadMember",
                "member %s is dead: it is removed, and another one added", e->move.member);
    ec_tell_upkeep(e);
    memset(&e->news, 0, sizeof(e->news));
}
