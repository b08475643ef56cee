/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects of other versions, checked without an API server that converts them. */
#include "support/convertible.h"
#include "support/judge.h"

/* A rule of v1, with ratcheting as for every rule. */
static void judge_host(const struct stw_admission *a, const void *spec, const void *old_spec,
                       struct stw_findings *f)
{
    const struct site *s = spec;
    (void)old_spec;
    if (s->host && stw_streq(s->host, "bad"))
        stw_findings_at(f, "spec.host", STW_INVALID, stw_json_path(a->object, "spec.host"),
                        "is bad");
}

#define ALPHA(rest)                                                                                \
    "{\"apiVersion\":\"example.org/"                                                               \
    "v1alpha1\",\"kind\":\"Site\",\"metadata\":{\"name\":\"a\"}" rest "}"
#define BETA(rest)                                                                                 \
    "{\"apiVersion\":\"example.org/v1beta1\",\"kind\":\"Site\",\"metadata\":{\"name\":\"a\"}" rest \
    "}"
#define OWN(rest)                                                                                  \
    "{\"apiVersion\":\"example.org/v1\",\"kind\":\"Site\",\"metadata\":{\"name\":\"a\"}" rest "}"
#define DEPRECATED "W: example.org/v1alpha1 Site is deprecated; use example.org/v1\n"
#define NAMES "W: the errors name fields of example.org/v1, to which the object is converted\n"

static const struct {
    const char *object, *old, *want; /* `old` NULL: a CREATE */
} rows[] = {
    {OWN(",\"spec\":{\"host\":\"h\"}"), NULL, ""},
    {OWN(",\"spec\":{\"host\":\"bad\"}"), NULL, "spec.host: Invalid value: \"bad\": is bad\n"},
    {ALPHA(",\"spec\":{\"from\":\"h\",\"port\":\"80\",\"comment\":\"c\"}"), NULL, DEPRECATED},
    {BETA(",\"spec\":{\"schedule\":{\"minute\":\"5\"}}"), NULL, ""},
    /* the schema of the version */
    {ALPHA(",\"spec\":{\"port\":80}"), NULL,
     "spec.port: Invalid value: 80: must be a string\n" DEPRECATED},
    {ALPHA(",\"spec\":{\"host\":\"h\"}"), NULL, "spec.host: Forbidden: unknown field\n" DEPRECATED},
    {ALPHA(",\"from\":\"h\",\"spec\":{}"), NULL,
     "from: Forbidden: unknown field; did you mean \"spec.from\"?\n" DEPRECATED},
    {ALPHA(",\"spec\":[1]"), NULL, "spec: Invalid value: [1]: must be an object\n" DEPRECATED},
    {ALPHA(""), NULL, "spec: Required value\n" DEPRECATED},
    /* the rules of v1 */
    {ALPHA(",\"spec\":{\"from\":\"bad\"}"), NULL,
     "spec.host: Invalid value: \"bad\": is bad\n" DEPRECATED NAMES},
    /* a failed conversion, from the version and to another one */
    {OWN(",\"spec\":{\"schedule\":\"fail\"}"), NULL,
     "spec.schedule: Invalid value: \"fail\" has no minute\n"},
    {BETA(",\"spec\":{\"schedule\":{\"minute\":\"fail\"}}"), NULL,
     "spec.schedule: Invalid value: \"fail\" has no minute\n"},
    /* ratcheting, with an old object of either version */
    {OWN(",\"spec\":{\"host\":\"bad\"}"), ALPHA(",\"spec\":{\"from\":\"bad\"}"),
     "W: spec.host: Invalid value: \"bad\": is bad; not refused, because it has not changed\n"},
    {ALPHA(",\"spec\":{\"from\":\"bad\"}"), OWN(",\"spec\":{\"host\":\"bad\"}"),
     DEPRECATED
     "W: spec.host: Invalid value: \"bad\": is bad; not refused, because it has not changed\n"},
    {ALPHA(",\"spec\":{\"from\":\"bad\"}"), OWN(",\"spec\":{\"host\":\"h\"}"),
     "spec.host: Invalid value: \"bad\": is bad\n" DEPRECATED NAMES},
    /* an old object that cannot be converted is compared as it is */
    {OWN(",\"spec\":{\"host\":\"bad\"}"),
     BETA(",\"spec\":{\"host\":\"bad\",\"schedule\":{\"minute\":\"fail\"}}"),
     "W: spec.host: Invalid value: \"bad\": is bad; not refused, because it has not changed\n"},
};

static void test_each_served_version_is_validated(void **state)
{
    const struct stw_env env = {.op = &site_operator};
    struct stw_kind kind = site_kind;
    (void)state;
    kind.validate = judge_host;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct question q;
        stw_autofindings struct stw_findings f = {.strict = true};
        ask(&q, &kind, rows[i].object, rows[i].old, &env);
        stw_kind_validate_served(&q.a, &f);
        char *said = findings_lines(&f);
        if (!stw_streq(said, rows[i].want))
            fail_msg("\n%s\nwant: %s\ngot:  %s", rows[i].object, rows[i].want, said);
        free(said);
        ask_done(&q);
    }
}

/* Unknown fields are warnings if they are not errors. */
static void test_lenient_mode_warns_about_unknown_fields(void **state)
{
    const struct stw_env env = {.op = &site_operator};
    struct question q;
    stw_autofindings struct stw_findings f = {0};
    (void)state;
    ask(&q, &site_kind, ALPHA(",\"spec\":{\"fro\":\"h\"}"), NULL, &env);
    stw_kind_validate_served(&q.a, &f);
    char *said = findings_lines(&f);
    assert_string_equal(said, DEPRECATED "W: unknown field \"spec.fro\"; did you mean \"from\"?\n");
    free(said);
    ask_done(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_served_version_is_validated),
        cmocka_unit_test(test_lenient_mode_warns_about_unknown_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
