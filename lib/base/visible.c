/* SPDX-License-Identifier: Apache-2.0 */
#include "base/visible.h"

#include "base/utf8.h"
#include "base/util.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)
/* An escape takes up to four times the bytes of what it stands for. */
#define SHOWN_MAX_BYTES (4 * LINE_MAX_BYTES + 16)

/* Unicode 14: Cc, Cf, Zl, Zp, Zs but U+0020, Default_Ignorable_Code_Point, and noncharacters (the last
 * two of each plane are tested by their bits). */
static const struct {
    uint32_t first, last;
} hidden[] = {
    {0x0, 0x1F},        {0x7F, 0xA0},       {0xAD, 0xAD},       {0x34F, 0x34F},
    {0x600, 0x605},     {0x61C, 0x61C},     {0x6DD, 0x6DD},     {0x70F, 0x70F},
    {0x890, 0x891},     {0x8E2, 0x8E2},     {0x115F, 0x1160},   {0x1680, 0x1680},
    {0x17B4, 0x17B5},   {0x180B, 0x180F},   {0x2000, 0x200F},   {0x2028, 0x202F},
    {0x205F, 0x206F},   {0x3000, 0x3000},   {0x3164, 0x3164},   {0xFDD0, 0xFDEF},
    {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},   {0xFFF0, 0xFFFB},
    {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

bool stw_is_hidden(uint32_t code)
{
    if (code >= ' ' && code < 0x7F)
        return false;
    for (size_t i = 0; i < STW_COUNT(hidden) && code >= hidden[i].first; i++)
        if (code <= hidden[i].last)
            return true;
    return (code & 0xFFFE) == 0xFFFE;
}

/* One character of a text, and what is to be done with it. */
struct unit {
    size_t len;    /* bytes; 1 when it is not valid */
    uint32_t code; /* of a valid one */
    bool valid, plain;
};

/* "##" begins a command of Azure Pipelines, TeamCity and older runners of GitHub, anywhere in a
 * line. */
static struct unit read_unit(const char *at, const char *end, char before)
{
    struct unit u = {.len = stw_utf8_len((const unsigned char *)at, (const unsigned char *)end)};
    u.valid = u.len > 0;
    if (!u.valid) {
        u.len = 1;
        return u;
    }
    u.code = stw_utf8_code((const unsigned char *)at, u.len);
    u.plain = !stw_is_hidden(u.code) && !(u.code == '#' && before == '#');
    return u;
}

bool stw_json_escape(const char *at, const char *end, char before, char escape[STW_ESCAPE_MAX],
                     size_t *ret_len)
{
    struct unit u = read_unit(at, end, before);
    *ret_len = u.len;
    if (!u.valid)
        stw_format(escape, STW_ESCAPE_MAX, "\xEF\xBF\xBD");
    else if (u.code < 0x10000)
        stw_format(escape, STW_ESCAPE_MAX, "\\u%04x", u.code);
    else
        stw_format(escape, STW_ESCAPE_MAX, "\\u%04x\\u%04x", 0xD7C0 + (u.code >> 10),
                   0xDC00 + (u.code & 0x3FF));
    return !u.plain;
}

static void add_escape(struct stw_buf *out, const struct unit *u, char byte)
{
    static const char shorts[' '] = {['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    if (!u->valid || (u->code < 0x80 && (u->code >= ' ' || !shorts[u->code])))
        stw_buf_addf(out, "\\x%02x", (unsigned)(unsigned char)byte);
    else if (u->code < ' ')
        stw_buf_addf(out, "\\%c", shorts[u->code]);
    else
        stw_buf_addf(out, u->code < 0x10000 ? "\\u%04x" : "\\U%08x", u->code);
}

void stw_visible_add(struct stw_buf *out, const char *text, size_t len)
{
    const char *end = text + len, *done = text;
    struct unit u;
    for (const char *at = text; at < end; at += u.len) {
        u = read_unit(at, end, at > text ? at[-1] : '\0');
        if (u.plain)
            continue;
        stw_buf_add(out, done, (size_t)(at - done));
        add_escape(out, &u, *at);
        done = at + u.len;
    }
    stw_buf_add(out, done, (size_t)(end - done));
}

void stw_visible_replace(char *text, size_t max)
{
    size_t len = strlen(text);
    stw_autobuf struct stw_buf shown = STW_BUF_INIT(SHOWN_MAX_BYTES);
    stw_visible_add(&shown, text, len);
    const char *from = shown.failed ? "(out of memory)" : stw_buf_str(&shown);
    size_t whole = strlen(from);
    len = STW_MIN(whole, max);
    while (len > 0 && len < whole && ((unsigned char)from[len] & 0xc0) == 0x80)
        len--;
    memcpy(text, from, len);
    text[len] = '\0';
}

void stw_visible_add_line(struct stw_buf *out, const char *text, size_t len)
{
    size_t blanks = 0;
    while (blanks < len && text[blanks] == ' ')
        blanks++;
    if (len - blanks >= 2 && memcmp(text + blanks, "::", 2) == 0) {
        stw_buf_add(out, text, blanks);
        stw_buf_adds(out, "\\x3a");
        blanks++;
        text += blanks;
        len -= blanks;
    }
    stw_visible_add(out, text, len);
}

void stw_valid_add(struct stw_buf *out, const char *text, size_t len)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + len;
    while (at < end) {
        size_t n = stw_utf8_len(at, end);
        if (n > 0)
            stw_buf_add(out, at, n);
        else
            stw_buf_addf(out, "\\x%02x", (unsigned)*at);
        at += n > 0 ? n : 1;
    }
}

static void print_visible(FILE *out, const char *text, size_t len)
{
    stw_autobuf struct stw_buf shown = STW_BUF_INIT(SHOWN_MAX_BYTES);
    stw_visible_add_line(&shown, text, len);
    stw_buf_addc(&shown, '\n');
    if (shown.failed)
        fputs("(out of memory)\n", out);
    else
        (void)fwrite(stw_buf_str(&shown), 1, shown.len, out);
}

void stw_vprint_line(FILE *out, const char *fmt, va_list ap)
{
    char few[1024];
    va_list again;
    va_copy(again, ap);
    int len = vsnprintf(few, sizeof(few), fmt, ap); // NOLINT(clang-analyzer-valist*)
    if (len >= 0 && (size_t)len < sizeof(few)) {
        print_visible(out, few, (size_t)len);
    } else {
        size_t size = STW_MIN((size_t)STW_MAX(len, 0), LINE_MAX_BYTES) + 1;
        stw_autofree char *many = malloc(size);
        if (many)
            stw_vformat(many, size, fmt, again);
        print_visible(out, many ? many : "(out of memory)",
                      strlen(many ? many : "(out of memory)"));
    }
    va_end(again);
}

void stw_print_line(FILE *out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    stw_vprint_line(out, fmt, ap);
    va_end(ap);
}

void stw_print_lines(FILE *out, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "\n");
        print_visible(out, text, len);
        text += len + (text[len] == '\n');
    }
}

void stw_print_json(FILE *out, const char *json, size_t len)
{
    const char *end = json + len, *done = json;
    size_t n;
    for (const char *at = json; at < end; at += n) {
        char escape[STW_ESCAPE_MAX];
        if (!stw_json_escape(at, end, at > json ? at[-1] : '\0', escape, &n) || *at == '\n')
            continue;
        (void)fwrite(done, 1, (size_t)(at - done), out);
        fputs(escape, out);
        done = at + n;
    }
    (void)fwrite(done, 1, (size_t)(end - done), out);
}
