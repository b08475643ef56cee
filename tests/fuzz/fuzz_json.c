/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON reader compared with jansson under JSON_REJECT_DUPLICATES and JSON_ALLOW_NUL:
 *   - what jansson refuses is refused, except an integer outside of int64, a NUL in a key, more than
 *     its 2048 levels, and a duplicate key among what is nested too deeply to be read;
 *   - what is accepted has the same value as jansson's tree, compared node by node;
 *   - what jansson accepts may be refused for a NUL byte in the text: jansson 2.14 overlooks one that
 *     directly follows a number or a literal. */
#include "base/json.h"
#include "base/util.h"

#include <jansson.h>
#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void same_string(struct stw_json v, const char *text, size_t len)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(64UL << 20);
    stw_json_str(v, &out);
    CHECK(!out.failed && out.len == len && stw_json_size(v) == len);
    CHECK(len == 0 || memcmp(out.data, text, len) == 0);
    bool nul = memchr(text, 0, len);
    CHECK(stw_json_has_nul(v) == nul && stw_json_is(v, text) == !nul);

    stw_autofree char *copy = stw_json_strdup(v);
    CHECK(nul ? !copy : copy && strlen(copy) == len && memcmp(copy, text, len) == 0);
    char small[8];
    CHECK((stw_json_strcpy(v, small, sizeof(small)) == 0) == (len < sizeof(small) && !nul));
    stw_json_cut(v, small, sizeof(small));
    CHECK(strlen(small) == STW_MIN(len, sizeof(small) - 1));
}

static void same(struct stw_json v, const json_t *t);

static void same_object(struct stw_json v, const json_t *t)
{
    struct stw_json key, value;
    size_t n = 0;
    stw_json_foreach (v, key, value) {
        stw_autofree char *name = stw_json_strdup(key);
        CHECK(name);
        const json_t *member = json_object_get(t, name);
        CHECK(member);
        same_string(key, name, strlen(name));
        struct stw_json found = stw_json_get(v, name);
        CHECK(found.doc == value.doc && found.at == value.at);
        same(value, member);
        n++;
    }
    CHECK(n == json_object_size(t) && stw_json_size(v) == n);
    CHECK(stw_json_type(stw_json_get(v, "no such key \x01")) == STW_JSON_ABSENT);
}

static void same_array(struct stw_json v, const json_t *t)
{
    struct stw_json key, value;
    uint32_t n = 0;
    stw_json_foreach (v, key, value) {
        CHECK(stw_json_type(key) == STW_JSON_ABSENT);
        if (n < 64) {
            struct stw_json at = stw_json_at(v, n);
            CHECK(at.doc == value.doc && at.at == value.at);
        }
        same(value, json_array_get(t, n++));
    }
    CHECK(n == json_array_size(t) && stw_json_size(v) == n);
    CHECK(stw_json_type(stw_json_at(v, n)) == STW_JSON_ABSENT);
}

static void same_int(struct stw_json v, const json_t *t)
{
    int64_t n;
    CHECK(stw_json_int(v, &n) == 0 && n == json_integer_value(t));
}

static void same_real(struct stw_json v, const json_t *t)
{
    size_t len;
    const char *raw = stw_json_raw(v, &len);
    stw_autofree char *copy = strndup(raw, len);
    CHECK(copy);
    double x = strtod(copy, NULL), y = json_real_value(t);
    CHECK(isfinite(x) && !(x < y) && !(x > y));
}

static void same(struct stw_json v, const json_t *t)
{
    static const enum stw_json_type types[] = {
        [JSON_OBJECT] = STW_JSON_OBJECT, [JSON_ARRAY] = STW_JSON_ARRAY,
        [JSON_STRING] = STW_JSON_STRING, [JSON_INTEGER] = STW_JSON_INT,
        [JSON_REAL] = STW_JSON_REAL,     [JSON_TRUE] = STW_JSON_TRUE,
        [JSON_FALSE] = STW_JSON_FALSE,   [JSON_NULL] = STW_JSON_NULL,
    };
    CHECK(stw_json_equal(v, v));
    if (stw_json_type(v) == STW_JSON_DEEP) {
        CHECK(json_is_object(t) || json_is_array(t));
        return;
    }
    CHECK(t && stw_json_type(v) == types[json_typeof(t)]);
    switch (json_typeof(t)) {
    case JSON_OBJECT:
        same_object(v, t);
        break;
    case JSON_ARRAY:
        same_array(v, t);
        break;
    case JSON_STRING:
        same_string(v, json_string_value(t), json_string_length(t));
        break;
    case JSON_INTEGER:
        same_int(v, t);
        break;
    case JSON_REAL:
        same_real(v, t);
        break;
    default:
        break;
    }
}

/* The raw text of the document reads back as the same value. */
static void survives_rewriting(const struct stw_json_doc *doc)
{
    size_t len;
    const char *raw = stw_json_raw(stw_json_root(doc), &len);
    stw_autojson struct stw_json_doc again = {0};
    CHECK(stw_json_scan(&again, raw, len, NULL) == 0);
    CHECK(again.count == doc->count);
    CHECK(stw_json_equal(stw_json_root(doc), stw_json_root(&again)));
}

/* Of a text that only jansson refuses: whether the reader may accept it. */
static bool may_differ(const struct stw_json_doc *doc, enum json_error_code theirs)
{
    bool found = false;
    switch (theirs) {
    case json_error_stack_overflow:
    case json_error_duplicate_key:
        return doc->deep;
    case json_error_null_byte_in_key:
        for (uint32_t i = 0; i < doc->count; i++)
            found |= doc->tokens[i].nul || doc->tokens[i].type == STW_JSON_DEEP;
        return found;
    case json_error_numeric_overflow:
        for (uint32_t i = 0; i < doc->count; i++)
            found |= doc->tokens[i].type == STW_JSON_REAL || doc->tokens[i].type == STW_JSON_DEEP;
        return found;
    default:
        return false;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct stw_json_doc doc; /* kept, so that memory is reused as a server does */
    const char *text = (const char *)data;
    struct stw_error err = {0};
    json_error_t theirs;
    json_t *tree = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &theirs);
    int rc = stw_json_scan(&doc, text, size, &err);

    if (rc == 0) {
        CHECK(tree || may_differ(&doc, json_error_code(&theirs)));
        if (tree)
            same(stw_json_root(&doc), tree);
        survives_rewriting(&doc);
    } else {
        CHECK(err.text[0] && doc.count == 0);
        CHECK(stw_json_type(stw_json_root(&doc)) == STW_JSON_ABSENT);
        CHECK(!tree || (size > 0 && memchr(data, 0, size)));
    }
    json_decref(tree);
    return 0;
}
