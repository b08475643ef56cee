/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdbackup/agent.h"

#include "base/util.h"
#include "kinds/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define POD(version, kind)                                                                         \
    "{\"metadata\":{\"name\":\"nightly-save\",\"uid\":\"p\",\"ownerReferences\":[{\"apiVersion\":" \
    "\"" version "\",\"kind\":\"" kind                                                             \
    "\",\"name\":\"nightly\",\"uid\":\"u\",\"controller\":true}]},"                                \
    "\"status\":{\"phase\":\"Pending\"}}"

/* Another operator may have a kind of the same name. */
static void test_whose_pods_are_kept(void **state)
{
    static const struct {
        const char *pod;
        bool kept;
    } cases[] = {
        {POD("etcd.database.coreos.com/v1beta2", "EtcdBackup"), true},
        {POD("etcd.database.coreos.com/v2", "EtcdRestore"), true},
        {POD("backup.example.org/v1beta2", "EtcdBackup"), false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
        stw_autojson struct stw_json_doc doc = {0};
        assert_int_equal(stw_json_scan(&doc, cases[i].pod, strlen(cases[i].pod), NULL), 0);
        eb_watch_agents.project(&stw_operator_steward, stw_json_root(&doc), &out);
        if ((out.len > 0) != cases[i].kept)
            fail_msg("case %zu: \"%s\"", i, stw_buf_str(&out));
    }
}

/* What the API server refuses is tried again within a minute, as no watch says when it would be allowed. */
static void test_refusals_are_tried_again(void **state)
{
    static const struct {
        struct stw_error err;
        const char *reason;
        uint64_t again_ms;
    } cases[] = {
        {{.code = STW_ERR_FORBIDDEN,
          .http = 403,
          .text = "pods \"a\" is forbidden: exceeded quota: b"},
         "QuotaExceeded",
         60000},
        {{.code = STW_ERR_FORBIDDEN, .http = 403, .text = "pods is forbidden"}, "Forbidden", 60000},
        {{.code = STW_ERR_INVALID, .http = 400, .text = "admission webhook denied the request"},
         "Forbidden",
         60000},
        {{.code = STW_ERR_INVALID, .http = 422, .text = "spec.priorityClassName"},
         "InvalidSpec",
         600000},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct eb_refusal r;
        struct stw_verdict v = {0};
        assert_true(eb_refusal_of(&cases[i].err, &r));
        eb_refusal_verdict(&r, &v);
        assert_string_equal(v.reason, cases[i].reason);
        assert_string_equal(v.message, cases[i].err.text);
        assert_int_equal(v.level, STW_LEVEL_STALLED);
        assert_int_equal(v.again_ms, cases[i].again_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose_pods_are_kept),
        cmocka_unit_test(test_refusals_are_tried_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
