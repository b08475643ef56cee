/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdcluster/spec.h"

#include "support/judge.h"

#define EC(members) "{\"metadata\":{\"name\":\"orders\"},\"spec\":{" members "}}"
#define TLS(members) EC("\"TLS\":{" members "}")

static void test_version_changes_one_step_at_a_time(void **state)
{
    static const struct {
        struct stw_semver from, to;
        const char *want;
    } rows[] = {
        {{3, 4, 23}, {3, 5, 16}, ""},
        {{3, 5, 16}, {3, 5, 16}, ""},
        {{3, 5, 16}, {3, 5, 15}, "downgrade from 3.5.16 is not supported"},
        {{3, 6, 16}, {3, 6, 15}, "downgrade from 3.6.16 is not supported"},
        {{3, 5, 35}, {3, 4, 23}, "downgrade from 3.5.35 is not supported"},
        {{3, 6, 16}, {3, 5, 20}, ""},
        {{3, 6, 0}, {3, 5, 19}, "downgrade to 3.5.20 or newer"},
        {{3, 7, 3}, {3, 6, 11}, ""},
        {{3, 7, 3}, {3, 6, 10}, "downgrade to 3.6.11 or newer"},
        {{3, 7, 3}, {3, 5, 35}, "downgrade one minor at a time: next is 3.6"},
        {{4, 0, 0}, {3, 7, 0}, "downgrade from 4.0.0 is not supported"},
        {{3, 4, 23}, {3, 6, 0}, "upgrade one minor at a time: next is 3.5"},
        {{3, 5, 19}, {3, 6, 0}, "upgrade to 3.5.20 or newer first"},
        {{3, 5, 20}, {3, 6, 4}, ""},
        {{3, 6, 10}, {3, 7, 0}, "upgrade to 3.6.11 or newer first"},
        {{3, 6, 11}, {3, 7, 0}, ""},
        {{3, 7, 0}, {3, 8, 0}, ""},
        {{2, 3, 8}, {3, 0, 0}, "upgrade one minor at a time: next is 2.4"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err = {0};
        int rc = ec_step_check(rows[i].from, rows[i].to, &err);
        assert_int_equal(rc, *rows[i].want ? -1 : 0);
        assert_string_equal(rc ? err.text : "", rows[i].want);
    }
}

#define STATIC                                                                                     \
    "\"static\":{\"member\":{\"peerSecret\":\"p\",\"serverSecret\":\"s\"},\"operatorSecret\":"     \
    "\"o\"}"
#define AUTO "\"auto\":{\"provider\":\"Steward\"}"

static unsigned looks;

static int count_look(void *ctx, const char *ns, const char *name, const char *key,
                      struct stw_secret_facts *ret)
{
    (void)ctx, (void)ns, (void)name, (void)key;
    looks++;
    *ret = (struct stw_secret_facts){0};
    return 0;
}

static void test_only_newly_chosen_secrets_are_looked_up(void **state)
{
    static const struct stw_lookup lookup = {.secret = count_look};
    static const struct stw_env env = {.lookup = &lookup};
    (void)state;
    assert_answer(&stw_kind_etcdcluster, TLS("\"static\":{\"member\":{\"peerSecret\":\"p\"}}"),
                  NULL, &env, "W: Secret \"p\" not found; the members start when it appears\n");
    assert_true(looks > 0);
    looks = 0;
    assert_answer(&stw_kind_etcdcluster, TLS(STATIC), TLS(STATIC), &env, "");
    assert_int_equal(looks, 0);
    /* a refused object causes no lookup */
    assert_answer(&stw_kind_etcdcluster, TLS(STATIC "," AUTO), NULL, &env,
                  "spec.TLS.auto: Forbidden: set only one of static, auto\n");
    assert_int_equal(looks, 0);
}

static void test_spec_is_decoded_with_its_defaults(void **state)
{
    struct question q;
    struct ec_spec c;
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    (void)state;
    ask(&q, &stw_kind_etcdcluster,
        EC("\"version\":\"v3.4.23\",\"TLS\":{" AUTO "},\"pod\":{\"ClusterDomain\":\"a.b\"}"), NULL,
        NULL);
    assert_int_equal(stw_kind_decode(q.a.kind, stw_json_get(q.a.object, "spec"), arena, &c, NULL),
                     0);
    assert_int_equal(c.size, 3);
    assert_string_equal(c.version, "3.4.23");
    assert_string_equal(c.repository, EC_REPOSITORY);
    assert_string_equal(c.pod.cluster_domain, "a.b");
    assert_string_equal(c.storage.medium, "Auto");
    assert_null(c.storage.storage_class);
    assert_null(c.tls.static_.member.peer_secret);
    assert_string_equal(c.tls.auto_.provider, "Steward");
    assert_int_equal(c.tls.auto_.validity_days, 90);
    assert_int_equal(c.tls.auto_.renew_before_days, 30);
    assert_string_equal(c.options.auto_compaction_mode, "periodic");
    assert_string_equal(c.options.auto_compaction_retention, "1h");
    assert_int_equal(c.options.election_timeout_ms, 0);
    assert_true(c.failover.enabled);
    assert_int_equal(c.failover.unhealthy_s, 300);
    assert_int_equal(c.failover.max_per_hour, 2);
    assert_int_equal(c.upgrade.pause_between_s, 30);
    assert_true(c.pdb.enabled);
    assert_string_equal(c.volume_retention.when_deleted, "Retain");
    assert_string_equal(c.volume_retention.when_scaled, "Delete");
    assert_int_equal(c.progress_deadline_s, 600);
    ask_done(&q);
    /* without `auto` there is no own CA */
    ask(&q, &stw_kind_etcdcluster, EC(""), NULL, NULL);
    assert_int_equal(stw_kind_decode(q.a.kind, stw_json_get(q.a.object, "spec"), arena, &c, NULL),
                     0);
    assert_null(c.tls.auto_.provider);
    assert_string_equal(c.version, STW_ETCD_VERSION);
    ask_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_changes_one_step_at_a_time),
        cmocka_unit_test(test_only_newly_chosen_secrets_are_looked_up),
        cmocka_unit_test(test_spec_is_decoded_with_its_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
