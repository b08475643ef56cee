/* SPDX-License-Identifier: Apache-2.0
 *
 * What an EtcdCluster reports about its backups, from the status of the EtcdBackups that reference
 * it. */
#include "base/util.h"
#include "controller/condition.h"
#include "controller/object.h"
#include "controller/packed.h"
#include "kinds/common/product.h"
#include "kinds/etcdbackup/plan.h"
#include "kinds/etcdbackup/reconcile.h"
#include "kinds/etcdbackup/snapshot.h"
#include "kinds/etcdbackup/state.h"
#include "kube/tree.h"
#include "schema/zones.h"

#include <stdio.h>

#define KEYS_MAX (256u << 10)
#define TEXT_MAX (8u << 20)
#define PERIODS 2 /* a backup that is older than this many periods is stale */

/* Over all EtcdBackups of a cluster. */
struct summary {
    const struct stw_run *run;
    int64_t now, db_size;
    bool periodic;  /* at least one has a schedule or an interval */
    int64_t newest; /* time of the newest verified backup */
    json_t *last;   /* status.lastBackup */
    int64_t last_time;
    bool ready, failing;
    bool sends;                  /* a snapshot is being taken */
    char stale[300], error[400]; /* messages of one that is not ready */
};

/* Seconds: from one backup to the next, 0 if there is only one; and how long a snapshot may take. */
struct timing {
    int64_t period, limit;
};

static int64_t period_of(const struct summary *s, const struct eb_spec *spec)
{
    struct stw_cron cron;
    struct eb_clockwork c = {.now = s->now, .interval_s = spec->policy.interval_s, .cron = &cron};
    c.mode = spec->policy.schedule ? EB_CRON : c.interval_s > 0 ? EB_INTERVAL : EB_ONCE;
    if (c.mode == EB_CRON)
        c.zone = stw_zones_get(stw_product_zones(s->run->env), spec->policy.time_zone);
    if (c.mode == EB_CRON && (!c.zone || stw_cron_parse(spec->policy.schedule, &cron, NULL) != 0))
        return 0;
    return eb_plan_period(&c);
}

static struct timing timing_of(const struct summary *s, const struct stw_object *o)
{
    struct stw_arena *arena = stw_arena_create();
    struct eb_spec spec = {0};
    struct timing t = {0};
    if (arena && stw_kind_decode(&stw_kind_etcdbackup, stw_json_get(o->root, "spec"), arena, &spec,
                                 NULL) == 0)
        t = (struct timing){period_of(s, &spec),
                            eb_snapshot_limit(spec.policy.timeout_s, s->db_size)};
    stw_arena_destroy(arena);
    return t;
}

static void take_last(struct summary *s, const struct stw_object *o, const char *name)
{
    const json_t *newest = json_array_get(json_object_get(o->status, "artifacts"), 0);
    int64_t at = stw_tree_time(newest, "time", EB_NEVER);
    if (at == EB_NEVER || (s->last && at <= s->last_time))
        return;
    json_decref(s->last);
    s->last_time = at;
    s->last = json_pack("{s:s,s:O,s:O,s:O}", "name", name, "time", json_object_get(newest, "time"),
                        "revision", json_object_get(newest, "revision"), "verified",
                        json_object_get(newest, "verified"));
}

static void take_periodic(struct summary *s, const struct stw_object *o, const char *name,
                          const struct eb_state *state, int64_t period)
{
    const json_t *verified = eb_state_verified(state);
    int64_t at = stw_tree_time(verified, "time", EB_NEVER), created = EB_NEVER, us;
    if (stw_time_parse(o->created, &us) == 0)
        created = us / 1000000;
    s->periodic = true;
    s->newest = STW_MAX(s->newest, at);
    int64_t since = at != EB_NEVER ? at : created;
    /* One of the future, by a clock that was ahead, is not fresh until then. */
    if (at != EB_NEVER && llabs(s->now - since) <= PERIODS * period)
        s->ready = true;
    else if (at == EB_NEVER)
        stw_format(s->stale, sizeof(s->stale), "EtcdBackup \"%.200s\" has made none yet", name);
    else /* the time, not the age: an age would change the status in each round */
        stw_format(s->stale, sizeof(s->stale),
                   "the newest verified backup of EtcdBackup \"%.150s\" is of %.30s, and one is "
                   "due each %lld s",
                   name, json_string_value(json_object_get(verified, "time")), (long long)period);
    s->failing = s->failing || state->failures > 0;
    if (state->failures > 0)
        stw_format(s->error, sizeof(s->error), "EtcdBackup \"%.100s\": %.250s", name, state->error);
}

static void take_backup(struct summary *s, const struct stw_object *o, const char *name)
{
    struct timing t = timing_of(s, o);
    struct eb_state state;
    eb_state_read(o->status, &state);
    s->sends = s->sends || eb_plan_sends(&state, t.limit, s->now);
    take_last(s, o, name);
    if (t.period > 0)
        take_periodic(s, o, name, &state, t.period);
    eb_state_done(&state);
}

static void summarize_backups(const struct stw_run *run, const char *cluster, int64_t db_size,
                              struct summary *s)
{
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2048), keys = STW_BUF_INIT(KEYS_MAX);
    size_t at = 0;
    *s = (struct summary){.run = run,
                          .now = stw_wall_us(run->clock) / 1000000,
                          .db_size = db_size,
                          .newest = EB_NEVER};
    struct stw_informer *cache = stw_run_other_cache(run, &stw_controller_etcdbackup);
    if (!cache)
        return;
    stw_buf_addf(&index, "backupOf:%s", cluster);
    stw_informer_keys(cache, stw_buf_str(&index), &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        stw_autoobject struct stw_object o = {0};
        const char *slash = strchr(key, '/');
        /* Of a large one that cannot be read now, what the cache has. */
        if (!slash || stw_object_load_other(run, &stw_controller_etcdbackup, key, &o, NULL) > 0 ||
            o.deleting)
            continue;
        take_backup(s, &o, slash + 1);
    }
}

static void set_condition(const struct stw_run *run, const char *key, struct stw_conditions *c)
{
    struct summary s;
    summarize_backups(run, key, 0, &s);
    json_decref(s.last);
    if (!s.periodic)
        return;
    if (s.ready)
        stw_condition_set(c, "BackupReady", STW_TRUE, "BackupFresh",
                          "there is a verified backup that is not older than %d periods", PERIODS);
    else if (s.failing)
        stw_condition_set(c, "BackupReady", STW_FALSE, "BackupFailing", "%s", s.error);
    else
        stw_condition_set(c, "BackupReady", STW_FALSE,
                          s.newest == EB_NEVER ? "NeverSucceeded" : "BackupStale", "%s", s.stale);
}

static json_t *find_newest(const struct stw_run *run, const char *key)
{
    struct summary s;
    summarize_backups(run, key, 0, &s);
    return s.last;
}

static bool is_sending(const struct stw_run *run, const char *key, int64_t db_size)
{
    struct summary s;
    summarize_backups(run, key, db_size, &s);
    json_decref(s.last);
    return s.sends;
}

const struct ec_backups eb_of_cluster = {
    .set_condition = set_condition,
    .newest = find_newest,
    .sending = is_sending,
};
