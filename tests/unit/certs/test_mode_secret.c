/* SPDX-License-Identifier: Apache-2.0
 *
 * What Secret mode makes of a sync that fails: whether the replica stays ready. */
#include "certs/certs_priv.h"
#include "fake_api.h"
#include "support/fake_clock.h"

#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define MINUTE ((int64_t)60 * 1000000)
#define DAY ((int64_t)86400 * 1000000)

static struct fake_clock now;
static const struct stw_clock now_clock = {&now, fake_monotonic, fake_wall};

static const struct stw_operator op = {
    .name = "steward", .domain = "steward.dev", .metric_prefix = "steward", .kinds = fake_kinds};
static const char *const names[] = {"steward.ns.svc", NULL};

static int use(void *ctx, const char *cert_pem, const char *key_pem, struct stw_error *err)
{
    (void)ctx, (void)cert_pem, (void)key_pem, (void)err;
    return 0;
}

/* A step after some time.  The fake API takes the place of the client and its watches. */
static void step_after(struct stw_certs *c, int64_t us)
{
    now.ms += (uint64_t)us / 1000;
    (void)stw_certs_secret_mode.step(c, false);
}

static struct stw_certs *begin(struct fake_api *api)
{
    struct stw_certs *c = NULL;
    struct stw_error err = {0};
    const struct stw_certs_config config = {.client = (struct stw_client *)(uintptr_t)8,
                                            .op = &op,
                                            .ns = "ns",
                                            .secret = "pair",
                                            .dns_names = names,
                                            .use = use};
    now.ms = 1000;
    fake_init(api);
    fake_add_hook(api, FAKE_MUTATING);
    assert_int_equal(stw_certs_create(&config, &now_clock, NULL, &c, &err), 0);
    c->rotation = (struct stw_rotation){
        .config = {.op = &op,
                   .ns = "ns",
                   .secret = "pair",
                   .dns_names = names,
                   .hook_names = {"hooks"},
                   .ca_days = 300,
                   .leaf_days = 30,
                   .times = {.settle_us = 10 * 1000000, .overlap_us = DAY / 24}},
        .api = {fake_call, api, &op},
        .clock = &now_clock,
        .serve = stw_certs_take,
        .ctx = c,
    };
    return c;
}

static void end(struct stw_certs *c, struct fake_api *api)
{
    stw_certs_destroy(c);
    fake_done(api);
}

static void assert_ready(struct stw_certs *c)
{
    char why[700] = "";
    if (!stw_certs_ready(c, why, sizeof(why)))
        fail_msg("not ready: %s", why);
}

static void assert_not_ready(struct stw_certs *c, const char *part)
{
    char why[700] = "";
    assert_false(stw_certs_ready(c, why, sizeof(why)));
    if (!strstr(why, part))
        fail_msg("\"%s\" is not in \"%s\"", part, why);
}

static struct stw_error failure(enum stw_err code, int http)
{
    struct stw_error err;
    (void)stw_fail(&err, code, "made to fail");
    err.http = http;
    return err;
}

static void test_api_outage_keeps_the_readiness(void **state)
{
    struct stw_error outages[] = {failure(STW_ERR_UNAVAILABLE, 0),
                                  failure(STW_ERR_UNAVAILABLE, 503), failure(STW_ERR_TIMEOUT, 0),
                                  failure(STW_ERR_THROTTLED, 429), failure(STW_ERR_CANCELLED, 0)};
    struct fake_api api;
    (void)state;
    struct stw_certs *c = begin(&api);
    step_after(c, MINUTE);
    step_after(c, MINUTE);
    assert_ready(c);
    for (size_t i = 0; i < STW_COUNT(outages); i++) {
        api.down = &outages[i];
        for (int n = 0; n < 3; n++) {
            step_after(c, 11 * MINUTE);
            assert_true(c->failures > 0);
            assert_ready(c);
        }
        api.down = NULL;
        step_after(c, MINUTE);
        assert_int_equal(c->failures, 0);
        assert_ready(c);
    }
    api.down = &outages[0]; /* and it lasts */
    step_after(c, 31 * DAY);
    assert_not_ready(c, "expired");
    end(c, &api);
}

static void test_permanent_failures_are_reported(void **state)
{
    struct stw_error failures[] = {failure(STW_ERR_FORBIDDEN, 403), failure(STW_ERR_THROTTLED, 0),
                                   failure(STW_ERR_INVALID, 0)};
    struct fake_api api;
    (void)state;
    struct stw_certs *c = begin(&api);
    step_after(c, MINUTE);
    step_after(c, MINUTE);
    for (size_t i = 0; i < STW_COUNT(failures); i++) {
        api.down = &failures[i];
        step_after(c, 11 * MINUTE);
        assert_not_ready(c, "made to fail");
        api.down = NULL;
        step_after(c, MINUTE);
        assert_ready(c);
    }
    end(c, &api);
}

/* A problem that the last sync found stays, too. */
static void test_api_outage_makes_nothing_ready(void **state)
{
    struct stw_error down = failure(STW_ERR_UNAVAILABLE, 0);
    struct fake_api api;
    (void)state;
    struct stw_certs *c = begin(&api);
    api.down = &down;
    step_after(c, MINUTE);
    assert_not_ready(c, "no certificate yet: ");
    assert_not_ready(c, "made to fail");
    api.down = NULL;
    step_after(c, MINUTE);
    step_after(c, MINUTE);
    assert_ready(c);
    struct stw_error denied = failure(STW_ERR_FORBIDDEN, 403);
    api.down = &denied;
    step_after(c, 11 * MINUTE);
    api.down = &down;
    step_after(c, MINUTE);
    assert_not_ready(c, "made to fail");
    end(c, &api);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_api_outage_keeps_the_readiness),
        cmocka_unit_test(test_permanent_failures_are_reported),
        cmocka_unit_test(test_api_outage_makes_nothing_ready),
    };
    stw_log_setup(STW_LOG_JSON, STW_LOG_ERROR, 2);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
