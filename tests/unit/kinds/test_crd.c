/* SPDX-License-Identifier: Apache-2.0
 *
 * The CRDs under config/ match the tables; `steward print crds` regenerates them. */
#include "kinds/databaseuser/spec.h"
#include "kinds/kinds.h"
#include "sql/target/dialect.h"

#include "support/judge.h"

typedef void print_crd(const struct stw_operator *op, const struct stw_kind *k,
                       struct stw_buf *out);

static void compare_files(const char *folder, print_crd *print)
{
    for (const struct stw_kind *const *k = stw_kinds; *k; k++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
        stw_autofree char *file = NULL;
        struct stw_error err = {0};
        char path[512];
        size_t len;
        snprintf(path, sizeof(path), STW_SOURCE_ROOT "/config/%s/%s_%s.yaml", folder, (*k)->group,
                 (*k)->plural);
        if (stw_read_file(path, 1 << 20, &file, &len, &err) != 0)
            fail_msg("%s", err.text);
        print(&stw_operator_steward, *k, &out);
        assert_false(out.failed);
        const char *text = strchr(file, '\n'); /* after the line that names the generator */
        assert_true(file[0] == '#' && text);
        assert_string_equal(text + 1, stw_buf_str(&out));
    }
}

static void test_crd_files_are_up_to_date(void **state)
{
    (void)state;
    compare_files("crd/bases", stw_kind_crd);
    compare_files("server-1.29/crds", stw_kind_crd_rules);
}

/* The list of privileges in a rule has those of all engines, or CEL would be stricter than C. */
static void test_crd_rules_list_all_privileges(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
    (void)state;
    stw_kind_crd_rules(&stw_operator_steward, &stw_kind_databaseuser, &out);
    for (enum stw_engine e = 0; e < STW_ENGINES; e++) {
        stw_autobuf struct stw_buf names = STW_BUF_INIT(8192);
        char quoted[128];
        stw_engine_list_privileges(e, ~0U, &names);
        assert_true(names.len > 0);
        for (char *save, *name = strtok_r(names.data, "\"", &save); name;
             name = strtok_r(NULL, "\"", &save)) {
            if (*name == ',')
                continue;
            snprintf(quoted, sizeof(quoted), "''%s''", name);
            if (!strstr(stw_buf_str(&out), quoted))
                fail_msg("%s", quoted);
        }
    }
}

/* Rules and words of them that the generator replaces. */
static void test_rules_become_crd_validations(void **state)
{
    static const struct stw_cel ends[] = {{"self.endsWith('.self')", "must end"}, {0}};
    static const struct stw_field inner[] = {
        {.name = "b", .type = STW_T_STRING, .immutable = true, .cel_max = 9, .cel = ends}, {0}};
    static const struct stw_field spec[] = {
        {.name = "a", .type = STW_T_OBJECT, .fields = inner},
        {.name = "n", .type = STW_T_INT, .immutable = true, .def = "7"},
        {.name = "l", .type = STW_T_LIST, .unique = true, .item = &inner[0]},
        {0}};
    static const struct stw_cel_rule rules[] = {
        {.at = "n", .code = STW_INVALID, .rule = "self.n < 9", .message = "small"},
        {.at = "l",
         .type = STW_CEL_TRANSITION,
         .code = STW_FORBIDDEN,
         .rule = "self.l == oldSelf.l || oldObject.x",
         .message = "no"},
        {0}};
    static const char *const want[] = {
        "maxLength: 9\n",
        "x-kubernetes-list-type: set\n",
        "maxItems: 1000\n",
        "                    - message: must end\n"
        "                      rule: 'self.endsWith(''.self'')'\n",
        "        - fieldPath: .spec.a.b\n          message: field is immutable\n",
        "rule: '((has(self.spec.a) && has(self.spec.a.b)) ? (has(oldSelf.spec.a) && "
        "has(oldSelf.spec.a.b)) && self.spec.a.b == oldSelf.spec.a.b : !(has(oldSelf.spec.a) && "
        "has(oldSelf.spec.a.b)))'\n",
        "rule: '((has(self.spec.n)) ? self.spec.n : 7) == ((has(oldSelf.spec.n)) ? oldSelf.spec.n "
        ": 7)'\n",
        "          reason: FieldValueInvalid\n"
        "          rule: 'has(self.status) || ((self.spec.n < 9))'\n",
        "rule: '((self.spec.n < 9)) || (((has(self.spec.n)) ? (has(oldSelf.spec.n)) && self.spec.n "
        "== oldSelf.spec.n : !(has(oldSelf.spec.n))) && (!((oldSelf.spec.n < 9))))'\n",
        "          reason: FieldValueForbidden\n"
        "          rule: 'self.spec.l == oldSelf.spec.l || oldSelf.x'\n",
    };
    const struct stw_kind kind = {.group = "g.io",
                                  .version = "v1",
                                  .kind = "Thing",
                                  .plural = "things",
                                  .singular = "thing",
                                  .spec = spec,
                                  .cel = rules};
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20), base = STW_BUF_INIT(1 << 20);
    (void)state;
    stw_kind_crd_rules(&stw_operator_steward, &kind, &out);
    for (size_t i = 0; i < STW_COUNT(want); i++)
        if (!strstr(stw_buf_str(&out), want[i]))
            fail_msg("<%s> is not in\n%s", want[i], stw_buf_str(&out));
    stw_kind_crd(&stw_operator_steward, &kind, &base); /* for Kubernetes 1.20 */
    assert_null(strstr(stw_buf_str(&base), "x-kubernetes-validations"));
    assert_null(strstr(stw_buf_str(&base), "list-type: set"));
}

static const char *const words[] = {"true", "Plain text, with a comma", NULL};

static const struct stw_field fields[] = {
    {.name = "a", .type = STW_T_STRING, .help = "It's: quoted # here", .values = words},
    {.name = "b", .type = STW_T_TEXT, .help = "no", .has_range = true, .min = 5, .max = 9},
    {.name = "c",
     .type = STW_T_INT,
     .has_range = true,
     .min = -1,
     .max = INT64_MAX,
     .format = "int64",
     .def = "7"},
    {.name = "d", .type = STW_T_BOOL, .def = "true", .computed = true},
    {.name = "e", .type = STW_T_RAW},
    {.name = "f",
     .type = STW_T_MAP,
     .item = &(const struct stw_field){.name = "", .type = STW_T_BOOL},
     .has_range = true,
     .max = 3},
    {0},
};

static const struct stw_column columns[] = {
    {.name = "Wide", .type = "integer", .json_path = ".spec.c", .priority = 1, .help = "See c"},
    {0},
};

/* The spec of a schema, up to the status. */
static void test_fields_become_crd_schema(void **state)
{
    static const char want[] = "          spec:\n"
                               "            description: Desired state.\n"
                               "            type: object\n"
                               "            properties:\n"
                               "              a:\n"
                               "                description: 'It''s: quoted # here'\n"
                               "                enum:\n"
                               "                - 'true'\n"
                               "                - Plain text, with a comma\n"
                               "                type: string\n"
                               "              b:\n"
                               "                description: 'no'\n"
                               "                maxLength: 9\n"
                               "                minLength: 2\n"
                               "                type: string\n"
                               "              c:\n"
                               "                default: 7\n"
                               "                format: int64\n"
                               "                minimum: -1\n"
                               "                type: integer\n"
                               "              d:\n"
                               "                type: boolean\n"
                               "              e:\n"
                               "                type: object\n"
                               "                x-kubernetes-preserve-unknown-fields: true\n"
                               "              f:\n"
                               "                maxProperties: 3\n"
                               "                type: object\n"
                               "                additionalProperties:\n"
                               "                  type: boolean\n"
                               "          status:\n";
    static const char *const categories[] = {"all", NULL};
    static const struct stw_operator other = {.name = "other", .domain = "other.example"};
    const struct stw_kind kind = {.group = "g.io",
                                  .version = "v1",
                                  .kind = "Thing",
                                  .plural = "things",
                                  .singular = "thing",
                                  .categories = categories,
                                  .spec = fields,
                                  .columns = columns};
    stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
    (void)state;
    stw_kind_crd(&other, &kind, &out);
    assert_non_null(strstr(stw_buf_str(&out), want));
    assert_non_null(strstr(stw_buf_str(&out), "    - name: Wide\n"
                                              "      description: See c\n"
                                              "      jsonPath: .spec.c\n"
                                              "      priority: 1\n"
                                              "      type: integer\n"));
    assert_non_null(strstr(stw_buf_str(&out), "  labels:\n"
                                              "    app.kubernetes.io/part-of: other\n"));
    assert_non_null(strstr(stw_buf_str(&out), "    categories:\n"
                                              "    - all\n"
                                              "    - other\n"));
    assert_non_null(strstr(stw_buf_str(&out), "Observed state; only other writes it."));
    assert_null(strstr(stw_buf_str(&out), "steward"));
    assert_null(strstr(stw_buf_str(&out), "{operator}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crd_files_are_up_to_date),
        cmocka_unit_test(test_crd_rules_list_all_privileges),
        cmocka_unit_test(test_rules_become_crd_validations),
        cmocka_unit_test(test_fields_become_crd_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
