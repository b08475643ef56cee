/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/access.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* A fake API server that knows one user and counts requests. */
struct server {
    uint64_t now_ms, takes_ms; /* to answer a TokenReview */
    bool away, nonsense, may;
    unsigned audiences; /* of a token */
    const char *known;  /* the only valid token */
    unsigned who, may_asked;
    char review[4096]; /* the last request */
    struct stw_clock clock;
};

static uint64_t server_now(void *ctx)
{
    return ((struct server *)ctx)->now_ms;
}

static const struct stw_operator op = {
    .name = "steward", .domain = "steward.dev", .metric_prefix = "steward"};

static int ask(void *ctx, const char *path, const struct stw_buf *review, struct stw_buf *ret,
               struct stw_error *err)
{
    struct server *s = ctx;
    char token[256];
    bool who = stw_streq(path, "/apis/authentication.k8s.io/v1/tokenreviews");
    assert_true(who || stw_streq(path, "/apis/authorization.k8s.io/v1/subjectaccessreviews"));
    *(who ? &s->who : &s->may_asked) += 1;
    s->now_ms += who ? s->takes_ms : 0;
    (void)snprintf(s->review, sizeof(s->review), "%s", stw_buf_str(review));
    if (s->away)
        return stw_fail(err, STW_ERR_UNAVAILABLE, "nobody answers");
    if (s->nonsense) {
        stw_buf_adds(ret, "[]");
        return 0;
    }
    (void)snprintf(token, sizeof(token), "\"token\":\"%s\"", s->known);
    if (!who)
        stw_buf_addf(ret, "{\"status\":{\"allowed\":%s}}", s->may ? "true" : "false");
    else if (strstr(s->review, token))
        stw_buf_adds(ret, "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"prom\","
                          "\"uid\":\"7\",\"groups\":[\"g\"],\"extra\":{\"k\":[\"v\"]}},"
                          "\"audiences\":[{}");
    else
        stw_buf_adds(ret, "{\"status\":{\"error\":\"no such token\",\"audiences\":[{}");
    for (unsigned i = 0; who && i < s->audiences; i++)
        stw_buf_adds(ret, ",{}");
    if (who)
        stw_buf_adds(ret, "]}}");
    return 0;
}

static struct stw_access *make(struct server *s)
{
    struct stw_access *a = NULL;
    struct stw_error err = {0};
    *s = (struct server){.now_ms = 1000, .known = "good", .may = true};
    s->clock = (struct stw_clock){.ctx = s, .monotonic_ms = server_now};
    assert_int_equal(
        stw_access_create(
            &(struct stw_access_config){.ask = ask, .ctx = s, .clock = &s->clock, .op = &op}, &a,
            &err),
        0);
    return a;
}

#define HERE UINT64_C(0xffff0a000001)

static int check_from(struct stw_access *a, uint64_t peer, const char *token)
{
    struct stw_access_answer got;
    char header[64];
    (void)snprintf(header, sizeof(header), "Bearer %s", token);
    stw_access_check(a, peer, header, "/metrics", &got);
    return got.code;
}

static void expect(struct stw_access *a, const char *authorization, int code, const char *words)
{
    struct stw_access_answer got;
    stw_access_check(a, HERE, authorization, "/metrics", &got);
    if (got.code != code || !strstr(got.text, words))
        fail_msg("%s: %d %s", authorization ? authorization : "nothing", got.code, got.text);
}

static void test_headers_without_token_are_refused(void **state)
{
    static const char *const headers[] = {NULL,         "",           "Bearer",      "Bearer ",
                                          "Basic good", "Bearer a b", "Bearer a\tb", "good"};
    struct server s;
    struct stw_access *a = make(&s);
    char *huge = malloc(20000);
    (void)state;
    for (size_t i = 0; i < STW_COUNT(headers); i++)
        expect(a, headers[i], 401, "Authorization: Bearer TOKEN");
    memset(huge, 'x', 20000);
    memcpy(huge, "Bearer ", 7);
    huge[19999] = '\0';
    expect(a, huge, 401, "Authorization: Bearer TOKEN");
    assert_int_equal(s.who, 0);
    free(huge);
    stw_access_destroy(a);
}

static void test_token_and_right_are_reviewed(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    (void)state;
    expect(a, "Bearer bad", 401, "does not know this token");
    assert_non_null(strstr(s.review, "\"kind\":\"TokenReview\""));
    assert_int_equal(s.may_asked, 0);
    expect(a, "bearer good", 200, "");
    assert_int_equal(s.may_asked, 1);
    static const char *const parts[] = {
        "\"kind\":\"SubjectAccessReview\"",
        "\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":\"get\"}",
        "\"user\":\"prom\"",
        "\"uid\":\"7\"",
        "\"groups\":[\"g\"]",
        "\"extra\":{\"k\":[\"v\"]}"};
    for (size_t i = 0; i < STW_COUNT(parts); i++)
        if (!strstr(s.review, parts[i]))
            fail_msg("%s is not in %s", parts[i], s.review);
    stw_access_destroy(a);
}

static void test_user_without_the_right_is_refused(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    (void)state;
    s.may = false;
    expect(a, "Bearer good", 403, "user \"prom\" may not get /metrics");
    expect(a, "Bearer good", 403, "steward-metrics-reader"); /* remembered, with the name */
    assert_int_equal(s.who, 1);
    s.may = true;
    s.now_ms += 10000;
    expect(a, "Bearer good", 200, "");
    stw_access_destroy(a);
}

static void test_permission_is_cached_for_a_minute(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    (void)state;
    expect(a, "Bearer good", 200, "");
    s.known = "other";
    s.now_ms += 59999;
    expect(a, "Bearer good", 200, "");
    assert_int_equal(s.who, 1);
    s.now_ms += 1;
    expect(a, "Bearer good", 401, "does not know");
    /* a refused token is not accepted again while the server is away */
    s.away = true;
    s.now_ms += 10000;
    expect(a, "Bearer good", 503, "cannot be asked");
    stw_access_destroy(a);
}

static void test_api_server_outage_admits_only_cached_users(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    (void)state;
    expect(a, "Bearer good", 200, "");
    s.away = true;
    s.now_ms += 60000;
    expect(a, "Bearer good", 200, ""); /* known for a minute */
    expect(a, "Bearer other", 503, "cannot be asked");
    unsigned asked = s.who;
    expect(a, "Bearer third", 503, "cannot be asked"); /* not asked again at once */
    assert_int_equal(s.who, asked);
    s.now_ms += 240000;
    expect(a, "Bearer good", 503, "cannot be asked");
    s.away = false;
    expect(a, "Bearer good", 503, "cannot be asked"); /* within two seconds */
    s.now_ms += 2000;
    expect(a, "Bearer good", 200, "");
    s.nonsense = true;
    s.now_ms += 300000;
    expect(a, "Bearer good", 503, "cannot be asked");
    stw_access_destroy(a);
}

/* A value takes many times its text in memory. */
static void test_review_answer_with_many_values_is_refused(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    (void)state;
    s.audiences = 10000;
    expect(a, "Bearer good", 200, "");
    s.now_ms += 400000;
    s.audiences = 300000;
    expect(a, "Bearer good", 503, "cannot be asked");
    stw_access_destroy(a);
}

static void test_token_guesses_are_limited_and_evict_no_user(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    char header[32];
    (void)state;
    expect(a, "Bearer good", 200, "");
    for (int i = 0; i < 7; i++) {
        (void)snprintf(header, sizeof(header), "Bearer guess%d", i);
        expect(a, header, 401, "");
    }
    expect(a, "Bearer more", 429, "too many tokens");
    expect(a, "Bearer guess3", 401, ""); /* remembered: costs nothing */
    assert_int_equal(s.who, 8);
    for (int i = 0; i < 40; i++) { /* from here one per second */
        s.now_ms += 1000;
        (void)snprintf(header, sizeof(header), "Bearer late%d", i);
        expect(a, header, 401, "");
    }
    s.known = "nobody's";
    expect(a, "Bearer good", 200, ""); /* 40 s old and still known, after 47 refusals */
    s.now_ms += 20000;
    expect(a, "Bearer good", 401, "");
    stw_access_destroy(a);
}

/* Each of many addresses tries as many tokens as it can. */
static unsigned flood(struct stw_access *a, unsigned peers, unsigned rounds)
{
    static unsigned number;
    unsigned asked = 0;
    char token[32];
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned p = 1; p <= peers; p++) {
            (void)snprintf(token, sizeof(token), "flood%u", number++);
            asked += check_from(a, HERE + p, token) == 401;
        }
    return asked;
}

/* Four strangers as in a flood; a client with a new token each second, from an address of its own. */
static void test_invalid_tokens_do_not_block_a_new_valid_one(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    char token[32];
    (void)state;
    flood(a, 4, 50);
    for (int i = 0; i < 60; i++) {
        s.now_ms += 1000;
        flood(a, 4, 50);
        (void)snprintf(token, sizeof(token), "new%d", i);
        s.known = token;
        assert_int_equal(check_from(a, HERE, token), 200);
    }
    assert_in_range(s.who, 60, 60 + 40 + 4 * 61); /* what the strangers cost */
    stw_access_destroy(a);
}

/* More addresses than the sum has room for: it is bounded, and has a reserve for an address that has
 * shown a token with the permission. */
static void test_token_reviews_of_all_addresses_are_limited(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    (void)state;
    assert_int_equal(check_from(a, HERE, "good"), 200);
    assert_in_range(flood(a, 200, 5), 1, 39);
    assert_int_equal(check_from(a, HERE + 999, "good"), 200); /* known: costs nothing */
    assert_int_equal(check_from(a, HERE + 999, "other"), 429);
    s.known = "rotated";
    assert_int_equal(check_from(a, HERE, "rotated"), 200);
    unsigned before = s.who;
    for (int i = 0; i < 10; i++) {
        s.now_ms += 1000;
        flood(a, 200, 5);
    }
    assert_in_range(s.who - before, 90, 110);
    stw_access_destroy(a);
}

/* One thread asks: while the API server is slow, the tokens of strangers take at most half of it. */
static void test_slow_api_server_gets_fewer_reviews(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    (void)state;
    flood(a, 8, 20);
    s.takes_ms = 500;
    unsigned before = s.who;
    for (uint64_t begin = s.now_ms; s.now_ms < begin + 60000; s.now_ms += 100)
        flood(a, 8, 1);
    assert_in_range(s.who - before, 1, 70); /* of 120 that fit into a minute */
    s.known = "new";
    assert_int_equal(check_from(a, HERE, "new"), 200);
    stw_access_destroy(a);
}

/* A token that makes the API server fail: an address with a permission is asked for nevertheless. */
static void test_failed_review_does_not_delay_permitted_address(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    (void)state;
    assert_int_equal(check_from(a, HERE, "good"), 200);
    s.away = true;
    assert_int_equal(check_from(a, HERE + 1, "poison"), 503);
    s.away = false;
    s.known = "rotated";
    assert_int_equal(check_from(a, HERE + 2, "rotated"), 503);
    assert_int_equal(check_from(a, HERE, "rotated"), 200);
    stw_access_destroy(a);
}

/* With more addresses than the table has, those with a permission stay. */
static void test_address_table_is_bounded(void **state)
{
    struct server s;
    struct stw_access *a = make(&s);
    (void)state;
    assert_int_equal(check_from(a, HERE, "good"), 200);
    for (unsigned round = 0; round < 5; round++) {
        flood(a, 3000, 1);
        s.now_ms += 1000;
    }
    flood(a, 3000, 1);
    s.known = "rotated";
    assert_int_equal(check_from(a, HERE + 5000, "rotated"), 429);
    assert_int_equal(check_from(a, HERE, "rotated"), 200);
    stw_access_destroy(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_without_token_are_refused),
        cmocka_unit_test(test_token_and_right_are_reviewed),
        cmocka_unit_test(test_user_without_the_right_is_refused),
        cmocka_unit_test(test_permission_is_cached_for_a_minute),
        cmocka_unit_test(test_api_server_outage_admits_only_cached_users),
        cmocka_unit_test(test_review_answer_with_many_values_is_refused),
        cmocka_unit_test(test_token_guesses_are_limited_and_evict_no_user),
        cmocka_unit_test(test_invalid_tokens_do_not_block_a_new_valid_one),
        cmocka_unit_test(test_token_reviews_of_all_addresses_are_limited),
        cmocka_unit_test(test_slow_api_server_gets_fewer_reviews),
        cmocka_unit_test(test_failed_review_does_not_delay_permitted_address),
        cmocka_unit_test(test_address_table_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
