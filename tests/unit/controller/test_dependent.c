/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/dependent.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct stw_kind cron = {
    .group = "batch.example.org", .version = "v1", .kind = "CronJob"};
static const struct stw_kind thing = {.group = "example.org", .version = "v1", .kind = "Thing"};
static const struct stw_controller of_cron = {.kind = &cron}, of_thing = {.kind = &thing};
static const struct stw_controller *const all[] = {&of_thing, &of_cron, NULL};
static const struct stw_operator op = {.name = "steward", .controllers = all};

#define JOB(version, controller, more)                                                             \
    "{\"metadata\":{\"name\":\"a-1\",\"namespace\":\"shop\",\"uid\":\"job-uid\"" more              \
    ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"n\",\"uid\":\"x\"}" \
    ","                                                                                            \
    "{\"apiVersion\":\"" version "\",\"kind\":\"CronJob\",\"name\":\"a\",\"uid\":\"owner-uid\","   \
    "\"controller\":" controller "}]}}"

static bool project(const char *text, struct stw_buf *out)
{
    stw_autojson struct stw_json_doc doc = {0};
    assert_int_equal(stw_json_scan(&doc, text, strlen(text), NULL), 0);
    return stw_dependent_project(&op, stw_json_root(&doc), out);
}

static void expect_dropped(const char *text)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
    assert_false(project(text, &out));
    assert_int_equal(out.len, 0);
}

static void test_dependent_of_own_kind_is_kept(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(4096), keys = STW_BUF_INIT(4096);
    stw_autojson struct stw_json_doc doc = {0};
    (void)state;
    assert_true(project(JOB("batch.example.org/v1", "true", ""), &out));
    assert_string_equal(stw_buf_str(&out), "{\"owner\":[\"CronJob\",\"a\",\"owner-uid\"],"
                                           "\"name\":\"a-1\",\"uid\":\"job-uid\"");
    stw_buf_addc(&out, '}');
    assert_int_equal(stw_json_scan(&doc, stw_buf_str(&out), out.len, NULL), 0);
    stw_dependent_index(NULL, stw_json_root(&doc), &keys);
    assert_string_equal(stw_buf_str(&keys), "owner:owner-uid\n");
    assert_true(stw_dependent_is_of(stw_json_root(&doc), "owner-uid"));
    assert_false(stw_dependent_is_of(stw_json_root(&doc), "a"));
}

static void test_dependent_being_deleted_is_marked(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
    (void)state;
    assert_true(project(
        JOB("batch.example.org/v1beta1", "true", ",\"deletionTimestamp\":\"2024-01-01T00:00:00Z\""),
        &out));
    assert_non_null(strstr(stw_buf_str(&out), ",\"gone\":true"));
}

/* A kind of this name in another group, an owner that is not the controller, and none. */
static void test_dependent_of_other_owner_is_dropped(void **state)
{
    (void)state;
    expect_dropped(JOB("batch/v1", "true", ""));
    expect_dropped(JOB("batch.example.org.evil/v1", "true", ""));
    expect_dropped(JOB("v1", "true", ""));
    expect_dropped(JOB("batch.example.org/v1", "false", ""));
    expect_dropped("{\"metadata\":{\"name\":\"a-1\",\"uid\":\"u\"}}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dependent_of_own_kind_is_kept),
        cmocka_unit_test(test_dependent_being_deleted_is_marked),
        cmocka_unit_test(test_dependent_of_other_owner_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
