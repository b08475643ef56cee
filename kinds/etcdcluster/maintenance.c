/* SPDX-License-Identifier: Apache-2.0
 *
 * Upkeep of the databases: when a pass is due, which members it is about, and what is recorded and told
 * of it.  plan/maintenance.c decides what is done next. */
#include "kinds/etcdcluster/maintenance.h"
#include "base/backoff.h"
#include "base/util.h"
#include "kinds/common/product.h"
#include "kinds/common/schedule.h"
#include "kinds/etcdcluster/act/maintenance_turn.h"
#include "kinds/etcdcluster/backups.h"
#include "kinds/etcdcluster/plan/entries.h"
#include "kinds/etcdcluster/plan/facts.h"
#include "kinds/etcdcluster/plan/maintenance_limits.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/runtime.h"
#include "schema/names.h"
#include "schema/zones.h"

#include <stdio.h>

#define NANO 1000000000
#define MIB (1 << 20)
#define REST_S 600       /* from the end of a pass to the beginning of the next one */
#define LONG_REST_S 3600 /* the same after a pass for space that made none */
#define DISARM_FIRST_S 1 /* from one disarmed alarm to the next */
#define DISARM_MAX_S 600
#define LATE_S 3600        /* an instant of the schedule that is older is not made up for */
#define REVISIONS_MIN 1000 /* that a compaction keeps */
#define RECLAIMABLE_DEFAULT (64 * MIB)
#define SLACK_MIN (4 * MIB)

/* --- which members */

static int64_t free_bytes(const struct stw_etcd_health *h)
{
    return h->db_size > h->db_size_in_use ? h->db_size - h->db_size_in_use : 0;
}

static bool is_worthwhile(const struct ec *e, const struct stw_etcd_health *h)
{
    stw_quantity least = RECLAIMABLE_DEFAULT * (stw_quantity)NANO;
    int64_t bytes = free_bytes(h);
    long percent = strtol(e->spec.maintenance.defragmentation.min_reclaimable, NULL, 10);
    (void)stw_quantity_of(e->spec.maintenance.defragmentation.min_reclaimable_bytes, &least);
    return (stw_quantity)bytes * 100 >= (stw_quantity)h->db_size * percent && bytes > 0 &&
           (stw_quantity)bytes * NANO >= least;
}

/* Of a member whose defragmentation was begun, and about which etcd has not answered. */
static bool has_shrunk(const struct stw_etcd_health *h, int64_t before)
{
    return h->db_size < before || free_bytes(h) <= STW_MAX(h->db_size / 10, SLACK_MIN);
}

/* p->count: it is not in the pass. */
static size_t find_in_pass(const struct ec_pass *p, const char *member)
{
    size_t n = 0;
    while (n < p->count && !stw_streq(p->members[n].name, member))
        n++;
    return n;
}

static bool is_to_defragment(const struct ec *e, size_t i)
{
    const struct ec_pass *p = &e->state.pass;
    const struct ec_member *m = &e->view.members[i];
    const struct stw_etcd_health *h = &e->details[i].health;
    bool under_way =
        e->state.action.kind == EC_DEFRAGMENT && stw_streq(e->state.action.member, m->name);
    size_t n = find_in_pass(p, m->name);
    if (n < p->count && p->members[n].after >= 0)
        return false;
    if (n < p->count && under_way)
        return !m->answers || !has_shrunk(h, p->members[n].before);
    return m->answers && (p->reason != EC_WHY_SCHEDULE || is_worthwhile(e, h));
}

/* NULL: it is not in the pass. */
static int64_t *find_tries(struct ec_pass *p, const char *member)
{
    size_t n = find_in_pass(p, member);
    return n < p->count ? &p->members[n].tries : NULL;
}

/* --- when */

static bool is_full(const struct ec *e)
{
    bool full = e->view.stray_alarms & STW_ETCD_ALARM_NOSPACE;
    for (size_t i = 0; i < e->view.count; i++)
        full = full ||
               (e->view.members[i].listed && (e->view.members[i].alarms & STW_ETCD_ALARM_NOSPACE));
    return full;
}

/* If all have space, it is enough to disarm the alarm. */
static bool needs_space(const struct ec *e)
{
    bool space = true;
    for (size_t i = 0; i < e->view.count; i++)
        space = space && (!e->view.members[i].listed || e->view.members[i].space);
    return is_full(e) && !space;
}

static const struct stw_zone *zone_of(const struct ec *e)
{
    struct stw_zones *zones = stw_product_zones(e->run->env);
    const char *name = e->spec.maintenance.defragmentation.time_zone;
    return zones && name ? stw_zones_get(zones, name) : NULL;
}

static bool is_in_window(const struct ec *e)
{
    const struct stw_zone *zone = zone_of(e);
    return zone && stw_hours_at(&e->spec.maintenance.defragmentation.hours, zone, e->view.now) ==
                       STW_HOURS_ALLOWED;
}

/* The newest instant of the schedule, if it was not honoured before, and is not too old. */
static bool find_tick(const struct ec *e, int64_t *ret)
{
    const char *schedule = e->spec.maintenance.defragmentation.schedule;
    const struct stw_zone *zone = zone_of(e);
    struct stw_cron cron;
    int64_t us, created = stw_time_parse(e->object.created, &us) == 0 ? us / 1000000 : 0;
    int64_t base = e->state.pass.tick ? e->state.pass.tick : created;
    if (!schedule || !zone || stw_cron_parse(schedule, &cron, NULL) != 0 ||
        stw_calendar_last(&cron, zone, e->view.now, ret) != 0)
        return false;
    bool ahead = stw_schedule_is_ahead(&cron, zone, base, e->view.now);
    return (*ret > base || ahead) && e->view.now - *ret < LATE_S;
}

static bool is_due(const struct ec *e, enum ec_why why)
{
    int64_t tick;
    switch (why) {
    case EC_WHY_SPACE:
        return e->spec.maintenance.recover_space && needs_space(e);
    case EC_WHY_REQUEST:
        return *e->defragment && !stw_streq(e->defragment, e->state.pass.request);
    case EC_WHY_SCHEDULE:
        return find_tick(e, &tick) && is_in_window(e);
    default:
        return false;
    }
}

static bool is_backed_up(const struct ec *e)
{
    const struct ec_backups *backups = stw_product_etcd_backups(e->run->env);
    return backups && backups->sending(e->run, e->run->key, ec_largest_database(e));
}

/* For example when a compaction has ended after the pass that began it. */
static bool has_free_pages(const struct ec *e)
{
    for (size_t i = 0; i < e->view.count; i++) {
        const struct stw_etcd_health *h = &e->details[i].health;
        if (e->view.members[i].listed && e->view.members[i].answers &&
            free_bytes(h) > STW_MAX(h->db_size / 10, SLACK_MIN))
            return true;
    }
    return false;
}

/* A rest of the future is of a clock that was ahead. */
static int64_t end_of_rest(int64_t from, int64_t rest_s, int64_t now)
{
    return from && now >= from && now < from + rest_s ? from + rest_s : 0;
}

/* When the next pass for this reason may begin; 0: now.  A database that is full of keys gets no space
 * by another attempt soon after. */
static int64_t rest_before(const struct ec *e, enum ec_why why)
{
    const struct ec_pass *p = &e->state.pass;
    int64_t now = e->view.now, rest = end_of_rest(p->ended, REST_S, now);
    if (why == EC_WHY_SPACE && !has_free_pages(e))
        rest = STW_MAX(rest, end_of_rest(p->vain, LONG_REST_S, now));
    return rest;
}

/* A reason whose pass has to rest holds up no other one. */
static enum ec_why find_due(struct ec *e)
{
    static const enum ec_why all[] = {EC_WHY_SPACE, EC_WHY_REQUEST, EC_WHY_SCHEDULE};
    e->pass_from = 0;
    for (size_t i = 0; i < STW_COUNT(all); i++) {
        int64_t rest = is_due(e, all[i]) ? rest_before(e, all[i]) : 0;
        if (is_due(e, all[i]) && rest == 0)
            return all[i];
        if (rest && (e->pass_from == 0 || rest < e->pass_from))
            e->pass_from = rest;
    }
    return EC_WHY_NOT;
}

static bool same_action(const struct ec_action *a, const struct ec_action *b)
{
    return a->kind == b->kind && stw_streq(a->member, b->member) && a->start == b->start;
}

static void judge_disarm(struct ec *e, struct ec_kept *kept)
{
    if (!kept)
        return;
    if (e->view.listed && !is_full(e))
        kept->disarmed.count = 0;
    e->view.disarm_rests = stw_now_ms(e->run->clock) < kept->disarmed.until_ms;
}

void ec_note_disarmed(const struct ec *e, struct ec_kept *kept)
{
    uint64_t rest_s = stw_backoff(DISARM_FIRST_S, kept->disarmed.count++, DISARM_MAX_S);
    kept->disarmed.until_ms = stw_now_ms(e->run->clock) + rest_s * 1000;
}

/* History is removed for good: what allowed it must still hold. */
static const char *find_end(const struct ec *e)
{
    const struct ec_pass *p = &e->state.pass;
    if (p->reason == EC_WHY_SCHEDULE && !is_in_window(e))
        return "its window has ended";
    if (p->reason == EC_WHY_SPACE && !e->spec.maintenance.recover_space)
        return "maintenance.recoverSpace is false by now";
    if (p->reason == EC_WHY_SPACE && p->compact && !is_full(e))
        return "no member has the alarm NOSPACE any more";
    return NULL;
}

void ec_judge_upkeep(struct ec *e)
{
    struct ec_upkeep *u = &e->view.upkeep;
    const struct ec_pass *p = &e->state.pass;
    struct ec_kept *kept = ec_runtime_get(e->runtime, e->run);
    ec_end_turn(e);
    judge_disarm(e, kept);
    *u =
        (struct ec_upkeep){.open = p->open ? p->reason : EC_WHY_NOT, .limit_s = ec_upkeep_limit(e)};
    if (kept && same_action(&kept->upkeep.action, &e->state.action))
        u->call = kept->upkeep.result;
    if (!p->open) {
        u->due = find_due(e);
        return;
    }
    const int64_t *tries = find_tries(&e->state.pass, e->state.action.member);
    u->tries = e->state.action.kind == EC_DEFRAGMENT && tries ? *tries : 0;
    u->compact = p->compact;
    u->ends = find_end(e);
    u->busy = is_backed_up(e);
    for (size_t i = 0; i < e->view.count; i++)
        e->view.members[i].to_defragment = is_to_defragment(e, i);
}

/* --- what is recorded */

static void begin_pass(struct ec *e)
{
    struct ec_pass *p = &e->state.pass;
    p->open = true;
    p->reason = e->move.why;
    p->result = EC_RESULT_NONE;
    p->begun = e->view.now;
    p->ended = 0;
    p->count = 0;
    p->message[0] = '\0';
    p->compact = p->reason == EC_WHY_SPACE;
    p->compact_to = 0;
    if (p->reason == EC_WHY_SCHEDULE)
        (void)find_tick(e, &p->tick);
    if (p->reason == EC_WHY_REQUEST)
        stw_format(p->request, sizeof(p->request), "%s", e->defragment);
}

static void end_pass(struct ec *e, enum ec_result result, const char *message)
{
    struct ec_pass *p = &e->state.pass;
    p->open = p->compact = false;
    p->compact_to = 0;
    p->result = result;
    p->ended = e->view.now;
    if (p->reason == EC_WHY_SPACE)
        p->vain =
            result != EC_RESULT_STOPPED && ec_pass_reclaimed(p) <= SLACK_MIN ? e->view.now : 0;
    stw_format(p->message, sizeof(p->message), "%.190s", message);
}

/* Old revisions are for watchers that have been cut off for a while; writes are worth more now. */
static uint64_t revision_to_keep(const struct ec *e)
{
    const char *retention = e->spec.options.auto_compaction_retention;
    bool by_number = stw_streq(e->spec.options.auto_compaction_mode, "revision");
    uint64_t keep = by_number && retention ? strtoull(retention, NULL, 10) : 0, newest = 0;
    size_t i = ec_index(e, e->move.member);
    if (i != EC_MEMBERS_MAX)
        newest = e->details[i].health.revision;
    keep = STW_MAX(keep, (uint64_t)REVISIONS_MIN);
    return newest > keep && newest < INT64_MAX ? newest - keep : 0;
}

static void begin_member(struct ec *e)
{
    struct ec_pass *p = &e->state.pass;
    size_t i = ec_index(e, e->move.member), n = find_in_pass(p, e->move.member);
    if (n == EC_PASS_MEMBERS) {
        memmove(p->members, p->members + 1, sizeof(p->members) - sizeof(p->members[0]));
        n = --p->count;
    }
    int64_t size = i == EC_MEMBERS_MAX ? 0 : e->details[i].health.db_size;
    bool again = n < p->count; /* it was given up for a while: its tries count */
    if (!again)
        p->count++;
    stw_format(p->members[n].name, EC_NAME_MAX, "%s", e->move.member);
    p->members[n].before = again ? STW_MAX(p->members[n].before, size) : size;
    p->members[n].after = -1;
    p->members[n].tries = again ? p->members[n].tries : 0;
}

static void finish_member(struct ec *e)
{
    struct ec_pass *p = &e->state.pass;
    size_t i = ec_index(e, e->was.action.member), n = find_in_pass(p, e->was.action.member);
    if (n == p->count)
        return;
    int64_t before = p->members[n].before;
    bool answers = i != EC_MEMBERS_MAX && e->view.members[i].answers;
    p->members[n].after = answers ? e->details[i].health.db_size : before;
    int64_t won = before > p->members[n].after ? before - p->members[n].after : 0;
    if (__builtin_add_overflow(p->reclaimed_total, won, &p->reclaimed_total))
        p->reclaimed_total = INT64_MAX;
    ec_runtime_count_defragmented(e->runtime, e->run, EC_RESULT_DONE, won);
}

static void fail_call(struct ec *e)
{
    const struct ec_kept *kept = ec_runtime_get(e->runtime, e->run);
    bool known = kept && same_action(&kept->upkeep.action, &e->was.action) && *kept->upkeep.text;
    const char *kind = ec_kind_names[e->was.action.kind];
    char text[300];
    if (known)
        stw_format(text, sizeof(text), "%s %s: %s", kind, e->was.action.member, kept->upkeep.text);
    else
        stw_format(text, sizeof(text),
                   "%s %s takes longer than %lld s, or was interrupted again and again", kind,
                   e->was.action.member, (long long)ec_upkeep_limit(e));
    if (e->was.action.kind == EC_DEFRAGMENT)
        ec_runtime_count_defragmented(e->runtime, e->run, EC_RESULT_FAILED, 0);
    end_pass(e, EC_RESULT_FAILED, text);
}

static void finish_call(struct ec *e)
{
    struct ec_pass *p = &e->state.pass;
    const struct ec_kept *kept = ec_runtime_get(e->runtime, e->run);
    bool others = kept && same_action(&kept->upkeep.action, &e->was.action) && kept->upkeep.others;
    if (e->move.result == EC_RESULT_FAILED) {
        fail_call(e);
    } else if (e->move.result == EC_RESULT_DONE && e->was.action.kind == EC_DEFRAGMENT) {
        finish_member(e);
    } else if (e->move.result == EC_RESULT_DONE) {
        p->compacted = others ? p->compacted : STW_MAX(p->compacted, p->compact_to);
        p->compact = false;
        p->compact_to = 0;
    }
}

void ec_record_upkeep(struct ec *e)
{
    const struct ec_move *m = &e->move;
    enum ec_kind kind = m->intent.kind, was = e->was.action.kind;
    bool written = ec_intended(&e->view, m);
    if (m->act == EC_BEGIN_PASS)
        begin_pass(e);
    else if (m->act == EC_END_PASS)
        end_pass(e, m->result, m->text);
    else if (m->act == EC_FINISH && (was == EC_DEFRAGMENT || was == EC_COMPACT))
        finish_call(e);
    else if (kind == EC_DEFRAGMENT && !written)
        begin_member(e);
    else if (kind == EC_COMPACT && !written)
        e->state.pass.compact_to = revision_to_keep(e);
    int64_t *tries = find_tries(&e->state.pass, m->member);
    if (m->act == EC_MEMBER_DEFRAGMENT && tries)
        ++*tries;
}

/* --- etcd's answer */

void ec_answer_upkeep(struct ec *e, int rc, enum stw_etcd_trouble trouble, struct ec_kept *kept)
{
    bool lost = trouble == STW_ETCD_UNREACHABLE || trouble == STW_ETCD_NO_LEADER;
    bool again = same_action(&kept->upkeep.action, &e->state.action);
    kept->upkeep.others = trouble == STW_ETCD_EXISTS && !again;
    kept->upkeep.action = e->state.action;
    kept->upkeep.text[0] = '\0';
    kept->upkeep.result = rc == 0 || trouble == STW_ETCD_EXISTS ? EC_RESULT_DONE
                          : lost                                ? EC_RESULT_NONE
                                                                : EC_RESULT_FAILED;
    if (kept->upkeep.result == EC_RESULT_FAILED)
        stw_format(kept->upkeep.text, sizeof(kept->upkeep.text), "%.150s", e->err.text);
    if (lost)
        kept->unsure_until_ms = stw_now_ms(e->run->clock) + EC_UNSURE_MS;
    e->err = (struct stw_error){0};
}

/* --- the status */

static int64_t find_next_tick(const struct ec *e)
{
    const char *schedule = e->spec.maintenance.defragmentation.schedule;
    const struct stw_zone *zone = zone_of(e);
    struct stw_cron cron;
    int64_t next = 0;
    if (!schedule || !zone || stw_cron_parse(schedule, &cron, NULL) != 0 ||
        stw_calendar_next(&cron, zone, e->view.now, &next) != 0)
        return 0;
    return next;
}

void ec_add_upkeep(const struct ec *e, json_t *status)
{
    json_t *o = json_object_get(status, "defragmentation");
    int64_t next = e->spec.paused ? 0 : find_next_tick(e);
    if (next && !o) {
        o = json_object();
        (void)json_object_set_new(status, "defragmentation", o);
    }
    stw_tree_set_time(o, "nextScheduleTime", next, 0);
    if (o && e->state.pass.open && e->move.pass_waits)
        (void)json_object_set_new(o, "message", json_sprintf("it waits %s", e->move.pass_waits));
    if (o)
        stw_tree_set_time(o, "notBeforeTime", e->pass_from, 0);
}

/* --- events */

void ec_note_upkeep_news(struct ec *e)
{
    const struct ec_pass *now = &e->state.pass, *was = &e->was.pass;
    e->news.pass_began = now->open && now->count > 0 && (was->count == 0 || !was->open);
    e->news.pass_ended = was->open && !now->open && (now->count > 0 || *now->message);
    e->news.compacted = now->compacted != was->compacted;
    e->news.ahead = now->tick < was->tick;
}

static void tell_end(struct ec *e)
{
    const struct ec_pass *p = &e->state.pass;
    size_t done = 0;
    for (size_t i = 0; i < p->count; i++)
        done += p->members[i].after >= 0;
    if (p->result == EC_RESULT_DONE)
        stw_object_event(e->run, &e->object, false, "Defragmented", "Defragment",
                         "%zu members were defragmented, and their databases have %lld bytes less",
                         done, (long long)ec_pass_reclaimed(p));
    else
        stw_object_event(e->run, &e->object, p->result == EC_RESULT_FAILED,
                         p->result == EC_RESULT_FAILED ? "DefragmentationFailed"
                                                       : "DefragmentationStopped",
                         "Defragment", "%zu members were defragmented: %s", done, p->message);
}

void ec_tell_upkeep(struct ec *e)
{
    const struct ec_pass *p = &e->state.pass;
    char tick[STW_TIME_LEN];
    if (e->news.ahead) {
        stw_time_format(e->was.pass.tick * 1000000, tick);
        stw_object_event(
            e->run, &e->object, true, "ClockWasAhead", "Defragment",
            "the latest instant was %s, by a clock that was ahead: the schedule goes on "
            "from now",
            tick);
    }
    if (e->news.pass_began)
        stw_object_event(e->run, &e->object, false, "DefragmentationStarted", "Defragment",
                         "members are defragmented, one at a time");
    if (e->news.compacted)
        stw_object_event(e->run, &e->object, false, "HistoryCompacted", "Compact",
                         "revisions before %llu were removed, to make space",
                         (unsigned long long)p->compacted);
    if (e->news.pass_ended)
        tell_end(e);
}
