/* SPDX-License-Identifier: Apache-2.0
 *
 * Secret mode with real certificates and an API in memory: the first start, rotation, repair, and
 * the same again with a crash or another replica at every request. */
#include "certs/rotation_priv.h"
#include "fake_api.h"
#include "support/fake_clock.h"

#include "base/log.h"
#include "certs/issue.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define DAY ((int64_t)86400 * 1000000)
#define REPLICAS 2

static struct fake_clock now;
static const struct stw_clock now_clock = {&now, fake_monotonic, fake_wall};

static const char *const dns_a[] = {"steward.ns.svc", "steward.ns.svc.cluster.local", NULL};
static const char *const dns_b[] = {"renamed.ns.svc", NULL};
static const char *const ips[] = {"127.0.0.1", "::1", NULL};

struct replica {
    struct stw_rotation rotation;
    char *cert; /* the certificate it serves */
};

struct world {
    struct fake_api api;
    struct replica replicas[REPLICAS];
};

static int use(void *ctx, const char *cert_pem, const char *key_pem, struct stw_error *err)
{
    struct replica *r = ctx;
    assert_int_equal(stw_pair_check(cert_pem, key_pem, fake_wall(&now), err), 0);
    free(r->cert);
    r->cert = strdup(cert_pem);
    return 0;
}

static const struct stw_operator op = {
    .name = "steward", .domain = "steward.dev", .metric_prefix = "steward", .kinds = fake_kinds};

static void pass(int64_t us)
{
    now.ms += (uint64_t)us / 1000;
}

static void boot(struct world *w, unsigned i)
{
    struct replica *r = &w->replicas[i];
    stw_rotation_done(&r->rotation);
    free(r->cert);
    *r = (struct replica){
        .rotation = {.config = {.op = &op,
                                .ns = "ns",
                                .secret = "pair",
                                .dns_names = dns_a,
                                .ip_addresses = ips,
                                .hook_names = {"hooks", "hooks"},
                                .ca_days = 300,
                                .leaf_days = 30,
                                .times = {.settle_us = 10 * 1000000, .overlap_us = DAY / 24}},
                     .api = {fake_call, &w->api, &op},
                     .clock = &now_clock,
                     .serve = use,
                     .ctx = r}};
}

/* Verification dominates the run time, and most pairs repeat: caches successes. */
static bool trusts(const char *bundle, const char *leaf)
{
    static struct stw_hash known[256];
    struct stw_hash b = stw_hash_bytes(bundle, strlen(bundle));
    struct stw_hash l = stw_hash_bytes(leaf, strlen(leaf));
    struct stw_hash both = {.lo = b.lo ^ (l.lo << 1), .hi = b.hi ^ (l.hi << 1)};
    struct stw_hash *slot = &known[both.lo % STW_COUNT(known)];
    if (slot->lo == both.lo && slot->hi == both.hi)
        return true;
    if (!stw_cert_signed_by(leaf, bundle))
        return false;
    *slot = both;
    return true;
}

/* Every replica that serves is trusted by every caBundle that was written. */
static void check_trust(void *ctx)
{
    const struct world *w = ctx;
    for (unsigned i = 0; i < REPLICAS; i++) {
        for (enum fake_object h = FAKE_MUTATING; h <= FAKE_CRD; h++) {
            if (!w->replicas[i].cert || !w->api.objects[h])
                continue;
            stw_autofree char *bundle = fake_bundle(&w->api, h, 0);
            if (*bundle && !trusts(bundle, w->replicas[i].cert))
                fail_msg("replica %u is not trusted by configuration %d", i, (int)h);
        }
    }
}

static struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    now.ms = 1000;
    fake_init(&w->api);
    w->api.wrote = check_trust;
    w->api.ctx = w;
    fake_add_hook(&w->api, FAKE_MUTATING);
    fake_add_hook(&w->api, FAKE_VALIDATING);
    for (unsigned i = 0; i < REPLICAS; i++)
        boot(w, i);
    return w;
}

static void world_end(struct world *w)
{
    for (unsigned i = 0; i < REPLICAS; i++) {
        stw_rotation_done(&w->replicas[i].rotation);
        free(w->replicas[i].cert);
    }
    fake_done(&w->api);
    free(w);
}

static void sync_ok(struct world *w, unsigned i)
{
    struct stw_error err = {0};
    if (stw_rotation_sync(&w->replicas[i].rotation, &err) < 0)
        fail_msg("replica %u: %s", i, err.text);
    check_trust(w);
}

static unsigned certs_in(const char *pem)
{
    unsigned n = 0;
    for (const char *p = pem; p && (p = strstr(p, "BEGIN CERTIFICATE")); p++)
        n++;
    return n;
}

static bool has(const struct world *w, const char *key)
{
    stw_autofree char *value = fake_data(&w->api, key);
    return value && *value;
}

/* Everything is settled: one CA is in every caBundle, and every replica serves its leaf. */
static void assert_settled(struct world *w, unsigned replicas)
{
    stw_autofree char *leaf = fake_data(&w->api, "tls.crt"), *key = fake_data(&w->api, "tls.key");
    stw_autofree char *ca = fake_data(&w->api, "ca.crt");
    assert_non_null(leaf);
    assert_non_null(ca);
    assert_int_equal(stw_pair_check(leaf, key, fake_wall(&now), NULL), 0);
    assert_true(stw_cert_signed_by(leaf, ca));
    assert_false(has(w, "ca-next.crt"));
    assert_false(has(w, "ca-next.key"));
    assert_false(has(w, "ca-old.crt"));
    assert_false(has(w, "ca-old.until"));
    for (enum fake_object h = FAKE_MUTATING; h <= FAKE_VALIDATING; h++) {
        for (size_t i = 0; w->api.objects[h] && i < 2; i++) {
            stw_autofree char *bundle = fake_bundle(&w->api, h, i);
            assert_string_equal(bundle, ca);
        }
        stw_autofree char *other = w->api.objects[h] ? fake_bundle(&w->api, h, 2) : NULL;
        assert_true(!other || !*other);
        assert_false(fake_owned(&w->api, h));
    }
    for (unsigned i = 0; i < replicas; i++) {
        assert_string_equal(w->replicas[i].cert, leaf);
        assert_string_equal(w->replicas[i].rotation.problem, "");
    }
}

/* Syncs the replicas after some seconds and then after an hour, as their threads would, until
 * everything is settled. */
static void come_to_rest(struct world *w, unsigned replicas)
{
    static const int64_t waits[] = {0, 11, 3601, 0};
    for (size_t i = 0; i < STW_COUNT(waits); i++) {
        pass(waits[i] * 1000000);
        for (unsigned r = 0; r < replicas; r++)
            sync_ok(w, r);
    }
}

static void test_first_start_creates_the_secret(void **state)
{
    (void)state;
    struct world *w = world_new();
    sync_ok(w, 0);
    assert_settled(w, 1);
    json_t *secret = w->api.objects[FAKE_SECRET];
    assert_string_equal(json_string_value(json_object_get(secret, "type")), "kubernetes.io/tls");
    /* Secret, two caBundles, promotion, two releases */
    assert_int_equal(w->api.writes, 6);
    unsigned calls = w->api.calls;
    sync_ok(w, 1);
    assert_settled(w, 2);
    assert_int_equal(w->api.writes, 6);
    assert_int_equal(w->api.calls - calls, 3);
    world_end(w);
}

static void test_missing_webhook_configurations_are_awaited(void **state)
{
    (void)state;
    struct world *w = world_new();
    fake_remove(&w->api, FAKE_MUTATING);
    fake_remove(&w->api, FAKE_VALIDATING);
    sync_ok(w, 0);
    assert_settled(w, 1);
    fake_add_hook(&w->api, FAKE_VALIDATING);
    sync_ok(w, 0);
    assert_settled(w, 1);
    world_end(w);
}

static void name_crd(struct world *w)
{
    for (unsigned i = 0; i < REPLICAS; i++)
        w->replicas[i].rotation.config.hook_names[2] = "things.example.org";
}

/* The caBundle of a conversion webhook is like the others: written, repaired, and awaited before a
 * new CA issues a certificate. */
static void test_conversion_webhook_gets_the_ca_bundle(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct stw_error err = {0};
    name_crd(w);
    sync_ok(w, 0); /* there is no CRD yet */
    assert_settled(w, 1);
    fake_add_crd(&w->api, "Webhook");
    sync_ok(w, 0);
    stw_autofree char *ca = fake_data(&w->api, "ca.crt");
    stw_autofree char *first = fake_bundle(&w->api, FAKE_CRD, 0);
    assert_string_equal(first, ca);
    fake_set_bundle(&w->api, FAKE_CRD, "not a certificate");
    sync_ok(w, 0);
    stw_autofree char *repaired = fake_bundle(&w->api, FAKE_CRD, 0);
    assert_string_equal(repaired, ca);
    w->api.fail_call = w->api.calls + 3; /* the CRD */
    w->api.fail_code = STW_ERR_FORBIDDEN;
    assert_int_equal(stw_rotation_sync(&w->replicas[0].rotation, &err), -1);
    assert_non_null(strstr(err.text, "CustomResourceDefinition \"things.example.org\""));
    pass(205 * DAY); /* the CA is due */
    come_to_rest(w, 2);
    assert_settled(w, 2);
    stw_autofree char *new_ca = fake_data(&w->api, "ca.crt");
    stw_autofree char *last = fake_bundle(&w->api, FAKE_CRD, 0);
    assert_string_not_equal(new_ca, ca);
    assert_string_equal(last, new_ca);
    world_end(w);
}

static void test_crd_without_webhook_is_not_written(void **state)
{
    (void)state;
    struct world *w = world_new();
    name_crd(w);
    fake_add_crd(&w->api, "None");
    sync_ok(w, 0);
    assert_settled(w, 1);
    assert_int_equal(w->api.writes, 6); /* none to the CRD */
    world_end(w);
}

/* Also as the only field manager, and while a policy refuses it. */
static void test_former_field_ownership_is_released(void **state)
{
    (void)state;
    struct world *w = world_new();
    json_t *hook = w->api.objects[FAKE_MUTATING];
    json_object_del(json_object_get(hook, "metadata"), "managedFields");
    w->api.fail_code = STW_ERR_FORBIDDEN;
    w->api.fail_write = 5; /* the first release */
    sync_ok(w, 0);
    assert_int_equal(w->api.writes, 6);
    assert_settled(w, 1);
    assert_null(json_object_get(json_object_get(hook, "metadata"), "managedFields"));
    /* an outage: to be tried again */
    w->api.fail_code = STW_ERR_UNAVAILABLE;
    fake_set_bundle(&w->api, FAKE_MUTATING, "");
    w->api.fail_write = 8;
    assert_int_equal(stw_rotation_sync(&w->replicas[0].rotation, NULL), -1);
    sync_ok(w, 0);
    assert_settled(w, 1);
    world_end(w);
}

static void test_unreadable_configuration_is_named(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct stw_error err = {0};
    sync_ok(w, 0);
    w->api.fail_call = w->api.calls + 2; /* the validating configuration */
    w->api.fail_code = STW_ERR_FORBIDDEN;
    assert_int_equal(stw_rotation_sync(&w->replicas[0].rotation, &err), -1);
    assert_int_equal(err.code, STW_ERR_FORBIDDEN);
    assert_non_null(strstr(err.text, "ValidatingWebhookConfiguration \"hooks\""));
    sync_ok(w, 0);
    assert_settled(w, 1);
    world_end(w);
}

static void test_changed_ca_bundle_is_repaired(void **state)
{
    (void)state;
    struct world *w = world_new();
    sync_ok(w, 0);
    fake_set_bundle(&w->api, FAKE_MUTATING, "");
    sync_ok(w, 0);
    assert_settled(w, 1);
    fake_set_bundle(&w->api, FAKE_VALIDATING, "not a certificate");
    sync_ok(w, 0);
    assert_settled(w, 1);
    fake_remove(&w->api, FAKE_VALIDATING);
    fake_add_hook(&w->api, FAKE_VALIDATING);
    sync_ok(w, 0);
    assert_settled(w, 1);
    world_end(w);
}

static void test_repeated_overwrites_stop_the_repairs(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct stw_error err = {0};
    sync_ok(w, 0);
    unsigned i;
    for (i = 0; i < 100; i++) {
        fake_set_bundle(&w->api, FAKE_MUTATING, "");
        if (stw_rotation_sync(&w->replicas[0].rotation, &err) < 0)
            break;
    }
    assert_in_range(i, 5, 30);
    assert_int_equal(err.code, STW_ERR_THROTTLED);
    assert_non_null(strstr(err.text, "managedFields"));
    pass((int64_t)60 * 1000000);
    sync_ok(w, 0);
    assert_settled(w, 1);
    world_end(w);
}

static void test_certificate_is_renewed_by_the_same_ca(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint64_t wait_ms;
    sync_ok(w, 0);
    sync_ok(w, 1);
    stw_autofree char *first = fake_data(&w->api, "tls.crt"), *ca = fake_data(&w->api, "ca.crt");
    pass(19 * DAY);
    assert_true(stw_rotation_idle(&w->replicas[0].rotation, 60000, &wait_ms));
    pass(2 * DAY);
    assert_false(stw_rotation_idle(&w->replicas[0].rotation, 60000, &wait_ms));
    sync_ok(w, 0);
    sync_ok(w, 1);
    assert_settled(w, 2);
    stw_autofree char *second = fake_data(&w->api, "tls.crt"), *ca2 = fake_data(&w->api, "ca.crt");
    assert_string_not_equal(first, second);
    assert_string_equal(ca, ca2);
    world_end(w);
}

static void test_ca_rotation_overlaps_bundles(void **state)
{
    (void)state;
    struct world *w = world_new();
    uint64_t wait_ms;
    sync_ok(w, 0);
    sync_ok(w, 1);
    pass(205 * DAY);
    sync_ok(w, 0); /* the leaf expired meanwhile, and the CA is due */
    stw_autofree char *old_ca = fake_data(&w->api, "ca.crt");
    stw_autofree char *bundle = fake_bundle(&w->api, FAKE_VALIDATING, 1);
    assert_true(has(w, "ca-next.key"));
    assert_int_equal(certs_in(bundle), 2);
    assert_true(stw_cert_signed_by(w->replicas[0].cert, old_ca));
    assert_true(stw_rotation_idle(&w->replicas[0].rotation, 60000, &wait_ms));
    assert_in_range(wait_ms, 9000, 11000);
    pass(11 * 1000000);
    sync_ok(w, 0); /* settled: promoted */
    assert_false(has(w, "ca-next.key"));
    stw_autofree char *former = fake_data(&w->api, "ca-old.crt");
    assert_int_equal(certs_in(former), 1);
    assert_false(stw_cert_signed_by(w->replicas[0].cert, old_ca));
    sync_ok(w, 1);
    assert_string_equal(w->replicas[0].cert, w->replicas[1].cert);
    pass((int64_t)3599 * 1000000);
    assert_true(stw_rotation_idle(&w->replicas[0].rotation, 60000, &wait_ms));
    pass((int64_t)2 * 1000000);
    sync_ok(w, 1);
    assert_settled(w, 2);
    world_end(w);
}

struct spoil {
    const char *key, *value;
};

/* Each of these is recognised as damage and repaired without an interruption. */
static void test_damaged_secret_is_repaired(void **state)
{
    (void)state;
    static const struct spoil rows[] = {
        {"tls.crt", NULL},
        {"tls.key", NULL},
        {"tls.crt", "garbage"},
        {"tls.key", "garbage"},
        {"ca.crt", NULL},
        {"ca.crt", "garbage"},
        {"ca.key", NULL},
        {"ca.key", "garbage"},
        {"ca-next.crt", "garbage"},
        {"ca-old.crt", "garbage"},
        {"ca-old.until", "garbage"},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct world *w = world_new();
        sync_ok(w, 0);
        sync_ok(w, 1);
        fake_set_data(&w->api, rows[i].key, rows[i].value);
        if (strncmp(rows[i].key, "ca-", 3) == 0) {
            sync_ok(w, 0);
            fake_set_data(&w->api, rows[i].key, NULL);
        }
        come_to_rest(w, REPLICAS);
        assert_settled(w, REPLICAS);
        world_end(w);
    }
}

static void test_deleted_secret_is_recreated(void **state)
{
    (void)state;
    struct world *w = world_new();
    sync_ok(w, 0);
    sync_ok(w, 1);
    stw_autofree char *before = strdup(w->replicas[0].cert);
    fake_remove(&w->api, FAKE_SECRET);
    sync_ok(w, 0);
    /* the old certificate is served, and trusted, until the new CA has settled */
    assert_string_equal(w->replicas[0].cert, before);
    come_to_rest(w, REPLICAS);
    assert_settled(w, REPLICAS);
    assert_string_not_equal(w->replicas[0].cert, before);
    world_end(w);
}

static void test_changed_names_reissue_the_certificate(void **state)
{
    (void)state;
    struct world *w = world_new();
    sync_ok(w, 0);
    boot(w, 0);
    w->replicas[0].rotation.config.dns_names = dns_b;
    sync_ok(w, 0);
    assert_settled(w, 1);
    assert_true(stw_cert_covers(w->replicas[0].cert, dns_b, ips));
    world_end(w);
}

static void test_fields_of_others_in_the_secret_stay(void **state)
{
    (void)state;
    struct world *w = world_new();
    sync_ok(w, 0);
    json_t *secret = w->api.objects[FAKE_SECRET];
    json_object_set_new(json_object_get(secret, "metadata"), "annotations",
                        json_pack("{s:s}", "team", "a"));
    fake_set_data(&w->api, "extra", "kept");
    fake_set_data(&w->api, "tls.crt", "garbage");
    sync_ok(w, 0);
    stw_autofree char *extra = fake_data(&w->api, "extra");
    assert_string_equal(extra, "kept");
    secret = w->api.objects[FAKE_SECRET];
    json_t *notes = json_object_get(json_object_get(secret, "metadata"), "annotations");
    assert_string_equal(json_string_value(json_object_get(notes, "team")), "a");
    world_end(w);
}

static void test_secret_of_cert_manager_is_refused(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct stw_error err = {0};
    sync_ok(w, 0);
    json_t *meta = json_object_get(w->api.objects[FAKE_SECRET], "metadata");
    json_object_set_new(meta, "annotations",
                        json_pack("{s:s}", "cert-manager.io/certificate-name", "x"));
    fake_set_data(&w->api, "tls.crt", NULL);
    assert_int_equal(stw_rotation_sync(&w->replicas[0].rotation, &err), -1);
    assert_non_null(strstr(err.text, "cert-manager"));
    world_end(w);
}

/* --- faults at every request */

#ifdef __SANITIZE_THREAD__
#define STRIDE 7 /* single-threaded: TSan only makes it slow */
#else
#define STRIDE 1
#endif

/* The start states of the walks below. */
enum from { FROM_NOTHING, FROM_OLD_CA, FROM_SETTLED_NEXT, FROM_RETIRE, FROM_DELETED, FROMS };

static void prepare(struct world *w, enum from from)
{
    if (from == FROM_NOTHING)
        return;
    sync_ok(w, 0);
    sync_ok(w, 1);
    if (from == FROM_DELETED)
        fake_remove(&w->api, FAKE_SECRET);
    else
        pass(205 * DAY);
    if (from == FROM_SETTLED_NEXT || from == FROM_RETIRE) {
        sync_ok(w, 0);
        sync_ok(w, 1);
        pass(11 * 1000000);
    }
    if (from == FROM_RETIRE) {
        sync_ok(w, 0);
        sync_ok(w, 1);
        pass((int64_t)3601 * 1000000);
    }
}

/* A copy of a prepared world, with the clock at `now_us`. */
static struct world *world_copy(const struct world *from, int64_t now_us)
{
    struct world *w = world_new();
    fake_copy(&w->api, &from->api);
    pass(now_us - fake_wall(&now));
    for (unsigned i = 0; i < REPLICAS; i++) {
        if (!from->replicas[i].cert)
            continue;
        w->replicas[i].cert = strdup(from->replicas[i].cert);
        w->replicas[i].rotation.served = strdup(from->replicas[i].cert);
    }
    return w;
}

typedef bool at_fn(struct world *w, unsigned n);

/* From each start state, runs `at` with a fault at the n-th request of replica 0, for every n that
 * occurs.  The world must settle each time. */
static void everywhere(at_fn *at)
{
    for (enum from from = 0; from < FROMS; from++) {
        struct world *first = world_new();
        prepare(first, from);
        int64_t now_us = fake_wall(&now);
        bool more = true;
        for (unsigned n = 1; more; n += STRIDE) {
            struct world *w = world_copy(first, now_us);
            more = at(w, n);
            come_to_rest(w, REPLICAS);
            assert_settled(w, REPLICAS);
            world_end(w);
            assert_in_range(n, 1, 60);
        }
        world_end(first);
    }
}

static void sync_and_crash(struct world *w)
{
    (void)stw_rotation_sync(&w->replicas[0].rotation, NULL);
    w->api.fail_call = w->api.fail_write = 0;
    boot(w, 0);
}

static bool crash_at_call(struct world *w, unsigned n)
{
    unsigned base = w->api.calls;
    w->api.fail_call = base + n;
    sync_and_crash(w);
    return w->api.calls >= base + n;
}

/* The write took effect, but its response is lost. */
static bool crash_at_write(struct world *w, unsigned n)
{
    unsigned base = w->api.writes;
    w->api.fail_write = base + n;
    sync_and_crash(w);
    return w->api.writes >= base + n;
}

static void other_syncs(void *ctx)
{
    struct world *w = ctx;
    w->api.intrude_at = 0;
    sync_ok(w, 1);
}

static bool race_at_call(struct world *w, unsigned n)
{
    w->api.intrude = other_syncs;
    w->api.intrude_at = w->api.calls + n;
    sync_ok(w, 0);
    bool hit = w->api.intrude_at == 0;
    w->api.intrude_at = 0;
    return hit;
}

static void test_crash_at_every_call_is_survived(void **state)
{
    (void)state;
    everywhere(crash_at_call);
}

static void test_crash_after_every_write_is_survived(void **state)
{
    (void)state;
    everywhere(crash_at_write);
}

static void test_concurrent_replica_at_every_call_is_survived(void **state)
{
    (void)state;
    everywhere(race_at_call);
}

/* --- secrets in the log */

static void test_log_contains_no_key(void **state)
{
    (void)state;
    char path[] = "/tmp/steward-test-XXXXXX", text[16384];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)unlink(path);
    stw_log_setup(STW_LOG_JSON, STW_LOG_DEBUG, fd);
    struct world *w = world_new();
    sync_ok(w, 0);
    fake_set_data(&w->api, "ca.key", "garbage");
    come_to_rest(w, 1);
    stw_log_setup(STW_LOG_JSON, STW_LOG_ERROR, 2);
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    assert_in_range(n, 100, sizeof(text) - 2);
    text[n] = '\0';
    assert_non_null(strstr(text, "the CA's key is missing or does not match"));
    assert_null(strstr(text, "PRIVATE"));
    stw_autofree char *key = fake_data(&w->api, "tls.key");
    key[60] = '\0';
    assert_null(strstr(text, key + 30));
    (void)close(fd);
    world_end(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_start_creates_the_secret),
        cmocka_unit_test(test_missing_webhook_configurations_are_awaited),
        cmocka_unit_test(test_conversion_webhook_gets_the_ca_bundle),
        cmocka_unit_test(test_crd_without_webhook_is_not_written),
        cmocka_unit_test(test_former_field_ownership_is_released),
        cmocka_unit_test(test_unreadable_configuration_is_named),
        cmocka_unit_test(test_changed_ca_bundle_is_repaired),
        cmocka_unit_test(test_repeated_overwrites_stop_the_repairs),
        cmocka_unit_test(test_certificate_is_renewed_by_the_same_ca),
        cmocka_unit_test(test_ca_rotation_overlaps_bundles),
        cmocka_unit_test(test_damaged_secret_is_repaired),
        cmocka_unit_test(test_deleted_secret_is_recreated),
        cmocka_unit_test(test_changed_names_reissue_the_certificate),
        cmocka_unit_test(test_fields_of_others_in_the_secret_stay),
        cmocka_unit_test(test_secret_of_cert_manager_is_refused),
        cmocka_unit_test(test_crash_at_every_call_is_survived),
        cmocka_unit_test(test_crash_after_every_write_is_survived),
        cmocka_unit_test(test_concurrent_replica_at_every_call_is_survived),
        cmocka_unit_test(test_log_contains_no_key),
    };
    stw_log_setup(STW_LOG_JSON, STW_LOG_ERROR, 2);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
