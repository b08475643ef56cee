/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/conversion.h"

#include "base/util.h"
#include "support/convertible.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define REPLY_MAX ((size_t)16 << 20)

struct answer {
    int status;
    struct stw_buf text;
    struct stw_json_doc doc;
    struct stw_conversion_result result;
};

static struct stw_json ask(struct answer *a, const char *body)
{
    struct stw_review_scratch scratch = {0};
    struct stw_error err;
    *a = (struct answer){.text = STW_BUF_INIT(REPLY_MAX)};
    a->status = stw_conversion_handle(
        &(struct stw_conversion_review){
            .op = &site_operator, .kinds = site_operator.kinds, .body = body, .len = strlen(body)},
        &scratch, &a->text, &a->result);
    assert_int_equal(scratch.doc.more_depth, 0);
    stw_json_done(&scratch.doc);
    a->doc.more_depth = STW_JSON_MORE_DEPTH;
    if (stw_json_scan(&a->doc, stw_buf_str(&a->text), a->text.len, &err) != 0)
        fail_msg("%s\n%s", err.text, stw_buf_str(&a->text));
    return stw_json_root(&a->doc);
}

static void forget(struct answer *a)
{
    stw_json_done(&a->doc);
    stw_buf_done(&a->text);
}

#define REVIEW(version, objects)                                                                   \
    "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\",\"request\":{"      \
    "\"uid\":\"u-1\",\"desiredAPIVersion\":\"" version "\",\"objects\":[" objects "]}}"
#define SITE(version, name, spec)                                                                  \
    "{\"apiVersion\":\"example.org/" version "\",\"kind\":\"Site\",\"metadata\":{\"name\":\"" name \
    "\",\"namespace\":\"shop\",\"uid\":\"x\"},\"spec\":" spec "}"

static void test_conversion_review_converts_all_objects(void **state)
{
    struct answer a;
    (void)state;
    struct stw_json response = stw_json_get(
        ask(&a, REVIEW("example.org/v1alpha1",
                       SITE("v1", "a", "{\"host\":\"h\"}") "," SITE(
                           "v1beta1", "b", "{\"host\":\"i\"}") "," SITE("v1alpha1", "c",
                                                                        "{\"from\":\"j\"}"))),
        "response");
    struct stw_json objects = stw_json_get(response, "convertedObjects");
    assert_int_equal(a.status, 200);
    assert_true(stw_json_is(stw_json_get(response, "uid"), "u-1"));
    assert_true(stw_json_is(stw_json_path(response, "result.status"), "Success"));
    assert_int_equal(stw_json_size(objects), 3);
    for (uint32_t i = 0; i < 3; i++) {
        static const char *const names[] = {"a", "b", "c"}, *const hosts[] = {"h", "i", "j"};
        struct stw_json o = stw_json_at(objects, i);
        assert_true(stw_json_is(stw_json_get(o, "apiVersion"), "example.org/v1alpha1"));
        assert_true(stw_json_is(stw_json_path(o, "metadata.name"), names[i]));
        assert_true(stw_json_is(stw_json_path(o, "spec.from"), hosts[i]));
    }
    assert_true(a.result.converted);
    assert_ptr_equal(a.result.kind, &site_kind);
    assert_string_equal(a.result.version, "v1alpha1");
    assert_int_equal(a.result.objects, 3);
    forget(&a);
}

/* An empty list is a review, too. */
static void test_empty_conversion_review_succeeds(void **state)
{
    struct answer a;
    (void)state;
    struct stw_json response = stw_json_get(ask(&a, REVIEW("example.org/v1", "")), "response");
    assert_true(stw_json_is(stw_json_path(response, "result.status"), "Success"));
    assert_int_equal(stw_json_size(stw_json_get(response, "convertedObjects")), 0);
    forget(&a);
}

static const struct {
    const char *body, *message;
} failures[] = {
    {REVIEW("example.org/v9", SITE("v1", "a", "{}")),
     "request.objects[0] (Site \"shop/a\"): request.desiredAPIVersion: \"example.org/v9\" is not a "
     "version of Site; its versions are example.org/v1, example.org/v1alpha1, example.org/v1beta1"},
    {REVIEW("example.com/v1", SITE("v1", "a", "{}")),
     "request.objects[0] (Site \"shop/a\"): request.desiredAPIVersion: \"example.com/v1\" is not a "
     "version of Site; its versions are example.org/v1, example.org/v1alpha1, example.org/v1beta1"},
    {REVIEW("example.org/v1", SITE("v1alpha1", "a", "{}") "," SITE("v0", "b", "{}")),
     "request.objects[1] (Site \"shop/b\"): apiVersion: \"example.org/v0\" is not known; known are "
     "example.org/v1, example.org/v1alpha1, example.org/v1beta1"},
    {REVIEW("example.org/v1", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{}}"),
     "request.objects[0] (Pod \"\"): kind: this webhook does not have this kind"},
    {REVIEW("example.org/v1", "7"), "request.objects[0] (no kind \"\"): must be an object"},
    {REVIEW("example.org/v1beta1",
            SITE("v1", "a", "{\"schedule\":\"1\"}") "," SITE("v1", "b", "{\"schedule\":\"fail\"}")),
     "request.objects[1] (Site \"shop/b\"): spec.schedule: \"fail\" has no minute"},
    {REVIEW("example.org/v1", "{\"apiVersion\":\"example.org/v1\",\"kind\":\"Site\"}"),
     "request.objects[0] (Site \"\"): metadata: must be an object"},
};

/* One object that cannot be converted fails the review; nothing is converted in part. */
static void test_conversion_failure_names_object_and_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(failures); i++) {
        struct answer a;
        char message[512];
        struct stw_json response = stw_json_get(ask(&a, failures[i].body), "response");
        assert_int_equal(a.status, 200);
        assert_true(stw_json_is(stw_json_get(response, "uid"), "u-1"));
        assert_true(stw_json_is(stw_json_path(response, "result.status"), "Failure"));
        stw_json_cut(stw_json_path(response, "result.message"), message, sizeof(message));
        assert_string_equal(message, failures[i].message);
        assert_int_equal(stw_json_size(stw_json_get(response, "convertedObjects")), 0);
        assert_false(a.result.converted);
        assert_string_equal(a.result.why, failures[i].message);
        forget(&a);
    }
}

#define BODY "the body is not a ConversionReview that can be answered: "

static const struct {
    const char *body, *message;
} refused[] = {
    {"", "the body is not valid JSON, or too complex: "},
    {"{", "the body is not valid JSON, or too complex: "},
    {"[]", BODY "the body must be a ConversionReview, a JSON object"},
    {"{}", BODY "apiVersion: must be \"apiextensions.k8s.io/v1\""},
    {"{\"apiVersion\":\"apiextensions.k8s.io/v1beta1\",\"kind\":\"ConversionReview\"}",
     BODY "apiVersion: must be \"apiextensions.k8s.io/v1\""},
    {"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"AdmissionReview\"}",
     BODY "kind: must be \"ConversionReview\""},
    {"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"ConversionReview\"}",
     BODY "request: must be an object"},
    {"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"ConversionReview\",\"request\":{}}",
     BODY "request.uid: must be a string of 1 to 64 bytes"},
    {"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"ConversionReview\",\"request\":{"
     "\"uid\":\"u\"}}",
     BODY "request.desiredAPIVersion: must be a string"},
    {"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"ConversionReview\",\"request\":{"
     "\"uid\":\"u\",\"desiredAPIVersion\":\"v1\",\"objects\":{}}}",
     BODY "request.objects: must be a list"},
};

static void test_malformed_conversion_review_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(refused); i++) {
        struct answer a;
        char message[512];
        struct stw_json root = ask(&a, refused[i].body);
        assert_int_equal(a.status, 400);
        assert_true(stw_json_is(stw_json_get(root, "kind"), "Status"));
        stw_json_cut(stw_json_get(root, "message"), message, sizeof(message));
        if (strncmp(message, refused[i].message, strlen(refused[i].message)) != 0)
            fail_msg("%s", message);
        assert_false(a.result.converted);
        forget(&a);
    }
}

static void add_nested(struct stw_buf *body, unsigned depth)
{
    stw_buf_adds(body, REVIEW("example.org/v1alpha1",
                              "{\"apiVersion\":\"example.org/v1\",\"kind\":\"Site\",\"metadata\":"
                              "{},\"spec\":{\"extra\":{\"r\":"));
    body->len -= strlen("]}}");
    for (unsigned i = 0; i < depth; i++)
        stw_buf_addc(body, '[');
    for (unsigned i = 0; i < depth; i++)
        stw_buf_addc(body, ']');
    stw_buf_adds(body, "}}}]}}");
}

/* Whatever the API server has must be convertible, or one object makes all lists unreadable: admission
 * accepts STW_JSON_MAX_DEPTH levels with the object two levels deep, and an object from a time without
 * the webhook may have 10,000. */
static void test_conversion_depth_equals_admission_depth(void **state)
{
    stw_autobuf struct stw_buf body = STW_BUF_INIT(REPLY_MAX);
    /* review, request, object, spec, extra */
    static const unsigned stored[] = {STW_JSON_MAX_DEPTH - 5, STW_JSON_MAX_DEPTH, 10000};
    struct answer a;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(stored); i++) {
        stw_buf_clear(&body);
        add_nested(&body, stored[i]);
        struct stw_json root = ask(&a, stw_buf_str(&body));
        assert_int_equal(a.status, 200);
        assert_true(stw_json_is(stw_json_path(root, "response.result.status"), "Success"));
        forget(&a);
    }
    stw_buf_clear(&body);
    add_nested(&body, 2 * STW_JSON_NESTING_MAX);
    (void)ask(&a, stw_buf_str(&body));
    assert_int_equal(a.status, 400);
    assert_non_null(strstr(stw_buf_str(&a.text), "nested too deeply"));
    forget(&a);
}

static void test_thousands_of_objects_are_converted(void **state)
{
    stw_autobuf struct stw_buf body = STW_BUF_INIT(REPLY_MAX);
    struct answer a;
    (void)state;
    stw_buf_adds(&body, REVIEW("example.org/v1alpha1", SITE("v1", "a", "{\"host\":\"h\"}")));
    body.len -= strlen("]}}");
    for (unsigned i = 1; i < 20000; i++)
        stw_buf_addf(&body, "," SITE("v1", "a%u", "{\"port\":%u}"), i, i);
    stw_buf_adds(&body, "]}}");
    struct stw_json response = stw_json_get(ask(&a, stw_buf_str(&body)), "response");
    assert_true(stw_json_is(stw_json_path(response, "result.status"), "Success"));
    assert_int_equal(stw_json_size(stw_json_get(response, "convertedObjects")), 20000);
    forget(&a);
    /* an object with more values than the limit */
    stw_buf_clear(&body);
    stw_buf_adds(&body, REVIEW("example.org/v1alpha1", "{\"x\":[0"));
    body.len -= strlen("]}}");
    for (unsigned i = 0; i < STW_CONVERSION_VALUES_MAX; i++)
        stw_buf_adds(&body, ",0");
    stw_buf_adds(&body, "]}]}}");
    (void)ask(&a, stw_buf_str(&body));
    assert_int_equal(a.status, 400);
    forget(&a);
}

/* Never a part of the answer. */
static void test_truncated_conversion_reply_is_no_success(void **state)
{
    const char *body = REVIEW("example.org/v1alpha1", SITE("v1", "a", "{\"host\":\"h\"}"));
    (void)state;
    for (size_t max = 60; max < 400; max++) {
        struct stw_review_scratch scratch = {0};
        struct stw_conversion_result result;
        stw_autobuf struct stw_buf reply = STW_BUF_INIT(max);
        int status = stw_conversion_handle(&(struct stw_conversion_review){&site_operator,
                                                                           site_operator.kinds,
                                                                           body, strlen(body)},
                                           &scratch, &reply, &result);
        bool success = strstr(stw_buf_str(&reply), "\"Success\"}}}") != NULL && !reply.failed;
        assert_int_equal(result.converted && status == 200, success);
        stw_json_done(&scratch.doc);
    }
}

static void test_conversion_is_needed_for_versioned_kinds(void **state)
{
    struct stw_kind one = site_kind;
    (void)state;
    one.versions = NULL;
    assert_false(stw_conversion_needed((const struct stw_kind *const[]){&one, NULL}));
    assert_true(stw_conversion_needed((const struct stw_kind *const[]){&one, &site_kind, NULL}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversion_review_converts_all_objects),
        cmocka_unit_test(test_empty_conversion_review_succeeds),
        cmocka_unit_test(test_conversion_failure_names_object_and_field),
        cmocka_unit_test(test_malformed_conversion_review_is_refused),
        cmocka_unit_test(test_conversion_depth_equals_admission_depth),
        cmocka_unit_test(test_thousands_of_objects_are_converted),
        cmocka_unit_test(test_truncated_conversion_reply_is_no_success),
        cmocka_unit_test(test_conversion_is_needed_for_versioned_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
