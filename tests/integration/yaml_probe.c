/* SPDX-License-Identifier: Apache-2.0
 *
 * The YAML reader for tests that compare it with kubectl's.  Reads texts, each behind its length in
 * a line of its own.  Answers each with the documents as a list in one line, or with "!" and the
 * error. */
#include "base/util.h"
#include "base/yaml/yaml.h"

#include <stdio.h>

#define TEXT_MAX (1 << 20)

static int add_document(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    struct stw_buf *out = ctx;
    (void)line;
    if (index > 0)
        stw_buf_addc(out, ',');
    /* JSON is passed as it is written, which may be on several lines. */
    for (size_t i = 0; i < json->len; i++)
        stw_buf_addc(out, strchr("\t\r\n", json->data[i]) ? ' ' : json->data[i]);
    return 0;
}

static void answer(const char *text, size_t len)
{
    struct stw_error err = {0};
    stw_autobuf struct stw_buf out = STW_BUF_INIT((size_t)64 << 20);
    if (stw_yaml_each("text", text, len, add_document, &out, &err) == 0 && !out.failed)
        printf("[%s]\n", stw_buf_str(&out));
    else
        printf("!%s\n", err.text);
}

int main(void)
{
    static char text[TEXT_MAX];
    char line[32];
    while (fgets(line, sizeof(line), stdin)) {
        int64_t len;
        line[strcspn(line, "\n")] = '\0';
        if (stw_parse_int(line, 0, TEXT_MAX, &len) != 0 ||
            fread(text, 1, (size_t)len, stdin) != (size_t)len)
            return 1;
        answer(text, (size_t)len);
    }
    return 0;
}
