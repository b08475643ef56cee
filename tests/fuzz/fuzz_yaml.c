/* SPDX-License-Identifier: Apache-2.0
 *
 * The YAML reader over any bytes:
 *   - its output is JSON that the strict reader accepts (also a bare scalar, inside a list);
 *   - an error message begins with the name of the file;
 *   - its output in plain ASCII, read as YAML again, is the same value (except for input that
 *     begins with a brace: JSON is passed through unchanged, with surrogate escapes and numbers like 1.0);
 *   - every position of the last document has a mark inside the text. */
#include "base/json.h"
#include "base/util.h"
#include "base/yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

/* A list around the document, so that a bare scalar is JSON as well. */
static void wrap(struct stw_buf *out, const struct stw_buf *json)
{
    stw_buf_addc(out, '[');
    stw_buf_add(out, json->data, json->len);
    stw_buf_addc(out, ']');
}

struct progress {
    unsigned documents;
    bool json; /* the text may begin with JSON */
};

static int compare(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    stw_autojson struct stw_json_doc doc = {0};
    (void)line;
    CHECK(index == 0 && stw_json_scan(&doc, json->data, json->len, NULL) == 0);
    CHECK(stw_json_equal(stw_json_root(ctx), stw_json_root(&doc)));
    return 0;
}

/* YAML has more line ends than JSON, and forbids DEL and similar characters. */
static bool is_plain_ascii(const struct stw_buf *b)
{
    for (size_t i = 0; i < b->len; i++)
        if (b->data[i] < 0x20 || b->data[i] > 0x7E)
            return false;
    return true;
}

static int check(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    stw_autobuf struct stw_buf wrapped = STW_BUF_INIT(64UL << 20);
    stw_autojson struct stw_json_doc doc = {0};
    struct progress *progress = ctx;
    struct stw_error err;

    CHECK(index == progress->documents++ && line > 0);
    wrap(&wrapped, json);
    if (stw_json_scan(&doc, wrapped.data, wrapped.len, &err) != 0) {
        /* Only because the list around it is one level too many. */
        CHECK(err.code == STW_ERR_TOO_LARGE);
        return 0;
    }
    /* libyaml accepts keys of at most 1,024 bytes if "key: value" is on one line. */
    if (!progress->json && is_plain_ascii(&wrapped)) {
        int rc = stw_yaml_each("again", wrapped.data, wrapped.len, compare, &doc, &err);
        CHECK(rc == 0 || json->len > 1024);
    }
    return 0;
}

/* Behind white space, of which some is not ASCII. */
static bool begins_with_brace(const uint8_t *data, size_t size)
{
    size_t i = 0;
    while (i < size && (data[i] <= ' ' || data[i] >= 0x80))
        i++;
    return i < size && data[i] == '{';
}

static void find_marks(struct stw_yaml_marks *marks, size_t lines)
{
    static const char *const paths[] = {"", "a", "a.b", "a[0]", "a.b[1].c", "spec.x", "[", "[0]"};
    for (size_t i = 0; i < STW_COUNT(paths); i++) {
        size_t line = 0, column = 0;
        if (stw_yaml_marks_find(marks, paths[i], &line, &column) == 0)
            CHECK(line > 0 && line <= lines && column > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stw_yaml_marks *marks = stw_yaml_marks_create();
    struct stw_error err = {.text = ""};
    struct progress progress = {.json = begins_with_brace(data, size)};
    size_t lines = size + 1; /* YAML has more line ends than one; none is shorter than a byte */

    CHECK(marks);
    int rc = stw_yaml_each_marked("name", (const char *)data, size, check, &progress, marks, &err);
    CHECK(rc == 0 || (rc == -1 && strncmp(err.text, "name:", 5) == 0 && err.code != STW_OK));
    CHECK(err.code != STW_ERR_INTERNAL);
    find_marks(marks, lines);
    stw_yaml_marks_destroy(marks);
    return 0;
}
