/* SPDX-License-Identifier: Apache-2.0
 *
 * What spec.replicas of an App becomes when no autoscaler sets the number of pods any more. */
#include "fixture.h"
#include "kinds/app/replicas.h"
#include "kinds/app/scale.h"

#include "controller/manager/manager_priv.h"
#include "fake.h"

#define PATH "/apis/apps/v1/namespaces/shop/deployments/web"
#define SCALE "/apis/mycompany.com/v1/namespaces/shop/apps/web/scale"
#define LIVE                                                                                       \
    "{'metadata':{'namespace':'shop','name':'web','uid':'d-1','resourceVersion':'5',"              \
    "'ownerReferences':[{'apiVersion':'mycompany.com/"                                             \
    "v1','kind':'App','name':'web','uid':'u-1','controller':true}]},"                              \
    "'spec':{'replicas':%d}}"

#define SCALERS "/apis/autoscaling/v2/namespaces/shop/horizontalpodautoscalers"
#define SCALER                                                                                     \
    "{'metadata':{'name':'theirs'},'spec':{'scaleTargetRef':{'kind':'Deployment','name':'web'}}}"

/* An App with a server, a cache that has its Deployment, and one of autoscalers. */
struct world {
    struct fixture f;
    struct fake fake;
    struct stw_manager manager;
    struct stw_watch_cache caches[2];
};

static void project(void *ctx, struct stw_json object, struct stw_buf *out)
{
    const struct stw_watch *watch = ctx;
    watch->project(&stw_operator_steward, object, out);
}

static void add_cache(struct world *w, struct stw_watch_cache *cache, const struct stw_watch *watch)
{
    const struct stw_informer_config config = {
        .resource = watch->resource, .project = project, .ctx = (void *)(uintptr_t)watch};
    struct stw_error err;
    cache->watch = watch;
    assert_int_equal(stw_informer_create(w->fake.client, &config, &stw_clock_system, NULL,
                                         &cache->informer, &err),
                     0);
}

/* The App has `replicas`; the Deployment has `number`.  `scalers`: those of the namespace. */
static void begin(struct world *w, int replicas, int number, const char *status,
                  const char *scalers)
{
    stw_autobuf struct stw_buf object = STW_BUF_INIT(4096);
    char spec[64], live[512], steps[2048];
    *w = (struct world){.manager = {.caches = w->caches, .cache_count = 2}};
    (void)snprintf(spec, sizeof(spec), "{\"image\":\"shop:1.4\",\"replicas\":%d}", replicas);
    (void)snprintf(live, sizeof(live), LIVE, number);
    (void)snprintf(steps, sizeof(steps),
                   "[{'match':'GET " PATH "','body':%s},{'match':'PATCH " SCALE "','body':{}},"
                   "{'match':'GET " SCALERS "','body':{'items':[%s]}}]",
                   live, scalers);
    fixture_init(&w->f, spec, status);
    fake_start(&w->fake);
    fake_steps(&w->fake, steps);
    add_cache(w, &w->caches[0], &stw_watch_deployments);
    add_cache(w, &w->caches[1], &stw_watch_autoscalers);
    w->f.run.manager = &w->manager;
    w->f.run.client = w->fake.client;
    w->f.run.field_manager = "steward-app";
    for (const char *c = live; *c; c++)
        stw_buf_addc(&object, *c == '\'' ? '"' : *c);
    stw_informer_saw(w->caches[0].informer, &object, NULL);
}

static void end(struct world *w)
{
    for (size_t i = 0; i < STW_COUNT(w->caches); i++)
        stw_informer_destroy(w->caches[i].informer);
    fake_stop(&w->fake);
    fixture_done(&w->f);
}

/* The number stays, but never more than an App may have: the API server would refuse that, and the
 * rest of the App would not be reconciled. */
static void test_replicas_of_an_autoscaler_are_taken_over_in_bounds(void **state)
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
        char part[64], status[64];
        (void)snprintf(status, sizeof(status), "{\"startReplicas\":%d}", cases[i].replicas);
        begin(&w, cases[i].replicas, cases[i].number, status, "");
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

/* Also if the App has no status yet, because it was written just now, or the autoscaler is faster. */
static void test_replicas_of_a_foreign_autoscaler_stay(void **state)
{
    static const struct {
        const char *scalers;
        int number;
        bool foreign;
    } cases[] = {{SCALER, 7, true}, {"", 7, false}, {SCALER, 3, false}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct world w;
        struct stw_result result = {0};
        begin(&w, 3, cases[i].number, "{}", cases[i].scalers);
        bool goes_on = app_hand_over(&w.f.app, &result);
        if (!goes_on || app_is_scaled(&w.f.app) != cases[i].foreign ||
            fake_count(&w.fake, "PATCH") != 0)
            fail_msg("case %zu: goes on %d, foreign autoscaler \"%s\"", i, goes_on,
                     w.f.app.foreign);
        end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas_of_an_autoscaler_are_taken_over_in_bounds),
        cmocka_unit_test(test_replicas_of_a_foreign_autoscaler_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
