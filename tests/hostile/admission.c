/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/admission.h"

#include "base/base64.h"
#include "base/util.h"
#include "hostile/tree.h"
#include "support/convertible.h"
#include "webhook/conversion.h"
#include "webhook/review.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#define TEXT_MAX ((size_t)64 << 20)
/* Findings and warnings are limited in number and length, so that a reply is, too; the rest of it is
 * the patch. */
#define ERRORS_MAX 100
#define WARNINGS_MAX 52
#define REPLY_MAX ((size_t)1 << 20)

int hostile_stderr = STDERR_FILENO;

void hostile_fail_at(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    (void)dprintf(hostile_stderr, "%s:%d: ", file, line);
    va_start(ap, fmt);
    (void)vdprintf(hostile_stderr, fmt, ap);
    va_end(ap);
    (void)dprintf(hostile_stderr, "\n");
    abort();
}

/* An answer of the webhook. */
struct answer {
    int status;
    bool allowed;
    struct stw_buf text;
    struct stw_json_doc doc;
    struct stw_json response;
};

static void free_answer(struct answer *a)
{
    stw_json_done(&a->doc);
    stw_buf_done(&a->text);
}
#define auto_answer __attribute__((cleanup(free_answer)))

/* As the API server writes them: a key of a map in brackets, which may be any text, and an unknown
 * member as it is, also an empty one. */
bool hostile_is_path(const char *text)
{
    static const char *const roots[] = {"apiVersion", "kind", "metadata", "spec", "status"};
    size_t len = strcspn(text, ".[");
    for (size_t i = 0; i < STW_COUNT(roots); i++)
        if (strlen(roots[i]) == len && strncmp(text, roots[i], len) == 0)
            return text[len] != '[' || strchr(text + len, ']');
    return false;
}

static void check_findings(const struct answer *a, const struct stw_buf *body)
{
    struct stw_json key, cause, causes = stw_json_path(a->response, "status.details.causes");
    HOSTILE_EXPECT(a->allowed == !stw_json_there(stw_json_get(a->response, "status")));
    if (!a->allowed && stw_json_size(causes) == 0)
        hostile_fail("refused without a cause: %s", stw_buf_str(&a->text));
    HOSTILE_EXPECT(stw_json_size(causes) <= ERRORS_MAX);
    HOSTILE_EXPECT(stw_json_size(stw_json_get(a->response, "warnings")) <= WARNINGS_MAX);
    HOSTILE_EXPECT(a->text.len <= REPLY_MAX || a->text.len <= 2 * body->len);
    stw_json_foreach (causes, key, cause) {
        stw_autofree char *path = stw_json_strdup(stw_json_get(cause, "field"));
        if (!path || !hostile_is_path(path))
            hostile_fail("not the path of a field: %s", path ? path : "(none)");
    }
}

/* The body is a text of its exact size, so that a sanitizer sees the first byte beyond its end. */
static void ask(const struct stw_kind *k, const struct stw_env *env, bool mutate,
                const struct stw_buf *body, struct answer *a)
{
    static struct stw_review_scratch scratch;
    struct stw_review_result v;
    stw_autofree char *exact = malloc(body->len);
    HOSTILE_EXPECT(exact);
    memcpy(exact, stw_buf_str(body), body->len);
    a->text = STW_BUF_INIT(TEXT_MAX);
    a->status = stw_review_handle(&(struct stw_review){k, mutate, env, exact, body->len}, &scratch,
                                  &a->text, &v);
    stw_review_result_done(&v);
    if (stw_json_scan(&a->doc, stw_buf_str(&a->text), a->text.len, NULL) != 0)
        hostile_fail("the answer is not JSON: %s", stw_buf_str(&a->text));
    a->response = stw_json_get(stw_json_root(&a->doc), "response");
    if (a->status != 200 && a->status != 400)
        hostile_fail("HTTP status %d: %s", a->status, stw_buf_str(&a->text));
    if (a->status == 200) {
        a->allowed = stw_json_bool(stw_json_get(a->response, "allowed"), false);
        check_findings(a, body);
    }
}

static void write_body(const struct stw_kind *k, const char *operation,
                       const struct stw_buf *object, const struct stw_buf *old, struct stw_buf *out)
{
    stw_buf_clear(out);
    stw_buf_addf(
        out,
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{"
        "\"uid\":\"u-1\",\"kind\":{\"group\":\"%s\",\"version\":\"%s\",\"kind\":\"%s\"},"
        "\"resource\":{\"group\":\"%s\",\"version\":\"%s\",\"resource\":\"%s\"},\"name\":\"web\","
        "\"namespace\":\"shop\",\"operation\":\"%s\",\"userInfo\":{\"username\":\"jane\"},"
        "\"dryRun\":false,\"object\":",
        k->group, k->version, k->kind, k->group, k->version, k->plural, operation);
    stw_buf_add(out, object ? stw_buf_str(object) : "null", object ? object->len : 4);
    stw_buf_adds(out, ",\"oldObject\":");
    stw_buf_add(out, old ? stw_buf_str(old) : "null", old ? old->len : 4);
    stw_buf_adds(out, "}}");
    HOSTILE_EXPECT(!out->failed);
}

/* --- the patch */

static void unescape(char *step)
{
    char *to = step;
    for (const char *from = step; *from; from++)
        *to++ = *from != '~' ? *from : *++from == '1' ? '/' : '~';
    *to = '\0';
}

/* RFC 6902: each "add" is of a member that is absent or null, or to the end of a list. */
static void apply_one(struct tree_arena *arena, struct tree *root, struct stw_json op)
{
    stw_autofree char *path = stw_json_strdup(stw_json_get(op, "path"));
    struct tree *at = root, *value = tree_of(arena, stw_json_get(op, "value"));
    HOSTILE_EXPECT(stw_json_is(stw_json_get(op, "op"), "add") && path && path[0] == '/');
    char *step = path + 1;
    for (char *slash; (slash = strchr(step, '/')); step = slash + 1) {
        *slash = '\0';
        unescape(step);
        at = tree_child(at, step);
        if (!at)
            hostile_fail("the patch adds below %s, which is not there", step);
    }
    unescape(step);
    if (at->type == TREE_LIST) {
        HOSTILE_EXPECT(stw_streq(step, "-"));
        tree_add(arena, at, value);
        return;
    }
    const struct tree *there = tree_child(at, step);
    HOSTILE_EXPECT(at->type == TREE_OBJECT);
    HOSTILE_EXPECT(!there || (there->len == 4 && memcmp(there->raw, "null", 4) == 0));
    tree_put(arena, at, (const char *const[]){step}, 1, value);
}

/* Applies the patch of an answer; `out` is the object afterwards.  Returns whether there was one. */
static bool apply_patch(const struct answer *a, const struct stw_buf *object, struct stw_buf *out)
{
    struct stw_json key, op, patch = stw_json_get(a->response, "patch");
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {0};
    struct tree_arena arena = {0};
    struct tree *root = tree_of_text(&arena, stw_buf_str(object), object->len);
    HOSTILE_EXPECT(root);
    if (stw_json_there(patch)) {
        HOSTILE_EXPECT(a->allowed && stw_base64_json(patch, &text) == 0);
        HOSTILE_EXPECT(stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL) == 0);
        stw_json_foreach (stw_json_root(&doc), key, op)
            apply_one(&arena, root, op);
    }
    stw_buf_clear(out);
    tree_write(root, out);
    tree_arena_done(&arena);
    return stw_json_there(patch);
}

static void expect_same_verdict(const struct answer *a, const struct answer *b)
{
    size_t x_len, y_len;
    const char *x = stw_json_raw(stw_json_get(a->response, "status"), &x_len);
    const char *y = stw_json_raw(stw_json_get(b->response, "status"), &y_len);
    if (a->status != b->status || a->allowed != b->allowed || x_len != y_len ||
        memcmp(x, y, x_len) != 0)
        hostile_fail("two verdicts on one object:\n%s\n%s", stw_buf_str(&a->text),
                     stw_buf_str(&b->text));
}

static bool is_read(const struct stw_buf *object)
{
    stw_autojson struct stw_json_doc doc = {0};
    return stw_json_scan(&doc, stw_buf_str(object), object->len, NULL) == 0;
}

/* Neither an update from any object, nor one that changes nothing, nor a deletion. */
static void admit_changes(const struct stw_kind *k, const struct stw_env *env,
                          const struct stw_buf *object, const struct stw_buf *old)
{
    stw_autobuf struct stw_buf body = STW_BUF_INIT(TEXT_MAX);
    auto_answer struct answer update = {0}, same = {0}, deletion = {0};
    write_body(k, "UPDATE", object, is_read(old) ? old : object, &body);
    ask(k, env, false, &body, &update);
    write_body(k, "UPDATE", object, object, &body);
    ask(k, env, false, &body, &same);
    if (same.status == 200 && !same.allowed)
        hostile_fail("an update that changes nothing is refused: %s", stw_buf_str(&same.text));
    write_body(k, "DELETE", NULL, object, &body);
    ask(k, env, false, &body, &deletion);
    if (deletion.status == 200 && !deletion.allowed)
        hostile_fail("a deletion is refused: %s", stw_buf_str(&deletion.text));
}

void hostile_admit(const struct stw_kind *k, const struct stw_env *env,
                   const struct stw_buf *object, const struct stw_buf *old,
                   struct hostile_tally *tally)
{
    stw_autobuf struct stw_buf body = STW_BUF_INIT(TEXT_MAX), full = STW_BUF_INIT(TEXT_MAX);
    stw_autobuf struct stw_buf unused = STW_BUF_INIT(TEXT_MAX);
    auto_answer struct answer mutated = {0}, judged = {0}, again = {0}, after = {0};
    write_body(k, "CREATE", object, NULL, &body);
    ask(k, env, true, &body, &mutated);
    if (mutated.status != 200)
        return;
    tally->read++;
    ask(k, env, false, &body, &judged);
    expect_same_verdict(&mutated, &judged);
    if (apply_patch(&mutated, object, &full)) {
        write_body(k, "CREATE", &full, NULL, &body);
        ask(k, env, true, &body, &again);
        expect_same_verdict(&mutated, &again);
        if (apply_patch(&again, &full, &unused))
            hostile_fail("the defaults have defaults: %s", stw_buf_str(&unused));
        ask(k, env, false, &body, &after);
        expect_same_verdict(&mutated, &after);
    }
    tally->accepted += mutated.allowed;
    admit_changes(k, env, &full, old);
}

/* --- conversion: to each version and back, by the webhook */

static bool convert(const struct stw_buf *object, const char *version, struct stw_buf *out)
{
    static struct stw_review_scratch scratch;
    stw_autobuf struct stw_buf body = STW_BUF_INIT(TEXT_MAX), reply = STW_BUF_INIT(TEXT_MAX);
    stw_autojson struct stw_json_doc doc = {.more_depth = STW_JSON_MORE_DEPTH};
    struct stw_conversion_result result = {0};
    struct stw_error err = {0};
    size_t len;
    stw_buf_addf(
        &body,
        "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/v1\","
        "\"request\":{\"uid\":\"u-1\",\"desiredAPIVersion\":\"example.org/%s\",\"objects\":[",
        version);
    stw_buf_add(&body, stw_buf_str(object), object->len);
    stw_buf_adds(&body, "]}}");
    int status = stw_conversion_handle(&(struct stw_conversion_review){.op = &site_operator,
                                                                       .kinds = site_operator.kinds,
                                                                       .body = stw_buf_str(&body),
                                                                       .len = body.len},
                                       &scratch, &reply, &result);
    HOSTILE_EXPECT(status == 200 || status == 400);
    if (stw_json_scan(&doc, stw_buf_str(&reply), reply.len, &err) != 0)
        hostile_fail("the answer is not JSON: %s\n%s\n%s", err.text, stw_buf_str(&reply),
                     stw_buf_str(&body));
    struct stw_json response = stw_json_get(stw_json_root(&doc), "response");
    const char *raw =
        stw_json_raw(stw_json_at(stw_json_get(response, "convertedObjects"), 0), &len);
    stw_buf_clear(out);
    stw_buf_add(out, raw, len);
    return status == 200 && result.converted;
}

/* The object as one of the kind with several versions. */
static bool make_site(const struct stw_buf *object, const char *version, struct stw_buf *out)
{
    struct tree_arena arena = {0};
    char text[64];
    struct tree *t = tree_of_text(&arena, stw_buf_str(object), object->len);
    if (t) {
        stw_format(text, sizeof(text), "\"example.org/%s\"", version);
        tree_put(&arena, t, (const char *const[]){"apiVersion"}, 1,
                 tree_raw(&arena, text, strlen(text)));
        tree_put(&arena, t, (const char *const[]){"kind"}, 1, tree_raw(&arena, "\"Site\"", 6));
        tree_write(t, out);
    }
    tree_arena_done(&arena);
    return t != NULL;
}

void hostile_convert(const struct stw_buf *object, uint32_t number, struct hostile_tally *tally)
{
    static const char *const versions[] = {"v1alpha1", "v1beta1", "v1"};
    const char *from = versions[number % 3], *to = versions[(number / 3) % 3];
    stw_autobuf struct stw_buf site = STW_BUF_INIT(TEXT_MAX), there = STW_BUF_INIT(TEXT_MAX);
    stw_autobuf struct stw_buf back = STW_BUF_INIT(TEXT_MAX), twice = STW_BUF_INIT(TEXT_MAX);
    if (!make_site(object, from, &site) || !convert(&site, to, &there))
        return;
    tally->converted++;
    if (number % 4 != 0)
        return;
    /* what was converted once is in the form that conversion keeps */
    if (!convert(&there, from, &back) || !convert(&back, to, &there) ||
        !convert(&there, from, &twice))
        hostile_fail("cannot be converted from %s to %s again: %s", from, to, stw_buf_str(&site));
    stw_autojson struct stw_json_doc a = {.more_depth = STW_JSON_MORE_DEPTH};
    stw_autojson struct stw_json_doc b = {.more_depth = STW_JSON_MORE_DEPTH};
    HOSTILE_EXPECT(stw_json_scan(&a, stw_buf_str(&back), back.len, NULL) == 0);
    HOSTILE_EXPECT(stw_json_scan(&b, stw_buf_str(&twice), twice.len, NULL) == 0);
    if (!stw_json_equal(stw_json_root(&a), stw_json_root(&b)))
        hostile_fail("changed by two conversions from %s to %s:\n%s\n%s", from, to,
                     stw_buf_str(&back), stw_buf_str(&twice));
}
