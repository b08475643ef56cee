/* SPDX-License-Identifier: Apache-2.0
 *
 * What the forms of the report of `steward validate` share. */
#include "base/buf.h"
#include "base/util.h"
#include "base/visible.h"
#include "operator/report/report.h"

void stw_report_each(struct stw_report *r, stw_report_object_fn *fn, void *ctx)
{
    const char *at = stw_buf_str(&r->objects), *end = at + r->objects.len;
    for (; at < end; at += strlen(at) + 1) {
        json_auto_t *object = json_loads(at, 0, NULL);
        if (object)
            fn(ctx, object);
        r->objects.failed |= !object;
    }
}

/* The name of a file at the start of a line: "./" before one that could be read as another message,
 * such as "1 object: 1 accepted". */
void stw_report_file(const char *file, struct stw_buf *out)
{
    if (*file != '/' && strpbrk(file, " :"))
        stw_buf_adds(out, "./");
    stw_buf_adds(out, file);
}

/* A text in a document.  JSON needs UTF-8, which a file's name or a text that was cut may not be. */
json_t *stw_report_text(const char *text)
{
    stw_autobuf struct stw_buf valid = STW_BUF_INIT(SIZE_MAX);
    stw_valid_add(&valid, text, strlen(text));
    return json_string(stw_buf_str(&valid));
}

struct nested {
    FILE *out;
    unsigned blanks;
};

/* A callback of jansson, which cuts the text between characters.  Line ends are between values. */
static int print_piece(const char *text, size_t len, void *ctx)
{
    const struct nested *n = ctx;
    while (len > 0) {
        const char *stop = memchr(text, '\n', len);
        size_t line = stop ? (size_t)(stop + 1 - text) : len;
        stw_print_json(n->out, text, line);
        for (unsigned i = 0; stop && i < n->blanks; i++)
            fputc(' ', n->out);
        text += line;
        len -= line;
    }
    return 0;
}

void stw_report_print(const json_t *value, unsigned blanks, FILE *out)
{
    struct nested n = {out, blanks};
    (void)json_dump_callback(value, print_piece, &n, JSON_INDENT(2));
}
