/* SPDX-License-Identifier: Apache-2.0
 *
 * Results and events of a run. */
#include "kinds/eru/notes.h"

#include "base/util.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/state.h"

#include <assert.h>
#include <stdarg.h>

void eru_plan_event(struct eru *e, bool warning, const char *reason, const char *fmt, ...)
{
    va_list ap;
    if (e->event_count == ERU_EVENTS_MAX)
        return;
    struct eru_event *event = &e->events[e->event_count++];
    event->warning = warning;
    event->reason = reason;
    va_start(ap, fmt);
    stw_vformat(event->note, sizeof(event->note), fmt, ap);
    va_end(ap);
}

void eru_plan_result(struct eru *e, int64_t instant, enum eru_result result, const char *reason,
                     int64_t seconds)
{
    assert(result < ERU_RESULTS);
    eru_state_note(&e->state, e->spec.history_limit, instant, result, reason, seconds);
    e->noted[result]++;
}

void eru_what(const struct eru *e, char out[ERU_WHAT_LEN])
{
    if (eru_selects(e))
        stw_format(out, ERU_WHAT_LEN, "the %ss that match the selector", e->workload->kind);
    else
        stw_format(out, ERU_WHAT_LEN, "%s \"%s\"", e->workload->kind, e->spec.deployment);
}

void eru_plan_skip(struct eru *e, int64_t instant, const struct eru_skip *s)
{
    char text[STW_TIME_LEN], what[ERU_WHAT_LEN];
    eru_time_text(instant, text);
    eru_what(e, what);
    eru_plan_result(e, instant, ERU_SKIPPED, s->reason, -1);
    eru_plan_event(e, !s->unchanged, s->reason, "did not restart %s at %s: %s", what, text, s->why);
}
