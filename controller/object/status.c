/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/status.h"

#include "base/util.h"
#include "kube/tree.h"

#include <stdio.h>

static void init_status(struct stw_status *s, const struct stw_run *run, const struct stw_object *o)
{
    *s = (struct stw_status){.object = o};
    stw_time_format(stw_wall_us(run->clock), s->now);
    s->conditions = (struct stw_conditions){.old = json_object_get(o->status, "conditions"),
                                            .generation = o->generation,
                                            .now = s->now};
}

void stw_status_begin(struct stw_status *s, const struct stw_run *run, const struct stw_object *o,
                      const char *const *keep)
{
    init_status(s, run, o);
    s->tree = json_object();
    for (; keep && *keep; keep++) {
        json_t *old = json_object_get(o->status, *keep);
        if (old)
            (void)json_object_set(s->tree, *keep, old);
    }
}

static json_t *finish_status_tree(struct stw_status *s)
{
    json_t *tree = stw_take(s->tree), *list = stw_take(s->conditions.list);
    if (!s->conditions.failed && tree && json_object_set_new(tree, "conditions", list) == 0)
        return tree;
    json_decref(tree);
    return NULL;
}

json_t *stw_status_end(struct stw_status *s)
{
    (void)json_object_set_new(s->tree, "observedGeneration",
                              json_integer((json_int_t)s->object->generation));
    return finish_status_tree(s);
}

/* Keeps the conditions that are specific to the kind unchanged. */
static void keep_own(struct stw_status *s, const struct stw_run *run)
{
    const char *type;
    for (size_t i = 0; (type = stw_controller_condition(run->controller, i)); i++)
        if (!stw_streq(type, STW_READY) && !stw_streq(type, STW_RECONCILING) &&
            !stw_streq(type, STW_STALLED))
            stw_condition_keep(&s->conditions, type);
}

json_t *stw_status_invalid(const struct stw_run *run, const struct stw_object *o,
                           const char *findings)
{
    struct stw_status s;
    init_status(&s, run, o);
    s.tree = json_copy(o->status);
    (void)json_object_del(s.tree, "retry");
    stw_condition_set(&s.conditions, STW_READY, STW_FALSE, STW_REASON_INVALID_SPEC, "%s", findings);
    stw_condition_set(&s.conditions, STW_STALLED, STW_TRUE, STW_REASON_INVALID_SPEC, "%s",
                      findings);
    keep_own(&s, run);
    return stw_status_end(&s);
}

/* Nothing was checked, so observedGeneration stays that of the last run. */
json_t *stw_status_paused(const struct stw_run *run, const struct stw_object *o)
{
    struct stw_status s;
    char paused[STW_OWN_NAME_LEN];
    init_status(&s, run, o);
    const json_t *ready = stw_condition_find(s.conditions.old, STW_READY);
    enum stw_truth truth = stw_condition_is(ready, STW_TRUE)    ? STW_TRUE
                           : stw_condition_is(ready, STW_FALSE) ? STW_FALSE
                                                                : STW_UNKNOWN;
    s.tree = json_copy(o->status);
    (void)json_object_del(s.tree, "retry");
    stw_operator_text(run->op, STW_PAUSED, paused);
    s.conditions.generation = json_integer_value(json_object_get(ready, "observedGeneration"));
    stw_condition_set(&s.conditions, STW_READY, truth, STW_REASON_PAUSED,
                      "reconciling is paused by the annotation %s", paused);
    stw_condition_keep(&s.conditions, STW_STALLED);
    keep_own(&s, run);
    return finish_status_tree(&s);
}

static bool is_one_of(const char *text, const char *const *list)
{
    for (; text && list && *list; list++)
        if (stw_streq(text, *list))
            return true;
    return false;
}

bool stw_status_was_applied(const struct stw_object *o, const char *type,
                            const char *const *not_applied)
{
    static const char *const failures[] = {STW_REASON_APPLY_FAILED,
                                           STW_REASON_TERMINATING,
                                           STW_REASON_NAME_CONFLICT,
                                           STW_REASON_QUOTA,
                                           STW_REASON_FORBIDDEN,
                                           STW_REASON_INVALID_SPEC,
                                           NULL};
    const json_t *c = stw_condition_find(json_object_get(o->status, "conditions"), type);
    const char *reason = stw_condition_reason(c);
    return c && json_integer_value(json_object_get(c, "observedGeneration")) == o->generation &&
           !is_one_of(reason, failures) && !is_one_of(reason, not_applied);
}

/* The status reports this condition as true, of this generation. */
static bool was_true(const struct stw_object *o, const char *type)
{
    const json_t *c = stw_condition_find(json_object_get(o->status, "conditions"), type);
    return stw_condition_is(c, STW_TRUE) &&
           json_integer_value(json_object_get(c, "observedGeneration")) == o->generation;
}

/* Annotations count as changes of a Deployment, also that of a retry of refused pods. */
struct stw_rollout stw_status_rollout(const struct stw_object *o, const struct stw_child *c)
{
    struct stw_rollout r = c->live.rollout;
    bool judged = was_true(o, STW_READY) || (r.refused_us != 0 && was_true(o, STW_STALLED));
    if (judged && c->state == STW_CHILD_SYNCED)
        r.observed_generation = r.generation;
    return r;
}

void stw_status_add_repairs(struct stw_status *s, const struct stw_child *children, size_t count)
{
    json_int_t repairs = stw_tree_count(s->object->status, "repairs");
    for (size_t i = 0; i < count; i++) {
        const struct stw_child *c = &children[i];
        char object[STW_KEY_LEN];
        if (c->state != STW_CHILD_REPAIRED)
            continue;
        repairs++;
        stw_format(object, sizeof(object), "%s/%s", c->watch->resource->kind, c->name);
        (void)json_object_set_new(
            s->tree, "lastRepair",
            json_pack("{s:s,s:s,s:s}", "time", s->now, "object", object, "fields", c->fields));
    }
    if (repairs > 0)
        (void)json_object_set_new(s->tree, "repairs", json_integer(repairs));
}

static json_t *without_numbers(const json_t *status, const char *const *numbers)
{
    json_t *copy = json_deep_copy(status), *condition, *list = json_object_get(copy, "conditions");
    size_t i;
    for (const char *const *n = numbers; *n; n++)
        (void)json_object_del(copy, *n);
    (void)json_object_del(copy, "lastReconcileTime");
    (void)json_object_del(copy, "retry");
    json_array_foreach (list, i, condition) {
        (void)json_object_del(condition, "message");
        if (is_one_of(json_string_value(json_object_get(condition, "type")), numbers))
            (void)json_object_clear(condition);
    }
    return copy;
}

bool stw_status_is_minor(const json_t *old_status, const json_t *new_status,
                         const char *const *numbers)
{
    json_auto_t *a = without_numbers(old_status, numbers),
                *b = without_numbers(new_status, numbers);
    return a && b && json_equal(a, b);
}
