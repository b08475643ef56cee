/* SPDX-License-Identifier: Apache-2.0
 *
 * Which fields an apply would change, and whether that restarts pods. */
#include "base/util.h"
#include "kube/owned/shadow_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* JSON with ' for ". */
static void write_json(const char *text, struct stw_buf *out)
{
    *out = STW_BUF_INIT(16384);
    for (const char *p = text; *p; p++)
        stw_buf_addc(out, *p == '\'' ? '"' : *p);
}

#define APPLIED(fields)                                                                            \
    "'metadata':{'managedFields':[{'manager':'us','operation':'Apply','fieldsV1':" fields          \
    "},{'manager':'other','operation':'Apply','fieldsV1':{'f:spec':{'f:foreign':{}}}},"            \
    "{'manager':'us','operation':'Apply','subresource':'scale',"                                   \
    "'fieldsV1':{'f:spec':{'f:replicas':{}}}}]}"

static void test_shadow_lists_differing_fields(void **state)
{
    static const struct {
        const char *desired, *live, *want;
        bool restarts;
    } rows[] = {
        {"{'spec':{'a':1}}", "{'spec':{'a':1,'b':2}}", "", false},
        {"{'spec':{'a':1}}", "{'spec':{'a':2}}", "spec.a", false},
        {"{'spec':{'template':{'x':1}}}", "{'spec':{'template':{'x':2}}}", "spec.template.x", true},
        /* Owned, and no longer wanted. */
        {"{'spec':{'a':1}}", "{'spec':{'a':1,'b':2}," APPLIED("{'f:spec':{'f:a':{},'f:b':{}}}") "}",
         "spec.b", false},
        {"{'spec':{'a':1}}", "{'spec':{'a':1}," APPLIED("{'f:spec':{'f:a':{}}}") "}", "", false},
        /* An element of a list by its key, and a value of a set. */
        {"{'spec':{'template':{'c':[{'name':'w','image':'1'}]}}}",
         "{'spec':{'template':{'c':[{'name':'w','image':'1','tty':true},{'name':'s'}]}}," APPLIED(
             "{'f:spec':{'f:template':{'f:c':{'k:{\\'name\\':\\'w\\'}':{'.':{},'f:name':{},"
             "'f:image':{},'f:tty':{}},'k:{\\'name\\':\\'s\\'}':{'.':{},'f:name':{}}}}}}") "}",
         "spec.template.c[{\"name\":\"w\"}].tty, spec.template.c[{\"name\":\"s\"}]", true},
        {"{'metadata':{'finalizers':['a']}}",
         "{" APPLIED("{'f:metadata':{'f:finalizers':{'v:\\'a\\'':{},'v:\\'b\\'':{}}}}") "}",
         "metadata.finalizers[\"b\"]", false},
        {"not JSON", "{}", "", false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf a, b, out = STW_BUF_INIT(4096);
        write_json(rows[i].desired, &a);
        write_json(rows[i].live, &b);
        stw_shadow_fields(&a, &b, "us", &out);
        if (rows[i].want[0] && !stw_streq(stw_buf_str(&out), rows[i].want) &&
            !strstr(stw_buf_str(&out), rows[i].want))
            fail_msg("%zu: %s", i, stw_buf_str(&out));
        if (!rows[i].want[0] && out.len && strstr(stw_buf_str(&out), "spec"))
            fail_msg("%zu: %s", i, stw_buf_str(&out));
        assert_int_equal(stw_shadow_restarts(stw_buf_str(&out)), rows[i].restarts);
    }
}

static void test_shadow_recognises_restarts(void **state)
{
    (void)state;
    assert_false(stw_shadow_restarts(""));
    assert_false(stw_shadow_restarts("spec.replicas, metadata.annotations.spec.template"));
    assert_true(stw_shadow_restarts("spec.replicas, spec.template.spec.x"));
    assert_true(stw_shadow_restarts("spec.template.spec.x"));
}

/* Deep and broken managedFields end. */
static void test_shadow_survives_malformed_managed_fields(void **state)
{
    stw_autobuf struct stw_buf live = STW_BUF_INIT(1u << 20), desired = live, out = live;
    (void)state;
    stw_buf_adds(&desired, "{\"spec\":");
    stw_buf_adds(&live, "{\"metadata\":{\"managedFields\":[{\"manager\":\"us\",\"operation\":"
                        "\"Apply\",\"fieldsV1\":{\"f:spec\":");
    for (int i = 0; i < 1500; i++) {
        stw_buf_adds(&live, "{\"f:x\":");
        stw_buf_adds(&desired, "{\"x\":");
    }
    stw_buf_adds(&live, "{\"k:not json\":{},\"f\":{},\"\":{}}");
    stw_buf_adds(&desired, "{}");
    for (int i = 0; i < 1500; i++) {
        stw_buf_addc(&live, '}');
        stw_buf_addc(&desired, '}');
    }
    stw_buf_adds(&live, "}}]}}");
    stw_buf_addc(&desired, '}');
    stw_shadow_fields(&desired, &live, "us", &out);
    assert_false(live.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shadow_lists_differing_fields),
        cmocka_unit_test(test_shadow_recognises_restarts),
        cmocka_unit_test(test_shadow_survives_malformed_managed_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
