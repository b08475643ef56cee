/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/names.h"

#include "support/judge.h"

#define NANO 1000000000LL
#define MOST ((stw_quantity)INT64_MAX * NANO)

/* Values and canonical forms as k8s.io/apimachinery gives them. */
static const struct {
    const char *text;
    int64_t whole; /* plus nano */
    int64_t nano;
    const char *canonical;
} good[] = {
    {"0", 0, 0, "0"},
    {"0.0", 0, 0, "0"},
    {"0Mi", 0, 0, "0"},
    {"1", 1, 0, "1"},
    {"+1", 1, 0, "+1"}, /* canonical enough for the API server to keep the text */
    {"010", 10, 0, "010"},
    {"-1", -1, 0, "-1"},
    {"10m", 0, 10000000, "10m"},
    {"1000m", 1, 0, "1"},
    {"1500m", 1, 500000000, "1500m"},
    {"1.5", 1, 500000000, "1500m"},
    {"1.500", 1, 500000000, "1.500"},
    {"0.500", 0, 500000000, "500m"},
    {".5", 0, 500000000, "500m"},
    {"1.", 1, 0, "1."},
    {"0.1", 0, 100000000, "100m"},
    {"100u", 0, 100000, "100u"},
    {"1n", 0, 1, "1n"},
    {"0.1n", 0, 1, "1n"}, /* never rounded to zero */
    {"-0.1n", 0, -1, "-1n"},
    {"2k", 2000, 0, "2k"},
    {"2000", 2000, 0, "2k"},
    {"1000k", 1000000, 0, "1M"},
    {"12E", INT64_MAX, 0, NULL},
    {"9E", 9000000000000000000LL, 0, "9E"},
    {"16Mi", 16777216, 0, "16Mi"},
    {"1Ki", 1024, 0, "1Ki"},
    {"1024Mi", 1073741824, 0, "1Gi"},
    {"1025Mi", 1074790400, 0, "1025Mi"},
    {"1.5Gi", 1610612736, 0, "1536Mi"},
    {"0.5Ki", 512, 0, "512"},
    {"0.5Mi", 524288, 0, "512Ki"},
    {"31.25Ki", 32000, 0, "32k"},
    {"1.3Ki", 1331, 200000000, "1331200m"}, /* no precision is lost */
    {"1e3", 1000, 0, "1e3"},
    {"1E3", 1000, 0, "1E3"},
    {"1000e0", 1000, 0, "1e3"},
    {"12e-1", 1, 200000000, "1200e-3"},
    {"1e+3", 1000, 0, "1e+3"},
    {"128974848", 128974848, 0, "128974848"},
    {"129e6", 129000000, 0, "129e6"},
    {"99999999999999999999999999", INT64_MAX, 0, NULL},
    {"0.00000000000000000000000000001", 0, 1, "1n"},
    {"8Ei", INT64_MAX, 0, NULL},
    {"7Ei", 8070450532247928832LL, 0, "7Ei"},
    {"1e100", INT64_MAX, 0, NULL},
    {"1e-100", 0, 1, "1e-9"},
};

static void test_quantities_are_parsed(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(good); i++) {
        stw_quantity q;
        stw_quantity want = (stw_quantity)good[i].whole * NANO + good[i].nano;
        if (stw_quantity_parse(good[i].text, &q) != 0 || q != want)
            fail_msg("\"%s\"", good[i].text);
    }
}

static void test_quantities_have_canonical_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(good); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(256);
        assert_int_equal(stw_quantity_canonical(good[i].text, &out), 0);
        if (good[i].canonical)
            assert_string_equal(stw_buf_str(&out), good[i].canonical);
    }
}

static void test_invalid_quantities_are_refused(void **state)
{
    static const char *const bad[] = {
        "",      " ",    "1 ",   " 1",   "abc", "1mi", "1i",    "1KiB",  "1,5",
        "1.1.1", "-",    "+",    ".",    "Mi",  "1e",  "1e1.5", "1e+-3", "1e101",
        "--1",   "1Mi1", "0x10", "1e3m", "NaN", "1\n", "e3",    "1K",
    };
    stw_quantity q = 42;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(bad); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(64);
        if (stw_quantity_parse(bad[i], &q) == 0 || stw_quantity_canonical(bad[i], &out) == 0)
            fail_msg("\"%s\"", bad[i]);
    }
    assert_true(q == 42); /* written on success only */
}

static void test_quantities_are_read_from_json(void **state)
{
    static const struct {
        const char *json;
        int ok;
        int64_t milli;
    } cases[] = {
        {"[\"1500m\"]", 0, 1500}, {"[2]", 0, 2000},   {"[0.5]", 0, 500},
        {"[1e3]", 0, 1000000},    {"[true]", -1, 0},  {"[null]", -1, 0},
        {"[[1]]", -1, 0},         {"[\"x\"]", -1, 0}, {"[]", -1, 0},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autojson struct stw_json_doc doc = {0};
        stw_quantity q;
        scan(&doc, cases[i].json);
        assert_int_equal(stw_quantity_of(stw_json_at(stw_json_root(&doc), 0), &q), cases[i].ok);
        if (cases[i].ok == 0)
            assert_true(q == (stw_quantity)cases[i].milli * 1000000);
    }
}

static void test_huge_quantities_are_capped(void **state)
{
    stw_quantity q;
    (void)state;
    assert_int_equal(stw_quantity_parse("-99E", &q), 0);
    assert_true(q == -MOST);
    assert_int_equal(stw_quantity_parse("99999999999999999999Ei", &q), 0);
    assert_true(q == MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantities_are_parsed),
        cmocka_unit_test(test_quantities_have_canonical_forms),
        cmocka_unit_test(test_invalid_quantities_are_refused),
        cmocka_unit_test(test_quantities_are_read_from_json),
        cmocka_unit_test(test_huge_quantities_are_capped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
