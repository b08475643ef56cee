/* SPDX-License-Identifier: Apache-2.0
 *
 * Behaviour common to all kinds, tested with MyWeb and with a fictitious kind whose table has each
 * type of row. */
#include "kinds/kinds.h"
#include "kinds/myweb/spec.h"

#include "support/judge.h"

struct lamp {
    const char *owner; /* immutable */
    int64_t watts;     /* immutable, with a default */
    bool lit;
    struct {
        const char *color;
        int64_t level;
    } shade;
    struct stw_json bulbs; /* list of {socket, spare} */
    struct stw_json tags;  /* map of strings */
    struct stw_json budget;
};

static const char *no_blank(const char *s)
{
    return strchr(s, ' ') ? "must hold no blank" : NULL;
}

static const struct stw_field shade_fields[] = {
    {.name = "color",
     STW_FIELD(STW_T_STRING, struct lamp, shade.color) - offsetof(struct lamp, shade),
     .def = "\"white\""},
    {.name = "level",
     STW_FIELD(STW_T_INT, struct lamp, shade.level) - offsetof(struct lamp, shade),
     .immutable = true},
    {0},
};
static const struct stw_field bulb_fields[] = {
    {.name = "socket", .type = STW_T_STRING, .required = true},
    {.name = "spare", .type = STW_T_BOOL, .def = "false"},
    {0},
};
static const struct stw_field bulb = {.name = "", .type = STW_T_OBJECT, .fields = bulb_fields};
static const struct stw_field tag = {.name = "", .type = STW_T_STRING, .check = no_blank};
static const struct stw_field lamp_fields[] = {
    {.name = "owner", STW_FIELD(STW_T_STRING, struct lamp, owner), .immutable = true},
    {.name = "watts", STW_FIELD(STW_T_INT, struct lamp, watts), .def = "40", .immutable = true},
    {.name = "lit", STW_FIELD(STW_T_BOOL, struct lamp, lit), .def = "true"},
    {.name = "shade",
     STW_FIELD(STW_T_OBJECT, struct lamp, shade),
     .def = "{}",
     .fields = shade_fields},
    {.name = "bulbs",
     STW_FIELD(STW_T_LIST, struct lamp, bulbs),
     .item = &bulb,
     .has_range = true,
     .max = 3},
    {.name = "tags",
     STW_FIELD(STW_T_MAP, struct lamp, tags),
     .item = &tag,
     .has_range = true,
     .max = 2},
    {.name = "budget", STW_FIELD(STW_T_QUANTITY, struct lamp, budget)},
    {0},
};

static void lamp_validate(const struct stw_admission *a, const void *spec, const void *old_spec,
                          struct stw_findings *f)
{
    const struct lamp *lamp = spec, *old = old_spec;
    (void)a;
    if (old && old->lit && !lamp->lit)
        stw_findings_add(f, "spec.lit", STW_FORBIDDEN, NULL, "cannot be put out");
    if (lamp->shade.level > lamp->watts)
        stw_findings_add(f, "spec.shade.level", STW_INVALID, NULL, "must be at most watts");
}

static const struct stw_kind lamp_kind = {
    .group = "test.steward.dev",
    .version = "v1",
    .kind = "Lamp",
    .spec = lamp_fields,
    .spec_size = sizeof(struct lamp),
    .validate = lamp_validate,
};

#define LAMP(members) "{\"metadata\":{\"name\":\"a.b\"},\"spec\":{" members "}}"
#define NAMED(metadata)                                                                            \
    "{\"metadata\":{" metadata "},\"spec\":{\"image\":\"a:1\",\"pageContentHtml\":\"x\"}}"

static void assert_lamp(const char *object, const char *old, const char *want)
{
    assert_answer(&lamp_kind, object, old, NULL, want);
}

static void test_every_field_type_is_validated(void **state)
{
    static const struct {
        const char *object, *want;
    } cases[] = {
        {LAMP(""), ""},
        {LAMP("\"bulbs\":[{\"socket\":\"E27\"}],\"tags\":{\"a.b/c\":\"x\"},\"budget\":1.0"), ""},
        {LAMP("\"shade\":{\"color\":1,\"level\":{},\"size\":2}"),
         "spec.shade.color: Invalid value: 1: must be a string\n"
         "spec.shade.level: Invalid value: {}: must be an integer\n"
         "W: unknown field \"spec.shade.size\"\n"},
        {LAMP("\"lit\":\"yes\""), "spec.lit: Invalid value: \"yes\": must be a boolean\n"},
        {LAMP("\"bulbs\":[{\"socket\":\"\"},{\"socket\":\"x\",\"spare\":1}]"),
         "spec.bulbs[0].socket: Required value\n"
         "spec.bulbs[1].spare: Invalid value: 1: must be a boolean\n"},
        {LAMP("\"bulbs\":[1,2,3,4]"),
         "spec.bulbs: Invalid value: [1,2,3,4]: must be at most 3 entries\n"},
        {LAMP("\"tags\":{\"a.b/c\":\"x y\",\"d\":[]}"),
         "spec.tags[a.b/c]: Invalid value: \"x y\": must hold no blank\n"
         "spec.tags[d]: Invalid value: []: must be a string\n"},
        {LAMP("\"tags\":{\"a\":\"\",\"b\":\"\",\"c\":\"\"}"),
         "spec.tags: Invalid value: {\"a\":\"\",\"b\":\"\",\"c\":\"\"}: must be at most 2 "
         "entries\n"},
        {LAMP("\"budget\":\"1 EUR\""), "spec.budget: Invalid value: \"1 EUR\": must be a quantity "
                                       "such as 100m, \"0.1\" or 64Mi\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        assert_lamp(cases[i].object, NULL, cases[i].want);
}

static void test_malformed_objects_are_refused(void **state)
{
    static const struct {
        const char *object, *want;
    } cases[] = {
        {"[]", "<root>: Invalid value: []: must be an object\n"},
        {"{}", "metadata.name: Required value: name or generateName is required\n"
               "spec: Required value\n"},
        {"{\"metadata\":7,\"spec\":[1]}", "metadata: Invalid value: 7: must be an object\n"
                                          "spec: Invalid value: [1]: must be an object\n"},
        {"{\"metadata\":{\"name\":[]},\"spec\":null}",
         "metadata.name: Invalid value: []: must be a string\nspec: Required value\n"},
        {"{\"metadata\":{\"name\":\"a\"},\"spec\":\"x\",\"Spec\":{}}",
         "spec: Invalid value: \"x\": must be an object\nW: unknown field \"Spec\"; did you mean "
         "\"spec\"?\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        assert_lamp(cases[i].object, NULL, cases[i].want);
}

#define A63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define LABEL_TEXT                                                                                 \
    ": must start with a letter and hold only a-z, 0-9 and '-', because a Service gets this "      \
    "name\n"

static void test_object_names_are_validated(void **state)
{
    static const struct {
        const char *object, *want;
    } cases[] = {
        {NAMED("\"name\":\"web\""), ""},
        {NAMED("\"name\":\"" A63 "\""), ""},
        {NAMED("\"name\":\"" A63 "a\""),
         "metadata.name: Invalid value: \"" A63 "a\": must be at most 63 characters\n"},
        {NAMED("\"name\":\"1web\""), "metadata.name: Invalid value: \"1web\"" LABEL_TEXT},
        {NAMED("\"name\":\"my.web\""), "metadata.name: Invalid value: \"my.web\"" LABEL_TEXT},
        {NAMED("\"name\":\"web-\""),
         "metadata.name: Invalid value: \"web-\": must end with a letter or a digit\n"},
        {NAMED("\"generateName\":\"web-\""), ""},
        {NAMED("\"generateName\":\"Web-\""),
         "metadata.generateName: Invalid value: \"Web-\"" LABEL_TEXT},
        {NAMED("\"name\":\"\",\"generateName\":\"web-\""), ""},
        {NAMED("\"name\":\"\""),
         "metadata.name: Required value: name or generateName is required\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        assert_answer(&stw_kind_myweb, cases[i].object, NULL, NULL, cases[i].want);
    assert_lamp("{\"metadata\":{\"name\":\"A\"},\"spec\":{}}", NULL,
                "metadata.name: Invalid value: \"A\": must consist of lower case alphanumeric "
                "characters, '-' or '.', and must start and end with an alphanumeric character\n");
    assert_answer(&stw_kind_myweb, NAMED("\"name\":\"1web\",\"labels\":{}"),
                  NAMED("\"name\":\"1web\""), NULL,
                  "W: metadata.name: Invalid value: \"1web\": must start with a letter and hold "
                  "only a-z, 0-9 and '-', because a Service gets this name; not refused, because "
                  "it has not changed\n");
}

#define NOTED(annotations) NAMED("\"name\":\"web\",\"annotations\":" annotations)

static void test_annotation_values_are_validated(void **state)
{
    static const struct {
        const char *object, *want;
    } cases[] = {
        {NOTED("{\"steward.dev/paused\":\"true\",\"steward.dev/adopt\":\"false\"}"), ""},
        {NOTED("{\"steward.dev/reconcile-at\":\"anything\",\"other\":\"x\"}"), ""},
        {NOTED("{\"steward.dev/paused\":\"yes\",\"steward.dev/adopt\":\"\","
               "\"steward.dev/force-delete\":\"True\\n\"}"),
         "W: annotation steward.dev/paused: \"yes\" is not \"true\" or \"false\"; ignored\n"
         "W: annotation steward.dev/adopt: \"\" is not \"true\" or \"false\"; ignored\n"
         "W: annotation steward.dev/force-delete: \"True \" is not \"true\" or \"false\"; "
         "ignored\n"},
        {NOTED("{\"steward.dev/update-template\":\"always\"}"), ""},
        {NOTED("{\"steward.dev/update-template\":\"0123456789ab\"}"), ""},
        {NOTED("{\"steward.dev/update-template\":\"now\"}"),
         "W: annotation steward.dev/update-template: neither \"always\" nor the 12 digits of the "
         "condition TemplateOutdated; ignored\n"},
        {NOTED("{\"steward.dev/update-template\":\"0123456789abc\"}"),
         "W: annotation steward.dev/update-template: neither \"always\" nor the 12 digits of the "
         "condition TemplateOutdated; ignored\n"},
        {NOTED("[]"), ""}, /* the API server refuses it */
        {NOTED("{\"steward.dev/paused\":true}"), ""},
    };
    static const struct stw_operator other = {.name = "other", .domain = "other.example"};
    const struct stw_env env = {.op = &stw_operator_steward}, env_of_other = {.op = &other};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        assert_answer(&stw_kind_myweb, cases[i].object, NULL, &env, cases[i].want);
        assert_answer(&stw_kind_myweb, cases[i].object, NULL, &env_of_other, "");
    }
    assert_answer(&stw_kind_myweb, NOTED("{\"other.example/paused\":\"yes\"}"), NULL, &env_of_other,
                  "W: annotation other.example/paused: \"yes\" is not \"true\" or \"false\"; "
                  "ignored\n");
}

#define A300 A63 A63 A63 A63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEPT "; not refused, because it has not changed\n"

static void test_updates_accept_unchanged_invalid_values(void **state)
{
    static const struct {
        const char *old, *now, *want;
    } cases[] = {
        /* a new invalid value is refused, an unchanged one is not */
        {LAMP("\"lit\":1"), LAMP("\"lit\":1,\"tags\":{}"),
         "W: spec.lit: Invalid value: 1: must be a boolean" KEPT},
        {LAMP("\"lit\":1"), LAMP("\"lit\":2"), "spec.lit: Invalid value: 2: must be a boolean\n"},
        {LAMP("\"lit\":true"), LAMP("\"lit\":2"),
         "spec.lit: Invalid value: 2: must be a boolean\n"},
        {LAMP("\"tags\":{\"x.y\":\"a b\"}"), LAMP("\"tags\":{\"x.y\":\"a b\",\"z\":\"c d\"}"),
         "spec.tags[z]: Invalid value: \"c d\": must hold no blank\n"
         "W: spec.tags[x.y]: Invalid value: \"a b\": must hold no blank" KEPT},
        {LAMP("\"bulbs\":[{}]"), LAMP("\"bulbs\":[{},{}]"),
         "spec.bulbs[1].socket: Required value\nW: spec.bulbs[0].socket: Required value" KEPT},
        /* an error whose path cannot be resolved stays an error */
        {LAMP("\"tags\":{\"" A300 "\":1}"), LAMP("\"tags\":{\"" A300 "\":1},\"lit\":true"),
         "spec.tags[(a key of 300 bytes)]: Invalid value: 1: must be a string\n"},
        /* a rule between two fields, violated before */
        {LAMP("\"shade\":{\"level\":50}"), LAMP("\"shade\":{\"level\":50},\"tags\":{}"),
         "W: spec.shade.level: Invalid value: must be at most watts" KEPT},
        /* an unchanged spec never blocks an update */
        {LAMP("\"lit\":1,\"bulbs\":[]"), LAMP("\"bulbs\":[],\"lit\":1"),
         "W: spec.lit: Invalid value: 1: must be a boolean" KEPT},
        {"{\"metadata\":{\"name\":\"a\"}}", "{\"metadata\":{\"name\":\"a\",\"labels\":{}}}",
         "W: spec: Required value" KEPT},
        /* a rule about the transition */
        {LAMP("\"lit\":true"), LAMP("\"lit\":false"), "spec.lit: Forbidden: cannot be put out\n"},
        {LAMP("\"lit\":false"), LAMP("\"lit\":false,\"tags\":{}"), ""},
        /* immutable fields; absent is the default */
        {LAMP("\"owner\":\"ann\""), LAMP("\"owner\":\"bob\""),
         "spec.owner: Forbidden: field is immutable (was \"ann\")\n"},
        {LAMP("\"owner\":\"ann\""), LAMP(""),
         "spec.owner: Forbidden: field is immutable (was \"ann\")\n"},
        {LAMP(""), LAMP("\"owner\":\"ann\""),
         "spec.owner: Forbidden: field is immutable (was not set)\n"},
        {LAMP(""), LAMP("\"watts\":40"), ""},
        {LAMP("\"watts\":40"), LAMP("\"watts\":null"), ""},
        {LAMP("\"watts\":60"), LAMP(""), "spec.watts: Forbidden: field is immutable (was 60)\n"},
        {LAMP("\"shade\":{\"level\":1}"), LAMP("\"shade\":{\"level\":2}"),
         "spec.shade.level: Forbidden: field is immutable (was 1)\n"},
        {LAMP("\"shade\":{\"level\":1}"), LAMP("\"shade\":7"),
         "spec.shade: Invalid value: 7: must be an object\n"
         "spec.shade.level: Forbidden: field is immutable (was 1)\n"},
        /* an old object that is not a JSON object excuses nothing */
        {"[]", LAMP("\"lit\":1"), "spec.lit: Invalid value: 1: must be a boolean\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        assert_lamp(cases[i].now, cases[i].old, cases[i].want);
}

static void test_deletion_is_never_refused(void **state)
{
    static const char object[] = "{\"metadata\":{\"name\":\"A\",\"deletionTimestamp\":"
                                 "\"2026-01-01T00:00:00Z\"},\"spec\":{\"owner\":1}}",
                      old[] = "{\"metadata\":{\"name\":\"A\",\"deletionTimestamp\":"
                              "\"2026-01-01T00:00:00Z\"},\"spec\":{\"owner\":\"ann\"}}";
    struct question q;
    (void)state;
    assert_lamp(object, old, "");
    assert_lamp(LAMP("\"owner\":1"), old, ""); /* the API server keeps it */
    /* what a client says of itself excuses nothing */
    assert_lamp("{\"metadata\":{\"name\":\"a.b\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},"
                "\"spec\":{\"owner\":1}}",
                LAMP("\"owner\":\"ann\""),
                "spec.owner: Invalid value: 1: must be a string\n"
                "spec.owner: Forbidden: field is immutable (was \"ann\")\n");
    ask(&q, &lamp_kind, LAMP("\"owner\":1"), NULL, NULL);
    q.a.operation = STW_DELETE;
    stw_autofree char *got = answer(&q.a);
    assert_string_equal(got, "");
    ask_done(&q);
}

static void test_defaults_of_parents_come_first(void **state)
{
    (void)state;
    assert_defaults(
        &lamp_kind, LAMP(""),
        "/spec/watts=40\n/spec/lit=true\n/spec/shade={}\n/spec/shade/color=\"white\"\n");
    assert_defaults(&lamp_kind, LAMP("\"watts\":1,\"lit\":null,\"shade\":{\"level\":1}"),
                    "/spec/lit=true\n/spec/shade/color=\"white\"\n");
    assert_defaults(&lamp_kind,
                    LAMP("\"watts\":1,\"lit\":0,\"shade\":[],\"bulbs\":[{},7,{\"spare\":true},"
                         "{\"spare\":null}]"),
                    "/spec/bulbs/0/spare=false\n/spec/bulbs/3/spare=false\n");
}

static void test_nested_fields_are_decoded(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    struct stw_error err = {0};
    struct lamp lamp;
    (void)state;
    scan(&doc, "{\"shade\":{\"level\":3},\"owner\":null,\"budget\":\"2\"}");
    assert_int_equal(stw_kind_decode(&lamp_kind, stw_json_root(&doc), arena, &lamp, &err), 0);
    assert_null(lamp.owner);
    assert_true(lamp.lit);
    assert_int_equal(lamp.watts, 40);
    assert_string_equal(lamp.shade.color, "white");
    assert_int_equal(lamp.shade.level, 3);
    assert_true(stw_json_is(lamp.budget, "2"));
    scan(&doc, "{\"shade\":7}");
    assert_int_equal(stw_kind_decode(&lamp_kind, stw_json_root(&doc), arena, &lamp, &err), -1);
    assert_string_equal(lamp.shade.color, "white");
    assert_string_equal(err.text, "spec.shade: Invalid value: 7: must be an object");
}

/* Strings beyond the first block of the arena, and one that is larger than any block. */
static void test_long_strings_are_decoded(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    stw_autobuf struct stw_buf text = STW_BUF_INIT(1 << 20);
    struct stw_error err = {0};
    struct lamp lamp;
    (void)state;
    stw_buf_adds(&text, "{\"owner\":\"");
    for (int i = 0; i < 10000; i++)
        stw_buf_adds(&text, "0123456789");
    stw_buf_adds(&text, "\"}");
    for (int i = 0; i < 20; i++) {
        scan(&doc, stw_buf_str(&text));
        assert_int_equal(stw_kind_decode(&lamp_kind, stw_json_root(&doc), arena, &lamp, &err), 0);
        assert_int_equal(strlen(lamp.owner), 100000);
        scan(&doc, "{\"owner\":\"short\"}");
        assert_int_equal(stw_kind_decode(&lamp_kind, stw_json_root(&doc), arena, &lamp, &err), 0);
        assert_string_equal(lamp.owner, "short");
    }
}

static void assert_denial(const char *object, const char *name, const char *want)
{
    stw_autofindings struct stw_findings f = {0};
    stw_autobuf struct stw_buf out = STW_BUF_INIT(65536);
    struct question q;
    ask(&q, &stw_kind_myweb, object, NULL, NULL);
    q.a.name = name;
    stw_kind_validate(&q.a, &f);
    stw_kind_denial(&q.a, &f, &out);
    assert_string_equal(stw_buf_str(&out), want);
    ask_done(&q);
}

static void test_denial_message_lists_findings(void **state)
{
    (void)state;
    assert_denial("{\"metadata\":{\"name\":\"web\"},\"spec\":{}}", "web",
                  "MyWeb.operator.k8s-summit.org \"web\" is invalid: spec.image: Required value");
    assert_denial("{\"metadata\":{\"name\":\"web\"},\"spec\":{\"replicas\":-1}}", NULL,
                  "MyWeb.operator.k8s-summit.org \"web\" is invalid: [spec.image: Required value, "
                  "spec.replicas: Invalid value: -1: must be between 0 and 100]");
    assert_denial("{\"metadata\":{\"generateName\":\"web-\"},\"spec\":{}}", "",
                  "MyWeb.operator.k8s-summit.org \"\" is invalid: spec.image: Required value");
}

static void test_kinds_are_found_by_group_version_kind(void **state)
{
    (void)state;
    assert_ptr_equal(stw_kind_find("operator.k8s-summit.org", "v1", "MyWeb"), &stw_kind_myweb);
    assert_null(stw_kind_find("operator.k8s-summit.org", "v2", "MyWeb"));
    assert_null(stw_kind_find("k8s-summit.org", "v1", "MyWeb"));
    assert_null(stw_kind_find("operator.k8s-summit.org", "v1", "myweb"));
    for (const struct stw_kind *const *k = stw_kinds; *k; k++)
        assert_ptr_equal(stw_kind_find((*k)->group, (*k)->version, (*k)->kind), *k);
}

/* Every list and map of every kind has a maximum, small enough for a rule to walk it for each
 * entry. */
static void check_maxima(const struct stw_field *rows, const char *where, unsigned depth)
{
    for (const struct stw_field *row = rows; row->name && depth < 12; row++) {
        bool many = row->type == STW_T_LIST || row->type == STW_T_MAP;
        if (many && !(row->has_range && row->max > 0 && row->max <= 1000))
            fail_msg("%s: %s has no maximum of 1000 or less", where, row->name);
        if (row->fields)
            check_maxima(row->fields, row->name, depth + 1);
        if (row->item && row->item->fields)
            check_maxima(row->item->fields, row->name, depth + 1);
    }
}

static void test_every_text_field_has_a_maximum(void **state)
{
    (void)state;
    for (const struct stw_kind *const *k = stw_kinds; *k; k++)
        check_maxima((*k)->spec, (*k)->kind, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_type_is_validated),
        cmocka_unit_test(test_malformed_objects_are_refused),
        cmocka_unit_test(test_object_names_are_validated),
        cmocka_unit_test(test_annotation_values_are_validated),
        cmocka_unit_test(test_updates_accept_unchanged_invalid_values),
        cmocka_unit_test(test_deletion_is_never_refused),
        cmocka_unit_test(test_defaults_of_parents_come_first),
        cmocka_unit_test(test_nested_fields_are_decoded),
        cmocka_unit_test(test_long_strings_are_decoded),
        cmocka_unit_test(test_denial_message_lists_findings),
        cmocka_unit_test(test_kinds_are_found_by_group_version_kind),
        cmocka_unit_test(test_every_text_field_has_a_maximum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
