/* SPDX-License-Identifier: Apache-2.0
 *
 * A DatabaseUser in the middle of a run, without a manager, an API server or a database: from the
 * JSON of its spec and its status. */
#ifndef STW_TESTS_KINDS_DATABASEUSER_FIXTURE_H
#define STW_TESTS_KINDS_DATABASEUSER_FIXTURE_H

#include "kinds/databaseuser/plan/observe.h"
#include "kinds/databaseuser/plan/twin.h"
#include "kinds/databaseuser/reconcile.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/secret/secret.h"
#include "kinds/kinds.h"
#include "support/fake_clock.h"

#include <stdio.h>

struct fixture {
    struct fake_clock now;
    struct stw_clock clock;
    struct stw_run run;
    struct stw_target target;
    struct dbu d;
    char *text;
};

#define FIXTURE_SPEC                                                                               \
    "{\"user\":\"app\",\"password\":{\"name\":\"app-db\",\"key\":\"password\"},"                   \
    "\"grants\":[{\"database\":\"shop\",\"privileges\":[\"SELECT\",\"INSERT\"]}]}"

/* `status` "" for none; generation 3 always; on a MariaDB. */
static inline int fixture_init(struct fixture *f, const char *spec, const char *status)
{
    struct stw_error err = {0};
    *f = (struct fixture){.now = {1000},
                          .target = {.name = "Main", .engine = STW_ENGINE_MARIADB, .host = "db"}};
    f->clock = (struct stw_clock){&f->now, fake_monotonic, fake_wall};
    f->run = (struct stw_run){.op = &stw_operator_steward,
                              .controller = &stw_controller_databaseuser,
                              .clock = &f->clock,
                              .key = "shop/app",
                              .ns = "shop",
                              .name = "app"};
    f->d = (struct dbu){.run = &f->run, .target = &f->target, .label = "main", .cluster = "c-1"};
    f->d.object.generation = 3;
    (void)snprintf(f->d.object.uid, sizeof(f->d.object.uid), "u-1");
    f->d.object.status = *status ? json_loads(status, 0, NULL) : json_object();
    f->d.arena = stw_arena_create();
    if (asprintf(&f->text, "{\"spec\":%s}", spec) < 0)
        return -1;
    if (stw_json_scan(&f->d.object.doc, f->text, strlen(f->text), &err) != 0 ||
        stw_kind_decode(&stw_kind_databaseuser,
                        stw_json_get(stw_json_root(&f->d.object.doc), "spec"), f->d.arena,
                        &f->d.spec, &err) != 0) {
        (void)fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    f->d.object.root = stw_json_root(&f->d.object.doc);
    return 0;
}

/* Pretends that the password was read. */
static inline void fixture_secret(struct fixture *f, const char *password)
{
    f->d.secret.state = DBU_SECRET_FOUND;
    f->d.secret.value = (struct stw_buf){.max = 1024, .secret = true};
    stw_buf_adds(&f->d.secret.value, password);
    (void)snprintf(f->d.secret.resource_version, STW_RV_LEN, "77");
    (void)snprintf(f->d.fingerprint, sizeof(f->d.fingerprint), "0123456789abcdef");
}

/* Pretends that the server was queried, with this result. */
static inline void fixture_report(struct fixture *f, enum stw_sql_trouble trouble,
                                  enum stw_sql_step step, const char *why)
{
    struct stw_account_report *r = &f->d.report;
    f->d.asked = true;
    r->trouble = trouble;
    r->step = step;
    if (trouble != STW_SQL_FINE)
        (void)stw_fail(&r->err, STW_ERR_INTERNAL, "%s", why);
    (void)snprintf(r->server_version, sizeof(r->server_version), "10.11.6-MariaDB");
    (void)snprintf(r->mark, sizeof(r->mark), "steward.accounts");
    stw_buf_done(&r->granted);
    stw_buf_done(&r->foreign);
    r->granted = STW_BUF_INIT(1024);
    r->foreign = STW_BUF_INIT(4096);
}

/* The view that the run would have now. */
static inline void fixture_view(struct fixture *f)
{
    struct dbu *d = &f->d;
    dbu_observe_object(d);
    if (d->secret.state != DBU_SECRET_UNREAD)
        dbu_observe_password(d);
    dbu_twins_take(d);
    if (d->asked)
        dbu_observe_login(&d->view, d->twins.turn.next, &d->report);
    dbu_twins_take(d);
}

static inline void fixture_done(struct fixture *f)
{
    dbu_secret_done(&f->d.secret);
    stw_buf_done(&f->d.published);
    stw_buf_done(&f->d.report.granted);
    stw_buf_done(&f->d.report.foreign);
    stw_object_done(&f->d.object);
    stw_arena_destroy(f->d.arena);
    free(f->text);
    *f = (struct fixture){0};
}

#endif
