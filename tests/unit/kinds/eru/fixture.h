/* SPDX-License-Identifier: Apache-2.0
 *
 * A Deployment, a clock and the status of an Eru, for runs without a manager: all that a run reads
 * and writes is here, so that a test can interrupt it at any point. */
#ifndef STW_TESTS_KINDS_ERU_FIXTURE_H
#define STW_TESTS_KINDS_ERU_FIXTURE_H

#include "base/util.h"
#include "kinds/eru/plan.h"
#include "kinds/eru/reconcile.h"
#include "kinds/eru/rollouts.h"
#include "kinds/eru/run_priv.h"
#include "kinds/eru/state.h"
#include "kinds/eru/target.h"
#include "kinds/eru/workloads.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define WORLD_MANY (ERU_MATCHES_MAX + 20)

struct fixture {
    /* the Deployment, as the API server has it */
    struct eru_target live;
    unsigned version, looks, stamps;
    bool look_fails, lease_lost, answer_lost; /* for the following calls */
    void (*meanwhile)(struct fixture *w);     /* called once, between look and stamp */
    /* with a selector: what matches, and how many stamps succeed before a process dies */
    struct eru_found many[WORLD_MANY];
    size_t count;
    unsigned lists, dies_after; /* 0: it does not */
    const char *own;            /* a workload that another Eru names */
    const char *unreadable;     /* one of them; the API server says no more of it than its name */
    const char *refused;        /* stamps of names with this beginning fail with `refusal` */
    enum stw_err refusal;
    /* what the pods read: the same for all, except one workload */
    struct eru_inputs inputs;
    const char *other, *other_digest;
    unsigned inputs_reads;
    enum stw_err inputs_refusal; /* STW_OK: none */
    /* the Eru */
    json_t *status; /* as it was last written */
    struct eru_spec spec;
    const char *token;
    int64_t now, changed_at;
    int64_t set_by;                /* seconds that the wall clock has been set forward */
    struct eru_rollouts *rollouts; /* what this process remembers */
    /* results of the last run */
    struct eru_event events[ERU_EVENTS_MAX];
    unsigned event_count;
    uint64_t wake_ms;
    enum stw_err err;
};

static struct fixture *fixture_of; /* eru_ops have no context of their own */

static inline int64_t at(const char *text)
{
    int64_t us;
    if (stw_time_parse(text, &us) != 0)
        fail_msg("%s", text);
    return us / 1000000;
}

static inline void touch_target(struct fixture *w, struct eru_target *t)
{
    w->version++;
    (void)snprintf(t->resource_version, sizeof(t->resource_version), "%u", w->version);
}

static inline void touch(struct fixture *w)
{
    touch_target(w, &w->live);
}

static inline int fake_look(struct eru *e, struct stw_error *err)
{
    struct fixture *w = fixture_of;
    w->looks++;
    if (w->look_fails)
        return stw_fail(err, STW_ERR_UNAVAILABLE, "nobody answers");
    e->target = w->live.there ? w->live : (struct eru_target){0};
    return 0;
}

static inline struct eru_target *find_live(struct fixture *w, const char *name)
{
    for (size_t i = 0; i < w->count; i++)
        if (stw_streq(w->many[i].name, name))
            return &w->many[i].target;
    return &w->live;
}

static inline int fake_stamp(struct eru *e, const char *name, const char *stamp,
                             struct stw_error *err)
{
    struct fixture *w = fixture_of;
    struct eru_target *live = find_live(w, name);
    if (w->meanwhile) {
        void (*meanwhile)(struct fixture *) = stw_take(w->meanwhile);
        meanwhile(w);
    }
    if (w->lease_lost)
        return stw_fail(err, STW_ERR_CANCELLED, "this process no longer leads");
    if (w->refused && strncmp(name, w->refused, strlen(w->refused)) == 0)
        return stw_fail(err, w->refusal, "refused");
    if (!live->there || !stw_streq(e->target.resource_version, live->resource_version))
        return stw_fail(err, STW_ERR_CONFLICT, "the object has been modified");
    w->stamps++;
    (void)snprintf(live->stamp, sizeof(live->stamp), "%s", stamp);
    (void)snprintf(live->inputs, sizeof(live->inputs), "%s", e->inputs);
    live->generation++;
    live->updated = 0;
    touch_target(w, live);
    if (w->dies_after > 0 && --w->dies_after == 0)
        w->lease_lost = true;
    if (w->answer_lost)
        return stw_fail(err, STW_ERR_TIMEOUT, "no answer in time");
    e->target = *live;
    return 0;
}

static inline int fake_inputs(struct eru *e, const char *name, struct eru_inputs *ret,
                              struct stw_error *err)
{
    struct fixture *w = fixture_of;
    w->inputs_reads++;
    if (w->inputs_refusal != STW_OK)
        return stw_fail(err, w->inputs_refusal, "refused");
    if (!stw_streq(e->target.resource_version, find_live(w, name)->resource_version))
        return stw_fail(err, STW_ERR_CONFLICT, "it has changed");
    *ret = w->inputs;
    if (w->other && stw_streq(w->other, name))
        (void)snprintf(ret->digest, sizeof(ret->digest), "%s", w->other_digest);
    return 0;
}

static inline bool is_listed(const struct eru_found_list *list, const char *name)
{
    size_t i;
    const json_t *one;
    json_array_foreach (list->only, i, one)
        if (stw_streq(json_string_value(json_object_get(one, "name")), name))
            return true;
    return !list->only;
}

static inline int fake_list(struct eru *e, struct eru_found_list *list, struct stw_error *err)
{
    struct fixture *w = fixture_of;
    (void)e;
    w->lists++;
    list->all = calloc(ERU_MATCHES_MAX, sizeof(*list->all));
    if (w->look_fails)
        return stw_fail(err, STW_ERR_UNAVAILABLE, "nobody answers");
    for (size_t i = 0; i < w->count; i++) {
        if (w->unreadable && stw_streq(w->many[i].name, w->unreadable)) {
            list->unreadable = json_pack("[s]", w->unreadable);
            continue;
        }
        if (!w->many[i].target.there || !is_listed(list, w->many[i].name))
            continue;
        list->more = list->count == ERU_MATCHES_MAX;
        if (list->more)
            break;
        list->all[list->count++] = w->many[i];
    }
    return 0;
}

static inline bool fake_has_own(struct eru *e, const char *name)
{
    (void)e;
    return fixture_of->own && stw_streq(fixture_of->own, name);
}

static inline int64_t fake_changed_at(struct eru *e)
{
    (void)e;
    return fixture_of->changed_at;
}

static inline int64_t fake_took_ms(struct eru *e, int64_t written_ms)
{
    return eru_rollouts_took_ms(fixture_of->rollouts, "shop/web", e->state.rollout.instant,
                                written_ms);
}

static const struct eru_ops fake_ops = {.look = fake_look,
                                        .stamp = fake_stamp,
                                        .inputs = fake_inputs,
                                        .list = fake_list,
                                        .has_own = fake_has_own,
                                        .changed_at = fake_changed_at,
                                        .took_ms = fake_took_ms};

static inline uint64_t fixture_monotonic(void *ctx)
{
    const struct fixture *w = *(struct fixture *const *)ctx;
    return (uint64_t)(w->now - w->set_by) * 1000;
}

static inline int64_t fixture_wall(void *ctx)
{
    return (*(struct fixture *const *)ctx)->now * 1000000;
}

static const struct stw_clock fixture_clock = {&fixture_of, fixture_monotonic, fixture_wall};

/* Restarts the process of steward: it remembers nothing. */
static inline void start_again(struct fixture *w)
{
    eru_rollouts_destroy(w->rollouts);
    w->rollouts = eru_rollouts_create(&fixture_clock);
}

static inline void settle_target(struct fixture *w, struct eru_target *t)
{
    t->observed_generation = t->generation;
    t->replicas = t->updated = t->available = t->to_update = t->wanted;
    touch_target(w, t);
}

/* Completes the rollout of the Deployment. */
static inline void settle(struct fixture *w)
{
    settle_target(w, &w->live);
}

/* Instead of one name, a selector that matches `count` healthy Deployments: d-00, d-01, ... */
static inline void fixture_select(struct fixture *w, size_t count)
{
    w->spec.deployment = NULL;
    w->count = count;
    for (size_t i = 0; i < count; i++) {
        struct eru_found *f = &w->many[i];
        *f = (struct eru_found){.created = at("2025-12-01T00:00:00Z"),
                                .target = {.there = true, .wanted = 1, .generation = 1}};
        (void)snprintf(f->name, sizeof(f->name), "d-%02zu", i);
        (void)snprintf(f->target.uid, sizeof(f->target.uid), "uid-%zu", i);
        settle_target(w, &f->target);
    }
}

static inline void settle_all(struct fixture *w)
{
    for (size_t i = 0; i < w->count; i++)
        settle_target(w, &w->many[i].target);
}

/* An Eru that was created on 1 January 2026 at midnight, enabled, with the defaults of the kind;
 * and a healthy Deployment of three replicas. */
static inline void fixture_init(struct fixture *w, const char *schedule)
{
    *w = (struct fixture){.spec = {.deployment = "web",
                                   .kind = "Deployment",
                                   .enabled = true,
                                   .schedule = schedule,
                                   .time_zone = "Etc/UTC",
                                   .starting_deadline_seconds = 600,
                                   .concurrency_policy = "Forbid",
                                   .require_healthy = true,
                                   .rollout_timeout_seconds = 600,
                                   .history_limit = 5},
                          .token = "",
                          .now = at("2026-01-01T00:00:00Z")};
    w->live = (struct eru_target){.there = true, .wanted = 3, .generation = 1};
    (void)snprintf(w->live.uid, sizeof(w->live.uid), "d-1");
    settle(w);
    w->status = json_pack("{s:i}", "observedGeneration", -1);
    w->changed_at = w->now;
    fixture_of = w;
    start_again(w);
}

static inline void fixture_done(struct fixture *w)
{
    json_decref(w->status);
    w->status = NULL;
    eru_rollouts_destroy(w->rollouts);
    w->rollouts = NULL;
}

static struct stw_run fixture_run = {.ns = "shop", .name = "web", .key = "shop/web"};

/* One run; `keep` false: it is interrupted before its status is written. */
static inline void run_once(struct fixture *w, bool keep)
{
    struct eru *e = calloc(1, sizeof(*e));
    struct stw_error err = {0};
    e->ops = &fake_ops;
    e->spec = w->spec;
    e->zone = &stw_zone_utc;
    e->workload = eru_workload_of(e->spec.kind);
    e->now_us = w->now * 1000000;
    e->target_cached = w->live.there;
    e->object.status = w->status;
    e->object.generation = 1;
    e->run = &fixture_run;
    (void)snprintf(e->object.created, sizeof(e->object.created), "2026-01-01T00:00:00Z");
    (void)snprintf(e->object.uid, sizeof(e->object.uid), "e-1");
    (void)snprintf(e->token, sizeof(e->token), "%s", w->token);
    assert_int_equal(stw_cron_parse(w->spec.schedule, &e->cron, &err), 0);
    eru_state_read(w->status, &e->state);
    eru_plan(e);
    w->err = e->err.code;
    w->wake_ms = eru_plan_wake_ms(e);
    w->event_count = e->event_count;
    memcpy(w->events, e->events, sizeof(w->events));
    bool interrupted = w->err == STW_ERR_CONFLICT || w->err == STW_ERR_CANCELLED;
    if (keep && !interrupted) {
        json_t *next = json_copy(w->status);
        eru_state_write(&e->state, next);
        (void)json_object_set_new(next, "observedGeneration", json_integer(1));
        json_decref(w->status);
        w->status = next;
    }
    eru_state_done(&e->state);
    free(e);
}

static inline void run_at(struct fixture *w, const char *time)
{
    w->now = at(time);
    run_once(w, true);
}

static inline const char *text(const struct fixture *w, const char *key)
{
    const char *value = json_string_value(json_object_get(w->status, key));
    return value ? value : "";
}

static inline int64_t number(const struct fixture *w, const char *key)
{
    return json_integer_value(json_object_get(w->status, key));
}

static inline const char *reason(const struct fixture *w, size_t index)
{
    const json_t *entry = json_array_get(json_object_get(w->status, "history"), index);
    const char *value = json_string_value(json_object_get(entry, "reason"));
    return value ? value : "";
}

static inline bool said(const struct fixture *w, const char *wanted)
{
    for (unsigned i = 0; i < w->event_count; i++)
        if (stw_streq(w->events[i].reason, wanted))
            return true;
    return false;
}

static inline bool rolling(const struct fixture *w)
{
    return json_object_get(w->status, "currentRollout") != NULL;
}

#endif
