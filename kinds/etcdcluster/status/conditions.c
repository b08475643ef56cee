/* SPDX-License-Identifier: Apache-2.0
 *
 * The conditions of an EtcdCluster, derived from what was observed and planned. */
#include "kinds/etcdcluster/status/conditions.h"
#include "kinds/etcdcluster/plan/facts.h"

#include "base/hex.h"
#include "base/util.h"
#include "controller/template_status.h"
#include "kinds/common/product.h"
#include "kinds/etcdcluster/act/claims.h"
#include "kinds/etcdcluster/backups.h"
#include "kinds/etcdcluster/observe/pods.h"
#include "kinds/etcdcluster/plan/entries.h"
#include "kinds/etcdcluster/plan/maintenance_limits.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/tls/tls_state.h"

#include <assert.h>

#define IDLE "Idle"

/* --- facts that several conditions use */

static bool each_action(const struct ec *e, enum ec_kind kind)
{
    return e->state.action.kind == kind;
}

bool ec_all_healthy(const struct ec *e)
{
    struct ec_quorum q = ec_quorum_of(&e->view);
    return e->view.listed && q.voters > 0 && q.healthy == q.voters && q.learners == 0;
}

unsigned ec_alarms(const struct ec *e)
{
    unsigned all = e->view.stray_alarms;
    for (size_t i = 0; i < e->view.count; i++)
        if (e->view.members[i].listed)
            all |= e->view.members[i].alarms;
    return all;
}

bool ec_quorum_lost(const struct ec *e)
{
    return e->view.cluster_id && ec_quorum_gone(&e->view);
}

/* Some member runs, or ran last, another version than the wanted one. */
bool ec_upgrading(const struct ec *e)
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

static bool is_roll_in_progress(const struct ec *e)
{
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_member *m = &e->view.members[i];
        if (m->listed && !m->foreign && m->pod != EC_POD_ABSENT && !m->pod_template)
            return true;
    }
    return each_action(e, EC_ROLL);
}

static bool has_stale_certificates(const struct ec *e)
{
    for (size_t i = 0; i < e->view.count; i++)
        if (e->details[i].stale)
            return true;
    return false;
}

/* A member whose pod has a problem that a user could fix; NULL: none. */
static const struct ec_member *find_troubled_member(const struct ec *e)
{
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_member *m = &e->view.members[i];
        if (m->trouble != EC_TROUBLE_NONE && !m->answers && m->pod != EC_POD_GOING)
            return m;
    }
    return NULL;
}

/* --- conditions */

static void set_available_condition(const struct ec *e, struct stw_conditions *c)
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
                          "the members' certificates and steward's do not match");
    else
        stw_condition_set(c, "Available", STW_FALSE, "NoQuorum",
                          "%d of %d members are healthy, %d are needed", q.healthy, q.voters,
                          q.needed);
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
    if (!ec_quorum_lost(e))
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
    if (ec_alarms(e))
        stw_condition_set(c, "AllMembersHealthy", STW_FALSE, "AlarmActive", "an alarm is raised");
    else if (ec_all_healthy(e))
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
    if (ec_upgrading(e))
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
    if (has_stale_certificates(e))
        stw_condition_set(c, "Rolling", STW_TRUE, "CertRotation",
                          "pods are recreated, one at a time, to serve a new certificate");
    else if (is_roll_in_progress(e))
        stw_condition_set(c, "Rolling", STW_TRUE, "SpecChange",
                          "pods are recreated, one at a time, as the spec has changed");
    else
        stw_condition_set(c, "Rolling", STW_FALSE, IDLE, "all pods are as the spec wants them");
}

/* What is reported of the volumes that are too small, the most important first. */
static const struct {
    enum ec_volume volume;
    const char *reason;
} volume_reasons[] = {
    {EC_VOLUME_GROWS, "ExpandingVolume"},
    {EC_VOLUME_SMALL, "ExpandingVolume"},
    {EC_VOLUME_REFUSED, "ExpansionRefused"},
    {EC_VOLUME_FIXED, "ExpansionNotAllowed"},
};

const char *ec_resizing(const struct ec *e)
{
    for (size_t r = 0; r < STW_COUNT(volume_reasons); r++) {
        for (size_t i = 0; i < e->view.count; i++) {
            if (e->view.members[i].volume != volume_reasons[r].volume)
                continue;
            if (e->details[i].claim.resize_failed)
                return "ExpansionFailed";
            if (e->view.members[i].volume == EC_VOLUME_FIXED && e->view.replace_volumes)
                return "ReplacingMember";
            return volume_reasons[r].reason;
        }
    }
    return NULL;
}

void ec_resizing_text(const struct ec *e, char *out, size_t size)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_CONDITION_MESSAGE_MAX);
    const char *reason = ec_resizing(e);
    char wanted[64];
    ec_wanted_size(e, wanted);
    stw_buf_addf(&text, "volumes are to have %s", wanted);
    for (size_t i = 0; i < e->view.count; i++)
        if (*e->details[i].volume_text)
            stw_buf_addf(&text, "; %s", e->details[i].volume_text);
    if (reason && stw_streq(reason, "ExpansionNotAllowed"))
        stw_buf_addf(&text,
                     ". To replace these members one by one, with new volumes: `kubectl annotate "
                     "--overwrite etcdcluster %s -n %s " EC_REPLACE_VOLUMES "=%s`",
                     e->owner.name, e->owner.ns, wanted);
    stw_format(out, size, "%s", stw_buf_str(&text));
}

static void resizing_condition(const struct ec *e, struct stw_conditions *c)
{
    char text[STW_CONDITION_MESSAGE_MAX];
    const char *reason = ec_resizing(e);
    if (!e->view.durable)
        return;
    if (!reason) {
        stw_condition_set(c, "Resizing", STW_FALSE, IDLE, "no volume is smaller than wanted");
        return;
    }
    ec_resizing_text(e, text, sizeof(text));
    stw_condition_set(c, "Resizing", STW_TRUE, reason, "%s", text);
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
    [EC_TLS_LOST] = {STW_FALSE, "AuthorityLost"},
    [EC_TLS_FAILED] = {STW_UNKNOWN, "LookupFailed"},
};
static_assert(STW_COUNT(tls_reasons) == EC_TLS_STATES, "one row for each state");

const char *ec_tls_reason(const struct ec *e)
{
    assert(e->tls.state != EC_TLS_NONE && e->tls.state < EC_TLS_STATES);
    return tls_reasons[e->tls.state].reason;
}

static void tls_condition(const struct ec *e, struct stw_conditions *c)
{
    if (e->tls.state != EC_TLS_NONE)
        stw_condition_set(c, "TLSReady", tls_reasons[e->tls.state].truth, ec_tls_reason(e), "%s",
                          e->tls.text);
}

static void alarm_condition(const struct ec *e, struct stw_conditions *c)
{
    unsigned all = ec_alarms(e);
    if (all & STW_ETCD_ALARM_CORRUPT)
        stw_condition_set(c, "AlarmActive", STW_TRUE, "Corrupt",
                          "the data of members differ (alarm CORRUPT)");
    else if ((all & STW_ETCD_ALARM_NOSPACE) && e->spec.maintenance.recover_space)
        stw_condition_set(
            c, "AlarmActive", STW_TRUE, "NoSpace",
            "the database has reached its quota and takes no more writes (alarm NOSPACE): steward "
            "removes old revisions and defragments the members, see status.defragmentation. If "
            "that is not enough: delete keys, or raise spec.options.quotaBackendBytes");
    else if (all & STW_ETCD_ALARM_NOSPACE)
        stw_condition_set(
            c, "AlarmActive", STW_TRUE, "NoSpace",
            "the database has reached its quota and takes no more writes (alarm NOSPACE): delete "
            "keys, compact and `etcdctl defrag`, or raise spec.options.quotaBackendBytes. With "
            "spec.maintenance.recoverSpace steward compacts and defragments");
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

static void template_condition(const struct ec *e, struct stw_conditions *c)
{
    for (size_t i = 0; i < e->view.count; i++)
        if (e->details[i].has_pod && ec_is_outdated(e, &e->details[i].pod)) {
            stw_conditions_set_outdated(c, e->run, stw_res_pod.kind, e->view.members[i].name,
                                        stw_hash_parse(e->template_hash), "");
            return;
        }
}

static bool is_action_overdue(const struct ec *e)
{
    const struct ec_action *a = &e->state.action;
    return a->kind != EC_IDLE && e->view.now - a->start >= ec_action_limit(e);
}

bool ec_is_degraded(const struct ec *e, const char **ret_reason, char *text, size_t size)
{
    const struct ec_member *m = find_troubled_member(e);
    const bool overdue = is_action_overdue(e);
    if (overdue) {
        *ret_reason = "DeadlineExceeded";
        stw_format(text, size, "%s of %s takes longer than %lld s",
                   ec_kind_names[e->state.action.kind], e->state.action.member,
                   (long long)ec_action_limit(e));
    } else if (m) {
        const struct ec_pod_live *pod = &e->details[ec_index(e, m->name)].pod;
        *ret_reason = pod->reason;
        stw_format(text, size, "pod %s: %s", m->name, pod->text);
    }
    return overdue || m;
}

static void degraded_condition(const struct ec *e, struct stw_conditions *c)
{
    char text[STW_CONDITION_MESSAGE_MAX];
    const char *reason;
    if (ec_is_degraded(e, &reason, text, sizeof(text)))
        stw_condition_set(c, "Degraded", STW_TRUE, reason, "%s", text);
    else
        stw_condition_set(c, "Degraded", STW_FALSE, "AsExpected", "nothing is stuck");
}

/* Of the Services, the one that waits; only while one does. */
static void adoption_condition(const struct ec *e, struct stw_conditions *c)
{
    struct stw_aspect a;
    for (int i = 0; i < EC_CHILDREN; i++) {
        if (e->children[i].state != STW_CHILD_HELD)
            continue;
        stw_aspect_child(&a, &e->children[i]);
        stw_condition_set(c, "Adopting", STW_TRUE, a.reason, "%s", a.message);
        return;
    }
}

static void backup_condition(const struct ec *e, struct stw_conditions *c)
{
    const struct ec_backups *backups = stw_product_etcd_backups(e->run->env);
    if (backups)
        backups->set_condition(e->run, e->run->key, c);
    else
        stw_condition_keep(c, "BackupReady");
}

void ec_conditions(const struct ec *e, struct stw_conditions *c)
{
    set_available_condition(e, c);
    quorum_condition(e, c);
    members_condition(e, c);
    scaling_condition(e, c);
    progress_conditions(e, c);
    resizing_condition(e, c);
    template_condition(e, c);
    tls_condition(e, c);
    backup_condition(e, c);
    alarm_condition(e, c);
    mismatch_condition(e, c);
    degraded_condition(e, c);
    adoption_condition(e, c);
}
