/* SPDX-License-Identifier: Apache-2.0
 *
 * The child "web" of the MyWeb "shop/web" (UID u-1): a cache, a server that answers by steps, and a
 * run that ensures it, without a manager that runs. */
#ifndef STW_TESTS_CONTROLLER_CHILD_FIXTURE_H
#define STW_TESTS_CONTROLLER_CHILD_FIXTURE_H

#include "base/util.h"
#include "controller/manager/manager_priv.h"
#include "fake.h"
#include "kinds/kinds.h"
#include "kinds/myweb/reconcile.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct fake fake;
    struct stw_manager manager;
    struct stw_watch_cache cache;
    struct stw_run run;
    struct stw_owner owner;
    json_t *desired;
    struct stw_child child;
};

/* As the manager does: ctx is the watch. */
static inline void fixture_project(void *ctx, struct stw_json object, struct stw_buf *out)
{
    const struct stw_watch *watch = ctx;
    watch->project(&stw_operator_steward, object, out);
}

/* `cached` is in the cache ("" for nothing), `steps` are the responses of the server, both with ' for
 * ".  `desired` is freed at the end. */
static inline void fixture_begin(struct fixture *f, const struct stw_watch *watch, json_t *desired,
                                 const char *cached, const char *steps)
{
    struct stw_error err;
    const struct stw_informer_config config = {
        .resource = watch->resource, .project = fixture_project, .ctx = (void *)(uintptr_t)watch};
    stw_autobuf struct stw_buf object = STW_BUF_INIT(4096);
    *f = (struct fixture){
        .manager = {.guard = stw_guard_create(), .memo = stw_memo_create(), .cache_count = 1}};
    fake_start(&f->fake);
    fake_steps(&f->fake, steps);
    f->manager.caches = &f->cache;
    f->cache.watch = watch;
    assert_int_equal(stw_informer_create(f->fake.client, &config, &stw_clock_system, NULL,
                                         &f->cache.informer, &err),
                     0);
    f->run = (struct stw_run){.manager = &f->manager,
                              .op = &stw_operator_steward,
                              .field_manager = "steward-myweb",
                              .controller = &stw_controller_myweb,
                              .client = f->fake.client,
                              .clock = &stw_clock_system,
                              .key = "shop/web",
                              .ns = "shop",
                              .name = "web"};
    f->owner = (struct stw_owner){.kind = "MyWeb", .ns = "shop", .name = "web", .uid = "u-1"};
    f->desired = desired;
    f->child = (struct stw_child){.watch = watch, .name = "web", .desired = desired};
    for (const char *p = cached; *p; p++)
        stw_buf_addc(&object, *p == '\'' ? '"' : *p);
    if (*cached)
        stw_informer_saw(f->cache.informer, &object, NULL);
}

static inline void fixture_end(struct fixture *f)
{
    stw_child_done(&f->child);
    stw_informer_destroy(f->cache.informer);
    stw_guard_destroy(f->manager.guard);
    stw_memo_destroy(f->manager.memo);
    fake_stop(&f->fake);
    json_decref(f->desired);
}

#endif
