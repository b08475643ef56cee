/* SPDX-License-Identifier: Apache-2.0 */
#include "hostile/values.h"

#include "base/util.h"

#define STRING_MAX ((int64_t)1 << 20)
#define ENTRIES_MAX 5000
#define DEPTH_OF_EXAMPLES 12

#define DEEP8(c) c c c c c c c c
#define DEEP64(c) DEEP8(c) DEEP8(c) DEEP8(c) DEEP8(c) DEEP8(c) DEEP8(c) DEEP8(c) DEEP8(c)

const char *const hostile_texts[] = {
    /* every type */
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "\"\"",
    "\"a\"",
    "[]",
    "{}",
    /* numbers */
    "-0",
    "1.0",
    "0.5",
    "-1.5",
    "1e2",
    "1e20",
    "100000000000000000000",
    "99999999999999999999",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "9007199254740993",
    "2147483648",
    "4294967296",
    "1e308",
    "1e400",
    "-1e400",
    "1e-400",
    "1e99999999999999999999",
    "01",
    "NaN",
    /* strings */
    "\" \"",
    "\"\\u0000\"",
    "\"a\\u0000b\"",
    "\"\\u0000/../x\"",
    "\"\\ud800\"",
    "\"\\udc00\\ud800\"",
    "\"\\ud83d\\ude00\"",
    "\"\\u12\"",
    "\"\\x41\"",
    "\"\xff\xfe\"",
    "\"\xc0\xaf\"",
    "\"\xed\xa0\x80\"",
    "\"\x01\"",
    "\"\\u001b[31m\"",
    "\"\\n::error::x\"",
    "\"%s%n%99999d\"",
    "\"../../etc/passwd\"",
    "\"$(A)${A}`a`\"",
    "\"'; DROP TABLE a; --\"",
    "\"-1\"",
    "\"1e400\"",
    "\"99999999999999999999Ei\"",
    "\"100%\"",
    "\"* * * * * *\"",
    "\"a=b,c:d/e@f#g?h&i\"",
    "\"\\u00e4\\u202e\\ufeff\"",
    /* lists */
    "[null]",
    "[[]]",
    "[{}]",
    "[0,\"a\",null,{},[]]",
    "[\"a\",\"a\"]",
    "[{\"image\":\"a:1\"},{\"name\":\"a\"}]",
    "[{\"name\":null},{\"name\":1},{\"name\":\"a\"},{\"name\":\"a\"},{\"name\":\"\"}]",
    "[{\"name\":\"a\\u0000\"},{\"name\":\"a\"}]",
    /* objects */
    "{\"\":null}",
    "{\"a\":null}",
    "{\"a\":{\"b\":[1]}}",
    "{\"a\":1,\"a\":2}",
    "{\"a\":1,\"\\u0061\":2}",
    "{\"name\":null,\"key\":1,\"value\":[]}",
    "{\"a\\u0000b\":\"c\"}",
    "{\"a\\n.b[0]\":\"c\"}",
    "{\"\xff\":1}",
    /* deep */
    DEEP64("[") DEEP64("]"),
    DEEP64("[") DEEP64("[") DEEP64("]") DEEP64("]"),
    DEEP64("{\"a\":") "1" DEEP64("}"),
};
const uint32_t hostile_text_count = STW_COUNT(hostile_texts);

/* Words of many forms, so that one of them fits a string with a rule of its own. */
static const char *const words[] = {"a",
                                    "web",
                                    "/a",
                                    "1h",
                                    "1Gi",
                                    "30 4 * * 1-5",
                                    "nginx:1.25",
                                    "10.0.0.1",
                                    "a.example.com",
                                    "https://a.example.com:2379",
                                    "bucket/path",
                                    "10.%",
                                    "Mon",
                                    "80%",
                                    "2026-01-01T00:00:00Z",
                                    "Europe/Berlin",
                                    "3.6.16",
                                    "SELECT",
                                    "postgres://a:b@c/d",
                                    "2026-01-01",
                                    "10.0.0.0/8",
                                    "22:00",
                                    "A_B"};
const uint32_t hostile_example_count = STW_COUNT(words);

const struct stw_field *hostile_rows_below(const struct stw_field *row)
{
    return row->fields ? row->fields : row->known;
}

static uint32_t count_values_of(const struct stw_field *row)
{
    uint32_t n = 0;
    while (row->values && row->values[n])
        n++;
    return n;
}

/* The sizes and numbers around the range. */
#define EDGES 5
static int64_t edge_of(const struct stw_field *row, uint32_t index)
{
    int64_t const edges[EDGES] = {row->min, row->min - (row->min > INT64_MIN), row->max,
                                  row->max - (row->max > INT64_MIN),
                                  row->max + (row->max < INT64_MAX)};
    return edges[index];
}

uint32_t hostile_value_count(const struct stw_field *row)
{
    /* each value of an enum twice; a valid value of each form; the edges */
    return hostile_text_count + 2 * count_values_of(row) + 1 + (row->has_range ? EDGES : 0);
}

static void write_example(const struct stw_field *row, uint32_t variant, int64_t number, int depth,
                          struct stw_buf *out);

static void write_members(const struct stw_field *row, uint32_t variant, int64_t number, int depth,
                          struct stw_buf *out)
{
    const struct stw_field *rows = hostile_rows_below(row);
    bool any = false;
    stw_buf_addc(out, '{');
    for (; rows && rows->name; rows++) {
        bool key = row->list_keys && stw_streq(row->list_keys[0], rows->name);
        if (!rows->required && !key && !stw_streq(rows->name, "name"))
            continue;
        stw_buf_addf(out, "%s\"%s\":", any ? "," : "", rows->name);
        write_example(rows, variant, number, depth + 1, out);
        any = true;
    }
    stw_buf_addc(out, '}');
}

/* A list or a map of `count` entries whose names differ. */
static void write_entries(const struct stw_field *row, uint32_t variant, int64_t count, int depth,
                          struct stw_buf *out)
{
    bool map = row->type == STW_T_MAP;
    stw_buf_addc(out, map ? '{' : '[');
    for (int64_t i = 0; i < count; i++) {
        stw_buf_adds(out, i ? "," : "");
        if (map)
            stw_buf_addf(out, "\"a%lld\":", (long long)i);
        if (row->item)
            write_example(row->item, variant, i, depth + 1, out);
        else
            stw_buf_adds(out, "{}");
    }
    stw_buf_addc(out, map ? '}' : ']');
}

static void write_example(const struct stw_field *row, uint32_t variant, int64_t number, int depth,
                          struct stw_buf *out)
{
    if (depth > DEPTH_OF_EXAMPLES) {
        stw_buf_adds(out, "null");
        return;
    }
    switch (row->type) {
    case STW_T_STRING:
    case STW_T_TEXT:
        if (row->values)
            stw_buf_json_strz(out, row->values[variant % count_values_of(row)]);
        else if (number > 0)
            stw_buf_addf(out, "\"a%lld\"", (long long)number);
        else
            stw_buf_json_strz(out, words[variant % STW_COUNT(words)]);
        break;
    case STW_T_INT:
        stw_buf_addi(out, row->has_range ? (variant % 2 ? row->max : row->min) : 1);
        break;
    case STW_T_BOOL:
        stw_buf_adds(out, variant % 2 ? "false" : "true");
        break;
    case STW_T_QUANTITY:
        stw_buf_adds(out, variant % 2 ? "\"1Gi\"" : "\"100m\"");
        break;
    case STW_T_INT_OR_STRING:
        stw_buf_adds(out, variant % 2 ? "\"25%\"" : "1");
        break;
    case STW_T_LIST:
    case STW_T_MAP:
        write_entries(row, variant, 1, depth, out);
        break;
    case STW_T_OBJECT:
    case STW_T_RAW:
    case STW_TYPES:
        write_members(row, variant, number, depth, out);
        break;
    }
}

void hostile_example(const struct stw_field *row, uint32_t variant, struct stw_buf *out)
{
    write_example(row, variant, 0, 0, out);
}

static void write_edge(const struct stw_field *row, int64_t edge, struct stw_buf *out)
{
    switch (row->type) {
    case STW_T_STRING:
    case STW_T_TEXT:
        stw_buf_addc(out, '"');
        for (int64_t i = 0; i < edge && i <= STRING_MAX; i++)
            stw_buf_addc(out, 'a');
        stw_buf_addc(out, '"');
        break;
    case STW_T_LIST:
    case STW_T_MAP:
        write_entries(row, 0, STW_MIN(edge, (int64_t)ENTRIES_MAX), 0, out);
        break;
    default:
        stw_buf_addi(out, edge);
    }
}

void hostile_value(const struct stw_field *row, uint32_t index, struct stw_buf *out)
{
    uint32_t values = count_values_of(row);
    if (index < hostile_text_count) {
        stw_buf_adds(out, hostile_texts[index]);
        return;
    }
    index -= hostile_text_count;
    if (index < values) {
        stw_buf_json_strz(out, row->values[index]);
        return;
    }
    index -= values;
    if (index < values) { /* a NUL at the end of a known word */
        stw_buf_addf(out, "\"%s\\u0000\"", row->values[index]);
        return;
    }
    index -= values;
    if (index == 0)
        hostile_example(row, 0, out);
    else
        write_edge(row, edge_of(row, index - 1), out);
}
