/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts between status.defragmentation and a struct. */
#include "kinds/etcdcluster/status/pass.h"

#include "base/clock.h"
#include "base/util.h"
#include "kube/tree.h"

#include <assert.h>
#include <stdio.h>

static const char *const reasons[] = {[EC_WHY_NOT] = "",
                                      [EC_WHY_SCHEDULE] = "Schedule",
                                      [EC_WHY_REQUEST] = "Requested",
                                      [EC_WHY_SPACE] = "NoSpace"};
static_assert(STW_COUNT(reasons) == EC_WHYS, "one name for each reason");

static const char *const phases[] = {[EC_RESULT_NONE] = "Running",
                                     [EC_RESULT_DONE] = "Succeeded",
                                     [EC_RESULT_FAILED] = "Failed",
                                     [EC_RESULT_STOPPED] = "Stopped"};
static_assert(STW_COUNT(phases) == EC_RESULTS, "one name for each result");

/* --- reading */

static int find_text(const char *const *all, size_t count, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (stw_streq(all[i], text))
            return (int)i;
    return 0;
}

static void read_members(const json_t *list, struct ec_pass *p)
{
    size_t i;
    const json_t *one;
    json_array_foreach (list, i, one) {
        if (p->count == EC_PASS_MEMBERS)
            return;
        stw_tree_copy(one, "name", p->members[p->count].name, EC_NAME_MAX);
        p->members[p->count].before = stw_tree_count(one, "dbSizeBefore");
        p->members[p->count].tries = stw_tree_count(one, "tries");
        p->members[p->count++].after = json_is_integer(json_object_get(one, "dbSizeAfter"))
                                           ? stw_tree_count(one, "dbSizeAfter")
                                           : -1;
    }
}

void ec_pass_read(const json_t *o, struct ec_pass *p)
{
    *p = (struct ec_pass){0};
    if (!json_is_object(o))
        return;
    const char *phase = stw_tree_text(o, "phase");
    p->reason = (enum ec_why)find_text(reasons, STW_COUNT(reasons), stw_tree_text(o, "reason"));
    p->result = (enum ec_result)find_text(phases, STW_COUNT(phases), phase);
    p->open = stw_streq(phase, phases[EC_RESULT_NONE]) && p->reason != EC_WHY_NOT;
    p->begun = stw_tree_time(o, "startTime", 0);
    p->ended = stw_tree_time(o, "endTime", 0);
    p->vain = stw_tree_time(o, "vainTime", 0);
    p->tick = stw_tree_time(o, "lastScheduleTime", 0);
    stw_tree_copy(o, "request", p->request, sizeof(p->request));
    p->compact = json_is_true(json_object_get(o, "compactPending"));
    p->compact_to = (uint64_t)stw_tree_count(o, "compactRevision");
    p->compacted = (uint64_t)stw_tree_count(o, "compactedRevision");
    read_members(json_object_get(o, "members"), p);
    p->reclaimed_total = stw_tree_count(o, "reclaimedBytesTotal");
    if (!p->open)
        stw_tree_copy(o, "message", p->message, sizeof(p->message));
}

/* --- writing */

static void set_count(json_t *o, const char *key, int64_t n)
{
    if (n)
        (void)json_object_set_new(o, key, json_integer((json_int_t)n));
}

/* A member may report any size. */
int64_t ec_pass_reclaimed(const struct ec_pass *p)
{
    int64_t sum = 0;
    for (size_t i = 0; i < p->count; i++) {
        int64_t before = p->members[i].before, after = p->members[i].after;
        if (after >= 0 && before > after && __builtin_add_overflow(sum, before - after, &sum))
            return INT64_MAX;
    }
    return sum;
}

static json_t *members_json(const struct ec_pass *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->count; i++) {
        int64_t before = p->members[i].before, after = p->members[i].after;
        json_t *one = json_pack("{s:s,s:I,s:I}", "name", p->members[i].name, "dbSizeBefore",
                                (json_int_t)before, "tries", (json_int_t)p->members[i].tries);
        if (after >= 0)
            (void)json_object_set_new(one, "dbSizeAfter", json_integer((json_int_t)after));
        (void)json_array_append_new(list, one);
    }
    return list;
}

json_t *ec_pass_json(const struct ec_pass *p)
{
    if (p->reason == EC_WHY_NOT)
        return NULL;
    json_t *o = json_pack("{s:s,s:s}", "phase", phases[p->open ? EC_RESULT_NONE : p->result],
                          "reason", reasons[p->reason]);
    stw_tree_set_text(o, "request", p->request);
    stw_tree_set_time(o, "startTime", p->begun, 0);
    stw_tree_set_time(o, "endTime", p->open ? 0 : p->ended, 0);
    stw_tree_set_time(o, "vainTime", p->vain, 0);
    stw_tree_set_time(o, "lastScheduleTime", p->tick, 0);
    (void)json_object_set_new(o, "members", members_json(p));
    (void)json_object_set_new(o, "reclaimedBytes", json_integer((json_int_t)ec_pass_reclaimed(p)));
    (void)json_object_set_new(o, "reclaimedBytesTotal",
                              json_integer((json_int_t)p->reclaimed_total));
    if (p->compact)
        (void)json_object_set_new(o, "compactPending", json_true());
    set_count(o, "compactRevision", (int64_t)p->compact_to);
    set_count(o, "compactedRevision", (int64_t)p->compacted);
    stw_tree_set_text(o, "message", p->message);
    return o;
}

bool ec_pass_same(const struct ec_pass *a, const struct ec_pass *b)
{
    bool same = a->open == b->open && a->reason == b->reason && a->result == b->result &&
                a->begun == b->begun && a->ended == b->ended && a->vain == b->vain &&
                a->tick == b->tick && stw_streq(a->request, b->request) &&
                a->compact == b->compact && a->compact_to == b->compact_to &&
                a->compacted == b->compacted && a->count == b->count &&
                a->reclaimed_total == b->reclaimed_total && stw_streq(a->message, b->message);
    for (size_t i = 0; same && i < a->count; i++)
        same = stw_streq(a->members[i].name, b->members[i].name) &&
               a->members[i].before == b->members[i].before &&
               a->members[i].tries == b->members[i].tries &&
               a->members[i].after == b->members[i].after;
    return same;
}
