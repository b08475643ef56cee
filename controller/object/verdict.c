/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/verdict.h"

#include "base/util.h"
#include "base/visible.h"
#include "controller/queue/guard.h"

#include <assert.h>

/* Refusals of the API server that only the user can fix. */
static const struct {
    enum stw_err code;
    const char *text; /* in the error's text; NULL: any */
    const char *reason;
    uint64_t again_ms;
} permanent[] = {
    {STW_ERR_FORBIDDEN, "exceeded quota", STW_REASON_QUOTA, STW_REFUSED_AGAIN_MS},
    {STW_ERR_FORBIDDEN, NULL, STW_REASON_FORBIDDEN, STW_REFUSED_AGAIN_MS},
    {STW_ERR_INVALID, NULL, STW_REASON_INVALID_SPEC, STW_STALLED_AGAIN_MS},
    {STW_ERR_TOO_LARGE, NULL, STW_REASON_INVALID_SPEC, STW_STALLED_AGAIN_MS},
};

void stw_aspect_error(struct stw_aspect *a, const struct stw_error *err)
{
    a->truth = STW_FALSE;
    a->level = STW_LEVEL_RETRYING;
    a->reason = STW_REASON_APPLY_FAILED;
    a->err = err;
    STW_ASPECT_SAY(a, "%s", err->text);
    if (err->code == STW_ERR_FORBIDDEN && strstr(err->text, "being terminated")) {
        a->level = STW_LEVEL_WAITING; /* the namespace is being deleted, and this object with it */
        a->reason = STW_REASON_TERMINATING;
        a->again_ms = STW_TERMINATING_AGAIN_MS;
        return;
    }
    for (size_t i = 0; i < STW_COUNT(permanent); i++) {
        if (permanent[i].code != err->code ||
            (permanent[i].text && !strstr(err->text, permanent[i].text)))
            continue;
        a->level = STW_LEVEL_STALLED;
        a->reason = permanent[i].reason;
        a->again_ms = permanent[i].again_ms;
        return;
    }
}

void stw_aspect_append(struct stw_aspect *a, const char *text)
{
    char before[STW_CONDITION_MESSAGE_MAX];
    memcpy(before, a->message, sizeof(before));
    STW_ASPECT_SAY(a, "%.400s: %.600s", before, text);
}

/* The watch of the Deployment wakes us, or what the kind watches. */
static void find_wait(struct stw_aspect *a, const struct stw_child *c)
{
    char until[300];
    a->level = STW_LEVEL_PROGRESSING;
    a->again_ms = 0;
    a->reason = STW_REASON_ADOPTION_WAITS;
    if (!c->adoption.until && !c->adoption.after) {
        a->reason = STW_REASON_PROGRESSING;
        STW_ASPECT_SAY(a, "%s", c->err.text);
        return;
    }
    if (c->adoption.until)
        stw_format(until, sizeof(until), "%s", c->adoption.until);
    else
        stw_format(until, sizeof(until), "the pods of Deployment \"%s\" are available",
                   c->adoption.after->name);
    STW_ASPECT_SAY(a, "%s \"%s\" stays as it is until %s; then it is adopted",
                   c->watch->resource->kind, c->name, until);
}

static void find_trouble(struct stw_aspect *a, const struct stw_child *c)
{
    const struct stw_resource *r = c->watch->resource;
    a->truth = STW_FALSE;
    a->level = STW_LEVEL_STALLED;
    a->again_ms = STW_STALLED_AGAIN_MS;
    switch (c->state) {
    case STW_CHILD_TERMINATING:
        a->level = STW_LEVEL_WAITING;
        a->again_ms = STW_TERMINATING_AGAIN_MS;
        a->reason = STW_REASON_TERMINATING;
        if (*c->err.text)
            STW_ASPECT_SAY(a, "%s", c->err.text);
        else
            STW_ASPECT_SAY(a, "%s \"%s\" is being deleted; it will be recreated when it is gone",
                           r->kind, c->name);
        break;
    case STW_CHILD_FOREIGN:
        a->reason = STW_REASON_NAME_CONFLICT;
        a->again_ms = STW_FOREIGN_AGAIN_MS;
        STW_ASPECT_SAY(a, "%s", c->err.text);
        break;
    case STW_CHILD_NOT_ADOPTED:
        a->reason = STW_REASON_NOT_ADOPTED;
        a->again_ms = STW_FOREIGN_AGAIN_MS;
        STW_ASPECT_SAY(a, "%s", c->err.text);
        break;
    case STW_CHILD_HELD:
        find_wait(a, c);
        break;
    case STW_CHILD_UNREADABLE: /* its watch wakes us */
        a->reason = STW_REASON_UNREADABLE;
        STW_ASPECT_SAY(a, "%s", c->err.text);
        break;
    case STW_CHILD_HOT_LOOP:
        a->reason = STW_REASON_HOT_LOOP;
        STW_ASPECT_SAY(
            a,
            "%s \"%s\" was written %d times within a minute, and each time another client changed "
            "it again; find out which with `kubectl get %s %s -o yaml --show-managed-fields`",
            r->kind, c->name, STW_GUARD_WRITES, r->plural, c->name);
        break;
    case STW_CHILD_NOT_SERVED:
    case STW_CHILD_NOT_ALLOWED: /* its watch wakes us */
        a->level = STW_LEVEL_WAITING;
        a->again_ms = 0;
        a->reason =
            c->state == STW_CHILD_NOT_SERVED ? STW_REASON_NOT_INSTALLED : STW_REASON_FORBIDDEN;
        STW_ASPECT_SAY(a, "%s", c->err.text);
        break;
    default:
        stw_aspect_error(a, &c->err);
        STW_ASPECT_SAY(a, "%s \"%s\" could not be written: %s", r->kind, c->name, c->err.text);
        break;
    }
}

void stw_aspect_child(struct stw_aspect *a, const struct stw_child *c)
{
    a->level = STW_LEVEL_FINE;
    a->truth = STW_TRUE;
    a->reason = STW_REASON_SYNCED;
    a->again_ms = 0;
    a->err = NULL;
    STW_ASPECT_SAY(a, "%s \"%s\" is as this object wants it", c->watch->resource->kind, c->name);
    if (c->state > STW_CHILD_REPAIRED)
        find_trouble(a, c);
}

static bool rolled_out(const struct stw_rollout *r, int64_t wanted)
{
    return r->observed_generation >= r->generation && r->updated == wanted &&
           r->replicas == wanted && r->available == wanted;
}

void stw_aspect_rollout(struct stw_aspect *a, const struct stw_rollout *r, int64_t wanted)
{
    bool current = r->observed_generation >= r->generation;
    if (rolled_out(r, wanted)) {
        a->level = STW_LEVEL_FINE;
        a->truth = STW_TRUE;
        a->reason = STW_REASON_AVAILABLE;
        STW_ASPECT_SAY(a, "%lld of %lld replicas are available", (long long)wanted,
                       (long long)wanted);
        return;
    }
    a->truth = STW_FALSE;
    a->level = STW_LEVEL_PROGRESSING;
    a->reason = STW_REASON_PROGRESSING;
    STW_ASPECT_SAY(a, "%lld of %lld replicas are up to date, %lld are available",
                   current ? (long long)r->updated : 0, (long long)wanted, (long long)r->available);
    if (!current || !*r->stuck_reason)
        return;
    a->level = STW_LEVEL_STALLED;
    a->again_ms = r->retry_ms > 0 ? r->retry_ms : STW_STALLED_AGAIN_MS;
    a->reason = stw_streq(r->stuck_reason, "ReplicaFailure") ? "ReplicaFailure"
                                                             : "ProgressDeadlineExceeded";
    STW_ASPECT_SAY(a, "%lld of %lld replicas are available: %s", (long long)r->available,
                   (long long)wanted, r->stuck_message);
}

/* Another aspect may have to be checked sooner.  That of STALLED is said in its message, which must not
 * change with a wait that counts down; RETRYING has its backoff. */
static uint64_t find_again(const struct stw_aspect *all, size_t count,
                           const struct stw_aspect *worst)
{
    uint64_t again_ms = worst->again_ms;
    if (worst->level == STW_LEVEL_RETRYING)
        return again_ms;
    for (size_t i = 0; i < count; i++)
        if ((worst->level != STW_LEVEL_STALLED || all[i].level == STW_LEVEL_STALLED) &&
            all[i].again_ms > 0 && (again_ms == 0 || all[i].again_ms < again_ms))
            again_ms = all[i].again_ms;
    return again_ms;
}

void stw_verdict_of(const struct stw_aspect *all, size_t count, struct stw_verdict *v)
{
    const struct stw_aspect *worst = &all[0];
    for (size_t i = 1; i < count; i++)
        if (all[i].level < worst->level)
            worst = &all[i];
    *v = (struct stw_verdict){.level = worst->level,
                              .reason = worst->reason,
                              .again_ms = find_again(all, count, worst),
                              .err = worst->err};
    stw_format(v->message, sizeof(v->message), "%s", worst->message);
    stw_message_clean(v->message, sizeof(v->message) - 1);
    stw_visible_replace(v->message,
                        sizeof(v->message) - 1); /* as in the condition, to compare them */
}

void stw_verdict_conditions(const struct stw_verdict *v, struct stw_conditions *c)
{
    static const char *const reconciling[] = {[STW_LEVEL_RETRYING] = STW_REASON_RETRY,
                                              [STW_LEVEL_WAITING] = STW_REASON_DEPENDENCY,
                                              [STW_LEVEL_PROGRESSING] = STW_REASON_PROGRESSING};
    static_assert(STW_COUNT(reconciling) == STW_LEVEL_FINE, "one reason for each level");
    stw_condition_set(c, STW_READY, v->level == STW_LEVEL_FINE ? STW_TRUE : STW_FALSE, v->reason,
                      "%s", v->message);
    if (v->level == STW_LEVEL_STALLED)
        stw_condition_set(c, STW_STALLED, STW_TRUE, v->reason, "%s", v->message);
    else if (v->level != STW_LEVEL_FINE)
        stw_condition_set(c, STW_RECONCILING, STW_TRUE, reconciling[v->level], "%s", v->message);
}

void stw_aspect_conditions(const struct stw_aspect *all, size_t count, struct stw_conditions *c)
{
    for (size_t i = 0; i < count; i++)
        if (all[i].type)
            stw_condition_set(c, all[i].type, all[i].truth, all[i].reason, "%s", all[i].message);
}
