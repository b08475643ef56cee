/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the status to a struct and back. */
#include "kinds/eru/state.h"

#include "base/util.h"
#include "kube/tree.h"

#include <assert.h>
#include <stdio.h>

const char *const eru_result_names[] = {[ERU_NONE] = "",
                                        [ERU_SUCCEEDED] = "Succeeded",
                                        [ERU_FAILED] = "Failed",
                                        [ERU_SKIPPED] = "Skipped",
                                        [ERU_MISSED] = "Missed"};
static_assert(STW_COUNT(eru_result_names) == ERU_RESULTS, "one name for each result");

void eru_time_text(int64_t at, char out[STW_TIME_LEN])
{
    stw_time_format(at * 1000000, out);
}

static enum eru_result result_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    for (int i = ERU_NONE + 1; text && i < ERU_RESULTS; i++)
        if (stw_streq(text, eru_result_names[i]))
            return (enum eru_result)i;
    return ERU_NONE;
}

static void read_selected(const json_t *status, struct eru_state *s)
{
    const json_t *from = json_object_get(status, "selected");
    const json_t *matched = json_object_get(status, "matched");
    s->matched = json_is_integer(matched) ? json_integer_value(matched) : -1;
    s->selected.instant = stw_tree_time(from, "instant", ERU_NEVER);
    s->selected.there = s->selected.instant != ERU_NEVER;
    s->selected.manual = json_is_true(json_object_get(from, "manual"));
    s->selected.matched = stw_tree_count(from, "matched");
    s->selected.restarted = stw_tree_count(from, "restarted");
    s->selected.succeeded = stw_tree_count(from, "succeeded");
    s->selected.failed = stw_tree_count(from, "failed");
    s->selected.skipped = stw_tree_count(from, "skipped");
    s->selected.workloads = json_deep_copy(json_object_get(from, "workloads"));
    if (!json_is_array(s->selected.workloads)) {
        json_decref(s->selected.workloads);
        s->selected.workloads = json_array();
    }
    s->failed = !s->selected.workloads || json_array_size(s->selected.workloads) !=
                                              json_array_size(json_object_get(from, "workloads"));
}

void eru_state_read(const json_t *status, struct eru_state *s)
{
    const json_t *active = json_object_get(status, "activeSchedule");
    const json_t *rollout = json_object_get(status, "currentRollout");
    const json_t *manual = json_object_get(status, "restartNow");
    *s = (struct eru_state){.last_schedule = stw_tree_time(status, "lastScheduleTime", ERU_NEVER),
                            .last_restart = stw_tree_time(status, "lastRestartTime", ERU_NEVER),
                            .next_schedule = stw_tree_time(status, "nextScheduleTime", ERU_NEVER),
                            .last_missed = stw_tree_time(status, "lastMissedTime", ERU_NEVER),
                            .missed_count = stw_tree_count(status, "missedCount"),
                            .last_result = result_of(status, "lastResult")};
    s->active.since = stw_tree_time(active, "since", ERU_NEVER);
    s->active.there = s->active.since != ERU_NEVER;
    stw_tree_copy(active, "schedule", s->active.schedule, sizeof(s->active.schedule));
    stw_tree_copy(active, "timeZone", s->active.time_zone, sizeof(s->active.time_zone));
    s->rollout.instant = stw_tree_time(rollout, "instant", ERU_NEVER);
    s->rollout.start = stw_tree_time(rollout, "startTime", ERU_NEVER);
    s->rollout.generation = json_integer_value(json_object_get(rollout, "generation"));
    s->rollout.there = s->rollout.instant != ERU_NEVER && s->rollout.start != ERU_NEVER;
    stw_tree_copy(manual, "token", s->manual.token, sizeof(s->manual.token));
    s->manual.instant = stw_tree_time(manual, "instant", ERU_NEVER);
    s->manual.done = json_is_true(json_object_get(manual, "done"));
    read_selected(status, s);
    s->history = json_copy(json_object_get(status, "history"));
    if (!json_is_array(s->history)) {
        json_decref(s->history);
        s->history = json_array();
    }
}

static void set_time(json_t *object, const char *key, int64_t at)
{
    char text[STW_TIME_LEN];
    if (at == ERU_NEVER) {
        (void)json_object_del(object, key);
        return;
    }
    eru_time_text(at, text);
    (void)json_object_set_new(object, key, json_string(text));
}

static json_t *active_json(const struct eru_state *s)
{
    json_t *o =
        json_pack("{s:s,s:s}", "schedule", s->active.schedule, "timeZone", s->active.time_zone);
    set_time(o, "since", s->active.since);
    return o;
}

static json_t *rollout_json(const struct eru_state *s)
{
    json_t *o = json_object();
    if (s->rollout.generation > 0) /* of one workload */
        (void)json_object_set_new(o, "generation", json_integer((json_int_t)s->rollout.generation));
    set_time(o, "instant", s->rollout.instant);
    set_time(o, "startTime", s->rollout.start);
    return o;
}

static json_t *manual_json(const struct eru_state *s)
{
    json_t *o = json_pack("{s:s,s:b}", "token", s->manual.token, "done", s->manual.done);
    set_time(o, "instant", s->manual.instant);
    return o;
}

static json_t *selected_json(const struct eru_state *s)
{
    json_t *o = json_pack(
        "{s:I,s:I,s:I,s:I,s:I}", "matched", (json_int_t)s->selected.matched, "restarted",
        (json_int_t)s->selected.restarted, "succeeded", (json_int_t)s->selected.succeeded, "failed",
        (json_int_t)s->selected.failed, "skipped", (json_int_t)s->selected.skipped);
    set_time(o, "instant", s->selected.instant);
    if (s->selected.manual)
        (void)json_object_set_new(o, "manual", json_true());
    if (json_array_size(s->selected.workloads) > 0)
        (void)json_object_set(o, "workloads", s->selected.workloads);
    return o;
}

static void set_or_remove(json_t *object, const char *key, json_t *value)
{
    if (value)
        (void)json_object_set_new(object, key, value);
    else
        (void)json_object_del(object, key);
}

void eru_state_write(const struct eru_state *s, json_t *status)
{
    set_time(status, "lastScheduleTime", s->last_schedule);
    set_time(status, "lastRestartTime", s->last_restart);
    set_time(status, "nextScheduleTime", s->next_schedule);
    set_time(status, "lastMissedTime", s->last_missed);
    set_or_remove(status, "missedCount",
                  s->missed_count > 0 ? json_integer((json_int_t)s->missed_count) : NULL);
    set_or_remove(status, "lastResult",
                  s->last_result ? json_string(eru_result_names[s->last_result]) : NULL);
    set_or_remove(status, "activeSchedule", s->active.there ? active_json(s) : NULL);
    set_or_remove(status, "currentRollout", s->rollout.there ? rollout_json(s) : NULL);
    set_or_remove(status, "restartNow", *s->manual.token ? manual_json(s) : NULL);
    set_or_remove(status, "matched", s->matched >= 0 ? json_integer((json_int_t)s->matched) : NULL);
    set_or_remove(status, "selected", s->selected.there ? selected_json(s) : NULL);
    set_or_remove(status, "history",
                  json_array_size(s->history) > 0 ? json_incref(s->history) : NULL);
}

void eru_state_done(struct eru_state *s)
{
    json_decref(s->history);
    json_decref(s->selected.workloads);
    s->history = s->selected.workloads = NULL;
}

void eru_state_note(struct eru_state *s, int64_t limit, int64_t instant, enum eru_result result,
                    const char *reason, int64_t seconds)
{
    json_t *entry = json_pack("{s:s,s:s}", "result", eru_result_names[result], "reason", reason);
    set_time(entry, "instant", instant);
    if (seconds >= 0)
        (void)json_object_set_new(entry, "durationSeconds", json_integer((json_int_t)seconds));
    (void)json_array_insert_new(s->history, 0, entry);
    while (json_array_size(s->history) > (size_t)limit)
        (void)json_array_remove(s->history, json_array_size(s->history) - 1);
    s->last_result = result;
}
