/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/review_priv.h"

#include "base/util.h"
#include "kinds/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define HEAD "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":"
#define GVK "\"kind\":{\"group\":\"operator.k8s-summit.org\",\"version\":\"v1\",\"kind\":\"MyWeb\"}"
#define GVR                                                                                        \
    "\"resource\":{\"group\":\"operator.k8s-summit.org\",\"version\":\"v1\",\"resource\":"         \
    "\"mywebs\"}"
#define OBJECT "\"object\":{\"spec\":{\"image\":\"nginx:1\"}}"
#define OLD "\"oldObject\":{\"spec\":{\"image\":\"nginx:1\"}}"
#define UID "\"uid\":\"u\""
#define CREATE "\"operation\":\"CREATE\"," OBJECT
#define REQUEST(members) HEAD "{" members "}}"
/* A valid request, apart from `members`. */
#define WITH(members) REQUEST(UID "," GVK "," GVR "," members)
#define LONG64 "0123456789012345678901234567890123456789012345678901234567890123"

static int handle(const char *body, size_t len, struct stw_buf *reply)
{
    const struct stw_env env = {0};
    struct stw_review_scratch scratch = {0};
    struct stw_review_result v;
    int status = stw_review_handle(&(struct stw_review){stw_kinds[0], false, &env, body, len},
                                   &scratch, reply, &v);
    stw_review_result_done(&v);
    stw_json_done(&scratch.doc);
    return status;
}

static void test_malformed_reviews_are_refused(void **state)
{
    static const struct {
        const char *body, *words; /* words: part of the message; NULL: accepted */
    } cases[] = {
        {WITH(CREATE), NULL},
        /* not JSON, or not an object */
        {"", "the body is not valid JSON"},
        {"{", "the body is not valid JSON"},
        {WITH(CREATE) "x", "the body is not valid JSON"},
        {"[]", "must be an AdmissionReview"},
        {"{\"a\":1,\"a\":2}", "the body is not valid JSON"},
        {"{\"a\":1,\"\\u0061\":2}", "the body is not valid JSON"},
        {"{\"a\":\"\xff\"}", "the body is not valid JSON"},
        {"{\"a\":\"\\ud800\"}", "the body is not valid JSON"},
        /* the review itself */
        {"{}", "apiVersion: must be"},
        {"{\"apiVersion\":1}", "apiVersion: must be"},
        {"{\"apiVersion\":\"admission.k8s.io/v1beta1\"}", "admissionReviewVersions"},
        {"{\"apiVersion\":\"admission.k8s.io/v1\"}", "kind: must be"},
        {"{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\"}",
         "request: must be"},
        {HEAD "null}", "request: must be"},
        {HEAD "[]}", "request: must be"},
        /* uid */
        {REQUEST(GVK "," GVR "," CREATE), "request.uid: must be"},
        {REQUEST("\"uid\":7," GVK "," GVR "," CREATE), "request.uid: must be"},
        {REQUEST("\"uid\":null," GVK "," GVR "," CREATE), "request.uid: must be"},
        {REQUEST("\"uid\":{}," GVK "," GVR "," CREATE), "request.uid: must be"},
        {REQUEST("\"uid\":\"\"," GVK "," GVR "," CREATE), "request.uid: must be"},
        {REQUEST("\"uid\":\"" LONG64 "\"," GVK "," GVR "," CREATE), NULL},
        {REQUEST("\"uid\":\"" LONG64 "x\"," GVK "," GVR "," CREATE), "request.uid: must be"},
        {REQUEST("\"uid\":\"a\\\"b\"," GVK "," GVR "," CREATE), NULL},
        /* kind and resource of the path */
        {REQUEST(UID "," GVR "," CREATE), "request.kind: must be an object"},
        {REQUEST(UID "," GVK "," CREATE), "request.resource: must be an object"},
        {REQUEST(UID
                 ",\"kind\":{\"group\":\"apps\",\"version\":\"v1\",\"kind\":\"Deployment\"}," GVR
                 "," CREATE),
         "not for apps/v1 Deployment"},
        {REQUEST(UID ",\"kind\":{\"group\":7}," GVR "," CREATE), "not for ?/? ?"},
        {REQUEST(UID "," GVK
                     ",\"resource\":{\"group\":\"operator.k8s-summit.org\",\"version\":\"v2\","
                     "\"resource\":\"mywebs\"}," CREATE),
         "not for operator.k8s-summit.org/v2 mywebs"},
        /* operation and objects */
        {WITH(OBJECT), "request.operation: must be"},
        {WITH("\"operation\":\"create\"," OBJECT), "request.operation: must be"},
        {WITH("\"operation\":1," OBJECT), "request.operation: must be"},
        {WITH("\"operation\":\"CREATE\""), "request.object: must be an object when"},
        {WITH("\"operation\":\"CREATE\",\"object\":null"),
         "request.object: must be an object when"},
        {WITH("\"operation\":\"CREATE\",\"object\":[]"), "request.object: must be an object when"},
        {WITH(CREATE ",\"oldObject\":7"), "request.oldObject: must be an object or null when"},
        {WITH("\"operation\":\"UPDATE\"," OBJECT), "request.oldObject: must be an object when"},
        {WITH("\"operation\":\"UPDATE\"," OBJECT "," OLD), NULL},
        {WITH("\"operation\":\"DELETE\""), "request.oldObject: must be an object when"},
        {WITH("\"operation\":\"DELETE\",\"object\":null," OLD), NULL},
        {WITH("\"operation\":\"CONNECT\",\"object\":null"), NULL},
        /* the rest */
        {WITH(CREATE ",\"dryRun\":\"true\""), "request.dryRun: must be"},
        {WITH(CREATE ",\"dryRun\":null"), NULL},
        {WITH(CREATE ",\"name\":7"), "request.name: must be a string"},
        {WITH(CREATE ",\"namespace\":[]"), "request.namespace: must be a string"},
        {WITH(CREATE ",\"namespace\":\"" LONG64 "\""),
         "request.namespace: must be at most 63 bytes"},
        {WITH(CREATE ",\"subResource\":{}"), "request.subResource: must be a string"},
        {WITH(CREATE ",\"subResource\":\"\""), NULL},
        {WITH(CREATE ",\"userInfo\":7"), NULL},
        {WITH(CREATE ",\"userInfo\":{\"username\":7}"), NULL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autobuf struct stw_buf reply = STW_BUF_INIT(1 << 20);
        int status = handle(cases[i].body, strlen(cases[i].body), &reply);
        if (status != (cases[i].words ? 400 : 200) ||
            (cases[i].words && !strstr(stw_buf_str(&reply), cases[i].words)))
            fail_msg("row %zu: %d %s\nfor %s", i, status, stw_buf_str(&reply), cases[i].body);
    }
}

static void test_review_depth_is_bounded(void **state)
{
    stw_autobuf struct stw_buf body = STW_BUF_INIT(1 << 20), reply = STW_BUF_INIT(1 << 20);
    (void)state;
    for (int i = 0; i < 100000; i++)
        stw_buf_adds(&body, "[");
    assert_int_equal(handle(body.data, body.len, &reply), 400);
    assert_non_null(strstr(stw_buf_str(&reply), "the body is not valid JSON"));
}

/* The UID is returned unchanged, including escapes. */
static void test_review_uid_is_echoed(void **state)
{
    static const char body[] = REQUEST("\"uid\":\"a\\\"\\u00e9\"," GVK "," GVR "," CREATE);
    stw_autobuf struct stw_buf reply = STW_BUF_INIT(1 << 20);
    (void)state;
    assert_int_equal(handle(body, sizeof(body) - 1, &reply), 200);
    assert_non_null(strstr(stw_buf_str(&reply), "\"uid\":\"a\\\"\\u00e9\",\"allowed\":"));
}

static struct stw_review_result warned(const char *const *warnings)
{
    struct stw_review_result v = {.allowed = true, .operation = "CREATE"};
    for (; *warnings; warnings++)
        stw_findings_warn(&v.findings, "%s", *warnings);
    return v;
}

static void reply_with(const char *const *warnings, struct stw_buf *reply)
{
    static const char uid[] = "[\"u\"]";
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err;
    struct stw_review_result v = warned(warnings);
    assert_int_equal(stw_json_scan(&doc, uid, sizeof(uid) - 1, &err), 0);
    struct stw_envelope e = {.uid = stw_json_at(stw_json_root(&doc), 0),
                             .admission = {.kind = stw_kinds[0]}};
    stw_reply_write(&e, &v, NULL, reply);
    stw_review_result_done(&v);
}

/* Warnings become HTTP headers: one line, short enough for the API server not to truncate, whole
 * characters. */
static void test_review_warnings_are_truncated(void **state)
{
    char wide[400];
    stw_autobuf struct stw_buf reply = STW_BUF_INIT(1 << 20);
    (void)state;
    memset(wide, 'x', sizeof(wide));
    memcpy(wide + 252, "\xc3\xa9", 2); /* truncation would split it */
    wide[sizeof(wide) - 1] = '\0';
    reply_with((const char *const[]){"one\ntwo", wide, NULL}, &reply);
    const char *text = stw_buf_str(&reply);
    assert_non_null(strstr(text, "\"warnings\":[\"one\\\\ntwo\",\"xxx"));
    assert_non_null(strstr(text, "x...\"]"));
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err;
    assert_int_equal(stw_json_scan(&doc, text, reply.len, &err), 0); /* still valid UTF-8 */
    struct stw_json list = stw_json_path(stw_json_root(&doc), "response.warnings");
    assert_in_range(stw_json_size(stw_json_at(list, 1)), 250, 256);
}

static void test_review_warnings_have_a_total_limit(void **state)
{
    char text[250];
    const char *many[41] = {NULL};
    stw_autobuf struct stw_buf reply = STW_BUF_INIT(1 << 20);
    (void)state;
    memset(text, 'w', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (size_t i = 0; i < 40; i++)
        many[i] = text;
    reply_with(many, &reply);
    assert_true(reply.len < 4096 + 512);
    assert_non_null(strstr(stw_buf_str(&reply), "more warnings are not shown"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_malformed_reviews_are_refused),
        cmocka_unit_test(test_review_depth_is_bounded),
        cmocka_unit_test(test_review_uid_is_echoed),
        cmocka_unit_test(test_review_warnings_are_truncated),
        cmocka_unit_test(test_review_warnings_have_a_total_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
