/* SPDX-License-Identifier: Apache-2.0
 *
 * Any JSON through every kind: decoding, defaults and validation neither crash nor leak, and
 *   - with the defaults applied there is nothing left to default,
 *   - defaults neither cause nor cure an error,
 *   - an update that changes nothing is not refused.
 * Lookups are answered: there is a target of each engine, some names are taken, Secrets differ. */
#include "base/util.h"
#include "kinds/common/product.h"
#include "kinds/kinds.h"
#include "sql/target/target.h"
#include "support/answers.h"

#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

/* Created once, for the lifetime of the program. */
static struct stw_targets *targets(void *ctx)
{
#define ADMIN "\"host\":\"h\",\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"}"
    static const char text[] =
        "[{\"name\":\"my\",\"engine\":\"mysql\"," ADMIN ",\"allowedNamespaces\":[\"b\"]},"
        "{\"name\":\"maria\",\"engine\":\"mariadb\"," ADMIN ",\"allowAllDatabases\":true},"
        "{\"name\":\"pg\",\"engine\":\"postgresql\"," ADMIN ",\"allowedPrivileges\":[\"SELECT\"]}]";
    static struct stw_targets *all;
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    (void)ctx;
    if (!all) {
        EXPECT(stw_json_scan(&doc, text, strlen(text), NULL) == 0);
        EXPECT(stw_targets_parse(stw_json_root(&doc), &all, &f) == 0);
    }
    return stw_targets_ref(all);
}

static const struct stw_product product = {.targets = targets};
static const struct stw_env env = {.lookup = &stw_test_lookup, .product = &product};

static json_t *child(json_t *at, const char *key)
{
    return json_is_array(at) ? json_array_get(at, strtoul(key, NULL, 10))
                             : json_object_get(at, key);
}

/* "~1" and "~0" to "/" and "~", in place. */
static void unescape(char *key)
{
    char *to = key;
    for (const char *from = key; *from; from++) {
        if (*from == '~')
            *to++ = *++from == '1' ? '/' : '~';
        else
            *to++ = *from;
    }
    *to = '\0';
}

/* An RFC 6902 "add" to an object, or to the end of an array. */
static void apply(void *ctx, const char *pointer, const char *json)
{
    stw_autofree char *path = strdup(pointer);
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL), *at = ctx;
    char *key = path ? path + 1 : NULL;
    EXPECT(key && value);
    for (char *slash; (slash = strchr(key, '/')); key = slash + 1) {
        *slash = '\0';
        unescape(key);
        at = child(at, key);
    }
    unescape(key);
    if (json_is_array(at)) {
        EXPECT(strcmp(key, "-") == 0 && json_array_append_new(at, value) == 0);
        return;
    }
    EXPECT(json_is_object(at));
    EXPECT(!json_object_get(at, key) || json_is_null(json_object_get(at, key)));
    json_object_set_new(at, key, value);
}

static void count(void *ctx, const char *pointer, const char *json)
{
    (void)pointer, (void)json;
    ++*(unsigned *)ctx;
}

static void verdict(const struct stw_admission *a, struct stw_buf *out)
{
    stw_autofindings struct stw_findings f = {0};
    stw_kind_validate(a, &f);
    EXPECT(!f.failed);
    stw_kind_denial(a, &f, out);
}

static void assert_same_verdict(const struct stw_admission *a, const struct stw_admission *b)
{
    stw_autobuf struct stw_buf x = STW_BUF_INIT(1 << 20);
    stw_autobuf struct stw_buf y = STW_BUF_INIT(1 << 20);
    verdict(a, &x);
    verdict(b, &y);
    EXPECT(stw_streq(stw_buf_str(&x), stw_buf_str(&y)));
}

static void assert_no_refusal(const struct stw_admission *a)
{
    stw_autofindings struct stw_findings f = {0};
    struct stw_admission same = *a;
    same.operation = STW_UPDATE;
    same.old_object = a->object;
    stw_kind_validate(&same, &f);
    EXPECT(f.error_count == 0 || stw_json_type(a->object) != STW_JSON_OBJECT);
}

static void decode(const struct stw_admission *a)
{
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    stw_autofree void *spec = malloc(a->kind->spec_size);
    struct stw_error err = {0};
    int rc = stw_kind_decode(a->kind, stw_json_get(a->object, "spec"), arena, spec, &err);
    EXPECT(rc == 0 || err.code == STW_ERR_INVALID);
}

static void try_kind(const struct stw_kind *kind, const struct stw_json_doc *doc, json_t *tree)
{
    stw_autojson struct stw_json_doc full = {0};
    struct stw_admission a = {
        .kind = kind, .operation = STW_CREATE, .ns = "a", .name = "b", .env = &env};
    struct stw_defaults d = {.add = apply, .ctx = tree};
    unsigned left = 0;
    a.object = stw_json_root(doc);
    decode(&a);
    assert_no_refusal(&a);
    stw_kind_default(&a, &d);
    stw_autofree char *text = json_dumps(tree, JSON_COMPACT);
    EXPECT(text && stw_json_scan(&full, text, strlen(text), NULL) == 0);
    struct stw_admission b = a;
    b.object = stw_json_root(&full);
    d = (struct stw_defaults){.add = count, .ctx = &left};
    stw_kind_default(&b, &d);
    EXPECT(left == 0);
    assert_same_verdict(&a, &b);
    b.operation = STW_UPDATE;
    b.old_object = a.object;
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
    verdict(&b, &out);
    b.operation = STW_DELETE;
    verdict(&b, &out);
}

/* The object under test is text from jansson, so that numbers read the same before and after. */
static void try_tree(json_t *tree)
{
    stw_autofree char *text = json_dumps(tree, JSON_COMPACT);
    stw_autojson struct stw_json_doc doc = {0};
    EXPECT(text && stw_json_scan(&doc, text, strlen(text), NULL) == 0);
    for (const struct stw_kind *const *kind = stw_kinds; *kind; kind++) {
        json_t *copy = json_deep_copy(tree);
        EXPECT(copy);
        try_kind(*kind, &doc, copy);
        json_decref(copy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stw_autojson struct stw_json_doc doc = {0};
    if (size > 65536 || stw_json_scan(&doc, (const char *)data, size, NULL) != 0)
        return 0;
    json_t *tree = json_loadb((const char *)data, size, 0, NULL);
    EXPECT(tree);
    try_tree(tree);
    json_decref(tree);
    return 0;
}
