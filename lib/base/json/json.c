/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include "base/json/json_priv.h"
#include "base/util.h"

void stw_json_done(struct stw_json_doc *doc)
{
    free(doc->tokens);
    stw_json_scratch_destroy(doc->scratch);
    *doc = (struct stw_json_doc){0};
}

static const struct stw_json_token *token_of(struct stw_json v)
{
    return v.doc ? &v.doc->tokens[v.at] : NULL;
}

static const struct stw_json_token *token_as(struct stw_json v, enum stw_json_type type)
{
    const struct stw_json_token *t = token_of(v);
    return t && t->type == type ? t : NULL;
}

struct stw_json stw_json_root(const struct stw_json_doc *doc)
{
    return doc->count > 0 ? (struct stw_json){doc, 0} : STW_JSON_NONE;
}

enum stw_json_type stw_json_type(struct stw_json v)
{
    const struct stw_json_token *t = token_of(v);
    return t ? (enum stw_json_type)t->type : STW_JSON_ABSENT;
}

uint32_t stw_json_size(struct stw_json v)
{
    const struct stw_json_token *t = token_of(v);
    return t ? t->size : 0;
}

uint32_t stw_json_weight(struct stw_json v)
{
    const struct stw_json_token *t = token_of(v);
    return t ? t->next - v.at : 0;
}

/* Whether the decoded bytes of a string equal `text`. */
static bool is_string_equal(const struct stw_json_doc *doc, const struct stw_json_token *t,
                            const char *text, size_t len)
{
    const char *from = doc->text + t->start, *piece;
    if (t->size != len)
        return false;
    if (!t->escaped)
        return memcmp(from, text, len) == 0;
    struct stw_json_decoder d = {.p = from, .end = doc->text + t->end};
    for (size_t n = stw_json_decode(&d, &piece); n > 0; n = stw_json_decode(&d, &piece)) {
        if (memcmp(text, piece, n) != 0)
            return false;
        text += n;
    }
    return true;
}

static struct stw_json get_n(struct stw_json object, const char *key, size_t len)
{
    const struct stw_json_token *t = token_as(object, STW_JSON_OBJECT);
    if (!t)
        return STW_JSON_NONE;
    const struct stw_json_token *tokens = object.doc->tokens;
    for (uint32_t at = object.at + 1; at < t->next; at = tokens[at + 1].next)
        if (is_string_equal(object.doc, &tokens[at], key, len))
            return (struct stw_json){object.doc, at + 1};
    return STW_JSON_NONE;
}

struct stw_json stw_json_get(struct stw_json object, const char *key)
{
    return get_n(object, key, strlen(key));
}

struct stw_json stw_json_path(struct stw_json v, const char *dotted)
{
    while (v.doc && *dotted) {
        size_t len = strcspn(dotted, ".");
        v = get_n(v, dotted, len);
        dotted += len + (dotted[len] == '.');
    }
    return v;
}

struct stw_json stw_json_at(struct stw_json array, uint32_t index)
{
    const struct stw_json_token *t = token_as(array, STW_JSON_ARRAY);
    if (!t || index >= t->size)
        return STW_JSON_NONE;
    uint32_t at = array.at + 1;
    while (index-- > 0)
        at = array.doc->tokens[at].next;
    return (struct stw_json){array.doc, at};
}

/* The child at token `at`; absent at the end of the container.  In an object `at` is the key. */
static struct stw_json get_child_at(struct stw_json container, const struct stw_json_token *t,
                                    uint32_t at, struct stw_json *ret_key)
{
    *ret_key = STW_JSON_NONE;
    if (at >= t->next)
        return STW_JSON_NONE;
    if (t->type == STW_JSON_OBJECT)
        *ret_key = (struct stw_json){container.doc, at++};
    return (struct stw_json){container.doc, at};
}

static const struct stw_json_token *container_of(struct stw_json v)
{
    const struct stw_json_token *t = token_as(v, STW_JSON_OBJECT);
    return t ? t : token_as(v, STW_JSON_ARRAY);
}

struct stw_json stw_json_first(struct stw_json container, struct stw_json *ret_key)
{
    const struct stw_json_token *t = container_of(container);
    *ret_key = STW_JSON_NONE;
    return t ? get_child_at(container, t, container.at + 1, ret_key) : STW_JSON_NONE;
}

struct stw_json stw_json_after(struct stw_json container, struct stw_json value,
                               struct stw_json *ret_key)
{
    const struct stw_json_token *t = container_of(container), *v = token_of(value);
    *ret_key = STW_JSON_NONE;
    return t && v ? get_child_at(container, t, v->next, ret_key) : STW_JSON_NONE;
}

bool stw_json_is(struct stw_json string, const char *text)
{
    const struct stw_json_token *t = token_as(string, STW_JSON_STRING);
    return t && is_string_equal(string.doc, t, text, strlen(text));
}

bool stw_json_has_nul(struct stw_json string)
{
    const struct stw_json_token *t = token_as(string, STW_JSON_STRING);
    return t && t->nul;
}

bool stw_json_has_deep(struct stw_json v)
{
    const struct stw_json_token *t = token_of(v);
    for (uint32_t at = v.at; t && v.doc->deep && at < t->next; at++)
        if (v.doc->tokens[at].type == STW_JSON_DEEP)
            return true;
    return false;
}

bool stw_json_has_nul_key(struct stw_json v)
{
    const struct stw_json_token *t = token_of(v), *all = t ? v.doc->tokens : NULL;
    for (uint32_t at = v.at; t && at < t->next; at++)
        for (uint32_t key = at + 1; all[at].type == STW_JSON_OBJECT && key < all[at].next;
             key = all[key + 1].next)
            if (all[key].nul)
                return true;
    return false;
}

void stw_json_str(struct stw_json string, struct stw_buf *out)
{
    const struct stw_json_token *t = token_as(string, STW_JSON_STRING);
    const char *piece;
    if (!t)
        return;
    struct stw_json_decoder d = {.p = string.doc->text + t->start,
                                 .end = string.doc->text + t->end};
    for (size_t n = stw_json_decode(&d, &piece); n > 0; n = stw_json_decode(&d, &piece))
        stw_buf_add(out, piece, n);
}

int stw_json_strcpy(struct stw_json string, char *out, size_t out_size)
{
    const struct stw_json_token *t = token_as(string, STW_JSON_STRING);
    if (!t || t->nul || t->size >= out_size)
        return -1;
    stw_json_cut(string, out, out_size);
    return 0;
}

void stw_json_cut(struct stw_json string, char *out, size_t size)
{
    const struct stw_json_token *t = token_as(string, STW_JSON_STRING);
    const char *piece, *end = out + size - 1;
    if (t) {
        struct stw_json_decoder d = {.p = string.doc->text + t->start,
                                     .end = string.doc->text + t->end};
        for (size_t n; out < end && (n = stw_json_decode(&d, &piece)) > 0;) {
            n = STW_MIN(n, (size_t)(end - out));
            memcpy(out, *piece ? piece : "?", n); /* NUL is a piece of its own */
            out += n;
        }
    }
    *out = '\0';
}

char *stw_json_strdup(struct stw_json string)
{
    if (stw_json_type(string) != STW_JSON_STRING || stw_json_has_nul(string))
        return NULL;
    size_t size = (size_t)stw_json_size(string) + 1;
    char *copy = malloc(size);
    if (copy)
        (void)stw_json_strcpy(string, copy, size);
    return copy;
}

int stw_json_int(struct stw_json v, int64_t *ret)
{
    const struct stw_json_token *t = token_as(v, STW_JSON_INT);
    if (!t)
        return -1;
    const char *p = v.doc->text + t->start, *end = v.doc->text + t->end;
    bool negative = *p == '-';
    uint64_t n = 0;
    for (p += negative; p < end; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    *ret = (int64_t)(negative ? 0 - n : n);
    return 0;
}

bool stw_json_bool(struct stw_json v, bool fallback)
{
    enum stw_json_type type = stw_json_type(v);
    return type == STW_JSON_TRUE || (type != STW_JSON_FALSE && fallback);
}

const char *stw_json_raw(struct stw_json v, size_t *ret_len)
{
    const struct stw_json_token *t = token_of(v);
    if (!t) {
        *ret_len = 0;
        return "";
    }
    uint32_t quote = t->type == STW_JSON_STRING;
    *ret_len = t->end - t->start + 2 * quote;
    return v.doc->text + t->start - quote;
}
