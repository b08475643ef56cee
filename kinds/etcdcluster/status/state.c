/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts between the status and a struct: the state that has to survive a restart of steward. */
#include "kinds/etcdcluster/status/state.h"

#include "base/clock.h"
#include "base/util.h"
#include "controller/condition.h"
#include "etcd/etcd.h"
#include "kinds/etcdcluster/status/pass.h"
#include "kube/tree.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#define EC_AHEAD_S 3600

static const char *const force_steps[] = {[EC_FORCE_NOT] = "",
                                          [EC_FORCE_CLEAR] = "Clear",
                                          [EC_FORCE_START] = "Start",
                                          [EC_FORCE_RESTART] = "Restart"};
static_assert(STW_COUNT(force_steps) == EC_FORCE_STEPS, "one name for each step");

/* --- reading */

static uint64_t id_at(const json_t *object, const char *key)
{
    char *end;
    const char *text = stw_tree_text(object, key);
    errno = 0;
    uint64_t id = strtoull(text, &end, 16);
    return *text && *end == '\0' && errno == 0 ? id : 0;
}

/* EC_SEED and EC_ADD share one name in the status: the first addition is that of the seed. */
static void read_action(const json_t *o, uint64_t cluster_id, struct ec_action *a)
{
    *a = (struct ec_action){0};
    for (int i = EC_IDLE + 1; i < EC_KINDS; i++)
        if (stw_streq(ec_kind_names[i], stw_tree_text(o, "kind")))
            a->kind = (enum ec_kind)i;
    if (a->kind == EC_SEED || a->kind == EC_ADD)
        a->kind = cluster_id == 0 ? EC_SEED : EC_ADD;
    stw_tree_copy(o, "member", a->member, sizeof(a->member));
    a->id = id_at(o, "id");
    a->start = stw_tree_time(o, "startTime", 0);
}

static void read_force(const json_t *o, struct ec_state *s)
{
    for (size_t i = 1; i < STW_COUNT(force_steps); i++)
        if (stw_streq(force_steps[i], stw_tree_text(o, "step")))
            s->force_step = (enum ec_force_step)i;
    stw_tree_copy(o, "member", s->force_member, sizeof(s->force_member));
}

static void read_failovers(const json_t *o, struct ec_state *s)
{
    json_t *times = json_object_get(o, "times"), *time;
    size_t i;
    s->failovers_total = stw_tree_count(o, "total");
    json_array_foreach (times, i, time) {
        int64_t us;
        const char *text = json_string_value(time);
        if (text && s->failover_count < EC_FAILOVERS_MAX && stw_time_parse(text, &us) == 0)
            s->failovers[s->failover_count++] = us / 1000000;
    }
}

static unsigned read_alarms(const json_t *list)
{
    unsigned alarms = 0;
    size_t i;
    const json_t *alarm;
    json_array_foreach (list, i, alarm) {
        const char *text = json_string_value(alarm);
        if (text && stw_streq(text, "NOSPACE"))
            alarms |= STW_ETCD_ALARM_NOSPACE;
        if (text && stw_streq(text, "CORRUPT"))
            alarms |= STW_ETCD_ALARM_CORRUPT;
    }
    return alarms;
}

/* A voter has been up, and so has a learner that reported its version. */
static void read_member(const json_t *o, struct ec_remembered *m)
{
    stw_tree_copy(o, "name", m->name, sizeof(m->name));
    m->id = id_at(o, "id");
    m->learner = stw_streq(stw_tree_text(o, "role"), "Learner");
    m->promoted = !m->learner || json_is_true(json_object_get(o, "promoted"));
    m->leader = stw_streq(stw_tree_text(o, "role"), "Leader");
    m->healthy = json_is_true(json_object_get(o, "healthy"));
    stw_tree_copy(o, "version", m->version, sizeof(m->version));
    stw_tree_copy(o, "storageVersion", m->storage_version, sizeof(m->storage_version));
    m->started = *m->version || !m->learner;
    m->since = stw_tree_time(o, "since", 0);
    m->alarms = read_alarms(json_object_get(o, "alarms"));
}

static int64_t read_quorum_since(const json_t *status)
{
    const json_t *lost = stw_condition_find(json_object_get(status, "conditions"), "QuorumLost");
    return stw_condition_is(lost, STW_FALSE) ? stw_tree_time(lost, "lastTransitionTime", 0) : 0;
}

void ec_state_read(const json_t *status, struct ec_state *s)
{
    const json_t *storage = json_object_get(status, "storage");
    const json_t *list = json_object_get(status, "memberList"), *entry;
    size_t i;
    *s = (struct ec_state){.cluster_id = id_at(status, "clusterID"),
                           .never_ran = json_is_true(json_object_get(status, "neverRan")),
                           .quorum_lost_since = stw_tree_time(status, "quorumLostTime", 0),
                           .quorum_since = read_quorum_since(status),
                           .last_rolled = stw_tree_time(status, "lastRollTime", 0)};
    s->storage.latched = *stw_tree_text(storage, "medium") != '\0';
    s->storage.durable = stw_streq(stw_tree_text(storage, "medium"), "Persistent");
    stw_tree_copy(storage, "class", s->storage.class, sizeof(s->storage.class));
    stw_tree_copy(storage, "size", s->storage.size, sizeof(s->storage.size));
    s->storage.grown = json_is_string(json_object_get(storage, "initialSize"));
    stw_tree_copy(storage, "initialSize", s->storage.initial_size, sizeof(s->storage.initial_size));
    stw_tree_copy(status, "currentVersion", s->current_version, sizeof(s->current_version));
    stw_tree_copy(status, "oldestVersion", s->oldest_version, sizeof(s->oldest_version));
    read_action(json_object_get(status, "currentAction"), s->cluster_id, &s->action);
    read_force(json_object_get(status, "forceNewCluster"), s);
    read_failovers(json_object_get(status, "failovers"), s);
    ec_pass_read(json_object_get(status, "defragmentation"), &s->pass);
    json_array_foreach (list, i, entry)
        if (s->member_count < EC_MEMBERS_MAX)
            read_member(entry, &s->members[s->member_count++]);
}

const struct ec_remembered *ec_state_find(const struct ec_state *s, const char *name)
{
    for (size_t i = 0; i < s->member_count; i++)
        if (stw_streq(s->members[i].name, name))
            return &s->members[i];
    return NULL;
}

static void forget_time(int64_t *at, int64_t now, int64_t instead)
{
    if (*at - EC_AHEAD_S > now)
        *at = instead;
}

void ec_state_forget_future(struct ec_state *s, int64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->failover_count; i++)
        if (s->failovers[i] - EC_AHEAD_S <= now)
            s->failovers[kept++] = s->failovers[i];
    s->failover_count = kept;
    for (size_t i = 0; i < s->member_count; i++)
        forget_time(&s->members[i].since, now, 0);
    forget_time(&s->quorum_lost_since, now, 0);
    forget_time(&s->quorum_since, now, 0);
    forget_time(&s->last_rolled, now, 0);
    forget_time(&s->action.start, now, now);
}

/* --- failovers */

int64_t ec_state_failovers(const struct ec_state *s, int64_t now)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->failover_count; i++)
        n += s->failovers[i] > now - EC_FAILOVER_WINDOW;
    return n;
}

void ec_state_count_failover(struct ec_state *s, int64_t now)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->failover_count; i++)
        if (s->failovers[i] > now - EC_FAILOVER_WINDOW)
            s->failovers[kept++] = s->failovers[i];
    if (kept == EC_FAILOVERS_MAX) /* maxPerHour does not allow that many */
        memmove(s->failovers, s->failovers + 1, --kept * sizeof(s->failovers[0]));
    s->failovers[kept++] = now;
    s->failover_count = kept;
    s->failovers_total++;
}

/* --- writing */

static json_t *time_json(int64_t at)
{
    char text[STW_TIME_LEN];
    if (at == 0)
        return NULL;
    stw_time_format(at * 1000000, text);
    return json_string(text);
}

static void set_or_delete_field(json_t *o, const char *key, json_t *value)
{
    if (value)
        (void)json_object_set_new(o, key, value);
    else
        (void)json_object_del(o, key);
}

json_t *ec_id_json(uint64_t id)
{
    return json_sprintf("%llx", (unsigned long long)id);
}

static json_t *known_id_json(uint64_t id)
{
    return id ? ec_id_json(id) : NULL;
}

static json_t *text_json(const char *text)
{
    return *text ? json_string(text) : NULL;
}

static json_t *action_json(const struct ec_action *a)
{
    if (a->kind == EC_IDLE)
        return NULL;
    json_t *o = json_pack("{s:s,s:s}", "kind", ec_kind_names[a->kind], "member", a->member);
    set_or_delete_field(o, "id", known_id_json(a->id));
    set_or_delete_field(o, "startTime", time_json(a->start));
    return o;
}

static json_t *force_json(const struct ec_state *s)
{
    if (s->force_step == EC_FORCE_NOT)
        return NULL;
    return json_pack("{s:s,s:s}", "step", force_steps[s->force_step], "member", s->force_member);
}

static json_t *failovers_json(const struct ec_state *s)
{
    json_t *times = json_array();
    if (s->failovers_total == 0) {
        json_decref(times);
        return NULL;
    }
    for (size_t i = 0; i < s->failover_count; i++)
        (void)json_array_append_new(times, time_json(s->failovers[i]));
    return json_pack("{s:I,s:o}", "total", (json_int_t)s->failovers_total, "times", times);
}

static json_t *storage_json(const struct ec_state *s)
{
    if (!s->storage.latched)
        return NULL;
    json_t *o = json_pack("{s:s}", "medium", s->storage.durable ? "Persistent" : "EmptyDir");
    set_or_delete_field(o, "class", text_json(s->storage.class));
    set_or_delete_field(o, "size", text_json(s->storage.size));
    set_or_delete_field(o, "initialSize",
                        s->storage.grown ? json_string(s->storage.initial_size) : NULL);
    return o;
}

void ec_state_write(const struct ec_state *s, json_t *status)
{
    set_or_delete_field(status, "clusterID", known_id_json(s->cluster_id));
    set_or_delete_field(status, "neverRan", s->never_ran ? json_true() : NULL);
    set_or_delete_field(status, "storage", storage_json(s));
    set_or_delete_field(status, "currentAction", action_json(&s->action));
    set_or_delete_field(status, "forceNewCluster", force_json(s));
    set_or_delete_field(status, "failovers", failovers_json(s));
    set_or_delete_field(status, "defragmentation", ec_pass_json(&s->pass));
    set_or_delete_field(status, "quorumLostTime", time_json(s->quorum_lost_since));
    set_or_delete_field(status, "lastRollTime", time_json(s->last_rolled));
    set_or_delete_field(status, "currentVersion", text_json(s->current_version));
    set_or_delete_field(status, "oldestVersion", text_json(s->oldest_version));
}

static bool same_action(const struct ec_action *a, const struct ec_action *b)
{
    return a->kind == b->kind && stw_streq(a->member, b->member) && a->id == b->id &&
           a->start == b->start;
}

bool ec_state_same(const struct ec_state *a, const struct ec_state *b)
{
    return a->cluster_id == b->cluster_id && a->never_ran == b->never_ran &&
           same_action(&a->action, &b->action) && a->storage.latched == b->storage.latched &&
           a->force_step == b->force_step && stw_streq(a->force_member, b->force_member) &&
           a->failovers_total == b->failovers_total && a->last_rolled == b->last_rolled &&
           ec_pass_same(&a->pass, &b->pass);
}
