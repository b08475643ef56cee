/* SPDX-License-Identifier: Apache-2.0
 *
 * Leader election against the scripted server, with times of some hundred milliseconds. */
#include "base/util.h"
#include "fake.h"
#include "kube/lease.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

#define PATH "/apis/coordination.k8s.io/v1/namespaces/n/leases"

struct fixture {
    struct fake fake;
    struct stw_lease *lease;
    struct stw_fence *fence;
    bool open_at_start, open_at_stop;
    atomic_uint started, stopped;
    _Atomic uint64_t stopped_ms;
};

static void on_started(void *ctx)
{
    struct fixture *f = ctx;
    f->open_at_start = stw_fence_allows(stw_fence_take(f->fence));
    atomic_fetch_add(&f->started, 1);
}

static void on_stopped(void *ctx)
{
    struct fixture *f = ctx;
    f->open_at_stop = stw_fence_allows(stw_fence_take(f->fence));
    atomic_store(&f->stopped_ms, stw_now_ms(&stw_clock_system));
    atomic_fetch_add(&f->stopped, 1);
}

static void begin(struct fixture *f, const char *steps)
{
    struct stw_error err;
    struct stw_lease_config config = {.ns = "n",
                                      .name = "l",
                                      .identity = "me",
                                      .duration_ms = 1500,
                                      .renew_ms = 400,
                                      .retry_ms = 50,
                                      .started = on_started,
                                      .stopped = on_stopped,
                                      .ctx = f};
    *f = (struct fixture){.fence = stw_fence_create(&stw_clock_system)};
    assert_non_null(f->fence);
    config.fence = f->fence;
    fake_start(&f->fake);
    fake_steps(&f->fake, steps);
    assert_int_equal(
        stw_lease_create(f->fake.client, &config, &stw_clock_system, NULL, &f->lease, &err), 0);
    assert_int_equal(stw_lease_start(f->lease, &err), 0);
}

static void end(struct fixture *f)
{
    stw_lease_stop(f->lease);
    stw_lease_destroy(f->lease);
    stw_fence_destroy(f->fence);
    fake_stop(&f->fake);
}

#define LEASE(rv, holder, seconds)                                                                 \
    "'body':{'metadata':{'name':'l','resourceVersion':'" rv "'},'spec':{'holderIdentity':'" holder \
    "','leaseDurationSeconds':" seconds ",'acquireTime':'2026-01-02T03:04:05.000000Z',"            \
    "'leaseTransitions':4}}}"
/* Most of these tests do without the watch that wakes a candidate. */
#define NO_WATCH "{'match':'GET .*fieldSelector','times':0,'status':500},"
#define ABSENT                                                                                     \
    "{'match':'GET " PATH "/l$','status':404,'body':{'kind':'Status','reason':'NotFound'}},"

static void test_lease_is_acquired_renewed_and_released(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "[" NO_WATCH ABSENT "{'match':'POST'," LEASE(
                  "1", "me", "2") ","
                                  "{'match':'PUT','times':0," LEASE("2", "me", "2") "]");
    wait_until(fake_count(&f.fake, "PUT") >= 3);
    assert_true(stw_lease_held(f.lease));
    assert_int_equal(atomic_load(&f.started), 1);
    assert_true(f.open_at_start);
    assert_true(stw_fence_allows(stw_fence_take(f.fence)));
    assert_int_equal(fake_count(&f.fake, "GET " PATH "/l "), 1); /* renewing is one request */
    stw_lease_stop(f.lease);
    assert_false(stw_lease_held(f.lease));
    assert_int_equal(atomic_load(&f.stopped), 1);
    assert_false(f.open_at_stop);
    assert_int_equal(fake_count(&f.fake, "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1"), 1);
    assert_int_equal(fake_count(&f.fake, "POST " PATH " {"), 1);
    assert_int_equal(fake_count(&f.fake, "\"leaseDurationSeconds\":2,\"acquireTime\":\"2026-01-02"),
                     fake_count(&f.fake, "PUT") - 1);
    end(&f);
}

static void test_expired_lease_of_another_is_acquired(void **state)
{
    struct fixture f;
    (void)state;
    uint64_t began = stw_now_ms(&stw_clock_system);
    begin(&f, "[" NO_WATCH "{'match':'GET " PATH "/l$','times':0," LEASE(
                  "7", "other", "1") ","
                                     "{'match':'PUT','times':0," LEASE("8", "me", "2") "]");
    wait_until(atomic_load(&f.started) == 1);
    assert_true(stw_now_ms(&stw_clock_system) - began >= 1000);
    assert_true(fake_count(&f.fake, "\"resourceVersion\":\"7\"") == 1);
    assert_int_equal(fake_count(&f.fake, "\"leaseTransitions\":5"), 1);
    end(&f);
}

static void test_free_lease_is_acquired_at_once(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "[" NO_WATCH "{'match':'GET " PATH
              "/l$'," LEASE("7", "", "1") ","
                                          "{'match':'PUT','times':0," LEASE("8", "me", "2") "]");
    wait_until(atomic_load(&f.started) == 1);
    assert_int_equal(fake_count(&f.fake, "GET " PATH "/l "), 1);
    end(&f);
}

/* Whether the server returns errors or does not respond: leading ends after renew_ms. */
static void test_failed_renewals_end_the_leadership(void **state)
{
    static const char *const faults[] = {"'times':0,'status':500}", "'times':0,'then':'stall'}",
                                         "'times':0,'then':'reset'}"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(faults); i++) {
        struct fixture f;
        char steps[2048];
        (void)snprintf(
            steps, sizeof(steps),
            "[" NO_WATCH ABSENT "{'match':'POST'," LEASE(
                "1", "me",
                "2") ","
                     "{'match':'PUT','times':3," LEASE(
                         "2", "me",
                         "2") ","
                              "{'match':'PUT',%s,{'match':'GET','times':0,'then':'stall'}]",
            faults[i]);
        begin(&f, steps);
        wait_until(atomic_load(&f.started) == 1);
        wait_until(fake_count(&f.fake, "PUT") >= 4);
        uint64_t last = stw_now_ms(&stw_clock_system);
        wait_until(atomic_load(&f.stopped) == 1);
        assert_true(atomic_load(&f.stopped_ms) - last <= 1000); /* after 1500 another may start */
        assert_false(stw_lease_held(f.lease));
        end(&f);
    }
}

static void test_lease_taken_by_another_ends_the_leadership(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "[" NO_WATCH ABSENT "{'match':'POST'," LEASE(
                  "1", "me",
                  "2") ","
                       "{'match':'PUT','status':409,'body':{'kind':'Status','reason':'Conflict'}},"
                       "{'match':'GET " PATH "/l$','times':0," LEASE("5", "other", "60") "]");
    wait_until(atomic_load(&f.stopped) == 1);
    assert_int_equal(fake_count(&f.fake, "PUT"), 1);
    end(&f);
    assert_int_equal(atomic_load(&f.stopped), 1); /* and a lease of another is not released */
}

/* Another replica led in between and released the lease before our next renewal.  The renewal
 * succeeds, but data that was read before is stale. */
static void test_lease_held_by_another_meanwhile_begins_a_new_term(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "[" NO_WATCH ABSENT "{'match':'POST'," LEASE(
                  "1", "me",
                  "2") ","
                       "{'match':'PUT'," LEASE(
                           "2", "me",
                           "2") ","
                                "{'match':'PUT','status':409,'body':{'kind':'Status','reason':"
                                "'Conflict'}},"
                                "{'match':'GET " PATH "/l$'," LEASE(
                                    "5", "",
                                    "1") ","
                                         "{'match':'PUT','times':0,'body':{'metadata':{'name':'l',"
                                         "'resourceVersion':'6'},'spec':{'holderIdentity':'me',"
                                         "'leaseDurationSeconds':2,'acquireTime':"
                                         "'2026-01-02T03:04:05.000000Z','leaseTransitions':6}}}]");
    wait_until(atomic_load(&f.started) == 1);
    struct stw_fence_ticket first = stw_fence_take(f.fence);
    wait_until(atomic_load(&f.started) == 2);
    assert_int_equal(atomic_load(&f.stopped), 1);
    assert_false(stw_fence_allows(first));
    assert_true(stw_fence_allows(stw_fence_take(f.fence)));
    end(&f);
}

/* Without a renewal the clock closes the fence, whether or not the election thread runs. */
static void test_fence_closes_without_renewal(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, "[" NO_WATCH ABSENT
              "{'match':'POST'," LEASE("1", "me", "2") ","
                                                       "{'match':'PUT','times':0,'then':'stall'}]");
    wait_until(atomic_load(&f.started) == 1);
    uint64_t began = stw_now_ms(&stw_clock_system);
    struct stw_fence_ticket t = stw_fence_take(f.fence);
    assert_true(stw_fence_allows(t));
    wait_until(!stw_fence_allows(t));
    assert_true(stw_now_ms(&stw_clock_system) - began <= 1000);
    end(&f);
}

static void test_watch_wakes_a_candidate(void **state)
{
    struct fixture f;
    (void)state;
    begin(
        &f,
        "[{'match':'GET .*limit=','body':{'metadata':{'resourceVersion':'5'},'items':[{'metadata':{"
        "'namespace':'n','name':'l','resourceVersion':'5'},'spec':{'holderIdentity':'other'}}]}},"
        "{'match':'GET " PATH "/l$'," LEASE(
            "5", "other", "60") ","
                                "{'match':'GET " PATH "/l$','times':0," LEASE(
                                    "6", "",
                                    "60") ","
                                          "{'match':'GET "
                                          ".*watch=1','stream':[{'wait':'release'},{'json':{'type':"
                                          "'MODIFIED','object':{"
                                          "'metadata':{'namespace':'n','name':'l','resourceVersion'"
                                          ":'6'},'spec':{'holderIdentity':''}}}},"
                                          "{'wait':'never'}]},"
                                          "{'match':'PUT','times':0," LEASE("8", "me", "2") "]");
    wait_until(fake_count(&f.fake, "watch=1") == 1);
    fake_go(&f.fake, "release");
    wait_until(atomic_load(&f.started) == 1);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lease_is_acquired_renewed_and_released),
        cmocka_unit_test(test_expired_lease_of_another_is_acquired),
        cmocka_unit_test(test_free_lease_is_acquired_at_once),
        cmocka_unit_test(test_failed_renewals_end_the_leadership),
        cmocka_unit_test(test_lease_taken_by_another_ends_the_leadership),
        cmocka_unit_test(test_lease_held_by_another_meanwhile_begins_a_new_term),
        cmocka_unit_test(test_fence_closes_without_renewal),
        cmocka_unit_test(test_watch_wakes_a_candidate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
