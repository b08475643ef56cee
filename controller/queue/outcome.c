/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/outcome.h"

#include "base/log.h"
#include "base/process/fault.h"
#include "base/util.h"
#include "controller/status.h"
#include "kube/tree.h"

#include <stdio.h>

/* The minimum interval between writes of rollout numbers: a new object must not cost a request for
 * each of its pods. */
#define MINOR_MS 10000
#define GONE_AGAIN_MS 60000

/* --- events */

static bool is_listed(const struct stw_child *c, enum stw_child_state state)
{
    return c->state == state && !c->adopted_now;
}

/* Appends the children in this state: `ConfigMap, Deployment and Service "web"` if all have the name
 * of their owner, else `Service "web" and Service "web-client"`.  Returns their number. */
static unsigned list_children(const struct stw_child *children, size_t count, const char *name,
                              enum stw_child_state state, struct stw_buf *out)
{
    unsigned total = 0, n = 0;
    bool one_name = true;
    for (size_t i = 0; i < count; i++) {
        if (!is_listed(&children[i], state))
            continue;
        one_name &= stw_streq(children[i].name, name);
        total++;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_listed(&children[i], state))
            continue;
        stw_buf_adds(out, n == 0 ? "" : n + 1 == total ? " and " : ", ");
        stw_buf_adds(out, children[i].watch->resource->kind);
        if (++n == total || !one_name)
            stw_buf_addf(out, " \"%s\"", children[i].name);
    }
    return total;
}

static const struct {
    enum stw_child_state state;
    const char *reason, *action, *verb;
} writes[] = {
    {STW_CHILD_CREATED, "Created", "Create", "created"},
    {STW_CHILD_UPDATED, "Updated", "Update", "updated"},
    {STW_CHILD_REMOVED, "Deleted", "Delete", "deleted"},
};

static void tell_repair(const struct stw_run *run, const struct stw_object *o,
                        const struct stw_child *c)
{
    const char *kind = c->watch->resource->kind;
    if (stw_streq(c->fields, STW_DRIFT_DELETED))
        stw_object_event(run, o, false, "DriftRepaired", "Repair",
                         "recreated %s \"%s\", which had been deleted", kind, c->name);
    else
        stw_object_event(run, o, false, "DriftRepaired", "Repair",
                         "repaired %s \"%s\", which had been changed: %s", kind, c->name,
                         c->fields);
    stw_log(STW_LOG_INFO, "repaired a child", STW_STR("kind", kind), STW_STR("fields", c->fields));
}

void stw_tell_children(const struct stw_run *run, const struct stw_object *o, const char *name,
                       const struct stw_child *children, size_t count)
{
    for (size_t i = 0; i < STW_COUNT(writes); i++) {
        stw_autobuf struct stw_buf list = STW_BUF_INIT(4096);
        if (list_children(children, count, name, writes[i].state, &list) == 0)
            continue;
        stw_object_event(run, o, false, writes[i].reason, writes[i].action, "%s %s", writes[i].verb,
                         stw_buf_str(&list));
        stw_log(STW_LOG_INFO, "wrote children", STW_STR("what", writes[i].reason),
                STW_STR("children", stw_buf_str(&list)));
    }
    for (size_t i = 0; i < count; i++) {
        if (children[i].state == STW_CHILD_REPAIRED)
            tell_repair(run, o, &children[i]);
        if (children[i].adopted_now)
            stw_object_event(run, o, false, "Adopted", "Adopt",
                             "adopted %s \"%s\", which was there before; it stays when the %s is "
                             "deleted",
                             children[i].watch->resource->kind, children[i].name,
                             run->controller->kind->kind);
        if (children[i].updated_early)
            stw_object_event(run, o, false, "TemplateUpdated", "Update",
                             "%s \"%s\" has the pod template of this version of %s: another client "
                             "had changed the earlier one, which waited for its next rollout",
                             children[i].watch->resource->kind, children[i].name, run->op->name);
    }
}

/* Records a warning if this is a new problem.  A run that has failed is logged by its worker. */
static void tell_trouble(const struct stw_run *run, const struct stw_object *o, const char *reason,
                         const char *message, bool failed)
{
    const json_t *ready = stw_condition_find(json_object_get(o->status, "conditions"), STW_READY);
    size_t len = STW_MIN(strlen(message), (size_t)200); /* name_next_run adds to what is stored */
    if (stw_streq(stw_tree_text(ready, "reason"), reason) &&
        strncmp(stw_tree_text(ready, "message"), message, len) == 0)
        return;
    stw_object_event(run, o, true, reason, "Reconcile", "%s", message);
    if (!failed)
        stw_log(STW_LOG_WARN, "the object is not ready", STW_STR("reason", reason),
                STW_STR("why", message));
}

/* --- the end of a run */

void stw_run_fail(struct stw_run *run, const struct stw_error *err, struct stw_result *result)
{
    result->err = *err;
    if (err->code == STW_ERR_CONFLICT) {
        result->outcome = STW_RUN_CONFLICT;
        return;
    }
    if (err->code == STW_ERR_NOT_FOUND) { /* a watch reports the deletion, unless only the namespace
                                             is gone */
        result->outcome = STW_RUN_AFTER;
        result->after_ms = GONE_AGAIN_MS;
        return;
    }
    result->outcome = STW_RUN_FAILED;
    result->after_ms = stw_object_retry_ms(run, err);
}

static const struct stw_error *first_error(const struct stw_child *children, size_t count,
                                           enum stw_err code)
{
    for (size_t i = 0; i < count; i++)
        if (children[i].state == STW_CHILD_FAILED && children[i].err.code == code)
            return &children[i].err;
    return NULL;
}

bool stw_run_interrupted(struct stw_run *run, const struct stw_child *children, size_t count,
                         struct stw_result *result)
{
    const struct stw_error *err = first_error(children, count, STW_ERR_CANCELLED);
    if (!err)
        err = first_error(children, count, STW_ERR_CONFLICT);
    if (err)
        stw_run_fail(run, err, result);
    return err != NULL;
}

/* An object that waits for a minute or more, or for a change by the user, says how long at most, and how
 * to shorten it. */
static void name_next_run(const struct stw_run *run, const struct stw_verdict *v, json_t *status)
{
    char annotation[STW_OWN_NAME_LEN], text[STW_CONDITION_MESSAGE_MAX], hint[512];
    char within[48] = "";
    uint64_t minutes = (v->again_ms + 59999) / 60000;
    size_t i;
    json_t *one;
    if (v->again_ms == 0 || (v->again_ms < 60000 && v->level != STW_LEVEL_STALLED))
        return;
    stw_operator_text(run->op, STW_RECONCILE_AT, annotation);
    if (v->level == STW_LEVEL_STALLED) /* a wait that counts down would change the message */
        stw_format(within, sizeof(within), "within %llu minute%s, or ", (unsigned long long)minutes,
                   minutes == 1 ? "" : "s");
    stw_format(hint, sizeof(hint), " (tried again %sat once when the annotation %s changes)",
               within, annotation);
    json_array_foreach (json_object_get(status, "conditions"), i, one) {
        const char *type = stw_tree_text(one, "type"), *said = stw_tree_text(one, "message");
        if (!stw_streq(said, v->message) ||
            !(stw_streq(type, STW_READY) || stw_streq(type, STW_STALLED) ||
              stw_streq(type, STW_RECONCILING)))
            continue;
        stw_format(text, sizeof(text), "%s", said);
        stw_message_clean(text, sizeof(text) - 1 - strlen(hint));
        stw_format(text + strlen(text), sizeof(text) - strlen(text), "%s", hint);
        (void)json_object_set_new(one, "message", json_string(text));
    }
}

static void set_outcome(struct stw_run *run, const struct stw_verdict *v, json_t *status,
                        struct stw_result *result)
{
    result->after_ms = v->again_ms;
    switch (v->level) {
    case STW_LEVEL_STALLED:
        result->outcome = STW_RUN_STALLED;
        (void)stw_fail(&result->err, STW_ERR_INVALID, "%s: %s", v->reason, v->message);
        break;
    case STW_LEVEL_RETRYING:
        result->outcome = STW_RUN_FAILED;
        result->err = *v->err;
        result->after_ms = stw_object_retry_ms(run, v->err);
        (void)json_object_set_new(status, "retry", stw_object_retry(run, v->err, result->after_ms));
        break;
    case STW_LEVEL_WAITING:
        result->outcome = STW_RUN_AFTER;
        break;
    default:
        result->outcome = v->again_ms > 0 ? STW_RUN_AFTER : STW_RUN_DONE;
        break;
    }
}

/* A write of new rollout numbers waits until the last write is MINOR_MS old. */
static bool put_off(const struct stw_run *run, const struct stw_object *o, const json_t *status,
                    const char *const *numbers, struct stw_result *result)
{
    int64_t last;
    const char *text = json_string_value(json_object_get(o->status, "lastReconcileTime"));
    if (!text || stw_time_parse(text, &last) != 0 ||
        !stw_status_is_minor(o->status, status, numbers))
        return false;
    int64_t age_ms = (stw_wall_us(run->clock) - last) / 1000;
    if (age_ms < 0 || age_ms >= MINOR_MS)
        return false;
    json_auto_t *diff = stw_merge_diff(o->status, status);
    const char *only = diff ? json_object_iter_key(json_object_iter(diff)) : NULL;
    if (only && !(json_object_size(diff) == 1 && stw_streq(only, "lastReconcileTime"))) {
        result->outcome = STW_RUN_AFTER;
        result->after_ms = (uint64_t)(MINOR_MS - age_ms);
    }
    return true;
}

static int write_status(struct stw_run *run, const struct stw_object *o, json_t *status, bool exact,
                        struct stw_result *result)
{
    struct stw_error err = {0};
    json_auto_t *own = status;
    int written = !own    ? stw_tree_fail("the status", &err)
                  : exact ? stw_object_write_state(run, o, own, &err)
                          : stw_object_write_status(run, o, own, &err);
    if (written < 0)
        stw_run_fail(run, &err, result);
    if (written > 0 && exact)
        stw_fault_point("status");
    return written;
}

int stw_run_write(struct stw_run *run, const struct stw_object *o, json_t *status,
                  struct stw_result *result)
{
    return write_status(run, o, status, false, result);
}

void stw_run_end(struct stw_run *run, const struct stw_object *o, const struct stw_verdict *v,
                 json_t *status, const char *const *numbers, struct stw_result *result)
{
    if (!status) {
        (void)stw_run_write(run, o, NULL, result);
        return;
    }
    set_outcome(run, v, status, result);
    if (v->level == STW_LEVEL_STALLED || v->level == STW_LEVEL_WAITING)
        name_next_run(run, v, status);
    if (numbers && v->level == STW_LEVEL_PROGRESSING && put_off(run, o, status, numbers, result)) {
        json_decref(status);
        return;
    }
    if (write_status(run, o, status, v->exact, result) > 0)
        stw_run_tell(run, o, v, result->outcome == STW_RUN_FAILED);
}

void stw_run_tell(const struct stw_run *run, const struct stw_object *o,
                  const struct stw_verdict *v, bool failed)
{
    if (v->level < STW_LEVEL_PROGRESSING)
        tell_trouble(run, o, v->reason, v->message, failed);
}

void stw_run_report(struct stw_run *run, const struct stw_object *o, const struct stw_aspect *all,
                    size_t count, json_t *members, struct stw_result *result)
{
    json_auto_t *own = members;
    struct stw_status s;
    struct stw_verdict v;
    for (size_t i = 0; i < count; i++)
        if (all[i].err &&
            (all[i].err->code == STW_ERR_CONFLICT || all[i].err->code == STW_ERR_CANCELLED)) {
            stw_run_fail(run, all[i].err, result);
            return;
        }
    stw_status_begin(&s, run, o, NULL);
    stw_verdict_of(all, count, &v);
    stw_verdict_conditions(&v, &s.conditions);
    stw_aspect_conditions(all, count, &s.conditions);
    if (own)
        (void)json_object_update(s.tree, own);
    stw_run_end(run, o, &v, stw_status_end(&s), NULL, result);
}

void stw_run_end_invalid(struct stw_run *run, const struct stw_object *o, json_t *status,
                         const char *findings, struct stw_result *result)
{
    result->outcome = STW_RUN_STALLED;
    result->after_ms = STW_STALLED_AGAIN_MS;
    (void)stw_fail(&result->err, STW_ERR_INVALID, "%s", findings);
    if (stw_run_write(run, o, status, result) > 0)
        tell_trouble(run, o, STW_REASON_INVALID_SPEC, findings, false);
}
