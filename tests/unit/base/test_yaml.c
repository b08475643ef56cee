/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of scalars, keys, tags and merges contain the output of `kubectl annotate --local -o
 * json` of kubectl 1.32 for the same text.  Rows in which steward is stricter on purpose are
 * marked. */
#include "base/json.h"
#include "base/util.h"
#include "base/yaml/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

struct seen {
    struct stw_buf out; /* "index@line json\n" per document */
    int answer;
};

static int note(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct seen *s = ctx;
    stw_autojson struct stw_json_doc doc = {0};
    stw_buf_addf(&s->out, "%u@%zu %s\n", index, line, stw_buf_str(json));
    /* Any YAML must become JSON that the strict reader accepts. */
    if (json->data[0] == '{' || json->data[0] == '[')
        assert_int_equal(stw_json_scan(&doc, json->data, json->len, NULL), 0);
    return s->answer;
}

static int read_text(struct seen *s, const char *text, size_t len, struct stw_error *err)
{
    stw_buf_done(&s->out);
    s->out = STW_BUF_INIT((size_t)64 << 20);
    return stw_yaml_each("f.yaml", text, len, note, s, err);
}

/* One document: its JSON, or the error. */
static const char *convert(struct seen *s, const char *text, struct stw_error *err)
{
    if (read_text(s, text, strlen(text), err) != 0)
        return NULL;
    const char *json = strchr(stw_buf_str(&s->out), ' ');
    s->out.data[s->out.len - 1] = '\0';
    return json ? json + 1 : "";
}

static void test_yaml_scalars_are_typed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *json;
    } rows[] = {
        {"~", "null"},
        {"null", "null"},
        {"Null", "null"},
        {"NULL", "null"},
        {"", "null"},
        {"nULL", "\"nULL\""},
        {"y", "true"},
        {"Y", "true"},
        {"yes", "true"},
        {"Yes", "true"},
        {"YES", "true"},
        {"on", "true"},
        {"On", "true"},
        {"ON", "true"},
        {"true", "true"},
        {"True", "true"},
        {"TRUE", "true"},
        {"n", "false"},
        {"N", "false"},
        {"no", "false"},
        {"No", "false"},
        {"NO", "false"},
        {"off", "false"},
        {"Off", "false"},
        {"OFF", "false"},
        {"false", "false"},
        {"False", "false"},
        {"FALSE", "false"},
        {"yEs", "\"yEs\""},
        {"oN", "\"oN\""},
        {"tRUE", "\"tRUE\""},
        {"-y", "\"-y\""},
        {"+y", "\"+y\""},
        {"1y", "\"1y\""},
        {"0", "0"},
        {"-0", "0"},
        {"+0", "0"},
        {"1", "1"},
        {"+1", "1"},
        {"-1", "-1"},
        {"00", "0"},
        {"007", "7"},
        {"017", "15"},
        {"08", "8"},
        {"09", "9"},
        {"0_7", "7"},
        {"0_8", "8"},
        {"0o17", "15"},
        {"0O17", "15"},
        {"-0o17", "-15"},
        {"0o8", "\"0o8\""},
        {"0o", "\"0o\""},
        {"0x1F", "31"},
        {"0X1f", "31"},
        {"-0x1f", "-31"},
        {"+0x1f", "31"},
        {"0x", "\"0x\""},
        {"0x_ff", "255"},
        {"0x1_F", "31"},
        {"0b101", "5"},
        {"0B101", "5"},
        {"-0b101", "-5"},
        {"+0b101", "5"},
        {"0b", "\"0b\""},
        {"0b12", "\"0b12\""},
        {"1_000", "1000"},
        {"1__0", "10"},
        {"_1", "\"_1\""},
        {"1_", "1"},
        {"0_", "0"},
        {"-_1", "-1"},
        {"+_1", "1"},
        {"1_000.5", "1000.5"},
        {"1e1_0", "10000000000"},
        {"9223372036854775807", "9223372036854775807"},
        {"-9223372036854775808", "-9223372036854775808"},
        {"0777777777777777777777", "9223372036854775807"},
        {"0x1FFFFFFFFFFFFFFFF", "\"0x1FFFFFFFFFFFFFFFF\""},
        {"1.0", "1"},
        {"1.5", "1.5"},
        {"-1.5", "-1.5"},
        {".5", "0.5"},
        {"-.5", "-0.5"},
        {"+.5", "0.5"},
        {"1.", "1"},
        {"0.0", "0"},
        {"-0.0", "0"},
        {"0.1", "0.1"},
        {"1e3", "1000"},
        {"1E3", "1000"},
        {"1e+3", "1000"},
        {"12e03", "12000"},
        {"-1e-2", "-0.01"},
        {"1.5e-3", "0.0015"},
        {"1e15", "1000000000000000"},
        {"1e16", "10000000000000000"},
        {"1e20", "1e+20"},
        {"1e21", "1e+21"},
        {"0.000001", "0.000001"},
        {"0.0000001", "1e-07"},
        {"123456789.0", "123456789"},
        {"12345678.9", "12345678.9"},
        {"5e-324", "5e-324"},
        {"3.14159265358979", "3.14159265358979"},
        {"1.5e300", "1.5e+300"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"1e-400", "0"},
        {".1e5", "10000"},
        {".1_0", "0.1"},
        {".5_5", "0.55"},
        {"._1", "\"._1\""},
        {"._", "\"._\""},
        {".0x1", "\".0x1\""},
        {".e5", "\".e5\""},
        {"1e", "\"1e\""},
        {"1e+", "\"1e+\""},
        {"e1", "\"e1\""},
        {".", "\".\""},
        {"..", "\"..\""},
        {"...", "\"...\""},
        {"+", "\"+\""},
        {"--", "\"--\""},
        {"=", "\"=\""},
        {"<<", "\"<<\""},
        {"1.2.3", "\"1.2.3\""},
        {"1:30", "\"1:30\""},
        {"190:20:30", "\"190:20:30\""},
        {"0x1p4", "\"0x1p4\""},
        {"inf", "\"inf\""},
        {"Infinity", "\"Infinity\""},
        {"nan", "\"nan\""},
        {"NaN", "\"NaN\""},
        {"2001-12-14", "\"2001-12-14\""},
        {"2001-12-14T21:59:43Z", "\"2001-12-14T21:59:43Z\""},
        {"\"1\"", "\"1\""},
        {"'null'", "\"null\""},
        {"'it''s'", "\"it's\""},
        {"\"\"", "\"\""},
        {"a:b", "\"a:b\""},
        {"a\n  b\n   c", "\"a b c\""},
        {"|\n  a\n   b\n", "\"a\\n b\\n\""},
        {">-\n  a\n  b\n", "\"a b\""},
        {"\"\\x41\\u00e9\\U0001F600\\e\"", "\"A\xc3\xa9\xf0\x9f\x98\x80\\u001b\""},
        {"\"<a>&\"", "\"<a>&\""},
        {"[a: 1]", "[{\"a\":1}]"},
        {"\t1", "1"},
    };
    struct seen s = {0};
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char text[128], want[128];
        struct stw_error err = {.text = ""};
        (void)snprintf(text, sizeof(text), "v: %s\n", rows[i].text);
        (void)snprintf(want, sizeof(want), "{\"v\":%s}", rows[i].json);
        const char *json = convert(&s, text, &err);
        if (!json)
            fail_msg("%s: %s", rows[i].text, err.text);
        assert_string_equal(json, want);
    }
    stw_buf_done(&s.out);
}

static const struct {
    const char *text, *json; /* NULL: refused, with this in the message: */
    const char *what;
} structures[] = {
    /* keys */
    {"y: 1", "{\"true\":1}", NULL},
    {"0x10: a", "{\"16\":\"a\"}", NULL},
    {"1.5: a", "{\"1.5\":\"a\"}", NULL},
    {"100000.0: a", "{\"100000\":\"a\"}", NULL},
    {"1e6: a", "{\"1e+06\":\"a\"}", NULL},
    {"0.00001: a", "{\"1e-05\":\"a\"}", NULL},
    {"1234567.5: a", "{\"1.2345675e+06\":\"a\"}", NULL},
    {"123456789012345678901234567890: a", "{\"1.2345679e+29\":\"a\"}", NULL},
    {"2001-01-01: a", "{\"2001-01-01\":\"a\"}", NULL},
    {".inf: b", "{\".inf\":\"b\"}", NULL},
    {"!!str 1: b", "{\"1\":\"b\"}", NULL},
    {"!!binary aGk=: b", "{\"hi\":\"b\"}", NULL},
    {"a: &x foo\n*x : 1", "{\"a\":\"foo\",\"foo\":1}", NULL},
    {"~: 1", NULL, "f.yaml:1:1: a key must not be null"},
    {"[a]: b", NULL, "f.yaml:1:1: a key must be a text"},
    {"{a: b}: c", NULL, "f.yaml:1:1: a key must be a text"},
    {"18446744073709551615: a", NULL, "beyond 64 bits"},
    {"v: 9223372036854775808", NULL, "outside the 64-bit range"},
    {"v: -9223372036854775809", NULL, "outside the 64-bit range"},
    {"v: 18446744073709551615", NULL, "outside the 64-bit range"},
    {"v: 18446744073709551616", NULL, "outside the 64-bit range"},
    {"v: 0xFFFFFFFFFFFFFFFF", NULL, "outside the 64-bit range"},
    /* what kubectl does not read */
    {"%YAML 1.2\n---\na: 1", NULL, "f.yaml:1:1: kubectl reads no directive"},
    {"%YAML 1.1\n---\na: 1", NULL, "f.yaml:1:1: kubectl reads no directive"},
    {"%TAG !e! tag:example.com,2000:app/\n---\na: 1", NULL,
     "f.yaml:1:1: kubectl reads no directive"},
    {"--- {a: 1}", NULL, "f.yaml:1:5: kubectl reads no text after the dashes"},
    {"a: 1\n----\n", NULL, "f.yaml:2:4: kubectl reads no text after the dashes"},
    {"v: [http://x/?y=1]", NULL,
     "f.yaml:1:5: in brackets and braces kubectl reads a question mark"},
    {"v: [!x, a]", NULL, "f.yaml:1:5: in brackets and braces kubectl reads a comma"},
    {"...\n", NULL, "f.yaml:1:1: "},
    {"a: 1\n...\nb: 2\n", NULL, "f.yaml:3:1: kubectl ignores "},
    {"a: 1\n}\n", NULL, "f.yaml:2:1: "},
    {"a: 1\n\xef\xbb\xbf"
     "b: 2\n",
     NULL, "f.yaml:2:1: a byte order mark"},
    {"a: 1e400", NULL, "f.yaml:1:4: a number is too large"},
    {"1e400: a", NULL, "f.yaml:1:1: a number is too large"},
    {"v: {<<: {b: !!int x}, b: 1}", NULL, "f.yaml:1:13: the value is not a !!int"},
    {"v: !!timestamp 2026-01-02x", NULL, "not a !!timestamp"},
    {"{\"a\": 1}\n{\"b\": 2}\n---\nc: 3", NULL,
     "f.yaml:3:1: the text that begins here: invalid JSON"},
    {"{\"a\": 1}\n\"b\": 2", NULL, "f.yaml:2:1: the text that begins here: invalid JSON"},
    {"{\"a\": 1e400}", NULL, "a number is too large"},
    {"a: \"x\\/y\"", NULL, "YAML 1.1"},
    /* duplicates: kubectl takes the last one, steward refuses */
    {"a: 1\nb: 2\na: 3", NULL, "f.yaml:3:1: the key \"a\" is there already, in line 1"},
    {"y: 1\ntrue: 2", NULL, "f.yaml:2:1: the key \"true\" is there already, in line 1"},
    {"m: {1: a, 0x1: b}", NULL, "f.yaml:1:11: the key \"1\" is there already"},
    /* tags */
    {"v: !!str 1", "{\"v\":\"1\"}", NULL},
    {"v: !!str", "{\"v\":\"\"}", NULL},
    {"v: !!int \"5\"", "{\"v\":5}", NULL},
    {"v: !!float 1", "{\"v\":1}", NULL},
    {"v: !!float \"1.5\"", "{\"v\":1.5}", NULL},
    {"v: !!bool \"yes\"", "{\"v\":true}", NULL},
    {"v: !!null \"\"", "{\"v\":null}", NULL},
    {"v: !!binary aGVsbG8=", "{\"v\":\"hello\"}", NULL},
    {"v: !!timestamp 2001-01-01", "{\"v\":\"2001-01-01\"}", NULL},
    {"v: !foo 1", "{\"v\":\"1\"}", NULL},
    {"v: !!foo a", "{\"v\":\"a\"}", NULL},
    {"v: !!set {a, b}", "{\"v\":{\"a\":null,\"b\":null}}", NULL},
    {"v: !!omap [a: 1]", "{\"v\":[{\"a\":1}]}", NULL},
    {"v: !!int a", NULL, "f.yaml:1:4: the value is not a !!int"},
    {"v: !!int 1.5", NULL, "not a !!int"},
    {"v: !!int y", NULL, "not a !!int"},
    {"v: !!float a", NULL, "not a !!float"},
    {"v: !!float 18446744073709551615", NULL, "not a !!float"},
    {"v: !!bool 1", NULL, "not a !!bool"},
    {"v: !!null a", NULL, "not a !!null"},
    {"v: !!timestamp a", NULL, "not a !!timestamp"},
    {"v: !!binary aGVsbG8", NULL, "base64"},
    {"v: !!binary a=Vs", NULL, "base64"},
    {"v: !!binary /w==", NULL, "not text"}, /* kubectl puts U+FFFD there */
    {"v: .inf", NULL, "f.yaml:1:4: infinity"},
    {"v: -.INF", NULL, "infinity"},
    {"v: .nan", NULL, "infinity"},
    {"v: \"a\\0\"", NULL, "f.yaml:1:4: a text must not hold the character NUL"}, /* as above */
    /* anchors */
    {"a: &x [1, 2]\nb: *x", "{\"a\":[1,2],\"b\":[1,2]}", NULL},
    {"a: &x 1\nb: *x\nc: &x 2\nd: *x", "{\"a\":1,\"b\":1,\"c\":2,\"d\":2}", NULL},
    {"a: &x\nb: *x", "{\"a\":null,\"b\":null}", NULL},
    {"a: &x 1\nb: &y [*x]\nc: *y", "{\"a\":1,\"b\":[1],\"c\":[1]}", NULL},
    {"b: *x", NULL, "f.yaml:1:4: the alias names an anchor that does not exist"},
    {"a: &x [*x]", NULL, "f.yaml:1:8: the alias is inside its own anchor"},
    {"a: &x {b: {c: *x}}", NULL, "inside its own anchor"},
    /* merge keys: the later value wins; in a list, the earlier map */
    {"b: &b {a: 1, c: 2}\nm:\n  <<: *b\n  a: 9",
     "{\"b\":{\"a\":1,\"c\":2},\"m\":{\"a\":9,\"c\":2}}", NULL},
    {"b: &b {a: 1, c: 2}\nm:\n  a: 9\n  <<: *b",
     "{\"b\":{\"a\":1,\"c\":2},\"m\":{\"a\":1,\"c\":2}}", NULL},
    {"p: &x {a: 1}\nq: &y {a: 3, d: 4}\nm: {<<: [*x, *y], z: 9}",
     "{\"p\":{\"a\":1},\"q\":{\"a\":3,\"d\":4},\"m\":{\"a\":1,\"d\":4,\"z\":9}}", NULL},
    {"m: {<<: {a: 1}}", "{\"m\":{\"a\":1}}", NULL},
    {"m: {<<: [{a: 1}, {b: 2}]}", "{\"m\":{\"b\":2,\"a\":1}}", NULL},
    {"m:\n  <<: {a: 1}\n  <<: {b: 1}", "{\"m\":{\"a\":1,\"b\":1}}", NULL},
    {"a: &a {x: 1}\nb: &b {<<: *a, w: 2}\nc: {<<: *b, z: 3}",
     "{\"a\":{\"x\":1},\"b\":{\"x\":1,\"w\":2},\"c\":{\"x\":1,\"w\":2,\"z\":3}}", NULL},
    {"m: {\"<<\": {a: 1}}", "{\"m\":{\"<<\":{\"a\":1}}}", NULL},
    {"m: {!!merge <<: {a: 1}}", "{\"m\":{\"a\":1}}", NULL},
    {"m:\n  <<: 5", NULL, "f.yaml:2:7: a merge key (<<) needs"},
    {"m:\n  <<: [1]", NULL, "a merge key (<<) needs"},
    {"a: &a {x: 1}\nc: {<<: [[*a]]}", NULL, "a merge key (<<) needs"},
    {"a: &a [{x: 1}]\nc: {<<: *a}", NULL, "a merge key (<<) needs"},
    {"m: {<<: {a: 1, a: 2}}", NULL, "the key \"a\" is there already"},
    /* errors of libyaml */
    {"a: [1\nb: 2", NULL, "f.yaml:2:"},
    {"a: 1\n b: 2", NULL, "f.yaml:2:3: mapping values are not allowed in this context"},
    {"a:\n  - 1\n b: 2", NULL,
     "f.yaml:3:2: did not find expected key (while parsing a block "
     "mapping that begins in line 1)"},
    {"a: \"x\n", NULL, "f.yaml:"},
    {"a: \xff", NULL, "f.yaml:1:4: invalid leading UTF-8 octet"},
    {"a: 1\nb: \xe6\xac\xa2 \xc0\xaf", NULL, "f.yaml:2:6: invalid"},
    {"a: \x01", NULL, "f.yaml:1:4: control characters are not allowed"},
    {"a: @b", NULL, "f.yaml:1:4:"},
    {"%YAML 9.9\n---\na: 1", NULL, "f.yaml:1:1: kubectl reads no directive"},
};

static void test_yaml_structures_become_json(void **state)
{
    (void)state;
    struct seen s = {0};
    for (size_t i = 0; i < STW_COUNT(structures); i++) {
        struct stw_error err = {.text = ""};
        const char *json = convert(&s, structures[i].text, &err);
        if (structures[i].json) {
            if (!json)
                fail_msg("%s: %s", structures[i].text, err.text);
            assert_string_equal(json, structures[i].json);
        } else {
            if (json)
                fail_msg("%s: accepted as %s", structures[i].text, json);
            if (!strstr(err.text, structures[i].what))
                fail_msg("%s: \"%s\" lacks \"%s\"", structures[i].text, err.text,
                         structures[i].what);
            assert_int_equal(err.code, STW_ERR_INVALID);
        }
    }
    stw_buf_done(&s.out);
}

static void test_yaml_documents_are_separated(void **state)
{
    (void)state;
    static const struct {
        const char *text, *seen;
    } rows[] = {
        {"", ""},
        {"# only a comment\n", ""},
        {"---\n---\n", ""},
        {"a: 1\n---\n# nothing\n---\n\nb: 2\n...\n---\nnull\n---\nc: 3\n",
         "0@1 {\"a\":1}\n1@6 {\"b\":2}\n2@11 {\"c\":3}\n"},
        {"a: 1\n---#comment\nb: 2\n", "0@1 {\"a\":1}\n1@3 {\"b\":2}\n"},
        {"a: |\n  b", "0@1 {\"a\":\"b\\n\"}\n"},
        {"a: |\n  b\r\r\n  c\r\n", "0@1 {\"a\":\"b\\nc\\n\"}\n"},
        {"a: \"it\\'s \\\\'\"\nb: '\\'\nc: \\'\n",
         "0@1 {\"a\":\"it's \\\\'\",\"b\":\"\\\\\",\"c\":\"\\\\'\"}\n"},
        {"\xef\xbb\xbf"
         "a: 1\n",
         "0@1 {\"a\":1}\n"},
        {"just words\n", "0@1 \"just words\"\n"},
        {"- 1\n- 2\n", "0@1 [1,2]\n"},
        {"a: &x 1\n---\nb: &x 2\nc: *x\n", "0@1 {\"a\":1}\n1@3 {\"b\":2,\"c\":2}\n"},
        {"{\"a\": [1, 2.50],\n\t\"b\": \"x\\/y\"}",
         "0@1 {\"a\": [1, 2.50],\n\t\"b\": \"x\\/y\"}\n"},
        /* text that is not quite JSON is YAML in flow style */
        {"{\"a\": [1, 2.50],\n\t\"b\": x}", "0@1 {\"a\":[1,2.5],\"b\":\"x\"}\n"},
        /* JSON that is not YAML is passed through unchanged */
        {"\n{\"a\": \"\\ud83d\\ude00\"}\n", "0@2 {\"a\": \"\\ud83d\\ude00\"}\n"},
        /* a stream of JSON, which may go on as YAML after its first value */
        {"{\"a\": 1}\n\n {\"b\": 2}{\"c\": 3} null\n",
         "0@1 {\"a\": 1}\n1@3 {\"b\": 2}\n2@3 {\"c\": 3}\n"},
        {"{\"a\": 1}\n---\nb: 2\n", "0@1 {\"a\": 1}\n1@3 {\"b\":2}\n"},
    };
    struct seen s = {0};
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err = {.text = ""};
        if (read_text(&s, rows[i].text, strlen(rows[i].text), &err) != 0)
            fail_msg("%s: %s", rows[i].text, err.text);
        assert_string_equal(stw_buf_str(&s.out), rows[i].seen);
    }
    /* An anchor is not visible in the next document; earlier documents were handed out. */
    struct stw_error err;
    static const char text[] = "a: &x 1\n---\nb: *x\n";
    assert_int_equal(read_text(&s, text, sizeof(text) - 1, &err), -1);
    assert_string_equal(stw_buf_str(&s.out), "0@1 {\"a\":1}\n");
    assert_non_null(strstr(err.text, "f.yaml:3:4: "));
    stw_buf_done(&s.out);
}

static void test_yaml_callback_stops_the_reading(void **state)
{
    (void)state;
    struct seen s = {.answer = 7};
    struct stw_error err = {.text = ""};
    static const char text[] = "a: 1\n---\nb: 2\n";
    assert_int_equal(read_text(&s, text, sizeof(text) - 1, &err), 7);
    assert_string_equal(stw_buf_str(&s.out), "0@1 {\"a\":1}\n");
    stw_buf_done(&s.out);
    assert_int_equal(stw_yaml_each("-", "a: [", 4, note, &s, &err), -1);
    assert_memory_equal(err.text, "<stdin>:", 8);
}

/* Small texts that would become large, deep or endless. */
static void test_yaml_bombs_are_refused(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf lol = STW_BUF_INIT(1 << 20), merge = STW_BUF_INIT(1 << 20);
    stw_autobuf struct stw_buf deep = STW_BUF_INIT(1 << 20), chain = STW_BUF_INIT(1 << 20);
    struct seen s = {0};
    struct stw_error err;

    stw_buf_adds(&lol, "a0: &a0 [lol, lol]\n");
    stw_buf_adds(&merge, "a0: &a0 {k: v}\n");
    stw_buf_adds(&chain, "a0: &a0 [x]\n");
    for (int i = 1; i < 200; i++) {
        if (i < 40) {
            stw_buf_addf(&lol, "a%d: &a%d [*a%d, *a%d]\n", i, i, i - 1, i - 1);
            stw_buf_addf(&merge, "a%d: &a%d {<<: [*a%d, *a%d]}\n", i, i, i - 1, i - 1);
        }
        stw_buf_addf(&chain, "a%d: &a%d [*a%d]\n", i, i, i - 1);
    }
    for (int i = 0; i < 100000; i++)
        stw_buf_addc(&deep, '[');
    const struct stw_buf *texts[] = {&lol, &merge, &deep, &chain};
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        assert_int_equal(read_text(&s, stw_buf_str(texts[i]), texts[i]->len, &err), -1);
        assert_int_equal(err.code, STW_ERR_TOO_LARGE);
        assert_memory_equal(err.text, "f.yaml:", 7);
    }
    stw_buf_done(&s.out);
}

/* Long texts that a merge reads again and again, or replaces.  Without the limit each takes minutes, or
 * gigabytes. */
static void test_yaml_merge_of_long_texts_is_limited(void **state)
{
    static const struct {
        const char *before, *behind;
    } rows[] = {
        {"? \"", "\"\n  : 1"},
        {"x: \"", "\""},
        {"x: !!binary \"", "\""},
    };
    (void)state;
    struct seen s = {0};
    struct stw_error err;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf b = STW_BUF_INIT(16 << 20);
        stw_buf_addf(&b, "a: &m\n  %s", rows[i].before);
        for (int k = 0; k < 250000; k++)
            stw_buf_adds(&b, "QUFB");
        stw_buf_addf(&b, "%s\nb:\n  <<: [*m", rows[i].behind);
        for (int k = 0; k < 300000; k++)
            stw_buf_adds(&b, ",*m");
        stw_buf_adds(&b, "]\n");
        assert_int_equal(read_text(&s, stw_buf_str(&b), b.len, &err), -1);
        assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    }
    stw_buf_done(&s.out);
}

/* The fewest digits that read back as the same number; also of those that are not normal. */
static void test_numbers_are_written_with_the_fewest_digits(void **state)
{
    static const char *const texts[] = {"5e-324",
                                        "4.94e-322",
                                        "1.5e-310",
                                        "2.225073858507201e-308",
                                        "2.2250738585072014e-308",
                                        "1e-300",
                                        "1.2345678901234568e-300",
                                        "1.7976931348623157e+308",
                                        "9.5367431640625e-07",
                                        "1.1102230246251565e-16",
                                        "8.98846567431158e+307",
                                        "2e-44",
                                        "0.0000123456789012345"};
    (void)state;
    struct seen s = {0};
    struct stw_error err;
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        char json[64];
        (void)snprintf(json, sizeof(json), "[%s]", texts[i]);
        assert_string_equal(convert(&s, json, &err), json);
    }
    uint64_t bits = 1;
    for (int i = 0; i < 20000; i++) {
        char text[64], fewest[40] = "";
        double v;
        bits = bits * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t some = i % 4 == 0 ? bits >> 13 : bits >> 1; /* a quarter is not normal, or tiny */
        memcpy(&v, &some, sizeof(v));
        if (!(v < 1e300) || v < 5e-324 || (v > 1e-7 && v < 1e22))
            continue;
        for (int n = 0; n < 17; n++) {
            (void)snprintf(fewest, sizeof(fewest), "%.*e", n, v);
            if (strtod(fewest, NULL) == v)
                break;
        }
        (void)snprintf(text, sizeof(text), "[%.17e]", v);
        const char *json = convert(&s, text, &err);
        assert_non_null(json);
        assert_memory_equal(json + 1, fewest, strlen(fewest));
    }
    stw_buf_done(&s.out);
}

/* libyaml compares each with all others. */
static void test_many_yaml_directives_are_limited(void **state)
{
    static const char *const before[] = {"", "---\n", "a: 1\n", "# a\n"};
    (void)state;
    struct seen s = {0};
    struct stw_error err;
    for (size_t i = 0; i < STW_COUNT(before); i++) {
        stw_autobuf struct stw_buf b = STW_BUF_INIT(16 << 20);
        stw_buf_adds(&b, before[i]);
        for (int k = 0; k < 500000; k++)
            stw_buf_addf(&b, "%%TAG !%d! x\n", k);
        assert_int_equal(read_text(&s, stw_buf_str(&b), b.len, &err), -1);
        assert_non_null(strstr(err.text, "kubectl reads no directive"));
    }
    stw_buf_done(&s.out);
}

/* The maximum depth of JSON, and one more. */
static void test_yaml_depth_is_limited(void **state)
{
    (void)state;
    struct seen s = {0};
    struct stw_error err;
    char text[2 * (STW_JSON_MAX_DEPTH + 1)];
    memset(text, '[', STW_JSON_MAX_DEPTH + 1);
    memset(text + STW_JSON_MAX_DEPTH + 1, ']', STW_JSON_MAX_DEPTH + 1);
    assert_int_equal(read_text(&s, text + 1, 2 * STW_JSON_MAX_DEPTH, &err), 0);
    assert_int_equal(read_text(&s, text, sizeof(text), &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    stw_buf_done(&s.out);
}

static void test_many_yaml_members_are_read(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf b = STW_BUF_INIT(8 << 20);
    struct seen s = {0};
    struct stw_error err;
    for (int i = 0; i < 100000; i++)
        stw_buf_addf(&b, "key-%d: %d\n", i, i);
    assert_int_equal(read_text(&s, stw_buf_str(&b), b.len, &err), 0);
    stw_buf_adds(&b, "key-77: again\n");
    assert_int_equal(read_text(&s, stw_buf_str(&b), b.len, &err), -1);
    assert_non_null(strstr(err.text, "f.yaml:100001:1: the key \"key-77\" is there already, in "
                                     "line 78"));
    stw_buf_done(&s.out);
}

static void test_yaml_errors_contain_no_secrets(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "password: !!int hunter2",    "password: \"hunter2\nx: 1", "password: hunter2: x",
        "password: !!binary hunter2", "password: [hunter2",
    };
    struct seen s = {0};
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err;
        assert_null(convert(&s, rows[i], &err));
        assert_null(strstr(err.text, "hunter2"));
    }
    stw_buf_done(&s.out);
}

static void test_yaml_positions_are_recorded(void **state)
{
    (void)state;
    static const char text[] = "first: 1\n"
                               "---\n"
                               "metadata:\n"
                               "  labels:\n"
                               "    app.kubernetes.io/name: x\n"
                               "    app: y\n"
                               "spec:\n"
                               "  ports:\n"
                               "  - port: 80\n"
                               "  - {name: a,  port: 81}\n"
                               "  more: &m {deep: 1}\n"
                               "  same: *m\n"
                               "  merged:\n"
                               "    <<: *m\n";
    static const struct {
        const char *path;
        size_t line, column;
    } rows[] = {
        {"", 3, 1},
        {"metadata.labels", 4, 3},
        {"metadata.labels.app", 6, 10},
        {"metadata.labels[app]", 6, 10},
        {"metadata.labels[app.kubernetes.io/name]", 5, 29},
        {"metadata.labels.app.kubernetes.io/name", 5, 29},
        {"spec.ports", 8, 3}, /* its key, on the line above */
        {"spec.ports[0].port", 9, 11},
        {"spec.ports[1].port", 10, 22},
        {"spec.ports[1].protocol", 10, 5}, /* the nearest parent */
        {"spec.ports[7].port", 8, 3},
        {"spec.portsX", 7, 1},
        {"spec.same.deep", 11, 19},
        {"spec.merged.deep", 11, 19},
        {"first", 3, 1}, /* of the previous document */
    };
    struct seen s = {.out = STW_BUF_INIT(1000)};
    struct stw_yaml_marks *m = stw_yaml_marks_create();
    struct stw_error err;
    size_t line = 0, column = 0;

    assert_non_null(m);
    assert_int_equal(stw_yaml_marks_find(m, "spec", &line, &column), -1);
    assert_int_equal(stw_yaml_each_marked("f.yaml", text, sizeof(text) - 1, note, &s, m, &err), 0);
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        assert_int_equal(stw_yaml_marks_find(m, rows[i].path, &line, &column), 0);
        if (line != rows[i].line || column != rows[i].column)
            fail_msg("%s: %zu:%zu", rows[i].path, line, column);
    }
    stw_yaml_marks_destroy(m);
    stw_yaml_marks_destroy(NULL);
    stw_buf_done(&s.out);
}

static void test_json_positions_are_recorded(void **state)
{
    (void)state;
    static const char text[] = "\n{ \"spec\": {\n  \"ports\": [ {\"port\": 80},\n"
                               "    {\"name\": \"\xe6\xac\xa2\", \"port\": 81} ] } }\n";
    static const struct {
        const char *path;
        size_t line, column;
    } rows[] = {
        {"", 2, 1},
        {"spec", 2, 11},
        {"spec.ports", 3, 12},
        {"spec.ports[0].port", 3, 23},
        {"spec.ports[1].name", 4, 14},
        {"spec.ports[1].port", 4, 27},
        {"spec.ports[2]", 3, 12},
    };
    struct seen s = {.out = STW_BUF_INIT(1000)};
    struct stw_yaml_marks *m = stw_yaml_marks_create();
    assert_non_null(m);
    assert_int_equal(stw_yaml_each_marked("f.json", text, sizeof(text) - 1, note, &s, m, NULL), 0);
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        size_t line = 0, column = 0;
        assert_int_equal(stw_yaml_marks_find(m, rows[i].path, &line, &column), 0);
        if (line != rows[i].line || column != rows[i].column)
            fail_msg("%s: %zu:%zu", rows[i].path, line, column);
    }
    stw_yaml_marks_destroy(m);
    stw_buf_done(&s.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_scalars_are_typed),
        cmocka_unit_test(test_yaml_structures_become_json),
        cmocka_unit_test(test_yaml_documents_are_separated),
        cmocka_unit_test(test_yaml_callback_stops_the_reading),
        cmocka_unit_test(test_yaml_merge_of_long_texts_is_limited),
        cmocka_unit_test(test_many_yaml_directives_are_limited),
        cmocka_unit_test(test_numbers_are_written_with_the_fewest_digits),
        cmocka_unit_test(test_yaml_bombs_are_refused),
        cmocka_unit_test(test_yaml_depth_is_limited),
        cmocka_unit_test(test_many_yaml_members_are_read),
        cmocka_unit_test(test_yaml_errors_contain_no_secrets),
        cmocka_unit_test(test_yaml_positions_are_recorded),
        cmocka_unit_test(test_json_positions_are_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
