/* SPDX-License-Identifier: Apache-2.0
 *
 * A Deployment whose pods the API server refuses: how often the ReplicaSet controller is asked to
 * create them again, and how. */
#include "controller/child.h"

#include "child_fixture.h"
#include "controller/verdict.h"

#define PATH "/apis/apps/v1/namespaces/shop/deployments/web"
#define NOW_S 1000
#define DEPLOYMENT(retried, failure)                                                               \
    "{'metadata':{'namespace':'shop','name':'web','uid':'c-1','resourceVersion':'5','generation':" \
    "1,"                                                                                           \
    "'annotations':{" retried "},"                                                                 \
    "'ownerReferences':[{'apiVersion':'operator.k8s-summit.org/"                                   \
    "v1','kind':'MyWeb','name':'web','uid':'u-1','controller':true}],"                             \
    "'managedFields':[{'manager':'steward-myweb','operation':'Apply','fieldsV1':{'f:spec':"        \
    "{'f:paused':{}}}}]},'spec':{'paused':false},"                                                 \
    "'status':{'observedGeneration':1,'conditions':[" failure "]}}"
#define REFUSED_AT(time)                                                                           \
    "{'type':'ReplicaFailure','status':'True','reason':'FailedCreate','message':'no class',"       \
    "'lastTransitionTime':'1970-01-01T" time "Z'}"
#define ASKED "00000000000000010000000000000000"
#define RETRIED_AT(time) RETRIED_FOR(time, ASKED)
#define RETRIED_FOR(time, asked) "'steward.dev/pods-retried-at':'1970-01-01T" time "Z " asked "'"
#define ANSWER "{'match':'PATCH " PATH "','body':" DEPLOYMENT(RETRIED_AT("00:16:40"), "") "}"

static int64_t wall_us(void *ctx)
{
    (void)ctx;
    return NOW_S * (int64_t)1000000; /* 00:16:40 */
}

static uint64_t monotonic_ms(void *ctx)
{
    (void)ctx;
    return NOW_S * 1000;
}

static const struct stw_clock clock_stands = {.monotonic_ms = monotonic_ms, .wall_us = wall_us};

static void begin(struct fixture *f, const char *cached, const char *steps)
{
    json_t *desired =
        json_pack("{s:s,s:s,s:{s:s,s:s},s:{s:b}}", "apiVersion", "apps/v1", "kind", "Deployment",
                  "metadata", "namespace", "shop", "name", "web", "spec", "paused", 0);
    fixture_begin(f, &stw_watch_deployments, desired, cached, steps);
    f->run.clock = &clock_stands;
}

static const struct {
    const char *what, *cached;
    unsigned writes;
    uint64_t retry_ms;
} cases[] = {
    {"nothing is refused", DEPLOYMENT("", ""), 0, 0},
    {"refused for less than a minute", DEPLOYMENT("", REFUSED_AT("00:15:50")), 0, 10000},
    {"refused for a minute", DEPLOYMENT("", REFUSED_AT("00:15:40")), 1, 60000},
    {"retried a moment ago", DEPLOYMENT(RETRIED_AT("00:16:39"), REFUSED_AT("00:01:00")), 0, 59000},
    {"retried a minute ago", DEPLOYMENT(RETRIED_AT("00:15:40"), REFUSED_AT("00:01:00")), 1, 60000},
    {"retried a moment ago, and the user has asked for another one",
     DEPLOYMENT(RETRIED_FOR("00:16:39", "00000000000000010000000000000009"),
                REFUSED_AT("00:01:00")),
     1, 60000},
    {"retried in the future", DEPLOYMENT(RETRIED_AT("23:00:00"), REFUSED_AT("00:01:00")), 1, 60000},
};

static void test_retries_are_a_minute_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct fixture f;
        begin(&f, cases[i].cached, "[" ANSWER "]");
        stw_child_ensure(&f.run, &f.owner, &f.child);
        if (f.child.state != STW_CHILD_SYNCED ||
            fake_count(&f.fake, "PATCH " PATH) != cases[i].writes ||
            f.child.live.rollout.retry_ms != cases[i].retry_ms)
            fail_msg("%s: state %d, %u writes, next in %llu ms", cases[i].what, (int)f.child.state,
                     fake_count(&f.fake, "PATCH " PATH),
                     (unsigned long long)f.child.live.rollout.retry_ms);
        fixture_end(&f);
    }
}

/* The template is not sent, so that no pod restarts, and another Deployment of the name gets nothing. */
static void test_retry_writes_an_annotation_only(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, DEPLOYMENT("", REFUSED_AT("00:01:00")), "[" ANSWER "]");
    stw_child_ensure(&f.run, &f.owner, &f.child);
    assert_int_equal(fake_count(&f.fake, "fieldManager=steward-myweb-retry"), 1);
    assert_int_equal(fake_count(&f.fake,
                                "{\"metadata\":{\"uid\":\"c-1\",\"annotations\":"
                                "{\"steward.dev/pods-retried-at\":\"1970-01-01T00:16:40Z " ASKED
                                "\"}}}"),
                     1);
    fixture_end(&f);
}

/* The cache knows the retry at once: the next run does not repeat it. */
static void test_retry_is_recorded_in_the_cache(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, DEPLOYMENT("", REFUSED_AT("00:01:00")),
          "[{'match':'PATCH " PATH "','body':{'metadata':{'namespace':'shop','name':'web',"
          "'uid':'c-1','resourceVersion':'6','annotations':{" RETRIED_AT(
              "00:16:40") "},"
                          "'ownerReferences':[{'apiVersion':'operator.k8s-summit.org/"
                          "v1','kind':'MyWeb','name':'web','uid':'u-1','controller'"
                          ":true}],"
                          "'managedFields':[{'manager':'steward-myweb','operation':'Apply','"
                          "fieldsV1':{'f:spec':"
                          "{'f:paused':{}}}}]},'spec':{'paused':false},"
                          "'status':{'conditions':[" REFUSED_AT("00:01:00") "]}}}]");
    stw_child_ensure(&f.run, &f.owner, &f.child);
    stw_child_ensure(&f.run, &f.owner, &f.child);
    assert_int_equal(fake_count(&f.fake, "PATCH " PATH), 1);
    assert_int_equal(f.child.live.rollout.retry_ms, 60000);
    fixture_end(&f);
}

/* A tenant can make Deployments that are refused for ever, and can remove the annotation. */
static void test_retries_of_a_namespace_are_limited(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, DEPLOYMENT("", REFUSED_AT("00:01:00")), "[]");
    for (int i = 0; i < 3 * STW_GUARD_WRITES; i++)
        stw_child_ensure(&f.run, &f.owner, &f.child); /* the server refuses the annotation */
    assert_int_equal(fake_count(&f.fake, "PATCH " PATH), STW_GUARD_WRITES);
    assert_int_equal(f.child.state, STW_CHILD_SYNCED);
    fixture_end(&f);
}

static void test_shadow_mode_retries_nothing(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, DEPLOYMENT("", REFUSED_AT("00:01:00")), "[]");
    f.manager.config.shadow = true;
    stw_child_ensure(&f.run, &f.owner, &f.child);
    assert_int_equal(fake_count(&f.fake, "PATCH " PATH), 0);
    fixture_end(&f);
}

/* The verdict waits for the retry, also when something else could wait for longer. */
static void test_verdict_waits_for_the_retry(void **state)
{
    const struct stw_rollout refused = {.generation = 1,
                                        .observed_generation = 1,
                                        .stuck_reason = "ReplicaFailure",
                                        .refused_us = 1,
                                        .retry_ms = 42000};
    struct stw_aspect all[2] = {
        {.level = STW_LEVEL_STALLED, .reason = "InvalidSpec", .again_ms = STW_STALLED_AGAIN_MS}};
    struct stw_verdict v;
    (void)state;
    stw_aspect_rollout(&all[1], &refused, 2);
    stw_verdict_of(all, STW_COUNT(all), &v);
    assert_string_equal(v.reason, "InvalidSpec");
    assert_int_equal(v.again_ms, 42000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retries_are_a_minute_apart),
        cmocka_unit_test(test_retry_writes_an_annotation_only),
        cmocka_unit_test(test_retry_is_recorded_in_the_cache),
        cmocka_unit_test(test_retries_of_a_namespace_are_limited),
        cmocka_unit_test(test_shadow_mode_retries_nothing),
        cmocka_unit_test(test_verdict_waits_for_the_retry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
