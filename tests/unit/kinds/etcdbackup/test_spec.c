/* SPDX-License-Identifier: Apache-2.0
 *
 * EtcdBackup and EtcdRestore. */
#include "kinds/etcdrestore/spec.h"

#include "kinds/common/product.h"
#include "schema/zones.h"
#include "support/judge.h"

#define EB(members)                                                                                \
    "{\"metadata\":{\"name\":\"nightly\"},\"spec\":{\"clusterRef\":{\"name\":\"orders\"},"         \
    "\"storageType\":\"S3\",\"s3\":{\"path\":\"bucket/orders\"}" members "}}"

static int no_zone(const char *name, size_t max, char **ret, size_t *ret_len, struct stw_error *err)
{
    (void)max, (void)ret, (void)ret_len;
    return stw_fail(err, STW_ERR_NOT_FOUND, "no zone %s", name);
}

static void test_unknown_time_zone_names_the_missing_package(void **state)
{
    struct stw_zones *zones = stw_zones_create(no_zone);
    const struct stw_product product = {.zones = zones};
    const struct stw_env env = {.product = &product};
    (void)state;
    assert_non_null(zones);
    assert_answer(&stw_kind_etcdbackup,
                  EB(",\"backupPolicy\":{\"schedule\":\"@daily\",\"timeZone\":\"Europe/Nowhere\"}"),
                  NULL, &env,
                  "spec.backupPolicy.timeZone: Invalid value: \"Europe/Nowhere\": unknown time "
                  "zone: this program has no time zones but UTC, as there are none in "
                  "/usr/share/zoneinfo (Debian's package tzdata)\n");
    stw_zones_destroy(zones);
}

static void test_specs_are_decoded_with_their_defaults(void **state)
{
    struct question q;
    struct eb_spec b;
    struct er_spec r;
    struct ec_spec c;
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    (void)state;
    ask(&q, &stw_kind_etcdbackup, EB(""), NULL, NULL);
    assert_int_equal(stw_kind_decode(q.a.kind, stw_json_get(q.a.object, "spec"), arena, &b, NULL),
                     0);
    assert_string_equal(b.cluster, "orders");
    assert_string_equal(b.s3.path, "bucket/orders");
    assert_string_equal(b.s3.region, "us-east-1");
    assert_null(b.s3.endpoint);
    assert_null(b.s3.sse);
    assert_null(b.pvc.claim);
    assert_null(b.policy.schedule);
    assert_int_equal(b.policy.timeout_s, 60);
    assert_int_equal(b.policy.starting_deadline_s, 3600);
    assert_string_equal(b.policy.time_zone, "Etc/UTC");
    assert_string_equal(b.verify, "Hash");
    ask_done(&q);
    ask(&q, &stw_kind_etcdrestore,
        "{\"spec\":{\"etcdCluster\":{\"name\":\"nightly\"},\"backupRef\":{\"name\":\"nightly\"},"
        "\"template\":{\"size\":5,\"version\":\"v3.5.16\"}}}",
        NULL, NULL);
    assert_int_equal(stw_kind_decode(q.a.kind, stw_json_get(q.a.object, "spec"), arena, &r, NULL),
                     0);
    assert_string_equal(r.cluster, "nightly");
    assert_string_equal(r.backup.name, "nightly");
    assert_null(r.backup.uri);
    assert_null(r.s3.path);
    assert_string_equal(r.mode, "New");
    assert_int_equal(r.bump_revision, 1000000000);
    assert_true(r.mark_compacted);
    assert_int_equal(r.keep_old_volumes_s, 0);
    assert_int_equal(stw_kind_decode(&stw_kind_etcdcluster, r.template, arena, &c, NULL), 0);
    assert_int_equal(c.size, 5);
    assert_string_equal(c.version, "3.5.16");
    ask_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_time_zone_names_the_missing_package),
        cmocka_unit_test(test_specs_are_decoded_with_their_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
