/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/reconcile.h"

#include "base/process/memory_budget.h"
#include "base/util.h"
#include "controller/cache/stub.h"
#include "controller/child/child_priv.h"
#include "controller/manager/manager_priv.h"
#include "controller/object/object_priv.h"
#include "controller/outcome.h"
#include "controller/status.h"
#include "controller/template_status.h"

#include <stdio.h>

#define REMAINS_AGAIN_MS 15000U
#define FINDINGS_MAX (64 * 1024)
/* What a run needs for each byte of its object's text: the answer of the API server and its tokens, the
 * text, the decoded spec, the children as trees and as JSON, and their answers.  Measured: 8.5.  See
 * docs/operations.md, Sizing. */
#define RECONCILE_FACTOR 10
/* The same for a deletion, which has no children: the answer, its tokens, the text and the decoded
 * spec.  Measured with one long value: 2.9. */
#define DELETION_FACTOR 5

/* --- children that are stated as rows */

static size_t count_children(const struct stw_controller *c)
{
    size_t n = c->child_count;
    while (c->children && c->children[n].watch)
        n++;
    return n;
}

static struct stw_hash inputs_of(const struct stw_subject *s, int64_t input)
{
    char text[128];
    if (s->selector)
        return (struct stw_hash){0};
    int len = snprintf(text, sizeof(text), "%s %lld %lld", s->object.uid,
                       (long long)s->object.generation, (long long)input);
    return s->object.generation > 0 ? stw_hash_bytes(text, (size_t)len) : (struct stw_hash){0};
}

static struct stw_hash template_inputs_of(const struct stw_subject *s,
                                          const struct stw_child_row *row, int64_t input)
{
    char more[24];
    stw_format(more, sizeof(more), "%lld", (long long)input);
    return row->outside_template ? stw_template_inputs(stw_json_get(s->object.root, "spec"),
                                                       row->outside_template, more)
                                 : (struct stw_hash){0};
}

void stw_children_begin(struct stw_subject *s, size_t i, int64_t input)
{
    const struct stw_child_row *row = &s->run->controller->children[i];
    const struct stw_adoption adoption = s->children[i].adoption;
    const struct stw_error refusal = s->children[i].err;
    stw_child_done(&s->children[i]);
    s->children[i] = (struct stw_child){
        .watch = row->watch,
        .name = s->owner.name,
        .make = row->make,
        .ctx = s,
        .inputs = inputs_of(s, input),
        .origins = row->origins,
        .err = refusal,
        .adoption = adoption,
        .applied_before = stw_status_was_applied(&s->object, row->condition, row->not_applied)};
    stw_child_know_template(&s->children[i], s->run, &s->object);
    s->children[i].template.inputs_now = template_inputs_of(s, row, input);
}

static bool is_wanted(const struct stw_subject *s, size_t i)
{
    const struct stw_child_row *row = &s->run->controller->children[i];
    return !row->wanted || row->wanted(s);
}

void stw_children_check(struct stw_subject *s)
{
    if (s->adoption_checked || !s->owner.adopt)
        return;
    for (size_t i = 0; i < s->child_count; i++) {
        stw_children_begin(s, i, 0);
        if (!is_wanted(s, i))
            s->children[i].make = NULL;
    }
    stw_children_check_adoption(s->run, &s->owner, s->children, s->child_count);
    s->adoption_checked = true;
    for (size_t i = 0; i < s->child_count; i++) {
        const struct stw_child_row *row = &s->run->controller->children[i];
        if (row->adopt_after)
            s->children[i].adoption.until = row->adopt_after(s);
        if (s->children[i].watch == &stw_watch_deployments &&
            s->children[i].adoption.answer == STW_ADOPTION_REFUSED)
            s->owner.selector = NULL; /* it stays another one's */
    }
}

void stw_children_ensure(struct stw_subject *s, size_t i)
{
    stw_children_check(s);
    stw_children_begin(s, i, 0);
    if (is_wanted(s, i))
        stw_child_ensure(s->run, &s->owner, &s->children[i]);
    else
        stw_child_remove(s->run, &s->owner, &s->children[i]);
}

static void find_child(struct stw_subject *s, size_t i, struct stw_aspect *a)
{
    const struct stw_child_row *row = &s->run->controller->children[i];
    struct stw_rollout rollout = stw_status_rollout(&s->object, &s->children[i]);
    stw_aspect_child(a, &s->children[i]);
    a->type = is_wanted(s, i) || a->level != STW_LEVEL_FINE ? row->condition : NULL;
    if (a->level == STW_LEVEL_FINE && row->replicas)
        stw_aspect_rollout(a, &rollout, row->replicas(s));
}

void stw_children_judge(struct stw_subject *s, struct stw_verdict *v, json_t **ret_status)
{
    static const char *const keep[] = {"repairs", "lastRepair", NULL};
    const struct stw_controller *c = s->run->controller;
    size_t count = s->child_count + c->aspect_count;
    struct stw_aspect *all = calloc(count, sizeof(*all));
    struct stw_status status;
    *ret_status = NULL;
    if (!all)
        return;
    stw_status_begin(&status, s->run, &s->object, keep);
    for (size_t i = 0; i < s->child_count; i++)
        find_child(s, i, &all[i]);
    if (c->find)
        c->find(s, all);
    stw_verdict_of(all, count, v);
    if (v->level == STW_LEVEL_FINE && c->summarize)
        c->summarize(s, v);
    stw_verdict_conditions(v, &status.conditions);
    stw_aspect_conditions(all, count, &status.conditions);
    free(all);
    stw_status_add_templates(&status, s->run, s->children, s->child_count);
    stw_status_add_repairs(&status, s->children, s->child_count);
    if (c->report)
        c->report(s, v, status.tree);
    *ret_status = stw_status_end(&status);
}

static void reconcile_children(struct stw_subject *s, struct stw_result *result)
{
    const struct stw_controller *c = s->run->controller;
    struct stw_verdict verdict;
    json_t *status;
    if (c->ensure) {
        c->ensure(s);
    } else {
        for (size_t i = 0; i < s->child_count; i++)
            stw_children_ensure(s, i);
    }
    stw_tell_children(s->run, &s->object, s->owner.name, s->children, s->child_count);
    if (stw_run_interrupted(s->run, s->children, s->child_count, result))
        return;
    stw_children_judge(s, &verdict, &status);
    stw_run_end(s->run, &s->object, &verdict, status, c->numbers, result);
}

/* The garbage collector deletes the children. */
static void forget_object(struct stw_run *run)
{
    const struct stw_child_row *row = run->controller->children;
    for (; row && row->watch; row++)
        stw_child_forget(run, row->watch, run->key);
    if (run->controller->gone)
        run->controller->gone(run);
}

/* --- the head */

json_t *stw_status_unchecked(const struct stw_subject *s, enum stw_unchecked why,
                             const char *findings)
{
    return why == STW_UNCHECKED_PAUSED ? stw_status_paused(s->run, &s->object)
                                       : stw_status_invalid(s->run, &s->object, findings);
}

static json_t *status_of_unchecked(struct stw_subject *s, enum stw_unchecked why,
                                   const char *findings)
{
    const struct stw_controller *c = s->run->controller;
    return c->status_unchecked ? c->status_unchecked(s, why, findings)
                               : stw_status_unchecked(s, why, findings);
}

static int decode_spec(struct stw_subject *s, struct stw_error *err)
{
    const struct stw_controller *c = s->run->controller;
    if (!s->arena)
        return stw_fail_memory(err);
    return stw_kind_decode(c->kind, stw_json_get(s->object.root, "spec"), s->arena,
                           (char *)s + c->spec_offset, err);
}

/* False: it is unknown, and a Service that is made now might select no pod. */
static bool find_selector(struct stw_subject *s, struct stw_error *err)
{
    bool is_new = json_integer_value(json_object_get(s->object.status, "observedGeneration")) <= 0;
    int rc = stw_find_selector(s->run, &s->owner, is_new, &s->selector, err);
    s->owner.selector = s->selector;
    return rc == 0;
}

static void reconcile_wanted(struct stw_subject *s, struct stw_result *result)
{
    if (s->run->controller->reconcile)
        s->run->controller->reconcile(s, result);
    else
        reconcile_children(s, result);
}

static void reconcile_object(struct stw_subject *s, struct stw_result *result)
{
    const struct stw_controller *c = s->run->controller;
    stw_autobuf struct stw_buf findings = STW_BUF_INIT(FINDINGS_MAX);
    struct stw_error err = {0};
    int decoded = decode_spec(s, &err);
    if (s->object.deleting) {
        forget_object(s->run);
        if (c->deleting)
            c->deleting(s, result);
    } else if (s->object.paused) {
        (void)stw_run_write(s->run, &s->object, status_of_unchecked(s, STW_UNCHECKED_PAUSED, ""),
                            result);
    } else if (stw_object_judge(s->run, &s->object, &findings) > 0) {
        const char *text = stw_buf_str(&findings);
        stw_run_end_invalid(s->run, &s->object, status_of_unchecked(s, STW_UNCHECKED_INVALID, text),
                            text, result);
    } else if (decoded != 0 || !find_selector(s, &err)) {
        stw_run_fail(s->run, &err, result);
    } else {
        reconcile_wanted(s, result);
    }
}

/* A hash of the generation and of the annotation that requests a run. */
static uint64_t hash_asked(const struct stw_subject *s)
{
    char annotation[STW_OWN_NAME_LEN], text[STW_OWN_NAME_LEN + 288], at[256];
    stw_operator_text(s->run->op, STW_RECONCILE_AT, annotation);
    stw_json_cut(stw_json_get(stw_json_path(s->object.root, "metadata.annotations"), annotation),
                 at, sizeof(at));
    stw_format(text, sizeof(text), "%lld %s", (long long)s->object.generation, at);
    return stw_hash_bytes(text, strlen(text)).lo;
}

static void own_children(struct stw_subject *s)
{
    stw_format(s->uid, sizeof(s->uid), "%s", s->object.uid);
    s->owner = (struct stw_owner){.kind = s->run->controller->kind->kind,
                                  .ns = s->run->ns,
                                  .name = s->run->name,
                                  .uid = s->uid,
                                  .adopt = s->object.adopt,
                                  .asked = hash_asked(s),
                                  .object = s->object.root};
}

static void free_subject(struct stw_subject *s)
{
    for (size_t i = 0; s->children && i < s->child_count; i++)
        stw_child_done(&s->children[i]);
    free(s->children);
    json_decref(s->selector);
    stw_arena_destroy(s->arena);
    stw_object_done(&s->object);
    free(s);
}

/* After the functions of the kind, which may have filled its part of the subject. */
static void end_subject(struct stw_subject *s)
{
    if (s->run->controller->done)
        s->run->controller->done(s);
}

static void reconcile_loaded(struct stw_subject *s, struct stw_result *result)
{
    own_children(s);
    s->arena = stw_arena_create();
    reconcile_object(s, result);
    end_subject(s);
}

/* --- large objects, of which the cache has only a stub */

/* What a run of it needs. */
static size_t memory_needed(const struct stw_object *o)
{
    return o->whole_bytes * (o->deleting ? DELETION_FACTOR : RECONCILE_FACTOR);
}

/* The object as it cannot be reconciled: its status says why.  It is not read. */
static void end_too_large(struct stw_subject *s, struct stw_result *result)
{
    char text[640], longest[128] = "";
    const struct stw_object *o = &s->object;
    size_t share = stw_share_limit(STW_SHARE_RECONCILES);
    size_t fits = share / (o->deleting ? DELETION_FACTOR : RECONCILE_FACTOR);
    if (*o->longest)
        stw_format(longest, sizeof(longest), "; %s has %lld bytes of it", o->longest,
                   (long long)o->longest_bytes);
    stw_format(
        text, sizeof(text),
        "the object is too long: it has %zu bytes as JSON%s: its %s would need %zu MiB, and all "
        "reconciles have %zu MiB, an eighth of the memory limit; shorten it to %zu bytes, or "
        "raise the memory limit",
        o->whole_bytes, longest, o->deleting ? "deletion" : "reconcile", memory_needed(o) >> 20,
        share >> 20, fits);
    own_children(s);
    stw_run_end_invalid(s->run, o, status_of_unchecked(s, STW_UNCHECKED_INVALID, text), text,
                        result);
    end_subject(s);
}

/* True: the run has what it needs, and the object is whole.  One that is too large gets the whole share
 * to write its status: the answer is the object. */
static bool make_whole(struct stw_subject *s, struct stw_result *result)
{
    size_t needed = memory_needed(&s->object);
    size_t share = stw_share_limit(STW_SHARE_RECONCILES);
    struct stw_error err = {0};
    enum stw_reserve answer = stw_run_reserve(s->run, STW_MIN(needed, share));
    if (answer == STW_RESERVE_WAITS)
        return false;
    if (answer == STW_RESERVED && needed > share) {
        stw_share_note_refusal(STW_SHARE_RECONCILES);
        end_too_large(s, result);
        return false;
    }
    if (answer == STW_RESERVED && stw_object_fetch(s->run, &s->object, &err) == 0)
        return true;
    if (answer != STW_RESERVED)
        (void)stw_fail_memory(&err);
    stw_run_fail(s->run, &err, result);
    return false;
}

/* The end of an object whose kind has nothing to clean up does not depend on its contents. */
static bool needs_whole(const struct stw_subject *s)
{
    return s->object.stub && (!s->object.deleting || s->run->controller->kind->finalizer);
}

/* Nothing is left to do for the object as it is cached now: a resync does not read it again. */
static void note_settled(struct stw_run *run)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    if (stw_informer_get(stw_run_cache(run, run->controller->own), run->key, &text, NULL) == 0)
        stw_settled_note(run, &text);
}

static void reconcile_cached(struct stw_subject *s, struct stw_result *result)
{
    bool stub = s->object.stub, crowded = stub && s->object.whole_bytes <= STW_STUB_TEXT_MAX;
    if (needs_whole(s) && !make_whole(s, result))
        return;
    if (crowded)
        stw_object_event(
            s->run, &s->object, true, "CacheFull", "Reconcile",
            "the objects of this namespace, or all together, use up their memory in the "
            "caches: this one is read from the API server for each reconcile");
    reconcile_loaded(s, result);
    if (stub && result->outcome == STW_RUN_DONE)
        note_settled(s->run);
}

/* Runs the deletion of an object that is gone in spite of our finalizer.  False: it is not one. */
static bool reconcile_remains(struct stw_subject *s, struct stw_result *result)
{
    struct stw_remains *remains = s->run->manager->remains;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES);
    char key[STW_REMAINS_KEY_LEN];
    stw_remains_key(s->run->controller, s->run->key, key);
    if (stw_remains_get(remains, key, &text) != 0)
        return false;
    if (stw_object_load_text(s->run, &text, &s->object) == 0) {
        s->object.deleting = true;
        reconcile_loaded(s, result);
    }
    if (stw_remains_tried(remains, key, result->outcome == STW_RUN_DONE))
        result->outcome = STW_RUN_DONE;
    else if (result->outcome == STW_RUN_AFTER) /* the write of a status is answered by 404 */
        result->after_ms = STW_MIN(result->after_ms, REMAINS_AGAIN_MS);
    return true;
}

/* The cache has no object or an old version: acting on that would be wrong. */
static bool is_unreadable(const struct stw_run *run, struct stw_error *err)
{
    char why[200];
    if (!stw_informer_unreadable(stw_run_cache(run, run->controller->own), run->key, why,
                                 sizeof(why)))
        return false;
    (void)stw_fail(err, STW_ERR_INVALID, "the %s cannot be read: %s", run->controller->kind->kind,
                   why);
    return true;
}

void stw_reconcile(struct stw_run *run, struct stw_result *result)
{
    const struct stw_controller *c = run->controller;
    struct stw_subject *s = calloc(1, c->run_size);
    struct stw_error err = {0};
    size_t count = count_children(c);
    struct stw_child *children = s && count > 0 ? calloc(count, sizeof(*children)) : NULL;
    if (!s || (count > 0 && !children)) {
        free(s);
        (void)stw_fail_memory(&err);
        stw_run_fail(run, &err, result);
        return;
    }
    s->run = run;
    s->children = children;
    s->child_count = count;
    if (is_unreadable(run, &err)) {
        stw_run_fail(run, &err, result);
    } else if (stw_object_load_key(run, run->key, &s->object) == 0) {
        reconcile_cached(s, result);
    } else if (!reconcile_remains(s, result)) {
        forget_object(run);
        if (c->missing)
            c->missing(run, result);
    }
    free_subject(s);
}
