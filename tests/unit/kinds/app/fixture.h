/* SPDX-License-Identifier: Apache-2.0
 *
 * An App in the middle of a run, without a manager: from the JSON of its spec and its status. */
#ifndef STW_TESTS_KINDS_APP_FIXTURE_H
#define STW_TESTS_KINDS_APP_FIXTURE_H

#include "kinds/app/children.h"
#include "kinds/app/reconcile.h"
#include "kinds/app/run_priv.h"
#include "kinds/kinds.h"
#include "support/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture {
    struct fake_clock now;
    struct stw_clock clock;
    struct stw_run run;
    struct app app;
    struct stw_child children[APP_CHILDREN];
    char *text;
};

/* `status` "" for none; generation 3 always. */
static inline void fixture_init(struct fixture *f, const char *spec, const char *status)
{
    static const struct stw_watch *const watches[APP_CHILDREN] = {
        &stw_watch_configmaps,         &stw_watch_deployments, &stw_watch_services,
        &stw_watch_disruption_budgets, &stw_watch_autoscalers, &stw_watch_ingresses,
        &stw_watch_http_routes,        &stw_watch_pod_monitors};
    struct stw_error err = {0};
    *f = (struct fixture){.now = {1000}};
    f->clock = (struct stw_clock){&f->now, fake_monotonic, fake_wall};
    f->run = (struct stw_run){.op = &stw_operator_steward,
                              .controller = &stw_controller_app,
                              .clock = &f->clock,
                              .key = "shop/web",
                              .ns = "shop",
                              .name = "web"};
    f->app = (struct app){.run = &f->run,
                          .children = f->children,
                          .child_count = APP_CHILDREN,
                          .config_name = "web-config"};
    f->app.owner = (struct stw_owner){.kind = "App", .ns = "shop", .name = "web", .uid = "u-1"};
    f->app.object.generation = 3;
    f->app.object.status = *status ? json_loads(status, 0, NULL) : json_object();
    f->app.arena = stw_arena_create();
    assert_true(asprintf(&f->text, "{\"spec\":%s}", spec) > 0);
    if (stw_json_scan(&f->app.object.doc, f->text, strlen(f->text), &err) != 0 ||
        stw_kind_decode(&stw_kind_app, stw_json_get(stw_json_root(&f->app.object.doc), "spec"),
                        f->app.arena, &f->app.spec, &err) != 0)
        fail_msg("%s", err.text);
    f->app.naming = (struct stw_naming){"app", "app", f->app.spec.image};
    app_hash_config(&f->app);
    for (int i = 0; i < APP_CHILDREN; i++) {
        f->app.children[i].watch = watches[i];
        f->app.children[i].name = i == APP_CONFIGMAP ? f->app.config_name : f->app.owner.name;
    }
}

static inline void fixture_done(struct fixture *f)
{
    stw_object_done(&f->app.object);
    stw_arena_destroy(f->app.arena);
    free(f->text);
}

#endif
