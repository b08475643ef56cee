/* SPDX-License-Identifier: Apache-2.0
 *
 * When a backup is due.  lastScheduleTime and the phase record the instant that is being worked on.
 * It is retried across restarts until it succeeds or a newer instant replaces it.  A user's request is
 * one more instant; the schedule goes on after it. */
#include "kinds/etcdbackup/plan.h"

#include "base/util.h"
#include "kinds/common/schedule.h"
#include "kinds/etcdbackup/state.h"
#include "schema/calendar.h"

bool eb_plan_open(const struct eb_clockwork *c, const struct eb_state *s)
{
    if (s->phase == EB_SUCCEEDED)
        return false;
    return c->mode == EB_ONCE || (s->last_schedule != EB_NEVER && s->phase != EB_PENDING);
}

bool eb_plan_suspended(const struct eb_clockwork *c, const struct eb_state *s)
{
    bool of_request = s->requested_at != EB_NEVER && s->last_schedule == s->requested_at;
    return c->suspend && !(of_request && eb_plan_open(c, s));
}

/* Lowers `*wake` to `at` if that is earlier. */
static void lower_wake_time(int64_t *wake, int64_t at)
{
    if (*wake == EB_NEVER || at < *wake)
        *wake = at;
}

static void take_up(struct eb_state *s, int64_t instant)
{
    s->last_schedule = instant;
    s->phase = EB_RUNNING;
    s->retry_at = EB_NEVER; /* a new instant does not inherit the backoff of the previous one */
}

/* The instant that is open stays that of its request. */
static int64_t go_back(const struct eb_clockwork *c, struct eb_state *s, int64_t from,
                       struct eb_due *due)
{
    if (s->requested_at == s->last_schedule && s->requested_at != EB_NEVER)
        s->requested_at = c->now;
    due->ahead = true;
    due->ahead_at = from;
    return s->last_schedule = c->now;
}

/* Of several missed instants, only the newest is taken up. */
static void follow_interval(const struct eb_clockwork *c, struct eb_state *s, bool busy,
                            struct eb_due *due)
{
    int64_t last = s->last_schedule;
    if (last != EB_NEVER && last > c->now + c->interval_s)
        last = go_back(c, s, last, due);
    if (last == EB_NEVER && !busy)
        take_up(s, c->now);
    else if (!busy && last != EB_NEVER && c->now - last >= c->interval_s)
        take_up(s, last + (c->now - last) / c->interval_s * c->interval_s);
    s->next_schedule = s->last_schedule == EB_NEVER ? c->now : s->last_schedule + c->interval_s;
}

static void follow_cron(const struct eb_clockwork *c, struct eb_state *s, bool busy,
                        struct eb_due *due)
{
    int64_t newest, base = s->last_schedule == EB_NEVER ? c->created : s->last_schedule;
    if (stw_schedule_is_ahead(c->cron, c->zone, base, c->now))
        base = go_back(c, s, base, due);
    if (!busy && stw_calendar_last(c->cron, c->zone, c->now, &newest) == 0 && newest > base) {
        base = newest;
        if (c->now - newest <= c->deadline_s) {
            take_up(s, newest);
        } else {
            due->missed = true;
            due->missed_at = newest;
            s->last_schedule = newest;
        }
    }
    if (stw_calendar_next(c->cron, c->zone, STW_MAX(base, c->now), &s->next_schedule) != 0)
        s->next_schedule = EB_NEVER;
}

/* A request is followed once.  Its backup serves the instants of the schedule before it. */
static void follow_request(const struct eb_clockwork *c, struct eb_state *s, bool busy,
                           struct eb_due *due)
{
    int64_t last = s->last_schedule;
    if (c->mode == EB_ONCE || busy || !*c->request || stw_streq(c->request, s->request))
        return;
    if (last != EB_NEVER && last <= c->now && c->now - last < EB_REQUEST_GAP_S) {
        due->wake = last + EB_REQUEST_GAP_S;
        return;
    }
    take_up(s, c->now);
    stw_format(s->request, sizeof(s->request), "%s", c->request);
    s->requested_at = c->now;
    due->requested = true;
}

/* The annotation was removed: its backup, which has not been made so far, is not wanted any more. */
static void drop_request(const struct eb_clockwork *c, struct eb_state *s, bool busy)
{
    bool of_request = s->requested_at != EB_NEVER && s->last_schedule == s->requested_at;
    if (busy || *c->request || !of_request || !eb_plan_open(c, s))
        return;
    s->phase = EB_PENDING;
    s->request[0] = '\0';
    s->retry_at = s->requested_at = EB_NEVER;
}

void eb_plan(const struct eb_clockwork *c, struct eb_state *s, bool busy, struct eb_due *ret)
{
    *ret = (struct eb_due){.wake = EB_NEVER};
    s->next_schedule = EB_NEVER;
    drop_request(c, s, busy);
    follow_request(c, s, busy, ret);
    if (c->mode == EB_INTERVAL && !c->suspend)
        follow_interval(c, s, busy, ret);
    else if (c->mode == EB_CRON && !c->suspend)
        follow_cron(c, s, busy, ret);
    if (s->next_schedule != EB_NEVER)
        lower_wake_time(&ret->wake, s->next_schedule);
    if (eb_plan_open(c, s) && eb_plan_suspended(c, s) && !busy &&
        (s->phase == EB_RUNNING || s->phase == EB_VERIFYING))
        s->phase = EB_SUSPENDED; /* its instant stays open */
    if (!eb_plan_open(c, s) || eb_plan_suspended(c, s))
        return;
    bool ready = s->retry_at == EB_NEVER || c->now >= s->retry_at ||
                 s->retry_at > c->now + EB_BACKOFF_MAX_S; /* the clock was set back */
    ret->start = ready && !busy;
    if (!ready)
        lower_wake_time(&ret->wake, s->retry_at);
}

/* The start may be of a steward that has died, or of a clock that was ahead. */
bool eb_plan_sends(const struct eb_state *s, int64_t limit_s, int64_t now)
{
    return s->snapshot_start != EB_NEVER && now - s->snapshot_start < limit_s &&
           s->snapshot_start - now < limit_s;
}

int64_t eb_plan_period(const struct eb_clockwork *c)
{
    int64_t first, second;
    if (c->mode == EB_INTERVAL)
        return c->interval_s;
    if (c->mode != EB_CRON || stw_calendar_next(c->cron, c->zone, c->now, &first) != 0 ||
        stw_calendar_next(c->cron, c->zone, first, &second) != 0)
        return 0;
    return second - first;
}
