/* SPDX-License-Identifier: Apache-2.0
 *
 * Whole reviews: each folder of tests/data/review contains a request and the expected response; its
 * name begins with the webhook.  In response.json the patch is decoded. */
#include "webhook/review.h"

#include "base/util.h"
#include "kinds/kinds.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define CASES STW_SOURCE_ROOT "/tests/data/review"

static char *read_case(const char *name, const char *file, size_t *len)
{
    char path[512];
    char *text = NULL;
    struct stw_error err;
    (void)snprintf(path, sizeof(path), "%s/%s/%s", CASES, name, file);
    if (stw_read_file(path, 1 << 20, &text, len, &err) != 0)
        fail_msg("%s", err.text);
    return text;
}

static int value_of(char c)
{
    const char *digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return c == '=' ? 0 : (int)(strchr(digits, c) - digits);
}

static void add_decoded(const char *text, size_t len, struct stw_buf *out)
{
    assert_int_equal(len % 4, 0);
    for (size_t i = 0; i < len; i += 4) {
        int bits = value_of(text[i]) << 18 | value_of(text[i + 1]) << 12 |
                   value_of(text[i + 2]) << 6 | value_of(text[i + 3]);
        stw_buf_addc(out, (char)(bits >> 16));
        if (text[i + 2] != '=')
            stw_buf_addc(out, (char)(bits >> 8));
        if (text[i + 3] != '=')
            stw_buf_addc(out, (char)bits);
    }
}

/* The reply with its patch decoded. */
static void readable(const struct stw_buf *reply, struct stw_buf *out)
{
    static const char mark[] = "\"patch\":\"";
    const char *patch = strstr(stw_buf_str(reply), mark);
    if (!patch) {
        stw_buf_add(out, reply->data, reply->len);
        return;
    }
    const char *from = patch + sizeof(mark) - 1, *end = strchr(from, '"');
    stw_buf_add(out, reply->data, (size_t)(from - 1 - reply->data));
    add_decoded(from, (size_t)(end - from), out);
    stw_buf_adds(out, end + 1);
}

static void run_case(const char *name)
{
    size_t request_len, want_len;
    stw_autofree char *request = read_case(name, "request.json", &request_len);
    stw_autofree char *want = read_case(name, "response.json", &want_len);
    const struct stw_env env = {0};
    struct stw_review_scratch scratch = {0};
    struct stw_review_result v;
    stw_autobuf struct stw_buf reply = STW_BUF_INIT(1 << 20), got = STW_BUF_INIT(1 << 20);
    stw_autojson struct stw_json_doc a = {0}, b = {0};
    struct stw_error err;
    int status =
        stw_review_handle(&(struct stw_review){stw_kinds[0], strncmp(name, "mutate-", 7) == 0, &env,
                                               request, request_len},
                          &scratch, &reply, &v);
    readable(&reply, &got);
    assert_int_equal(stw_json_scan(&a, stw_buf_str(&got), got.len, &err), 0);
    if (stw_json_scan(&b, want, want_len, &err) != 0)
        fail_msg("%s: %s", name, err.text);
    if (!stw_json_equal(stw_json_root(&a), stw_json_root(&b)))
        fail_msg("%s\nwant: %s\ngot:  %s", name, want, stw_buf_str(&got));
    bool is_status = stw_json_is(stw_json_get(stw_json_root(&a), "kind"), "Status");
    assert_int_equal(status, is_status ? 400 : 200);
    stw_review_result_done(&v);
    stw_json_done(&scratch.doc);
}

/* Applying a patch is up to the API server.  Here, an object that has all defaults gets no
 * patch. */
static void test_recorded_reviews_have_their_replies(void **state)
{
    DIR *d = opendir(CASES);
    int count = 0;
    (void)state;
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] == '.')
            continue;
        run_case(e->d_name);
        count++;
    }
    (void)closedir(d);
    assert_true(count >= 20);
}

static void test_review_verdict_is_returned(void **state)
{
    size_t len;
    stw_autofree char *request = read_case("validate-create-bad", "request.json", &len);
    const struct stw_env env = {0};
    struct stw_review_scratch scratch = {0};
    struct stw_review_result v;
    stw_autobuf struct stw_buf reply = STW_BUF_INIT(1 << 20);
    (void)state;
    assert_int_equal(
        stw_review_handle(&(struct stw_review){stw_kinds[0], false, &env, request, len}, &scratch,
                          &reply, &v),
        200);
    assert_false(v.allowed);
    assert_false(v.dry_run);
    assert_string_equal(v.operation, "CREATE");
    assert_string_equal(v.ns, "shop");
    assert_string_equal(v.name, "web");
    assert_string_equal(v.user, "jane@example.com");
    assert_string_equal(v.uid, "2bcb1e43-4a5c-4a7e-9f3b-0d3a7c1f6a55");
    assert_true(v.findings.error_count >= 3);
    stw_review_result_done(&v);
    stw_json_done(&scratch.doc);
}

/* A reply that does not fit becomes an InternalError, never a truncated decision. */
static void test_truncated_review_reply_is_a_500(void **state)
{
    size_t len;
    stw_autofree char *request = read_case("validate-create-bad", "request.json", &len);
    const struct stw_env env = {0};
    struct stw_review_scratch scratch = {0};
    struct stw_review_result v;
    stw_autobuf struct stw_buf reply = STW_BUF_INIT(400);
    (void)state;
    assert_int_equal(
        stw_review_handle(&(struct stw_review){stw_kinds[0], false, &env, request, len}, &scratch,
                          &reply, &v),
        500);
    assert_false(v.allowed);
    assert_non_null(strstr(stw_buf_str(&reply), "\"InternalError\""));
    stw_review_result_done(&v);
    stw_json_done(&scratch.doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_reviews_have_their_replies),
        cmocka_unit_test(test_review_verdict_is_returned),
        cmocka_unit_test(test_truncated_review_reply_is_a_500),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
