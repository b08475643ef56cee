/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/access.h"

#include "base/json.h"
#include "base/log.h"
#include "base/util.h"
#include "webhook/buckets_priv.h"

#include <gnutls/crypto.h>
#include <stdio.h>
#include <strings.h>

#define ALLOWED_MS 60000U
#define REFUSED_MS 10000U
#define STALE_MS 300000U   /* a permission, while the API server cannot be reached */
#define ASK_MS 3000U       /* one request */
#define ASK_AGAIN_MS 2000U /* after a failed request */
#define TELL_EVERY_MS 60000U
/* Requests for new tokens: of one address, and of all together. */
#define PEER_BURST 10U
#define PEER_REFILL_MS 1000U
#define SUM_BURST 40U
#define SUM_REFILL_MS 100U
#define SUM_RESERVE 10U /* only for addresses that have shown a token with the permission */
/* Those who wait for the answer wait for this thread: a longer one counts as several. */
#define ANSWER_MS 50U
#define TOKEN_MAX ((size_t)16 << 10)
#define ANSWER_MAX ((size_t)1 << 20)
#define VALUES_MAX 16384U /* of an answer */
#define KEPT 64U          /* cached answers of each list; the oldest is replaced */
#define DIGEST 32U

static const struct stw_resource token_review = {"authentication.k8s.io", "v1", "TokenReview",
                                                 "tokenreviews", false};
static const struct stw_resource access_review = {
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", false};

const struct stw_rule stw_access_rules[] = {
    {.resource = &token_review, .verbs = "create"},
    {.resource = &access_review, .verbs = "create"},
    {0},
};

struct decision {
    unsigned char digest[DIGEST]; /* of token and path */
    uint64_t at_ms;               /* 0: free */
    int code;
    char user[128];
};

struct stw_access {
    struct stw_access_config c;
    struct decision allowed[KEPT], refused[KEPT]; /* separate, so that guessed tokens evict no
                                                 permission */
    /* About tokens that are not known. A trusted address has shown one with the permission. */
    struct stw_buckets questions;
    uint64_t failed_ms, logged_ms; /* 0: never */
};

/* --- answers */

static void set_answer(struct stw_access_answer *ret, int code, const char *text)
{
    ret->code = code;
    stw_format(ret->text, sizeof(ret->text), "%s", text);
}

static void answer_kept(const struct stw_operator *op, struct stw_access_answer *ret, int code,
                        const char *user, const char *path)
{
    if (code == 200)
        set_answer(ret, code, "");
    else if (code == 401)
        set_answer(ret, code, "the API server does not know this token, or it has expired");
    else {
        ret->code = code;
        stw_format(ret->text, sizeof(ret->text),
                   "user \"%s\" may not get %.64s; bind it to the ClusterRole %s-%s-reader", user,
                   path, op->name, stw_streq(path, "/metrics") ? "metrics" : "debug");
    }
}

/* --- the cache */

static int make_digest(const char *token, const char *path, unsigned char out[DIGEST])
{
    gnutls_hash_hd_t h;
    if (gnutls_hash_init(&h, GNUTLS_DIG_SHA256) < 0)
        return -1;
    int bad =
        gnutls_hash(h, path, strlen(path) + 1) < 0 || gnutls_hash(h, token, strlen(token)) < 0;
    gnutls_hash_deinit(h, out);
    return bad ? -1 : 0;
}

static struct decision *find_kept(struct decision *list, const unsigned char digest[DIGEST])
{
    for (unsigned i = 0; i < KEPT; i++)
        if (list[i].at_ms && memcmp(list[i].digest, digest, DIGEST) == 0)
            return &list[i];
    return NULL;
}

/* The entry of the same token and path, or the oldest entry. */
static struct decision *choose_entry(struct decision *list, const unsigned char digest[DIGEST])
{
    struct decision *oldest = &list[0], *same = find_kept(list, digest);
    for (unsigned i = 1; i < KEPT; i++)
        if (list[i].at_ms < oldest->at_ms)
            oldest = &list[i];
    return same ? same : oldest;
}

static void clear_entry(struct decision *k)
{
    if (k)
        *k = (struct decision){0};
}

static bool is_younger(const struct decision *k, uint64_t now, uint64_t ms)
{
    return k && now - k->at_ms < ms;
}

static void cache_answer(struct stw_access *a, const unsigned char digest[DIGEST], int code,
                         const char *user, uint64_t now)
{
    clear_entry(find_kept(code == 200 ? a->refused : a->allowed, digest));
    struct decision *k = choose_entry(code == 200 ? a->allowed : a->refused, digest);
    memcpy(k->digest, digest, DIGEST);
    k->at_ms = now;
    k->code = code;
    stw_format(k->user, sizeof(k->user), "%s", user);
}

/* --- the two reviews */

int stw_access_ask_client(void *ctx, const char *path, const struct stw_buf *review,
                          struct stw_buf *ret, struct stw_error *err)
{
    struct stw_request rq = {.method = "POST",
                             .path = path,
                             .body = stw_buf_str(review),
                             .body_len = review->len,
                             .timeout_ms = ASK_MS,
                             .no_retry = true,
                             .secret = true};
    return stw_client_do(ctx, &rq, ret, err);
}

/* An answer, and its values. */
struct reply {
    struct stw_buf text;
    struct stw_json_doc doc;
};
#define REPLY_INIT                                                                                 \
    ((struct reply){.text = {.max = ANSWER_MAX, .secret = true}, .doc = {.max = VALUES_MAX}})

static void reply_done(struct reply *r)
{
    stw_json_done(&r->doc);
    stw_buf_done(&r->text);
}

/* Posts {"apiVersion":..,"kind":..,"spec":SPEC} and returns the "status" member; absent on failure. */
static struct stw_json post_review(struct stw_access *a, const struct stw_resource *r,
                                   const struct stw_buf *spec, struct reply *reply,
                                   struct stw_error *err)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(256), body = STW_BUF_INIT(4 * TOKEN_MAX);
    body.secret = true;
    stw_resource_path(r, NULL, NULL, NULL, &path);
    stw_buf_addf(&body, "{\"apiVersion\":\"%s/%s\",\"kind\":\"%s\",\"spec\":", r->group, r->version,
                 r->kind);
    stw_buf_add(&body, stw_buf_str(spec), spec->len);
    stw_buf_addc(&body, '}');
    if (spec->failed || body.failed || path.failed) {
        (void)stw_fail(err, STW_ERR_INTERNAL, "%s: there is no memory for it, or it is too large",
                       r->kind);
        return STW_JSON_NONE;
    }
    if (a->c.ask(a->c.ctx, stw_buf_str(&path), &body, &reply->text, err) != 0) {
        (void)stw_error_wrap(err, "%s", r->kind);
        return STW_JSON_NONE;
    }
    struct stw_json status = STW_JSON_NONE;
    if (stw_json_scan(&reply->doc, stw_buf_str(&reply->text), reply->text.len, NULL) == 0)
        status = stw_json_get(stw_json_root(&reply->doc), "status");
    if (stw_json_type(status) == STW_JSON_OBJECT)
        return status;
    (void)stw_fail(err, STW_ERR_UNAVAILABLE, "%s: the answer is not understood", r->kind);
    return STW_JSON_NONE;
}

static bool is_true(struct stw_json object, const char *key)
{
    return stw_json_type(stw_json_get(object, key)) == STW_JSON_TRUE;
}

/* The user of a token, in `reply`. Absent with err->code STW_OK: an invalid token. */
static struct stw_json ask_who(struct stw_access *a, const char *token, struct reply *reply,
                               struct stw_error *err)
{
    stw_autobuf struct stw_buf spec = STW_BUF_INIT(3 * TOKEN_MAX);
    spec.secret = true;
    stw_buf_adds(&spec, "{\"token\":");
    stw_buf_json_strz(&spec, token);
    stw_buf_addc(&spec, '}');
    struct stw_json status = post_review(a, &token_review, &spec, reply, err);
    struct stw_json user = stw_json_get(status, "user");
    struct stw_json name = stw_json_get(user, "username");
    bool known = is_true(status, "authenticated") && stw_json_type(name) == STW_JSON_STRING &&
                 stw_json_size(name) > 0;
    return known ? user : STW_JSON_NONE;
}

static void copy_member(struct stw_buf *to, const char *key, struct stw_json value)
{
    size_t len;
    if (!stw_json_there(value))
        return;
    const char *raw = stw_json_raw(value, &len);
    stw_buf_addf(to, ",\"%s\":", key);
    stw_buf_add(to, raw, len);
}

/* 1: yes, 0: no, -1: unknown because of an error. */
static int ask_may(struct stw_access *a, struct stw_json user, const char *path,
                   struct stw_error *err)
{
    stw_autobuf struct stw_buf spec = STW_BUF_INIT(4 * TOKEN_MAX);
    struct reply reply = REPLY_INIT;
    stw_buf_adds(&spec, "{\"nonResourceAttributes\":{\"path\":");
    stw_buf_json_strz(&spec, path);
    stw_buf_adds(&spec, ",\"verb\":\"get\"}");
    copy_member(&spec, "user", stw_json_get(user, "username"));
    copy_member(&spec, "uid", stw_json_get(user, "uid"));
    copy_member(&spec, "groups", stw_json_get(user, "groups"));
    copy_member(&spec, "extra", stw_json_get(user, "extra"));
    stw_buf_addc(&spec, '}');
    struct stw_json status = post_review(a, &access_review, &spec, &reply, err);
    int may = stw_json_type(status) != STW_JSON_OBJECT
                  ? -1
                  : is_true(status, "allowed") && !is_true(status, "denied");
    reply_done(&reply);
    return may;
}

/* 200, 401 or 403; 0: unknown because of an error. */
static int check_token_access(struct stw_access *a, const char *token, const char *path, char *user,
                              size_t size, struct stw_error *err)
{
    struct reply reply = REPLY_INIT;
    struct stw_json who = ask_who(a, token, &reply, err);
    int code = err->code == STW_OK ? 401 : 0;
    *user = '\0';
    if (stw_json_there(who)) {
        stw_json_cut(stw_json_get(who, "username"), user, size);
        int may = ask_may(a, who, path, err);
        code = may < 0 ? 0 : may ? 200 : 403;
    }
    reply_done(&reply);
    return code;
}

static void log_failed_review(struct stw_access *a, const struct stw_error *err, uint64_t now)
{
    a->failed_ms = now;
    if (a->logged_ms && now - a->logged_ms < TELL_EVERY_MS)
        return;
    a->logged_ms = now;
    stw_log(STW_LOG_WARN, "cannot ask the API server who may read metrics",
            STW_STR("error", err->text));
}

/* --- a request */

/* The token of "Bearer TOKEN", or NULL. */
static const char *parse_bearer_token(const char *authorization)
{
    static const char scheme[] = "Bearer ";
    if (!authorization || strncasecmp(authorization, scheme, sizeof(scheme) - 1) != 0)
        return NULL;
    const char *token = authorization + sizeof(scheme) - 1;
    size_t len = strlen(token);
    for (size_t i = 0; i < len; i++)
        if (token[i] <= ' ' || token[i] > '~')
            return NULL;
    return len > 0 && len <= TOKEN_MAX ? token : NULL;
}

static void answer_unasked(const struct decision *old, uint64_t now, struct stw_access_answer *ret)
{
    if (is_younger(old, now, STALE_MS))
        set_answer(ret, 200, "");
    else
        set_answer(
            ret, 503,
            "the API server cannot be asked whether this token may read metrics; the log of this "
            "process says why");
}

static void find_out(struct stw_access *a, uint64_t address, const char *token, const char *path,
                     const unsigned char digest[DIGEST], struct stw_access_answer *ret)
{
    char user[sizeof(((struct decision *)0)->user)];
    struct stw_error err = {0};
    struct decision *old = find_kept(a->allowed, digest);
    uint64_t now = stw_now_ms(a->c.clock);
    struct stw_bucket_peer *peer = stw_buckets_enter(&a->questions, address, now);
    /* A token that makes the API server fail or wait delays no address with a permission. */
    uint64_t failed_ms = peer->trusted ? peer->failed_ms : a->failed_ms;
    if (failed_ms && now - failed_ms < ASK_AGAIN_MS) {
        answer_unasked(old, now, ret);
        return;
    }
    if (!old && !stw_buckets_take(&a->questions, peer, now)) {
        set_answer(
            ret, 429,
            "too many tokens from this address that are not known yet; try again in a second");
        return;
    }
    int code = check_token_access(a, token, path, user, sizeof(user), &err);
    uint64_t asked = now;
    now = stw_now_ms(a->c.clock);
    if (!old)
        stw_buckets_charge(&a->questions, peer, (now - asked) / ANSWER_MS);
    if (code == 0) {
        log_failed_review(a, &err, now);
        peer->failed_ms = now;
        answer_unasked(old, now, ret);
        return;
    }
    a->failed_ms = peer->failed_ms = 0;
    peer->trusted |= code == 200;
    cache_answer(a, digest, code, user, now);
    answer_kept(a->c.op, ret, code, user, path);
}

void stw_access_check(struct stw_access *a, uint64_t peer, const char *authorization,
                      const char *path, struct stw_access_answer *ret)
{
    unsigned char digest[DIGEST];
    uint64_t now = stw_now_ms(a->c.clock);
    const char *token = parse_bearer_token(authorization);
    if (!token) {
        set_answer(ret, 401, "send a ServiceAccount's token: Authorization: Bearer TOKEN");
        return;
    }
    if (make_digest(token, path, digest) != 0) {
        set_answer(ret, 503, "no memory to look at the token");
        return;
    }
    const struct decision *yes = find_kept(a->allowed, digest), *no = find_kept(a->refused, digest);
    if (is_younger(yes, now, ALLOWED_MS))
        set_answer(ret, 200, "");
    else if (is_younger(no, now, REFUSED_MS))
        answer_kept(a->c.op, ret, no->code, no->user, path);
    else
        find_out(a, peer, token, path, digest, ret);
}

int stw_access_create(const struct stw_access_config *config, struct stw_access **ret,
                      struct stw_error *err)
{
    struct stw_access *a = calloc(1, sizeof(*a));
    if (!a)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the metrics server");
    a->c = *config;
    a->questions = (struct stw_buckets){.peer_burst = PEER_BURST,
                                        .peer_refill_ms = PEER_REFILL_MS,
                                        .sum_burst = SUM_BURST,
                                        .sum_refill_ms = SUM_REFILL_MS,
                                        .reserve = SUM_RESERVE};
    stw_buckets_begin(&a->questions, stw_now_ms(config->clock));
    *ret = a;
    return 0;
}

void stw_access_destroy(struct stw_access *a)
{
    free(a);
}
