/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/conversion.h"

#include "support/convertible.h"
#include "support/judge.h"

#define OUT_MAX ((size_t)8 << 20)
#define NOTE "sites.example.org/conversion"

static int convert(const char *object, const char *version, struct stw_buf *out,
                   struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {.more_depth = STW_JSON_MORE_DEPTH};
    if (stw_json_scan(&doc, object, strlen(object), err) != 0)
        fail_msg("%s\n%s", err->text, object);
    return stw_convert(&site_operator, &site_kind, stw_json_root(&doc), version, out, err);
}

/* Prevents a document that only looks right: the output must be JSON, with each key once. */
static void assert_same(const char *got, const char *want)
{
    stw_autojson struct stw_json_doc a = {.more_depth = STW_JSON_MORE_DEPTH};
    stw_autojson struct stw_json_doc b = {.more_depth = STW_JSON_MORE_DEPTH};
    struct stw_error err;
    if (stw_json_scan(&a, got, strlen(got), &err) != 0)
        fail_msg("%s\n%s", err.text, got);
    if (stw_json_scan(&b, want, strlen(want), &err) != 0)
        fail_msg("%s\n%s", err.text, want);
    if (!stw_json_equal(stw_json_root(&a), stw_json_root(&b)))
        fail_msg("\nwant: %s\ngot:  %s", want, got);
}

static void assert_converts(const char *object, const char *version, const char *want)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(OUT_MAX);
    struct stw_error err = {0};
    if (convert(object, version, &out, &err) != 0)
        fail_msg("%s\n%s", err.text, object);
    assert_same(stw_buf_str(&out), want);
}

static void assert_round_trip(const char *object, const char *own, const char *through)
{
    stw_autobuf struct stw_buf there = STW_BUF_INIT(OUT_MAX), back = STW_BUF_INIT(OUT_MAX);
    struct stw_error err = {0};
    if (convert(object, through, &there, &err) != 0 ||
        convert(stw_buf_str(&there), own, &back, &err) != 0)
        fail_msg("%s\n%s", err.text, object);
    assert_same(stw_buf_str(&back), object);
}

#define HEAD(version)                                                                              \
    "{\"apiVersion\":\"example.org/" version "\",\"kind\":\"Site\",\"metadata\":{\"name\":\"a\""

/* Each pair converts in both directions. */
static const struct {
    const char *own, *alpha;
} pairs[] = {
    {HEAD("v1") "},\"spec\":{}}", HEAD("v1alpha1") "},\"spec\":{}}"},
    {HEAD("v1") "},\"spec\":{\"host\":\"h\",\"tags\":[\"x\"]},\"status\":{\"url\":\"u\","
                "\"observedGeneration\":3}}",
     HEAD("v1alpha1") "},\"spec\":{\"from\":\"h\",\"marks\":[\"x\"]},\"status\":{\"address\":\"u\","
                      "\"observedGeneration\":3}}"},
    /* out of an object, which is not left empty */
    {HEAD("v1") "},\"spec\":{\"web\":{\"replicas\":3}}}",
     HEAD("v1alpha1") "},\"spec\":{\"replicas\":3}}"},
    /* what v1alpha1 cannot express */
    {HEAD("v1") "},\"spec\":{\"web\":{\"replicas\":3,\"image\":\"i\\\"\"}}}",
     HEAD("v1alpha1") ",\"annotations\":{\"" NOTE
                      "\":\"{\\\"v1\\\":{\\\"spec.web.image\\\":\\\"i\\\\\\\"\\\"}}\"}},"
                      "\"spec\":{\"replicas\":3}}"},
    /* the same name, another type */
    {HEAD("v1") "},\"spec\":{\"port\":80}}",
     HEAD("v1alpha1") ",\"annotations\":{\"" NOTE
                      "\":\"{\\\"v1\\\":{\\\"spec.port\\\":80}}\"}},\"spec\":{}}"},
    {HEAD("v1") ",\"annotations\":{\"" NOTE
                "\":\"{\\\"v1alpha1\\\":{\\\"spec.port\\\":\\\"80\\\"}}\"}},\"spec\":{}}",
     HEAD("v1alpha1") "},\"spec\":{\"port\":\"80\"}}"},
    /* what v1 cannot express, beside other annotations */
    {HEAD("v1") ",\"annotations\":{\"b\":\"c\",\"" NOTE
                "\":\"{\\\"v1alpha1\\\":{\\\"spec.comment\\\":\\\"c\\\"}}\"}},"
                "\"spec\":{\"host\":\"h\"}}",
     HEAD("v1alpha1") ",\"annotations\":{\"b\":\"c\"}},\"spec\":{\"from\":\"h\",\"comment\":\"c\"}"
                      "}"},
    /* inside an object that both have */
    {HEAD("v1") ",\"annotations\":{\"" NOTE
                "\":\"{\\\"v1alpha1\\\":{\\\"spec.common.onlyOld\\\":1}}\"}},"
                "\"spec\":{\"common\":{\"a\":1}}}",
     HEAD("v1alpha1") "},\"spec\":{\"common\":{\"a\":1,\"onlyOld\":1}}}"},
    {HEAD("v1") "},\"spec\":{\"common\":{\"a\":1,\"onlyNew\":1}}}",
     HEAD("v1alpha1") ",\"annotations\":{\"" NOTE
                      "\":\"{\\\"v1\\\":{\\\"spec.common.onlyNew\\\":1}}\"}},"
                      "\"spec\":{\"common\":{\"a\":1}}}"},
    /* lists of different objects are kept whole; an empty object stays */
    {HEAD("v1") "},\"spec\":{\"backends\":[{\"url\":\"u\"}],\"web\":{},\"common\":{}}}",
     HEAD("v1alpha1") ",\"annotations\":{\"" NOTE
                      "\":\"{\\\"v1\\\":{\\\"spec.web\\\":{},\\\"spec.backends\\\":"
                      "[{\\\"url\\\":\\\"u\\\"}]}}\"}},\"spec\":{\"common\":{}}}"},
    /* what was kept for a third version stays */
    {HEAD("v1") ",\"annotations\":{\"" NOTE
                "\":\"{\\\"v9\\\":{\\\"spec.x\\\":1}}\"}},\"spec\":{\"port\":1}}",
     HEAD("v1alpha1") ",\"annotations\":{\"" NOTE
                      "\":\"{\\\"v9\\\":{\\\"spec.x\\\":1},\\\"v1\\\":{\\\"spec.port\\\":1}}\"}},"
                      "\"spec\":{}}"},
};

static void test_objects_convert_in_both_directions(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(pairs); i++) {
        assert_converts(pairs[i].own, "v1alpha1", pairs[i].alpha);
        assert_converts(pairs[i].alpha, "v1", pairs[i].own);
        assert_converts(pairs[i].own, "v1", pairs[i].own);
        assert_converts(pairs[i].alpha, "v1alpha1", pairs[i].alpha);
    }
}

static void test_conversion_function_is_called(void **state)
{
    struct stw_error err = {0};
    stw_autobuf struct stw_buf out = STW_BUF_INIT(OUT_MAX);
    const char *own = HEAD("v1") "},\"spec\":{\"host\":\"h\",\"schedule\":\"5\"}}";
    const char *beta =
        HEAD("v1beta1") "},\"spec\":{\"host\":\"h\",\"schedule\":{\"minute\":\"5\"}}}";
    const char *alpha = HEAD("v1alpha1") "},\"spec\":{\"from\":\"h\",\"schedule\":\"5\"}}";
    (void)state;
    assert_converts(own, "v1beta1", beta);
    assert_converts(beta, "v1", own);
    /* through the kind's own version */
    assert_converts(alpha, "v1beta1", beta);
    assert_converts(beta, "v1alpha1", alpha);
    assert_int_equal(
        convert(HEAD("v1") "},\"spec\":{\"schedule\":\"fail\"}}", "v1beta1", &out, &err), -1);
    assert_string_equal(err.text, "spec.schedule: \"fail\" has no minute");
}

/* --- generated objects */

static uint64_t seed;

static unsigned any(unsigned below)
{
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(seed >> 33) % below;
}

static void add_raw(struct stw_buf *out, unsigned depth)
{
    static const char *const plain[] = {
        "1",    "-0.50", "1e3", "9007199254740993", "\"\"", "\"\\u00e9\\n\\ud83d\\ude00\"", "true",
        "null", "{}",    "[]"};
    unsigned what = any(STW_COUNT(plain) + (depth < 4 ? 4 : 0));
    if (what < STW_COUNT(plain)) {
        stw_buf_adds(out, plain[what]);
        return;
    }
    stw_buf_adds(out, what % 2 ? "{\"spec.host\":" : "[");
    add_raw(out, depth + 1);
    if (what % 2)
        stw_buf_adds(out, ",\"a.b\":");
    else
        stw_buf_addc(out, ',');
    add_raw(out, depth + 1);
    stw_buf_addc(out, what % 2 ? '}' : ']');
}

static void add_object(struct stw_buf *out, const struct stw_field *rows, bool may_be_empty);

static void add_field(struct stw_buf *out, const struct stw_field *row)
{
    unsigned count = any(3);
    switch (row->type) {
    case STW_T_INT:
        stw_buf_addf(out, "%u", any(100000));
        return;
    case STW_T_OBJECT:
        add_object(out, row->fields, true);
        return;
    case STW_T_LIST:
    case STW_T_MAP:
        stw_buf_addc(out, row->type == STW_T_LIST ? '[' : '{');
        for (unsigned i = 0; i < count; i++) {
            stw_buf_adds(out, i ? "," : "");
            if (row->type == STW_T_MAP)
                stw_buf_addf(out, "\"k%u.x/y\":", i);
            add_field(out, row->item);
        }
        stw_buf_addc(out, row->type == STW_T_LIST ? ']' : '}');
        return;
    case STW_T_RAW:
        stw_buf_adds(out, "{\"r\":");
        add_raw(out, 0);
        stw_buf_addc(out, '}');
        return;
    default:
        stw_buf_addf(out, "\"%u\\\"\\\\\"", any(1000));
    }
}

static void add_object(struct stw_buf *out, const struct stw_field *rows, bool may_be_empty)
{
    unsigned count = 0;
    stw_buf_addc(out, '{');
    for (; rows && rows->name; rows++) {
        if (any(2) && (may_be_empty || count || rows[1].name))
            continue;
        stw_buf_adds(out, count++ ? "," : "");
        stw_buf_addf(out, "\"%s\":", rows->name);
        add_field(out, rows);
    }
    stw_buf_addc(out, '}');
}

static void add_site(struct stw_buf *out, const char *version, const struct stw_field *spec,
                     const struct stw_field *status)
{
    stw_buf_clear(out);
    stw_buf_addf(out, HEAD("%s"), version);
    stw_buf_adds(out, any(2) ? ",\"annotations\":{\"x\":\"y\"}},\"spec\":" : "},\"spec\":");
    add_object(out, spec, true);
    if (any(2)) {
        stw_buf_adds(out, ",\"status\":");
        add_object(out, status, false);
    }
    stw_buf_addc(out, '}');
}

static void test_round_trips_lose_nothing(void **state)
{
    stw_autobuf struct stw_buf object = STW_BUF_INIT(OUT_MAX);
    (void)state;
    for (unsigned round = 0; round < 20000; round++) {
        seed = round;
        add_site(&object, "v1", site_spec, site_status);
        assert_round_trip(stw_buf_str(&object), "v1", "v1alpha1");
        assert_round_trip(stw_buf_str(&object), "v1", "v1beta1");
        add_site(&object, "v1alpha1", site_spec_alpha, site_status_alpha);
        assert_round_trip(stw_buf_str(&object), "v1alpha1", "v1");
        assert_round_trip(stw_buf_str(&object), "v1alpha1", "v1beta1");
    }
}

/* --- hostile objects: conversion succeeds, and only what was kept is restored */

static const struct {
    const char *alpha, *own;
} hostile[] = {
    /* not JSON, not an object */
    {HEAD("v1alpha1") ",\"annotations\":{\"" NOTE "\":\"{\"}},\"spec\":{}}",
     HEAD("v1") ",\"annotations\":{\"" NOTE "\":\"{\"}},\"spec\":{}}"},
    {HEAD("v1alpha1") ",\"annotations\":{\"" NOTE "\":\"[1]\"}},\"spec\":{}}",
     HEAD("v1") ",\"annotations\":{\"" NOTE "\":\"[1]\"}},\"spec\":{}}"},
    {HEAD("v1alpha1") ",\"annotations\":{\"" NOTE "\":\"{\\\"v1\\\":7}\"}},\"spec\":{}}",
     HEAD("v1") "},\"spec\":{}}"},
    /* a field that v1alpha1 has under another name, unknown fields, fields of metadata */
    {HEAD(
         "v1alpha1") ",\"annotations\":{\"" NOTE
                     "\":\"{\\\"v1\\\":{\\\"spec.host\\\":\\\"evil\\\",\\\"spec.web.replicas\\\":9,"
                     "\\\"metadata.name\\\":\\\"b\\\",\\\"spec\\\":{},\\\"spec.no\\\":1,"
                     "\\\"spec.web\\\":{\\\"replicas\\\":9},\\\"\\\":1,\\\".\\\":1,\\\"spec.\\\":1,"
                     "\\\"spec.common.a\\\":4,\\\"spec.extra.x\\\":1,\\\"kind\\\":\\\"Pod\\\"}}\"}}"
                     ","
                     "\"spec\":{\"from\":\"h\"}}",
     HEAD("v1") "},\"spec\":{\"host\":\"h\"}}"},
    /* a wrong type */
    {HEAD("v1alpha1") ",\"annotations\":{\"" NOTE
                      "\":\"{\\\"v1\\\":{\\\"spec.port\\\":\\\"80\\\"}}\"}},\"spec\":{}}",
     HEAD("v1") "},\"spec\":{}}"},
    /* the value and an object that it would be in */
    {HEAD(
         "v1alpha1") ",\"annotations\":{\"" NOTE
                     "\":\"{\\\"v1\\\":{\\\"spec.web\\\":{},\\\"spec.web.image\\\":\\\"i\\\"}}\"}},"
                     "\"spec\":{\"replicas\":2}}",
     HEAD("v1") "},\"spec\":{\"web\":{\"replicas\":2,\"image\":\"i\"}}}"},
    /* a spec of other types than its schema */
    {HEAD("v1alpha1") "},\"spec\":{\"web\":null,\"replicas\":2}}",
     HEAD("v1") "},\"spec\":{\"web\":{\"replicas\":2}}}"},
    {HEAD("v1alpha1") "},\"spec\":[1]}", HEAD("v1") "},\"spec\":[1]}"},
    {HEAD("v1alpha1") ",\"annotations\":{\"" NOTE
                      "\":\"{\\\"v1\\\":{\\\"spec.port\\\":80}}\"}},\"spec\":7}",
     HEAD("v1") "},\"spec\":{\"port\":80}}"},
    {HEAD("v1alpha1") "}}", HEAD("v1") "}}"},
};

static void test_malformed_objects_convert_to_valid_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(hostile); i++)
        assert_converts(hostile[i].alpha, "v1", hostile[i].own);
}

/* As deep as admission accepts, where the object is in request.object. */
static void test_deep_objects_convert(void **state)
{
    stw_autobuf struct stw_buf object = STW_BUF_INIT(OUT_MAX);
    const unsigned depth = STW_JSON_MAX_DEPTH - 5;
    (void)state;
    stw_buf_adds(&object, HEAD("v1") "},\"spec\":{\"extra\":{\"r\":");
    for (unsigned i = 0; i < depth; i++)
        stw_buf_addc(&object, '[');
    for (unsigned i = 0; i < depth; i++)
        stw_buf_addc(&object, ']');
    stw_buf_adds(&object, "}}}");
    assert_round_trip(stw_buf_str(&object), "v1", "v1alpha1");
}

static void test_oversized_annotations_are_refused(void **state)
{
    stw_autobuf struct stw_buf object = STW_BUF_INIT(OUT_MAX), out = STW_BUF_INIT(OUT_MAX);
    struct stw_error err = {0};
    struct stw_findings f = {0};
    const struct stw_env env = {.op = &site_operator};
    stw_autojson struct stw_json_doc doc = {0};
    (void)state;
    stw_buf_adds(&object, HEAD("v1") "},\"spec\":{\"extra\":{\"x\":\"");
    for (size_t i = 0; i < STW_ANNOTATIONS_MAX_BYTES; i++)
        stw_buf_addc(&object, 'x');
    stw_buf_adds(&object, "\"}}}");
    assert_int_equal(convert(stw_buf_str(&object), "v1alpha1", &out, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    assert_non_null(strstr(err.text, "metadata.annotations: 2622"));
    assert_non_null(strstr(err.text, "bytes in version v1alpha1, of at most 262144: " NOTE));
    /* admission refuses it, so that it cannot be stored */
    assert_int_equal(stw_json_scan(&doc, stw_buf_str(&object), object.len, &err), 0);
    stw_kind_validate(&(struct stw_admission){.kind = &site_kind,
                                              .operation = STW_CREATE,
                                              .ns = "shop",
                                              .name = "a",
                                              .object = stw_json_root(&doc),
                                              .env = &env},
                      &f);
    assert_int_equal(f.error_count, 2); /* of both versions */
    assert_string_equal(f.errors[0].path, "metadata.annotations");
    stw_findings_done(&f);
}

/* An object that is being deleted is stored, and listed, until its last finalizer is removed. */
static void test_deleted_objects_still_convert(void **state)
{
    static const char plain[] =
        HEAD("v1") ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{}}";
    stw_autobuf struct stw_buf large = STW_BUF_INIT(OUT_MAX);
    const struct stw_env env = {.op = &site_operator};
    stw_autojson struct stw_json_doc fits = {0}, fails = {0};
    (void)state;
    stw_buf_adds(&large, HEAD("v1") ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},"
                                    "\"spec\":{\"extra\":{\"x\":\"");
    for (size_t i = 0; i < STW_ANNOTATIONS_MAX_BYTES; i++)
        stw_buf_addc(&large, 'x');
    stw_buf_adds(&large, "\"}}}");
    assert_int_equal(stw_json_scan(&fits, plain, strlen(plain), NULL), 0);
    assert_int_equal(stw_json_scan(&fails, stw_buf_str(&large), large.len, NULL), 0);
    const struct {
        struct stw_json from, to;
        bool refused;
    } rows[] = {
        {stw_json_root(&fits), stw_json_root(&fails), true},
        {stw_json_root(&fails), stw_json_root(&fails), false}, /* it is stored already */
        {stw_json_root(&fails), stw_json_root(&fits), false},
        {stw_json_root(&fits), stw_json_root(&fits), false},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_findings f = {0};
        stw_kind_validate(&(struct stw_admission){.kind = &site_kind,
                                                  .operation = STW_UPDATE,
                                                  .ns = "shop",
                                                  .name = "a",
                                                  .object = rows[i].to,
                                                  .old_object = rows[i].from,
                                                  .env = &env},
                          &f);
        assert_int_equal(f.error_count > 0, rows[i].refused);
        stw_findings_done(&f);
    }
}

/* A controller judges what its cache has kept of an object. */
static void test_cached_object_is_not_converted(void **state)
{
    static const char text[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"shop\"},\"spec\":{}}";
    const struct stw_env env = {.op = &site_operator};
    struct stw_findings f = {0};
    stw_autojson struct stw_json_doc doc = {0};
    (void)state;
    assert_int_equal(stw_json_scan(&doc, text, strlen(text), NULL), 0);
    stw_kind_validate(&(struct stw_admission){.kind = &site_kind,
                                              .operation = STW_CREATE,
                                              .ns = "shop",
                                              .name = "a",
                                              .object = stw_json_root(&doc),
                                              .env = &env},
                      &f);
    assert_int_equal(f.error_count, 0);
    stw_findings_done(&f);
}

static void test_unknown_versions_are_refused(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(OUT_MAX);
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(convert(HEAD("v2") "},\"spec\":{}}", "v1", &out, &err), -1);
    assert_string_equal(err.text, "apiVersion: not a version of Site");
    assert_int_equal(convert(HEAD("v1") "},\"spec\":{}}", "v2", &out, &err), -1);
    assert_string_equal(err.text, "apiVersion: Site has no version v2");
    assert_int_equal(
        convert("{\"apiVersion\":\"example.org/v1\",\"metadata\":1}", "v1", &out, &err), -1);
    assert_string_equal(err.text, "metadata: must be an object");
    out.max = 40;
    assert_int_equal(convert(HEAD("v1") "},\"spec\":{}}", "v1alpha1", &out, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
}

/* --- tables */

#define MOVE(a, b)                                                                                 \
    (const struct stw_move[])                                                                      \
    {                                                                                              \
        {a, b},                                                                                    \
        {                                                                                          \
            0                                                                                      \
        }                                                                                          \
    }

static void test_invalid_conversion_tables_are_found(void **state)
{
    const struct {
        struct stw_kind_version versions[3];
        const char *error;
    } wrong[] = {
        {{{.name = "v1", .spec = site_spec}}, "Site: version v1 is there twice"},
        {{{.name = "a", .spec = site_spec}, {.name = "a", .spec = site_spec}},
         "Site: version a is there twice"},
        {{{.name = "a"}}, "Site: version a has no fields"},
        {{{.name = "a", .spec = site_spec, .stored = true},
          {.name = "b", .spec = site_spec, .stored = true}},
         "Site: more than one version is stored"},
        {{{.name = "a", .spec = site_spec_alpha, .moves = MOVE("spec.hots", "spec.from")}},
         "Site, version a, move spec.hots to spec.from: the kind's own version has no such field"},
        {{{.name = "a", .spec = site_spec_alpha, .moves = MOVE("spec.host.x", "spec.from")}},
         "Site, version a, move spec.host.x to spec.from: the kind's own version has no such "
         "field"},
        {{{.name = "a", .spec = site_spec_alpha, .moves = MOVE("spec.host", "spec")}},
         "Site, version a, move spec.host to spec: the other version has no such field"},
        {{{.name = "a", .spec = site_spec_alpha, .moves = MOVE("spec.port", "spec.port")}},
         "Site, version a, move spec.port to spec.port: the two fields have different types"},
    };
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_kind_versions_check(&site_kind, &err), 0);
    for (size_t i = 0; i < STW_COUNT(wrong); i++) {
        struct stw_kind k = site_kind;
        k.versions = wrong[i].versions;
        assert_int_equal(stw_kind_versions_check(&k, &err), -1);
        assert_string_equal(err.text, wrong[i].error);
    }
}

static void test_overlapping_moves_are_found(void **state)
{
    static const struct stw_move twice[] = {
        {"spec.host", "spec.from"}, {"spec.host", "spec.comment"}, {0}};
    static const struct stw_move nested[] = {
        {"spec.web", "spec.web"}, {"spec.web.replicas", "spec.common.a"}, {0}};
    const struct stw_move *const tables[] = {twice, nested};
    struct stw_error err = {0};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(tables); i++) {
        struct stw_kind k = site_kind;
        const struct stw_kind_version v[] = {
            {.name = "a", .spec = i ? site_spec : site_spec_alpha, .moves = tables[i]}, {0}};
        k.versions = v;
        assert_int_equal(stw_kind_versions_check(&k, &err), -1);
        assert_non_null(strstr(err.text, "another move"));
    }
}

static void count_in(const struct stw_buf *text, const char *what, size_t want)
{
    size_t count = 0;
    for (const char *p = stw_buf_str(text); (p = strstr(p, what)); p += strlen(what))
        count++;
    if (count != want)
        fail_msg("%zu times, not %zu: <%s>\n%s", count, want, what, stw_buf_str(text));
}

/* All versions are served, and one is stored. */
static void test_crd_has_all_versions(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1u << 20);
    const struct stw_crd_options o = {
        .service = "{operator}-webhook-service", .ns = "there", .path = "/convert"};
    (void)state;
    stw_kind_crd_print(&site_operator, &site_kind, &o, &out);
    count_in(&out, "  - name: v1\n", 1);
    count_in(&out, "    served: true\n", 3);
    count_in(&out, "    storage: true\n", 1);
    count_in(&out, "    storage: false\n", 2);
    count_in(&out, "    deprecated: true\n", 1);
    count_in(&out,
             "    deprecationWarning: example.org/v1alpha1 Site is deprecated; use "
             "example.org/v1\n",
             1);
    count_in(&out, "              from:\n", 1);
    count_in(&out,
             "spec:\n  conversion:\n    strategy: Webhook\n    webhook:\n      clientConfig:\n"
             "        service:\n          name: sites-webhook-service\n"
             "          namespace: there\n          path: /convert\n          port: 443\n"
             "      conversionReviewVersions:\n      - v1\n",
             1);
    const char *own = strstr(stw_buf_str(&out), "  - name: v1\n");
    const char *alpha = strstr(stw_buf_str(&out), "  - name: v1alpha1\n");
    const char *stored = strstr(stw_buf_str(&out), "storage: true");
    assert_true(own < alpha && alpha < stored);
}

static void test_crd_conversion_webhook_by_url_or_none(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1u << 20);
    const struct stw_crd_options o = {
        .url = "https://127.0.0.1:9/convert", .service = "s", .ns = "n", .path = "/convert"};
    struct stw_kind one = site_kind;
    (void)state;
    stw_kind_crd_print(&site_operator, &site_kind, &o, &out);
    count_in(&out, "      clientConfig:\n        url: https://127.0.0.1:9/convert\n      conv", 1);
    stw_buf_clear(&out);
    stw_kind_crd(&site_operator, &site_kind, &out);
    count_in(&out, "    strategy: Webhook\n    webhook:\n      conversionReviewVersions:", 1);
    one.versions = NULL;
    stw_buf_clear(&out);
    stw_kind_crd_print(&site_operator, &one, &o, &out);
    count_in(&out, "conversion", 0);
    count_in(&out, "storage: true", 1);
}

/* Clients other than the API server may send anything; the answer is JSON. */
static void test_conversion_accepts_any_annotation_type(void **state)
{
#define ANNOTATIONS(value)                                                                         \
    "{\"apiVersion\":\"example.org/"                                                               \
    "v1beta1\",\"kind\":\"Site\",\"metadata\":{\"annotations\":" value                             \
    "},\"spec\":{\"schedule\":\"not an object\"}}"
    static const char *const objects[] = {ANNOTATIONS("[[1],{}]"), ANNOTATIONS("\"x\""),
                                          ANNOTATIONS("7"), ANNOTATIONS("null")};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(objects); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(OUT_MAX);
        stw_autojson struct stw_json_doc doc = {0};
        struct stw_error err = {0};
        if (convert(objects[i], "v1", &out, &err) != 0)
            fail_msg("%s\n%s", err.text, objects[i]);
        if (stw_json_scan(&doc, stw_buf_str(&out), out.len, &err) != 0)
            fail_msg("%s\n%s\n%s", err.text, objects[i], stw_buf_str(&out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversion_accepts_any_annotation_type),
        cmocka_unit_test(test_objects_convert_in_both_directions),
        cmocka_unit_test(test_conversion_function_is_called),
        cmocka_unit_test(test_round_trips_lose_nothing),
        cmocka_unit_test(test_malformed_objects_convert_to_valid_json),
        cmocka_unit_test(test_deep_objects_convert),
        cmocka_unit_test(test_oversized_annotations_are_refused),
        cmocka_unit_test(test_deleted_objects_still_convert),
        cmocka_unit_test(test_cached_object_is_not_converted),
        cmocka_unit_test(test_unknown_versions_are_refused),
        cmocka_unit_test(test_invalid_conversion_tables_are_found),
        cmocka_unit_test(test_overlapping_moves_are_found),
        cmocka_unit_test(test_crd_has_all_versions),
        cmocka_unit_test(test_crd_conversion_webhook_by_url_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
