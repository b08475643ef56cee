/* SPDX-License-Identifier: Apache-2.0
 *
 * What an EtcdCluster's status says.  No I/O. */
#include "base/util.h"
#include "controller/etcdbackup.h"
#include "controller/etcdcluster_priv.h"
#include "controller/status.h"

#include <stdio.h>

#define IDLE "Idle"
#define MIB (1 << 20)

/* --- facts that several conditions ask for */

static bool each_action(const struct ec *e, enum ec_kind kind)
{
    return e->state.action.kind == kind;
}

static bool all_healthy(const struct ec *e)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    return e->view.listed && q.voters > 0 && q.healthy == q.voters && q.learners == 0;
}

static unsigned alarms(const struct ec *e)
{
    unsigned all = 0;
    for (size_t i = 0; i < e->view.count; i++)
        if (e->view.members[i].listed)
            all |= e->view.members[i].alarms;
    return all;
}

static bool quorum_lost(const struct ec *e)
{
    const struct ec_view *v = &e->view;
    return v->cluster_id && v->quorum_lost_since &&
           v->now - v->quorum_lost_since >= EC_QUORUM_GRACE_S;
}

/* Some member runs, or is made to run, another version than the wanted one. */
static bool upgrading(const struct ec *e)
{
    const struct ec_view *v = &e->view;
    for (size_t i = 0; v->cluster_id && i < v->count; i++) {
        const struct ec_member *m = &v->members[i];
        if (m->listed && stw_semver_known(m->version) &&
            stw_semver_compare(m->version, v->version) != 0)
            return true;
    }
    return false;
}

static bool rolling(const struct ec *e)
{
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_member *m = &e->view.members[i];
        if (m->listed && !m->foreign && m->pod != EC_POD_ABSENT && !m->pod_template)
            return true;
    }
    return each_action(e, EC_ROLL);
}

static bool stale(const struct ec *e)
{
    for (size_t i = 0; i < e->view.count; i++)
        if (e->details[i].stale)
            return true;
    return false;
}

/* The member whose pod has a trouble that somebody could do something about; NULL: none. */
static const struct ec_member *troubled(const struct ec *e)
{
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_member *m = &e->view.members[i];
        if (m->trouble != EC_TROUBLE_NONE && !m->answers && m->pod != EC_POD_GOING)
            return m;
    }
    return NULL;
}

/* --- conditions */

static void available(const struct ec *e, struct stw_conditions *c)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    bool asked = false, answered = false;
    for (size_t i = 0; i < e->view.count; i++) {
        asked = asked || e->details[i].asked;
        answered = answered || e->view.members[i].answers;
    }
    if (e->view.listed)
        stw_condition_set(c, "Available", STW_TRUE, "QuorumHealthy",
                          "a linearizable read was served just now");
    else if (!asked)
        stw_condition_set(c, "Available", STW_FALSE, "NoEndpoints", "no member has a pod to ask");
    else if (e->trouble == STW_ETCD_AUTH)
        stw_condition_set(c, "Available", STW_FALSE, "AuthFailed",
                          "the members refuse steward's identity");
    else if (e->trouble == STW_ETCD_TLS && !answered)
        stw_condition_set(c, "Available", STW_FALSE, "TLSFailed",
                          "the members' certificates and steward's do not fit");
    else
        stw_condition_set(c, "Available", STW_FALSE, "NoQuorum",
                          "%d of %d members answer, %d are needed", q.healthy, q.voters, q.needed);
}

static const char *loss_reason(const struct ec *e)
{
    bool pods = false, data = false;
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_member *m = &e->view.members[i];
        pods = pods || (m->listed && m->pod == EC_POD_RUNNING);
        data = data || (m->listed && m->data == EC_DATA_THERE);
    }
    return !data ? "StorageLost" : !pods ? "AllPodsDown" : "MembersDown";
}

static void quorum_condition(const struct ec *e, struct stw_conditions *c)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    if (!e->view.cluster_id)
        return;
    if (!quorum_lost(e))
        stw_condition_set(c, "QuorumLost", STW_FALSE, "QuorumHealthy",
                          "%d of %d voters are healthy, %d are needed", q.healthy, q.voters,
                          q.needed);
    else
        stw_condition_set(c, "QuorumLost", STW_TRUE, loss_reason(e), "%s",
                          e->move.act == EC_FREEZE ? e->move.text
                                                   : "fewer members answer than a quorum needs");
}

static void members_condition(const struct ec *e, struct stw_conditions *c)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    if (alarms(e))
        stw_condition_set(c, "AllMembersHealthy", STW_FALSE, "AlarmActive", "an alarm is raised");
    else if (all_healthy(e))
        stw_condition_set(c, "AllMembersHealthy", STW_TRUE, "AllHealthy",
                          "all %d members vote and are healthy", q.voters);
    else if (e->view.listed && q.healthy == q.voters && q.learners)
        stw_condition_set(c, "AllMembersHealthy", STW_FALSE, "LearnerCatchingUp",
                          "a new member is catching up");
    else
        stw_condition_set(c, "AllMembersHealthy", STW_FALSE, "MembersUnready",
                          "%d of %d members are healthy", q.healthy, q.voters);
}

static void scaling_condition(const struct ec *e, struct stw_conditions *c)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    int64_t size = e->view.size;
    if (each_action(e, EC_PROMOTE))
        stw_condition_set(c, "Scaling", STW_TRUE, "Promoting", "member %s is to vote",
                          e->state.action.member);
    else if (q.voters < size || each_action(e, EC_ADD) || each_action(e, EC_SEED))
        stw_condition_set(c, "Scaling", STW_TRUE, "ScalingUp", "%d of %lld members vote", q.voters,
                          (long long)size);
    else if (q.voters > size || each_action(e, EC_REMOVE))
        stw_condition_set(c, "Scaling", STW_TRUE, "ScalingDown", "%d members vote, %lld are wanted",
                          q.voters, (long long)size);
    else
        stw_condition_set(c, "Scaling", STW_FALSE, IDLE, "%d members are wanted and vote",
                          q.voters);
}

static void progress_conditions(const struct ec *e, struct stw_conditions *c)
{
    bool limited = e->move.reason && stw_streq(e->move.reason, "RateLimited");
    if (upgrading(e))
        stw_condition_set(c, "Upgrading", STW_TRUE, "UpgradeInProgress", "members go to %s",
                          e->spec.version);
    else
        stw_condition_set(c, "Upgrading", STW_FALSE, IDLE, "no upgrade is under way");
    if (each_action(e, EC_REPLACE))
        stw_condition_set(c, "Recovering", STW_TRUE, "ReplacingMember", "member %s is replaced",
                          e->state.action.member);
    else if (limited)
        stw_condition_set(c, "Recovering", STW_TRUE, "RateLimited", "%s", e->move.text);
    else
        stw_condition_set(c, "Recovering", STW_FALSE, IDLE, "no member is being replaced");
    if (stale(e))
        stw_condition_set(c, "Rolling", STW_TRUE, "CertRotation",
                          "pods are made anew, one at a time, to serve a new certificate");
    else if (rolling(e))
        stw_condition_set(c, "Rolling", STW_TRUE, "SpecChange",
                          "pods are made anew, one at a time, as the spec has changed");
    else
        stw_condition_set(c, "Rolling", STW_FALSE, IDLE, "all pods are as the spec wants them");
}

static const struct {
    enum stw_truth truth;
    const char *reason;
} tls_reasons[] = {
    [EC_TLS_READY] = {STW_TRUE, "Ready"},
    [EC_TLS_MISSING] = {STW_FALSE, "SecretMissing"},
    [EC_TLS_BAD] = {STW_FALSE, "BadKeyPair"},
    [EC_TLS_SAN] = {STW_FALSE, "SANMismatch"},
    [EC_TLS_EXPIRING] = {STW_FALSE, "ExpiringSoon"},
    [EC_TLS_EXPIRED] = {STW_FALSE, "Expired"},
    [EC_TLS_OLD] = {STW_FALSE, "OldSerialServed"},
    [EC_TLS_FAILED] = {STW_UNKNOWN, "LookupFailed"},
};

static void tls_condition(const struct ec *e, struct stw_conditions *c)
{
    if (e->tls.state != EC_TLS_NONE)
        stw_condition_set(c, "TLSReady", tls_reasons[e->tls.state].truth,
                          tls_reasons[e->tls.state].reason, "%s", e->tls.text);
}

static void alarm_condition(const struct ec *e, struct stw_conditions *c)
{
    unsigned all = alarms(e);
    if (all & STW_ETCD_ALARM_CORRUPT)
        stw_condition_set(c, "AlarmActive", STW_TRUE, "Corrupt",
                          "the data of members differ (alarm CORRUPT)");
    else if (all & STW_ETCD_ALARM_NOSPACE)
        stw_condition_set(
            c, "AlarmActive", STW_TRUE, "NoSpace",
            "the database has reached its quota and takes no more writes (alarm NOSPACE): delete "
            "keys, compact and `etcdctl defrag`, or raise spec.options.quotaBackendBytes");
    else
        stw_condition_set(c, "AlarmActive", STW_FALSE, "NoAlarm", "no alarm is raised");
}

static void mismatch_condition(const struct ec *e, struct stw_conditions *c)
{
    if (e->mismatch)
        stw_condition_set(c, "ClusterIDMismatch", STW_TRUE, "SplitBrain", "%s",
                          e->move.act == EC_FREEZE ? e->move.text
                                                   : "a member is in another cluster");
    else
        stw_condition_set(c, "ClusterIDMismatch", STW_FALSE, "OneCluster",
                          "all members that answer are in one cluster");
}

static const char *const trouble_reasons[] = {
    [EC_TROUBLE_IMAGE] = "ImagePull",
    [EC_TROUBLE_UNSCHEDULABLE] = "PodPending",
    [EC_TROUBLE_VOLUME] = "VolumePending",
    [EC_TROUBLE_CRASH] = "CrashLoop",
};

static bool overdue(const struct ec *e)
{
    const struct ec_action *a = &e->state.action;
    return a->kind != EC_IDLE && e->view.now - a->start >= e->spec.progress_deadline_s;
}

static void degraded_condition(const struct ec *e, struct stw_conditions *c)
{
    const struct ec_member *m = troubled(e);
    if (overdue(e))
        stw_condition_set(c, "Degraded", STW_TRUE, "DeadlineExceeded",
                          "%s of %s takes longer than %lld s", ec_kind_names[e->state.action.kind],
                          e->state.action.member, (long long)e->spec.progress_deadline_s);
    else if (m)
        stw_condition_set(c, "Degraded", STW_TRUE, trouble_reasons[m->trouble], "pod %s: %s",
                          m->name, e->details[ec_index(e, m->name)].pod.text);
    else
        stw_condition_set(c, "Degraded", STW_FALSE, "AsExpected", "nothing is stuck");
}

/* Without caches (in tests) what was told stays. */
static void backup_condition(const struct ec *e, struct stw_conditions *c)
{
    if (e->run->manager)
        stw_etcdbackup_tell_cluster(e->run, e->run->key, c);
    else
        stw_condition_keep(c, "BackupReady");
}

static void set_conditions(const struct ec *e, struct stw_conditions *c)
{
    available(e, c);
    quorum_condition(e, c);
    members_condition(e, c);
    scaling_condition(e, c);
    progress_conditions(e, c);
    tls_condition(e, c);
    backup_condition(e, c);
    alarm_condition(e, c);
    mismatch_condition(e, c);
    degraded_condition(e, c);
}

/* --- the verdict */

static bool settled(const struct ec *e)
{
    return e->move.act == EC_WAIT && e->move.reason && stw_streq(e->move.reason, "Settled") &&
           all_healthy(e);
}

static void say_act(const struct ec *e, struct stw_aspect *a)
{
    const struct ec_action *now = &e->state.action;
    a->reason = STW_REASON_PROGRESSING;
    if (now->kind != EC_IDLE)
        STW_ASPECT_SAY(a, "%s %s is under way", ec_kind_names[now->kind], now->member);
    else
        STW_ASPECT_SAY(a, "steward is at work on %s",
                       *e->move.member ? e->move.member : e->owner.name);
}

static void find_plan(const struct ec *e, struct stw_aspect *a)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    *a = (struct stw_aspect){.level = STW_LEVEL_PROGRESSING, .truth = STW_FALSE};
    a->again_ms = e->move.wait_ms ? e->move.wait_ms : EC_SOON_MS;
    if (settled(e)) {
        a->level = STW_LEVEL_FINE;
        a->truth = STW_TRUE;
        a->reason = "Succeeded";
        STW_ASPECT_SAY(a, "%d of %d members are healthy at version %s", q.healthy, q.voters,
                       e->state.current_version);
    } else if (e->move.act == EC_FREEZE) {
        a->level = STW_LEVEL_STALLED;
        a->reason = e->move.reason;
        STW_ASPECT_SAY(a, "%s", e->move.text);
    } else if (e->move.act == EC_WAIT) {
        a->reason = e->move.reason ? e->move.reason : STW_REASON_PROGRESSING;
        STW_ASPECT_SAY(a, "%s", e->move.text);
    } else {
        say_act(e, a);
    }
}

static void find_tls(const struct ec *e, struct stw_aspect *a)
{
    *a = (struct stw_aspect){.level = STW_LEVEL_FINE};
    if (e->tls.state == EC_TLS_FAILED) {
        stw_aspect_error(a, &e->tls.err);
    } else if (e->tls.state == EC_TLS_MISSING || e->tls.state == EC_TLS_BAD) {
        a->level = STW_LEVEL_WAITING; /* the watch of Secrets tells */
        a->reason = tls_reasons[e->tls.state].reason;
        a->again_ms = 60000;
        STW_ASPECT_SAY(a, "%s", e->tls.text);
    }
}

static void find_alarm(const struct ec *e, struct stw_aspect *a)
{
    *a = (struct stw_aspect){.level = STW_LEVEL_FINE};
    if (!(alarms(e) & STW_ETCD_ALARM_NOSPACE))
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

bool ec_children_failed(const struct ec *e)
{
    return e->children[EC_HEADLESS].state > STW_CHILD_REPAIRED ||
           e->children[EC_CLIENT].state > STW_CHILD_REPAIRED;
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
        (void)snprintf(v->message, sizeof(v->message), "%s", all[FIND_PLAN].message);
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

static void set(json_t *o, const char *key, json_t *value)
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

/* Numbers that change all the time are those of the last time when something else had changed,
 * unless they are much different. */
static void set_numbers(const struct ec *e, size_t i, json_t *o)
{
    static const char *const keys[] = {"dbSize", "dbSizeInUse", "raftLag"};
    const struct stw_etcd_health *h = &e->details[i].health;
    const json_t *old = old_member(e, e->view.members[i].name);
    json_auto_t *rest = json_copy((json_t *)(uintptr_t)old);
    int64_t was = json_integer_value(json_object_get(old, "dbSize"));
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
    set(o, "dbSize", json_integer((json_int_t)h->db_size));
    set(o, "dbSizeInUse", json_integer((json_int_t)h->db_size_in_use));
    set(o, "raftLag",
        json_integer(h->raft_index > h->raft_applied_index
                         ? (json_int_t)(h->raft_index - h->raft_applied_index)
                         : 0));
}

static json_t *member_json(const struct ec *e, size_t i)
{
    const struct ec_member *m = &e->view.members[i];
    const struct ec_remembered *r = ec_state_find(&e->state, m->name);
    char version[STW_SEMVER_LEN];
    bool leader = m->leader || (!e->view.listed && r && r->leader);
    const char *role = m->learner ? "Learner" : leader ? "Leader" : "Follower";
    int64_t since = r && r->since && r->healthy == m->healthy ? r->since : e->view.now;
    json_t *o = json_pack("{s:s,s:o,s:s,s:b,s:o}", "name", m->name, "id",
                          json_sprintf("%016llx", (unsigned long long)m->id), "role", role,
                          "healthy", m->healthy, "since", time_json(since));
    stw_semver_text(m->version, version);
    if (stw_semver_known(m->version))
        set(o, "version", json_string(version));
    if (m->pod != EC_POD_ABSENT)
        set(o, "pod", json_string(m->name));
    if (m->claim)
        set(o, "pvc", json_string(m->name));
    if (m->alarms)
        set(o, "alarms", alarm_names(m->alarms));
    if (e->tls.not_after)
        set(o, "certNotAfter", time_json(e->tls.not_after));
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
    const struct ec_member *order[EC_MEMBERS_MAX];
    json_t *list = json_array(), *ready = json_array(), *unready = json_array();
    size_t n = 0;
    for (size_t i = 0; i < e->view.count; i++)
        if (e->view.members[i].listed)
            order[n++] = &e->view.members[i];
    qsort(order, n, sizeof(order[0]), by_name);
    for (size_t i = 0; i < n; i++) {
        (void)json_array_append_new(list, member_json(e, (size_t)(order[i] - e->view.members)));
        (void)json_array_append_new(order[i]->healthy ? ready : unready,
                                    json_string(order[i]->name));
    }
    set(status, "size", json_integer((json_int_t)n));
    set(status, "members", json_pack("{s:o,s:o}", "ready", ready, "unready", unready));
    set(status, "memberList", list);
}

/* --- the rest */

static void add_quorum(const struct ec *e, json_t *status)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    struct ec_kept *kept = e->keeper ? ec_keeper_get(e->keeper, e->run) : NULL;
    set(status, "quorum",
        json_pack("{s:i,s:i,s:i,s:i}", "voters", q.voters, "healthy", q.healthy, "needed",
                  q.voters ? q.needed : 0, "margin", q.voters ? q.margin : 0));
    if (kept && e->view.cluster_id)
        stw_series_set(kept->margin, q.margin);
}

static void add_deadline(const struct ec *e, json_t *status)
{
    json_t *action = json_object_get(status, "currentAction");
    json_t *failovers = json_object_get(status, "failovers");
    if (action)
        set(action, "deadline", time_json(e->state.action.start + e->spec.progress_deadline_s));
    if (failovers)
        set(failovers, "lastHour",
            json_integer((json_int_t)ec_state_failovers(&e->state, e->view.now)));
}

static void add_phase(const struct ec *e, const struct stw_verdict *v, json_t *status)
{
    bool failed = v->level == STW_LEVEL_STALLED;
    set(status, "phase",
        json_string(failed                 ? "Failed"
                    : !e->state.cluster_id ? "Creating"
                                           : "Running"));
    if (failed)
        set(status, "reason", json_string(v->message));
    if (e->spec.paused)
        set(status, "controlPaused", json_true());
}

static void add_names(const struct ec *e, json_t *status)
{
    char version[STW_SEMVER_LEN];
    set(status, "serviceName", json_sprintf("%s-client", e->owner.name));
    set(status, "clientPort", json_integer(STW_ETCD_CLIENT_PORT));
    set(status, "selector",
        json_sprintf("app.kubernetes.io/name=" STW_ETCD_APP ",app.kubernetes.io/instance=%s",
                     e->owner.name));
    if (upgrading(e))
        set(status, "targetVersion", json_string(e->spec.version));
    stw_semver_text(e->view.cluster_version, version);
    if (stw_semver_known(e->view.cluster_version))
        set(status, "clusterVersion",
            json_sprintf("%d.%d", e->view.cluster_version.major, e->view.cluster_version.minor));
    else if (json_object_get(e->object.status, "clusterVersion"))
        (void)json_object_set(status, "clusterVersion",
                              json_object_get(e->object.status, "clusterVersion"));
}

void ec_judge(struct ec *e, struct stw_verdict *v, json_t **ret_status)
{
    static const char *const keep[] = {"lastBackup", "repairs", "lastRepair", NULL};
    struct stw_status s;
    stw_status_begin(&s, e->run, &e->object, keep);
    give_verdict(e, v, &s.conditions);
    set_conditions(e, &s.conditions);
    ec_state_write(&e->state, s.tree);
    add_members(e, s.tree);
    add_quorum(e, s.tree);
    add_deadline(e, s.tree);
    add_phase(e, v, s.tree);
    add_names(e, s.tree);
    stw_status_add_repairs(&s, e->children, EC_CHILDREN);
    if (e->run->manager)
        set(s.tree, "lastBackup", stw_etcdbackup_last(e->run, e->run->key));
    *ret_status = stw_status_end(&s);
}

json_t *ec_status_paused(json_t *status, bool paused)
{
    if (status)
        (void)json_object_set_new(status, "controlPaused", json_boolean(paused));
    return status;
}

/* --- events: what is news against the status before */

static bool was_true(const json_t *status, const char *type)
{
    return stw_condition_is(stw_condition_find(json_object_get(status, "conditions"), type),
                            STW_TRUE);
}

void ec_note_news(struct ec *e)
{
    const struct ec_move *m = &e->move;
    const json_t *old = e->object.status;
    bool lost = was_true(old, "QuorumLost"), target = json_object_get(old, "targetVersion");
    e->news.quorum_lost = !lost && quorum_lost(e);
    e->news.quorum_restored = lost && !quorum_lost(e);
    e->news.upgrade_started = !target && upgrading(e);
    e->news.upgrade_finished = target && !upgrading(e);
    e->news.member_upgraded = m->act == EC_FINISH && e->was.action.kind == EC_UPGRADE;
    e->news.replacing = m->intent.kind == EC_REPLACE && !ec_intended(&e->view, m);
}

static void tell(const struct ec *e, bool news, bool warning, const char *reason, const char *fmt,
                 ...) __attribute__((format(printf, 5, 6)));

static void tell(const struct ec *e, bool news, bool warning, const char *reason, const char *fmt,
                 ...)
{
    char note[640];
    va_list ap;
    if (!news)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(note, sizeof(note), fmt, ap);
    va_end(ap);
    stw_object_event(e->run, &e->object, warning, reason, "Reconcile", "%s", note);
}

void ec_tell(struct ec *e)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    tell(e, e->news.quorum_lost, true, "QuorumLost", "%s",
         e->move.act == EC_FREEZE ? e->move.text : "fewer members answer than a quorum needs");
    tell(e, e->news.quorum_restored, false, "QuorumRestored", "%d of %d members are healthy",
         q.healthy, q.voters);
    tell(e, e->news.upgrade_started, false, "UpgradeStarted", "members go to version %s",
         e->spec.version);
    tell(e, e->news.upgrade_finished, false, "UpgradeFinished", "all members run version %s",
         e->spec.version);
    tell(e, e->news.member_upgraded, false, "MemberUpgraded", "member %s runs version %s",
         e->was.action.member, e->spec.version);
    tell(e, e->news.replacing, true, "ReplacingDeadMember",
         "member %s is dead: it is removed, and another one added", e->move.member);
    memset(&e->news, 0, sizeof(e->news));
}
