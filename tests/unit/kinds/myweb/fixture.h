/* SPDX-License-Identifier: Apache-2.0
 *
 * A MyWeb in the middle of a run, without a manager: from the JSON of its spec and its status. */
#ifndef STW_TESTS_KINDS_MYWEB_FIXTURE_H
#define STW_TESTS_KINDS_MYWEB_FIXTURE_H

#include "kinds/kinds.h"
#include "kinds/myweb/reconcile.h"
#include "kinds/myweb/run_priv.h"
#include "support/fake_clock.h"

#include <stdio.h>

struct fixture {
    struct fake_clock now;
    struct stw_clock clock;
    struct stw_run run;
    struct myweb web;
    struct stw_child children[MYWEB_CHILDREN];
    char *text;
};

/* `status` "" for none; generation 3 always. */
static inline int fixture_init(struct fixture *f, const char *spec, const char *status)
{
    struct stw_error err = {0};
    *f = (struct fixture){.now = {1000}};
    f->clock = (struct stw_clock){&f->now, fake_monotonic, fake_wall};
    f->run = (struct stw_run){.op = &stw_operator_steward,
                              .controller = &stw_controller_myweb,
                              .clock = &f->clock,
                              .key = "shop/web",
                              .ns = "shop",
                              .name = "web"};
    f->web = (struct myweb){.run = &f->run, .children = f->children, .child_count = MYWEB_CHILDREN};
    f->web.owner = (struct stw_owner){.kind = "MyWeb", .ns = "shop", .name = "web", .uid = "u-1"};
    f->web.object.generation = 3;
    f->web.object.status = *status ? json_loads(status, 0, NULL) : json_object();
    f->web.arena = stw_arena_create();
    if (asprintf(&f->text, "{\"spec\":%s}", spec) < 0)
        return -1;
    if (stw_json_scan(&f->web.object.doc, f->text, strlen(f->text), &err) != 0 ||
        stw_kind_decode(&stw_kind_myweb, stw_json_get(stw_json_root(&f->web.object.doc), "spec"),
                        f->web.arena, &f->web.spec, &err) != 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    myweb_hash_content(&f->web);
    f->web.children[MYWEB_CONFIGMAP].watch = &stw_watch_configmaps;
    f->web.children[MYWEB_DEPLOYMENT].watch = &stw_watch_deployments;
    f->web.children[MYWEB_SERVICE].watch = &stw_watch_services;
    f->web.children[MYWEB_INGRESS].watch = &stw_watch_ingresses;
    for (int i = 0; i < MYWEB_CHILDREN; i++)
        f->web.children[i].name = f->web.owner.name;
    return 0;
}

static inline void fixture_done(struct fixture *f)
{
    stw_object_done(&f->web.object);
    stw_arena_destroy(f->web.arena);
    free(f->text);
}

#endif
