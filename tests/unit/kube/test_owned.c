/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects recorded from Kubernetes 1.20: as applied, as live right after that, and after another
 * client changed one of our fields. */
#include "base/util.h"
#include "kube/owned.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MANAGER "steward-test"

struct document {
    char *text;
    struct stw_json_doc doc;
    struct stw_json root;
};

static void scan(struct document *d, char *text)
{
    struct stw_error err;
    *d = (struct document){.text = text};
    if (stw_json_scan(&d->doc, text, strlen(text), &err) < 0)
        fail_msg("%s", err.text);
    d->root = stw_json_root(&d->doc);
}

static void load(struct document *d, const char *name, const char *what)
{
    char path[512], *text = NULL;
    size_t len;
    struct stw_error err;
    (void)snprintf(path, sizeof(path), "%s/owned/%s.%s.json", TEST_DATA, name, what);
    if (stw_read_file(path, 1u << 20, &text, &len, &err) < 0)
        fail_msg("%s", err.text);
    scan(d, text);
}

static void done(struct document *d)
{
    stw_json_done(&d->doc);
    free(d->text);
}

static bool same(struct stw_hash a, struct stw_hash b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/* What we own of the live template, as JSON in `d`. */
static void extract(struct document *d, struct stw_json live)
{
    struct stw_buf text = STW_BUF_INIT(65536);
    assert_int_equal(stw_owned_template(live, MANAGER, &text), 0);
    struct stw_buf whole = STW_BUF_INIT(65536);
    stw_buf_addf(&whole, "{\"spec\":{\"template\":%s}}", stw_buf_str(&text));
    scan(d, strdup(stw_buf_str(&whole)));
    stw_buf_done(&text);
    stw_buf_done(&whole);
}

/* The pod template alone. */
static char *with_template_of(const struct document *d)
{
    size_t len;
    char *text = NULL;
    const char *raw = stw_json_raw(stw_json_path(d->root, "spec.template"), &len);
    assert_true(asprintf(&text, "{\"spec\":{\"template\":%.*s}}", (int)len, raw) > 0);
    return text;
}

/* The template that was applied can be taken from the live object, with all that the server added. */
static void test_applied_template_is_extracted(void **state)
{
    struct document want, live, drifted, kept, other, part;
    struct stw_hash wanted, got, changed;
    struct stw_buf unused = STW_BUF_INIT(65536);
    (void)state;
    load(&want, "deployment", "desired");
    load(&live, "deployment", "live");
    load(&drifted, "deployment", "drifted");
    struct stw_hash all = stw_owned_desired_parts(want.root, &wanted);
    assert_true(same(all, stw_owned_desired(want.root)));
    all = stw_owned_live_parts(live.root, MANAGER, true, &got);
    assert_true(same(all, stw_owned_live(live.root, MANAGER, true)));
    assert_true(same(got, wanted)); /* although the server dropped empty values */
    (void)stw_owned_live_parts(drifted.root, MANAGER, true, &changed);
    assert_false(same(changed, wanted));
    extract(&kept, live.root);
    all = stw_owned_desired_parts(kept.root, &got);
    assert_true(same(all, got)); /* there is nothing else */
    assert_int_equal(stw_owned_diff(kept.root, want.root, 3, &unused), 0);
    scan(&part, with_template_of(&want));
    assert_int_equal(stw_owned_diff(part.root, kept.root, 3, &unused), 0);
    extract(&other, drifted.root);
    assert_int_not_equal(stw_owned_diff(part.root, other.root, 3, &unused), 0);
    done(&part);
    stw_buf_clear(&unused);
    assert_int_equal(stw_owned_template(live.root, "somebody", &unused), -1);
    stw_buf_done(&unused);
    done(&other);
    done(&kept);
    done(&drifted);
    done(&live);
    done(&want);
}

/* Elements are in the order of the live list, not in that of the fields; those of other clients are
 * left out. */
static void test_owned_elements_keep_their_order(void **state)
{
    struct document live, kept;
    (void)state;
    scan(&live,
         strdup("{\"metadata\":{\"managedFields\":[{\"manager\":\"" MANAGER
                "\",\"operation\":\"Apply\",\"fieldsV1\":{\"f:spec\":{\"f:template\":{"
                "\"f:spec\":{\"f:env\":{\"k:{\\\"name\\\":\\\"A\\\"}\":{\".\":{},"
                "\"f:name\":{}},\"k:{\\\"name\\\":\\\"B\\\"}\":{\".\":{},\"f:name\":{},"
                "\"f:value\":{}}},\"f:finalizers\":{\"v:\\\"x\\\"\":{}},\"f:atomic\":{},"
                "\"f:gone\":{\"f:a\":{}}}}}}}]},"
                "\"spec\":{\"template\":{\"spec\":{\"env\":[{\"name\":\"C\"},"
                "{\"name\":\"B\",\"value\":\"1\",\"more\":2},{\"name\":\"A\",\"value\":\"\"}],"
                "\"finalizers\":[\"y\",\"x\"],\"atomic\":[1,{\"a\":2}],\"other\":1}}}}"));
    extract(&kept, live.root);
    assert_string_equal(kept.text,
                        "{\"spec\":{\"template\":{\"spec\":{\"env\":[{\"name\":\"B\",\"value\":"
                        "\"1\"},{\"name\":\"A\"}],\"finalizers\":[\"x\"],"
                        "\"atomic\":[1,{\"a\":2}]}}}}");
    done(&kept);
    done(&live);
}

static void test_owned_fields_are_read_from_recorded_objects(void **state)
{
    static const struct {
        const char *name, *diff;
    } rows[] = {
        {"configmap", ""}, /* the loss of an empty value is detected, but cannot be named */
        {"service", "spec.ports[port=80,protocol=TCP].nodePort"},
        {"deployment", "spec.template.spec.containers[name=side].image"},
        {"poddisruptionbudget", "spec.minAvailable"},
        {"empties", "spec.replicas"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct document want, live, drifted;
        struct stw_buf names = STW_BUF_INIT(1000);
        load(&want, rows[i].name, "desired");
        load(&live, rows[i].name, "live");
        load(&drifted, rows[i].name, "drifted");
        struct stw_hash wanted = stw_owned_desired(want.root);
        if (!same(wanted, stw_owned_live(live.root, MANAGER, true)))
            fail_msg("%s: not the same right after it was applied", rows[i].name);
        if (same(wanted, stw_owned_live(drifted.root, MANAGER, false)))
            fail_msg("%s: the drift is not seen", rows[i].name);
        assert_int_equal(stw_owned_diff(want.root, live.root, 5, &names), 0);
        (void)stw_owned_diff(want.root, drifted.root, 5, &names);
        assert_string_equal(stw_buf_str(&names), rows[i].diff);
        assert_true(same((struct stw_hash){0}, stw_owned_live(live.root, "somebody", true)));
        stw_buf_done(&names);
        done(&want);
        done(&live);
        done(&drifted);
    }
}

/* Whether two texts have the same digest. */
static void test_digests_ignore_order_and_form(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } rows[] = {
        {"{\"d\":{\"a\":\"1\",\"b\":\"2\"}}", "{\"d\":{\"b\":\"2\",\"a\":\"1\"}}", true},
        {"{\"d\":{\"a\":\"1\"}}", "{\"d\":{\"a\":1}}", false},
        {"{\"d\":{\"a\":\"1\",\"b\":\"2\"}}", "{\"d\":{\"a\":\"2\",\"b\":\"1\"}}", false},
        {"{\"a\":\"\\u00e9\"}", "{\"a\":\"\xc3\xa9\"}", true},
        {"{\"kind\":\"A\",\"metadata\":{\"name\":\"x\",\"uid\":\"1\"},\"a\":1}", "{\"a\":1}", true},
        /* names further down do count */
        {"{\"a\":{\"name\":\"x\"}}", "{\"a\":{\"name\":\"y\"}}", false},
        {"{\"a\":1,\"b\":null}", "{\"a\":1}", true},
        {"{\"a\":0}", "{\"a\":false}", true},
        {"{\"a\":0}", "{\"a\":1}", false},
        {"{\"args\":[\"a\",\"b\"]}", "{\"args\":[\"b\",\"a\"]}", false},
        {"{\"env\":[{\"name\":\"a\",\"value\":\"1\"},{\"name\":\"b\",\"value\":\"2\"}]}",
         "{\"env\":[{\"value\":\"2\",\"name\":\"b\"},{\"name\":\"a\",\"value\":\"1\"}]}", true},
        {"{\"env\":[{\"name\":\"a\",\"value\":\"1\"},{\"name\":\"b\",\"value\":\"2\"}]}",
         "{\"env\":[{\"name\":\"a\",\"value\":\"2\"},{\"name\":\"b\",\"value\":\"1\"}]}", false},
        {"{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
         "{\"metadata\":{\"finalizers\":[\"b\",\"a\"]}}", true},
        {"{\"a\":{\"b.c\":1}}", "{\"a\":{\"b\":{\"c\":1}}}", false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct document a, b;
        scan(&a, strdup(rows[i].a));
        scan(&b, strdup(rows[i].b));
        if (same(stw_owned_desired(a.root), stw_owned_desired(b.root)) != rows[i].same)
            fail_msg("row %zu", i);
        done(&a);
        done(&b);
    }
}

/* What a newer server writes: sets by value, elements by index, atomic maps as leaves. */
static void test_other_forms_of_managed_fields_are_read(void **state)
{
    struct document want, live;
    (void)state;
    scan(&want, strdup("{\"metadata\":{\"finalizers\":[\"x\"]},"
                       "\"spec\":{\"selector\":{\"a\":\"1\",\"b\":\"2\"},\"list\":[\"p\",\"q\"],"
                       "\"emptyDir\":{}}}"));
    scan(&live, strdup("{\"metadata\":{\"finalizers\":[\"y\",\"x\"],\"managedFields\":["
                       "{\"manager\":\"m\",\"operation\":\"Update\",\"fieldsV1\":{\"f:spec\":{\"f:"
                       "list\":{}}}},"
                       "{\"manager\":\"m\",\"operation\":\"Apply\",\"subresource\":\"status\","
                       "\"fieldsV1\":{\"f:spec\":{\"f:other\":{}}}},"
                       "{\"manager\":\"m\",\"operation\":\"Apply\",\"fieldsV1\":{"
                       "\"f:metadata\":{\"f:finalizers\":{\".\":{},\"v:\\\"x\\\"\":{}}},"
                       "\"f:spec\":{\"f:selector\":{},\"f:list\":{\"i:0\":{},\"i:1\":{}},\"f:"
                       "emptyDir\":{}}}}]},"
                       "\"spec\":{\"selector\":{\"b\":\"2\",\"a\":\"1\"},\"list\":[\"p\",\"q\"],"
                       "\"emptyDir\":{},\"other\":1}}"));
    assert_true(same(stw_owned_desired(want.root), stw_owned_live(live.root, "m", false)));
    done(&want);
    done(&live);
}

/* One more key in a selector, in nodeSelector, or in the data of an envFrom. */
static void test_selector_maps_are_owned_as_a_whole(void **state)
{
    static const struct {
        const char *want, *fields, *more;
        bool all_data, same;
    } rows[] = {
        {"\"spec\":{\"selector\":{\"a\":\"1\"}}", "\"f:spec\":{\"f:selector\":{\"f:a\":{}}}",
         "\"spec\":{\"selector\":{\"a\":\"1\",\"b\":\"2\"}}", false, false},
        {"\"spec\":{\"selector\":{\"a\":\"1\"}}", "\"f:spec\":{\"f:selector\":{\"f:a\":{}}}",
         "\"spec\":{\"selector\":{\"a\":\"1\"},\"sessionAffinity\":\"None\"}", false, true},
        {"\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"1\"}}}",
         "\"f:spec\":{\"f:selector\":{\"f:matchLabels\":{\"f:a\":{}}}}",
         "\"spec\":{\"selector\":{\"matchLabels\":{\"a\":\"1\",\"b\":\"2\"}}}", false, false},
        {"\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":{\"a\":\"1\"}}}}",
         "\"f:spec\":{\"f:template\":{\"f:spec\":{\"f:nodeSelector\":{\"f:a\":{}}}}}",
         "\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":{\"a\":\"1\",\"b\":\"2\"}}}}", false,
         false},
        /* a map is not ours if we own none of its keys */
        {"\"spec\":{\"replicas\":1}", "\"f:spec\":{\"f:replicas\":{}}",
         "\"spec\":{\"replicas\":1,\"selector\":{\"b\":\"2\"}}", false, true},
        {"\"data\":{\"a\":\"1\"}", "\"f:data\":{\"f:a\":{}}", "\"data\":{\"a\":\"1\",\"b\":\"2\"}",
         true, false},
        {"\"data\":{\"a\":\"1\"}", "\"f:data\":{\"f:a\":{}}", "\"data\":{\"a\":\"1\",\"b\":\"2\"}",
         false, true},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct document want, live;
        struct stw_buf desired = STW_BUF_INIT(4096), is = STW_BUF_INIT(4096);
        stw_buf_addf(&desired, "{%s}", rows[i].want);
        stw_buf_addf(&is,
                     "{\"metadata\":{\"managedFields\":[{\"manager\":\"m\",\"operation\":\"Apply\","
                     "\"fieldsV1\":{%s}}]},%s}",
                     rows[i].fields, rows[i].more);
        scan(&want, stw_buf_take(&desired));
        scan(&live, stw_buf_take(&is));
        bool as_wanted =
            same(stw_owned_desired(want.root), stw_owned_live(live.root, "m", rows[i].all_data));
        if (as_wanted != rows[i].same)
            fail_msg("row %zu", i);
        done(&want);
        done(&live);
    }
}

#define MANY 60000

static char *write_many(const char *head, const char *prefix, const char *value, const char *tail)
{
    struct stw_buf out = STW_BUF_INIT(16u << 20);
    stw_buf_adds(&out, head);
    for (unsigned i = 0; i < MANY; i++)
        stw_buf_addf(&out, "%s\"%sk%u\":%s", i > 0 ? "," : "", prefix, i, value);
    stw_buf_adds(&out, tail);
    return stw_buf_take(&out);
}

/* Each name in each member would be 3.6 billion steps: longer than this test may take. */
static void test_many_managed_fields_are_read_quickly(void **state)
{
    struct document want, live;
    (void)state;
    for (int foreign = 0; foreign < 2; foreign++) {
        stw_autofree char *fields = write_many("{\"f:spec\":{\"f:m\":{", "f:", "{}", "}}}");
        stw_autofree char *members = write_many("{", "", "\"v\"", "");
        char *text = NULL;
        assert_true(asprintf(&text,
                             "{\"metadata\":{\"managedFields\":[{\"manager\":\"m\",\"operation\":"
                             "\"Apply\",\"fieldsV1\":%s}]},\"spec\":{\"m\":%s%s}}}",
                             fields, members, foreign ? ",\"other\":1" : "") > 0);
        scan(&live, text);
        scan(&want, write_many("{\"spec\":{\"m\":{", "", "\"v\"", "}}}"));
        assert_int_equal(same(stw_owned_desired(want.root), stw_owned_live(live.root, "m", false)),
                         !foreign);
        done(&want);
        done(&live);
    }
}

#define LISTS 60U
#define ELEMENTS 200U

/* Lists of elements of which each has a name.  `of_fields`: as fieldsV1 has them.  `more`: another
 * client has added an element to this list. */
static char *write_lists(bool of_fields, unsigned more)
{
    struct stw_buf out = STW_BUF_INIT(16u << 20);
    for (unsigned list = 0; list < LISTS; list++) {
        stw_buf_addf(&out, "%s\"%sl%u\":{\"%senv\":%c", list > 0 ? "," : "", of_fields ? "f:" : "",
                     list, of_fields ? "f:" : "", of_fields ? '{' : '[');
        for (unsigned i = 0; i < ELEMENTS; i++)
            stw_buf_addf(&out,
                         of_fields ? "%s\"k:{\\\"name\\\":\\\"n%u\\\"}\":{\".\":{},\"f:name\":{}}"
                                   : "%s{\"name\":\"n%u\"}",
                         i > 0 ? "," : "", i);
        stw_buf_adds(&out, list == more ? ",{\"name\":\"other\"}" : "");
        stw_buf_adds(&out, of_fields ? "}}" : "]}");
    }
    return stw_buf_take(&out);
}

/* A live object whose spec has these members, and of it what fieldsV1 has there. */
static void scan_live(struct document *d, const char *fields, const char *members)
{
    char *text = NULL;
    assert_true(asprintf(&text,
                         "{\"metadata\":{\"managedFields\":[{\"manager\":\"m\",\"operation\":"
                         "\"Apply\",\"fieldsV1\":{\"f:spec\":{%s}}}]},\"spec\":{%s}}",
                         fields, members) > 0);
    scan(d, text);
}

/* Each list is short enough; the names in all of them together would take seconds. */
static void test_many_lists_have_a_common_limit(void **state)
{
    struct document want, live;
    stw_autofree char *fields = write_lists(true, LISTS), *members = write_lists(false, LISTS);
    char *text = NULL;
    (void)state;
    assert_true(asprintf(&text, "{\"spec\":{%s}}", members) > 0);
    scan(&want, text);
    static const unsigned changed[] = {0, LISTS - 1, LISTS};
    for (size_t i = 0; i < STW_COUNT(changed); i++) {
        unsigned more = changed[i];
        stw_autofree char *other = write_lists(false, more);
        scan_live(&live, fields, other);
        bool owned = same(stw_owned_desired(want.root), stw_owned_live(live.root, "m", false));
        /* It is known what is ours of the first list, and the last one counts as ours. */
        assert_int_equal(owned, more != LISTS - 1);
        done(&live);
    }
    done(&want);
}

#define LETTERS 9

/* {"name":"c","b":"b","h":"h"} and all others that identify the same element. */
static char *write_identities(void)
{
    struct stw_buf out = STW_BUF_INIT(1u << 20);
    for (unsigned bits = 1; bits < 1u << LETTERS; bits++) {
        stw_buf_addf(&out, "%s\"k:{\\\"name\\\":\\\"c\\\"", bits > 1 ? "," : "");
        for (char letter = 'a'; letter < 'a' + LETTERS; letter++)
            if (bits & 1u << (letter - 'a'))
                stw_buf_addf(&out, ",\\\"%c\\\":\\\"%c\\\"", letter, letter);
        stw_buf_adds(&out, "}\":{}");
    }
    return stw_buf_take(&out);
}

/* The element has very many values, each of which would be read once for each of them. */
static void test_element_with_many_identities_is_read_quickly(void **state)
{
    struct stw_hash digests[2];
    stw_autofree char *identities = write_identities(), *fields = NULL;
    stw_autofree char *env = write_many("", "", "\"v\"", "");
    (void)state;
    assert_true(asprintf(&fields, "\"f:containers\":{%s}", identities) > 0);
    for (int i = 0; i < 2; i++) {
        struct document live;
        stw_autofree char *members = NULL;
        assert_true(asprintf(&members,
                             "\"containers\":[{\"name\":\"c\",\"a\":\"a\",\"b\":\"b\",\"c\":\"c\","
                             "\"d\":\"d\",\"e\":\"e\",\"f\":\"f\",\"g\":\"g\",\"h\":\"h\","
                             "\"i\":\"i\",\"env\":{%s}}],\"other\":%d",
                             env, i) > 0);
        scan_live(&live, fields, members);
        digests[i] = stw_owned_live(live.root, "m", false);
        done(&live);
    }
    assert_false(same(digests[0], digests[1])); /* all of it counts as ours */
}

/* What is compared on another thread has the same limit. */
static void test_template_lists_have_a_common_limit(void **state)
{
    struct document live;
    struct stw_buf out = STW_BUF_INIT(16u << 20);
    stw_autofree char *lists = write_lists(true, LISTS), *members = write_lists(false, LISTS);
    stw_autofree char *fields = NULL, *template = NULL;
    (void)state;
    assert_true(asprintf(&fields, "\"f:template\":{%s}", lists) > 0);
    assert_true(asprintf(&template, "\"template\":{%s}", members) > 0);
    scan_live(&live, fields, template);
    assert_int_equal(stw_owned_template(live.root, "m", &out), -1);
    stw_buf_done(&out);
    done(&live);
}

static void test_list_of_differences_is_capped(void **state)
{
    struct document want, live;
    struct stw_buf names = STW_BUF_INIT(1000);
    (void)state;
    scan(&want, strdup("{\"spec\":{\"a\":1,\"b\":2,\"c\":{\"d\":3},\"e\":[1,2]}}"));
    scan(&live, strdup("{\"spec\":{\"b\":3,\"c\":7,\"e\":[1]}}"));
    assert_int_equal(stw_owned_diff(want.root, live.root, 2, &names), 4);
    assert_string_equal(stw_buf_str(&names), "spec.a, spec.b and 2 more");
    stw_buf_done(&names);
    done(&want);
    done(&live);
}

static void test_controlling_owner_is_read(void **state)
{
    char kind[64], name[254], uid[64];
    struct document d;
    (void)state;
    scan(&d,
         strdup("{\"metadata\":{\"ownerReferences\":[{\"kind\":\"A\",\"name\":\"a\",\"uid\":\"1\"},"
                "{\"apiVersion\":\"b.example.org/"
                "v2\",\"kind\":\"B\",\"name\":\"b\",\"uid\":\"2\",\"controller\":true}]}}"));
    assert_int_equal(stw_owner_controller(d.root, kind, name, uid), 0);
    assert_string_equal(kind, "B");
    assert_string_equal(name, "b");
    assert_string_equal(uid, "2");
    assert_int_equal(stw_owner_controller(d.root, NULL, NULL, NULL), 0);
    assert_true(stw_reference_is_of(stw_owner_find(d.root), "b.example.org", "B"));
    assert_false(stw_reference_is_of(stw_owner_find(d.root), "b.example.org", "A"));
    assert_false(stw_reference_is_of(stw_owner_find(d.root), "b.example", "B"));
    assert_false(stw_reference_is_of(stw_owner_find(d.root), "example.org", "B"));
    assert_false(stw_reference_is_of(stw_owner_find(d.root), "", "B"));
    done(&d);
    scan(&d, strdup("{\"metadata\":{\"ownerReferences\":7}}"));
    assert_int_equal(stw_owner_controller(d.root, kind, name, uid), -1);
    done(&d);
}

/* A member that is no longer wanted is removed as a whole, with the defaults of the server.  Single
 * values and elements of lists are removed by the apply itself. */
static void test_unwanted_members_are_removed_as_a_whole(void **state)
{
    static const char live[] =
        "{\"metadata\":{\"managedFields\":[{\"manager\":\"m\",\"operation\":\"Apply\",\"fieldsV1\":"
        "{"
        "\"f:metadata\":{\"f:labels\":{\"f:a\":{}}},"
        "\"f:spec\":{\"f:replicas\":{},\"f:deep\":{\"f:a/b~c\":{\"f:x\":{}}},\"f:containers\":{"
        "\"k:{\\\"name\\\":\\\"a\\\"}\":{\".\":{},\"f:name\":{},\"f:probe\":{\"f:get\":{\"f:port\":"
        "{}}}},"
        "\"k:{\\\"name\\\":\\\"b\\\"}\":{\".\":{},\"f:name\":{},\"f:probe\":{\"f:get\":{}}}}}}}],"
        "\"labels\":{\"a\":\"1\"}},"
        "\"spec\":{\"replicas\":3,\"deep\":{\"a/"
        "b~c\":{\"x\":1,\"y\":2}},\"containers\":[{\"name\":\"c\"},"
        "{\"name\":\"a\",\"probe\":{\"get\":{\"port\":1,\"scheme\":\"HTTP\"}}},"
        "{\"name\":\"b\",\"probe\":{\"get\":{}}}]}}";
    static const struct {
        const char *desired, *want;
    } cases[] = {
        {"{\"spec\":{\"deep\":{},\"containers\":[{\"name\":\"a\"}]}}",
         "{\"op\":\"remove\",\"path\":\"/spec/deep/a~1b~0c\"},"
         "{\"op\":\"remove\",\"path\":\"/spec/containers/1/probe\"}"},
        {"{\"spec\":{\"replicas\":1,\"deep\":{\"a/b~c\":{\"x\":2}},\"containers\":[{\"name\":\"a\","
         "\"probe\":{\"get\":{\"port\":2}}},{\"name\":\"b\",\"probe\":{\"get\":{}}}]}}",
         ""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autojson struct stw_json_doc is = {0}, wanted = {0};
        stw_autobuf struct stw_buf out = STW_BUF_INIT(4096);
        assert_int_equal(stw_json_scan(&is, live, strlen(live), NULL), 0);
        assert_int_equal(stw_json_scan(&wanted, cases[i].desired, strlen(cases[i].desired), NULL),
                         0);
        unsigned found = stw_owned_leftovers(stw_json_root(&wanted), stw_json_root(&is), "m", &out);
        assert_string_equal(stw_buf_str(&out), cases[i].want);
        assert_int_equal(found, *cases[i].want ? 2 : 0);
        assert_true(stw_owned_has(stw_json_root(&is), "m", "spec.replicas"));
        assert_false(stw_owned_has(stw_json_root(&is), "m", "spec.other"));
        assert_false(stw_owned_has(stw_json_root(&is), "n", "spec.replicas"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_owned_fields_are_read_from_recorded_objects),
        cmocka_unit_test(test_applied_template_is_extracted),
        cmocka_unit_test(test_owned_elements_keep_their_order),
        cmocka_unit_test(test_digests_ignore_order_and_form),
        cmocka_unit_test(test_other_forms_of_managed_fields_are_read),
        cmocka_unit_test(test_selector_maps_are_owned_as_a_whole),
        cmocka_unit_test(test_many_managed_fields_are_read_quickly),
        cmocka_unit_test(test_many_lists_have_a_common_limit),
        cmocka_unit_test(test_element_with_many_identities_is_read_quickly),
        cmocka_unit_test(test_template_lists_have_a_common_limit),
        cmocka_unit_test(test_list_of_differences_is_capped),
        cmocka_unit_test(test_controlling_owner_is_read),
        cmocka_unit_test(test_unwanted_members_are_removed_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
