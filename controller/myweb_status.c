/* SPDX-License-Identifier: Apache-2.0
 *
 * What a MyWeb's status says.  Each child gives a finding; the worst of them is what Ready,
 * Reconciling and Stalled tell.  No I/O. */
#include "base/util.h"
#include "controller/condition.h"
#include "controller/guard.h"
#include "controller/myweb_priv.h"

#include <stdio.h>

#define STALLED_AGAIN_MS (10u * 60000)
#define PORT_AGAIN_MS 60000
#define TERMINATING_AGAIN_MS 5000

#define REASON_COMPLETED "Completed"
#define REASON_SYNCED "Synced"
#define REASON_APPLY_FAILED "ApplyFailed"
#define REASON_TERMINATING "Terminating"
#define REASON_PORT_TAKEN "NodePortUnavailable"
#define REASON_PORT_RANGE "OutOfRange"
#define REASON_ALLOCATED "Allocated"
#define REASON_AVAILABLE "MinimumReplicasAvailable"

/* The children's findings come first, in their order. */
enum { FIND_PORT = MYWEB_CHILDREN, FINDINGS };

static const char *const finding_conditions[FINDINGS] = {
    [MYWEB_CONFIGMAP] = "ConfigMapSynced",
    [MYWEB_DEPLOYMENT] = "DeploymentAvailable",
    [MYWEB_SERVICE] = "ServiceSynced",
    [FIND_PORT] = "NodePortAllocated",
};

/* One condition to be, and how bad it is. */
struct finding {
    enum myweb_level level;
    enum stw_truth truth;
    const char *reason;
    char message[STW_CONDITION_MESSAGE_MAX];
    uint64_t again_ms;
    const struct stw_error *err;
};

#define SAY(f, ...) ((void)snprintf((f)->message, sizeof((f)->message), __VA_ARGS__))

static const char *kind_of(const struct stw_child *c)
{
    return c->watch->resource->kind;
}

/* --- a child that could not be written */

/* Refusals of the API server that only a person can mend. */
static const struct {
    enum stw_err code;
    const char *text; /* in the error's text; NULL: any */
    const char *reason;
} permanent[] = {
    {STW_ERR_FORBIDDEN, "exceeded quota", STW_REASON_QUOTA},
    {STW_ERR_FORBIDDEN, NULL, STW_REASON_FORBIDDEN},
    {STW_ERR_INVALID, NULL, STW_REASON_INVALID_SPEC},
    {STW_ERR_TOO_LARGE, NULL, STW_REASON_INVALID_SPEC},
};

static void find_failure(const struct myweb *w, const struct stw_child *c, struct finding *f)
{
    f->level = MYWEB_RETRYING;
    f->reason = REASON_APPLY_FAILED;
    f->err = &c->err;
    SAY(f, "%s \"%s\" could not be written: %s", kind_of(c), w->owner.name, c->err.text);
    if (c->err.code == STW_ERR_FORBIDDEN && strstr(c->err.text, "being terminated")) {
        f->level = MYWEB_WAITING; /* the namespace goes, and this object with it */
        f->reason = REASON_TERMINATING;
        f->again_ms = TERMINATING_AGAIN_MS;
        return;
    }
    for (size_t i = 0; i < STW_COUNT(permanent); i++) {
        if (permanent[i].code != c->err.code ||
            (permanent[i].text && !strstr(c->err.text, permanent[i].text)))
            continue;
        f->level = MYWEB_STALLED;
        f->reason = permanent[i].reason;
        f->again_ms = STALLED_AGAIN_MS;
        return;
    }
}

static void find_port_trouble(const struct myweb *w, struct finding *f)
{
    long long port = (long long)w->spec.node_port;
    f->truth = STW_FALSE;
    f->level = MYWEB_WAITING;
    f->reason = REASON_PORT_TAKEN;
    f->again_ms = PORT_AGAIN_MS;
    switch (w->port) {
    case MYWEB_PORT_TAKEN:
        SAY(f, "node port %lld is in use by %s; free it, or choose another spec.nodePortNumber",
            port, w->holder);
        break;
    case MYWEB_PORT_NONE_LEFT:
        SAY(f, "all node ports of this cluster are in use; delete a Service that has one, or widen "
               "the API server's --service-node-port-range");
        break;
    default:
        f->level = MYWEB_STALLED;
        f->reason = REASON_PORT_RANGE;
        f->again_ms = STALLED_AGAIN_MS;
        SAY(f,
            "node port %lld is not in the range of this cluster; choose another "
            "spec.nodePortNumber: %s",
            port, w->children[MYWEB_SERVICE].err.text);
        break;
    }
}

static bool is_written(const struct stw_child *c)
{
    return c->state <= STW_CHILD_REPAIRED;
}

static void find_child(const struct myweb *w, int child, struct finding *f)
{
    const struct stw_child *c = &w->children[child];
    *f = (struct finding){.level = MYWEB_FINE, .truth = STW_TRUE, .reason = REASON_SYNCED};
    SAY(f, "%s \"%s\" is as this object wants it", kind_of(c), w->owner.name);
    if (child == MYWEB_SERVICE && w->port != MYWEB_PORT_FREE) {
        find_port_trouble(w, f);
        return;
    }
    if (is_written(c))
        return;
    f->truth = STW_FALSE;
    f->level = MYWEB_STALLED;
    f->again_ms = STALLED_AGAIN_MS;
    switch (c->state) {
    case STW_CHILD_TERMINATING:
        f->level = MYWEB_WAITING;
        f->again_ms = TERMINATING_AGAIN_MS;
        f->reason = REASON_TERMINATING;
        SAY(f, "%s \"%s\" is being deleted; it will be made anew when it is gone", kind_of(c),
            w->owner.name);
        break;
    case STW_CHILD_FOREIGN:
        f->reason = STW_REASON_NAME_CONFLICT;
        SAY(f, "%s", c->err.text);
        break;
    case STW_CHILD_HOT_LOOP:
        f->reason = STW_REASON_HOT_LOOP;
        SAY(f,
            "%s \"%s\" was written %d times within a minute, and each time somebody else changed "
            "it again; find out who by `kubectl get %s %s -o yaml --show-managed-fields`",
            kind_of(c), w->owner.name, STW_GUARD_WRITES, c->watch->resource->plural, w->owner.name);
        break;
    default:
        find_failure(w, c, f);
        break;
    }
}

/* --- the rollout */

static bool rolled_out(const struct myweb *w, const struct stw_rollout *r)
{
    return r->observed_generation >= r->generation && r->updated == w->spec.replicas &&
           r->replicas == w->spec.replicas && r->available == w->spec.replicas;
}

static void find_rollout(const struct myweb *w, struct finding *f)
{
    const struct stw_rollout *r = &w->children[MYWEB_DEPLOYMENT].live.rollout;
    long long wanted = (long long)w->spec.replicas;
    bool current = r->observed_generation >= r->generation;
    long long updated = current ? (long long)r->updated : 0;
    if (rolled_out(w, r)) {
        f->reason = REASON_AVAILABLE;
        SAY(f, "%lld of %lld replicas are available", wanted, wanted);
        return;
    }
    f->truth = STW_FALSE;
    f->level = MYWEB_PROGRESSING;
    f->reason = STW_REASON_PROGRESSING;
    SAY(f, "%lld of %lld replicas are up to date, %lld are available", updated, wanted,
        (long long)r->available);
    if (!current || !*r->stuck_reason)
        return;
    f->level = MYWEB_STALLED;
    f->again_ms = STALLED_AGAIN_MS;
    f->reason = stw_streq(r->stuck_reason, "ReplicaFailure") ? "ReplicaFailure"
                                                             : "ProgressDeadlineExceeded";
    SAY(f, "%lld of %lld replicas are available: %s", (long long)r->available, wanted,
        r->stuck_message);
}

static void find_port(const struct myweb *w, struct finding *f)
{
    const struct stw_child *c = &w->children[MYWEB_SERVICE];
    *f = (struct finding){.level = MYWEB_FINE, .truth = STW_TRUE, .reason = REASON_ALLOCATED};
    SAY(f, "node port %lld is allocated", (long long)c->live.node_port);
    if (w->port != MYWEB_PORT_FREE) {
        find_port_trouble(w, f);
    } else if (!is_written(c) || c->live.node_port == 0) {
        f->truth = STW_FALSE;
        f->level = MYWEB_PROGRESSING;
        f->reason = STW_REASON_PROGRESSING;
        SAY(f, "Service \"%s\" has no node port yet", w->owner.name);
    }
}

/* --- all together */

static const struct finding *worst_of(const struct finding *all)
{
    const struct finding *worst = &all[0];
    for (size_t i = 1; i < FINDINGS; i++)
        if (all[i].level < worst->level)
            worst = &all[i];
    return worst;
}

static void set_verdict(const struct myweb *w, const struct finding *worst, struct myweb_verdict *v)
{
    *v = (struct myweb_verdict){.level = worst->level,
                                .reason = worst->reason,
                                .again_ms = worst->again_ms,
                                .err = worst->err};
    if (worst->level == MYWEB_FINE) {
        v->reason = REASON_COMPLETED;
        (void)snprintf(
            v->message, sizeof(v->message), "the page is served on node port %lld by %lld replicas",
            (long long)w->children[MYWEB_SERVICE].live.node_port, (long long)w->spec.replicas);
    } else {
        (void)snprintf(v->message, sizeof(v->message), "%s", worst->message);
    }
}

/* Ready, then Reconciling or Stalled (kstatus reads them in this order; never both). */
static void set_summary(struct stw_conditions *c, const struct myweb_verdict *v)
{
    static const char *const reconciling[] = {[MYWEB_RETRYING] = STW_REASON_RETRY,
                                              [MYWEB_WAITING] = STW_REASON_DEPENDENCY,
                                              [MYWEB_PROGRESSING] = STW_REASON_PROGRESSING};
    stw_condition_set(c, STW_READY, v->level == MYWEB_FINE ? STW_TRUE : STW_FALSE, v->reason, "%s",
                      v->message);
    if (v->level == MYWEB_STALLED)
        stw_condition_set(c, STW_STALLED, STW_TRUE, v->reason, "%s", v->message);
    else if (v->level != MYWEB_FINE)
        stw_condition_set(c, STW_RECONCILING, STW_TRUE, reconciling[v->level], "%s", v->message);
}

static struct stw_conditions begin_conditions(const struct myweb *w, char now[STW_TIME_LEN])
{
    stw_time_format(stw_wall_us(w->run->clock), now);
    return (struct stw_conditions){.old = json_object_get(w->object.status, "conditions"),
                                   .generation = w->object.generation,
                                   .now = now};
}

/* What of the old status stays as it is: repairs, and what a pass that wrote nothing cannot know
 * better. */
static json_t *begin_status(const struct myweb *w, const char *const *keep)
{
    json_t *status = json_object();
    for (; status && *keep; keep++) {
        json_t *old = json_object_get(w->object.status, *keep);
        if (old)
            (void)json_object_set(status, *keep, old);
    }
    return status;
}

static json_t *end_status(const struct myweb *w, json_t *status, struct stw_conditions *c)
{
    if (c->failed || json_object_set_new(status, "conditions", c->list) != 0 ||
        json_object_set_new(status, "observedGeneration",
                            json_integer((json_int_t)w->object.generation)) != 0) {
        json_decref(status);
        return NULL;
    }
    return status;
}

static void add_repairs(const struct myweb *w, json_t *status, const char *now)
{
    json_int_t count = json_integer_value(json_object_get(w->object.status, "repairs"));
    for (int i = 0; i < MYWEB_CHILDREN; i++) {
        const struct stw_child *c = &w->children[i];
        char object[STW_KEY_LEN];
        if (c->state != STW_CHILD_REPAIRED)
            continue;
        count++;
        (void)snprintf(object, sizeof(object), "%s/%s", kind_of(c), w->owner.name);
        (void)json_object_set_new(status, "lastRepair",
                                  json_pack("{s:s,s:s,s:s}", "time", now, "object", object,
                                            "fields", *c->fields ? c->fields : "(deleted)"));
    }
    if (count > 0)
        (void)json_object_set_new(status, "repairs", json_integer(count));
}

static void add_numbers(const struct myweb *w, json_t *status, bool completed)
{
    int64_t port = w->children[MYWEB_SERVICE].live.node_port;
    char url[32];
    (void)snprintf(url, sizeof(url), ":%lld", (long long)port);
    (void)json_object_set_new(status, "completed", json_boolean(completed));
    (void)json_object_set_new(status, "contentHash", json_string(w->content_hash));
    (void)json_object_set_new(
        status, "availableReplicas",
        json_integer((json_int_t)w->children[MYWEB_DEPLOYMENT].live.rollout.available));
    if (port == 0)
        return;
    (void)json_object_set_new(status, "nodePort", json_integer((json_int_t)port));
    (void)json_object_set_new(status, "url", json_string(url));
}

void myweb_judge(struct myweb *w, struct myweb_verdict *verdict, json_t **ret_status)
{
    static const char *const keep[] = {"repairs", "lastRepair", NULL};
    struct finding *all = calloc(FINDINGS, sizeof(*all));
    char now[STW_TIME_LEN];
    struct stw_conditions c = begin_conditions(w, now);
    json_t *status = begin_status(w, keep);
    *ret_status = NULL;
    if (!all || !status) {
        free(all);
        json_decref(status);
        return;
    }
    for (int i = 0; i < MYWEB_CHILDREN; i++)
        find_child(w, i, &all[i]);
    if (all[MYWEB_DEPLOYMENT].level == MYWEB_FINE)
        find_rollout(w, &all[MYWEB_DEPLOYMENT]);
    find_port(w, &all[FIND_PORT]);
    set_verdict(w, worst_of(all), verdict);
    set_summary(&c, verdict);
    for (size_t i = 0; i < FINDINGS; i++)
        stw_condition_set(&c, finding_conditions[i], all[i].truth, all[i].reason, "%s",
                          all[i].message);
    free(all);
    add_repairs(w, status, now);
    add_numbers(w, status, verdict->level == MYWEB_FINE);
    *ret_status = end_status(w, status, &c);
}

/* --- passes that do not look at the children */

static const char *const keep_all[] = {"repairs",     "lastRepair",        "nodePort", "url",
                                       "contentHash", "availableReplicas", NULL};

json_t *myweb_status_invalid(struct myweb *w, const char *findings)
{
    char now[STW_TIME_LEN];
    struct stw_conditions c = begin_conditions(w, now);
    json_t *status = begin_status(w, keep_all);
    stw_condition_set(&c, STW_READY, STW_FALSE, STW_REASON_INVALID_SPEC, "%s", findings);
    stw_condition_set(&c, STW_STALLED, STW_TRUE, STW_REASON_INVALID_SPEC, "%s", findings);
    for (size_t i = 0; i < FINDINGS; i++)
        stw_condition_keep(&c, finding_conditions[i]);
    (void)json_object_set_new(status, "completed", json_false());
    return end_status(w, status, &c);
}

/* Nothing was looked at, so observedGeneration and the findings stay those of the last pass. */
json_t *myweb_status_paused(struct myweb *w)
{
    static const char message[] = "reconciling is paused by the annotation steward.dev/paused";
    char now[STW_TIME_LEN];
    struct stw_conditions c = begin_conditions(w, now);
    const json_t *ready = stw_condition_find(c.old, STW_READY);
    const json_t *seen = json_object_get(ready, "observedGeneration");
    json_t *status = json_copy(w->object.status);
    enum stw_truth truth = stw_condition_is(ready, STW_TRUE)    ? STW_TRUE
                           : stw_condition_is(ready, STW_FALSE) ? STW_FALSE
                                                                : STW_UNKNOWN;
    c.generation = json_integer_value(seen);
    stw_condition_set(&c, STW_READY, truth, STW_REASON_PAUSED, "%s", message);
    stw_condition_keep(&c, STW_STALLED);
    for (size_t i = 0; i < FINDINGS; i++)
        stw_condition_keep(&c, finding_conditions[i]);
    (void)json_object_del(status, "retry");
    if (c.failed || json_object_set_new(status, "conditions", c.list) != 0) {
        json_decref(status);
        return NULL;
    }
    return status;
}

/* --- what the old status tells */

bool myweb_was_applied(const struct myweb *w, int child)
{
    static const char *const not_applied[] = {
        REASON_APPLY_FAILED,      REASON_TERMINATING, REASON_PORT_TAKEN,    REASON_PORT_RANGE,
        STW_REASON_NAME_CONFLICT, STW_REASON_QUOTA,   STW_REASON_FORBIDDEN, STW_REASON_INVALID_SPEC,
    };
    const json_t *c = stw_condition_find(json_object_get(w->object.status, "conditions"),
                                         finding_conditions[child]);
    if (!c || json_integer_value(json_object_get(c, "observedGeneration")) != w->object.generation)
        return false;
    for (size_t i = 0; i < STW_COUNT(not_applied); i++)
        if (stw_streq(stw_condition_reason(c), not_applied[i]))
            return false;
    return true;
}

static json_t *without_numbers(const json_t *status)
{
    static const char *const volatile_keys[] = {"availableReplicas", "lastReconcileTime", "retry"};
    json_t *copy = json_deep_copy(status), *condition;
    size_t i;
    for (size_t k = 0; k < STW_COUNT(volatile_keys); k++)
        (void)json_object_del(copy, volatile_keys[k]);
    json_array_foreach (json_object_get(copy, "conditions"), i, condition)
        (void)json_object_del(condition, "message");
    return copy;
}

bool myweb_status_is_minor(const json_t *old_status, const json_t *new_status)
{
    json_auto_t *a = without_numbers(old_status), *b = without_numbers(new_status);
    return a && b && json_equal(a, b);
}
