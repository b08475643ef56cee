/* SPDX-License-Identifier: Apache-2.0
 *
 * An EtcdCluster in the middle of a run, without a manager: from the JSON of its spec and its
 * status. */
#ifndef STW_TESTS_KINDS_ETCDCLUSTER_FIXTURE_H
#define STW_TESTS_KINDS_ETCDCLUSTER_FIXTURE_H

#include "base/util.h"
#include "kinds/etcdcluster/labels.h"
#include "kinds/etcdcluster/names.h"
#include "kinds/etcdcluster/reconcile.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/status/state.h"
#include "kinds/kinds.h"
#include "support/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define FIXTURE_NOW (1704067200 + 1) /* seconds; the time of the fake clock */

struct fixture {
    struct fake_clock now;
    struct stw_clock clock;
    struct stw_run run;
    struct ec *e;
    struct stw_child children[EC_CHILDREN];
    char *text;
};

/* `status` "" for none; generation 3 always. */
static inline void fixture_init(struct fixture *f, const char *spec, const char *status)
{
    struct stw_error err = {0};
    *f = (struct fixture){.now = {1000}};
    f->clock = (struct stw_clock){&f->now, fake_monotonic, fake_wall};
    f->run = (struct stw_run){.op = &stw_operator_steward,
                              .controller = &stw_controller_etcdcluster,
                              .clock = &f->clock,
                              .key = "shop/db",
                              .ns = "shop",
                              .name = "db"};
    struct ec *e = f->e = calloc(1, sizeof(*e));
    assert_non_null(e);
    e->run = &f->run;
    e->children = f->children;
    e->child_count = EC_CHILDREN;
    e->owner = (struct stw_owner){.kind = "EtcdCluster", .ns = "shop", .name = "db", .uid = "u-1"};
    (void)snprintf(e->object.uid, sizeof(e->object.uid), "u-1");
    e->object.generation = 3;
    e->object.status = *status ? json_loads(status, 0, NULL) : json_object();
    assert_non_null(e->object.status);
    e->arena = stw_arena_create();
    assert_true(asprintf(&f->text, "{\"spec\":%s}", spec) > 0);
    if (stw_json_scan(&e->object.doc, f->text, strlen(f->text), &err) != 0 ||
        stw_kind_decode(&stw_kind_etcdcluster, stw_json_get(stw_json_root(&e->object.doc), "spec"),
                        e->arena, &e->spec, &err) != 0)
        fail_msg("%s", err.text);
    e->object.root = stw_json_root(&e->object.doc);
    (void)stw_semver_parse(e->spec.version, &e->version);
    e->naming = (struct stw_naming){EC_APP, "member", e->spec.repository};
    ec_state_read(e->object.status, &e->was);
    e->state = e->was;
    e->view.now = FIXTURE_NOW;
    e->view.size = e->spec.size;
    e->view.version = e->version;
    e->view.cluster_id = e->state.cluster_id;
}

static inline void fixture_done(struct fixture *f)
{
    for (int i = 0; i < EC_CHILDREN; i++)
        json_decref(f->e->desired[i]);
    stw_object_done(&f->e->object);
    stw_arena_destroy(f->e->arena);
    free(f->e);
    free(f->text);
}

/* A healthy voter with a pod of version 3.5.16. */
static inline struct ec_member *fixture_member(struct fixture *f, const char *name, uint64_t id)
{
    struct ec *e = f->e;
    struct ec_detail *d = &e->details[e->view.count];
    struct ec_member *m = &e->view.members[e->view.count++];
    *m = (struct ec_member){.listed = true,
                            .id = id,
                            .started = true,
                            .answers = true,
                            .healthy = true,
                            .version = {3, 5, 16},
                            .pod_version = {3, 5, 16},
                            .pod = EC_POD_RUNNING,
                            .pod_template = true,
                            .pod_guarded = true,
                            .data = EC_DATA_THERE,
                            .claim = true};
    (void)snprintf(m->name, sizeof(m->name), "%s", name);
    ec_peer_url(e, name, d->peer_url);
    d->has_pod = d->has_claim = d->asked = true;
    return m;
}

#endif
