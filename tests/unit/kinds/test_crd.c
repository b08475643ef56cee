/* SPDX-License-Identifier: Apache-2.0
 *
 * The CRDs under config/ match the tables; `steward print crds` regenerates them. */
#include "kinds/kinds.h"

#include "support/judge.h"

static void files_are_up_to_date(void **state)
{
    (void)state;
    for (const struct stw_kind *const *k = stw_kinds; *k; k++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(1 << 20);
        stw_autofree char *file = NULL;
        struct stw_error err = {0};
        char path[512];
        size_t len;
        snprintf(path, sizeof(path), STW_SOURCE_ROOT "/config/crd/bases/%s_%s.yaml", (*k)->group,
                 (*k)->plural);
        if (stw_read_file(path, 1 << 20, &file, &len, &err) != 0)
            fail_msg("%s", err.text);
        stw_kind_crd(&stw_operator_steward, *k, &out);
        assert_false(out.failed);
        const char *text = strchr(file, '\n'); /* after the line that names the generator */
        assert_true(file[0] == '#' && text);
        assert_string_equal(text + 1, stw_buf_str(&out));
    }
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
static void rows_become_schema(void **state)
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
        cmocka_unit_test(files_are_up_to_date),
        cmocka_unit_test(rows_become_schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
