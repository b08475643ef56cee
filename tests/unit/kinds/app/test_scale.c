/* SPDX-License-Identifier: Apache-2.0
 *
 * What spec.replicas of an App becomes when no autoscaler sets the number of pods any more. */
#include "fixture.h"

#include "controller/manager_priv.h"
#include "fake.h"

#define PATH "/apis/apps/v1/namespaces/shop/deployments/web"
#define SCALE "/apis/mycompany.com/v1/namespaces/shop/apps/web/scale"
#define LIVE                                                                                       \
    "{'metadata':{'namespace':'shop','name':'web','uid':'d-1','resourceVersion':'5',"              \
    "'ownerReferences':[{'kind':'App','name':'web','uid':'u-1','controller':true}]},"              \
    "'spec':{'replicas':%d}}"

/* An App with a server, and a cache that has its Deployment. */
struct world {
    struct fixture f;
    struct fake fake;
    struct stw_manager manager;
    struct stw_watch_cache cache;
};

static void project(void *ctx, struct stw_json object, struct stw_buf *out)
{
    const struct stw_watch *watch = ctx;
    watch->project(&stw_operator_steward, object, out);
}

/* The App has `replicas`, as when autoscaling was on; the Deployment has `number`. */
static void begin(struct world *w, int replicas, int number)
{
    const struct stw_watch *watch = &stw_watch_deployments;
    const struct stw_informer_config config = {
        .resource = watch->resource, .project = project, .ctx = (void *)(uintptr_t)watch};
    stw_autobuf struct stw_buf object = STW_BUF_INIT(4096);
    char spec[64], status[64], live[512], steps[2048];
    struct stw_error err;
    *w = (struct world){.manager = {.cache_count = 1}};
    (void)snprintf(spec, sizeof(spec), "{\"image\":\"shop:1.4\",\"replicas\":%d}", replicas);
    (void)snprintf(status, sizeof(status), "{\"startReplicas\":%d}", replicas);
    (void)snprintf(live, sizeof(live), LIVE, number);
    (void)snprintf(steps, sizeof(steps),
                   "[{'match':'GET " PATH "','body':%s},{'match':'PATCH " SCALE "','body':{}}]",
                   live);
    fixture_init(&w->f, spec, status);
    fake_start(&w->fake);
    fake_steps(&w->fake, steps);
    w->cache.watch = watch;
    w->manager.caches = &w->cache;
    assert_int_equal(stw_informer_create(w->fake.client, &config, &stw_clock_system, NULL,
                                         &w->cache.informer, &err),
                     0);
    w->f.run.manager = &w->manager;
    w->f.run.client = w->fake.client;
    w->f.run.field_manager = "steward-app";
    for (const char *c = live; *c; c++)
        stw_buf_addc(&object, *c == '\'' ? '"' : *c);
    stw_informer_saw(w->cache.informer, &object, NULL);
}

static void end(struct world *w)
{
    stw_informer_destroy(w->cache.informer);
    fake_stop(&w->fake);
    fixture_done(&w->f);
}

/* The number stays, but never more than an App may have: the API server would refuse that, and the
 * rest of the App would not be reconciled. */
static void the_number_is_taken_over(void **state)
{
    static const struct {
        int replicas, number;
        int written; /* 0: nothing, and the run goes on */
    } cases[] = {{3, 7, 7},       {3, 1000, 1000}, {3, 1001, 1000}, {3, 1500, 1000},
                 {1000, 1500, 0}, {3, 3, 0},       {3, 0, 0}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct world w;
        struct stw_result result = {0};
        char part[64];
        begin(&w, cases[i].replicas, cases[i].number);
        bool goes_on = app_hand_over(&w.f.app, &result);
        (void)snprintf(part, sizeof(part), "PATCH " SCALE);
        unsigned writes = fake_count(&w.fake, part);
        (void)snprintf(part, sizeof(part), "\"replicas\":%d}", cases[i].written);
        if (goes_on != (cases[i].written == 0) || writes != (cases[i].written ? 1 : 0) ||
            (cases[i].written && fake_count(&w.fake, part) != 1))
            fail_msg("%d replicas, %d in the Deployment: goes on %d, %u writes, %u as wanted",
                     cases[i].replicas, cases[i].number, goes_on, writes,
                     fake_count(&w.fake, part));
        end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_number_is_taken_over)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
