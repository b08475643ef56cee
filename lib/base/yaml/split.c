/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a text into documents as kubectl does, before anything in them is read: at each line that
 * begins with "---", also inside of quotes and of block scalars.  So a directive (%YAML, %TAG) never
 * has a document. */
#include "base/utf8.h"
#include "base/util.h"
#include "base/yaml/yaml_priv.h"

#define PRIVATE_FIRST 0xE000U /* characters without a meaning */
#define PRIVATE_COUNT 0x1900U
#define PRIVATE_BYTES 3 /* of one in UTF-8 */

static void put_private(uint32_t character, char out[YAML_STAND_IN_BYTES])
{
    out[0] = (char)(0xE0 | character >> 12);
    out[1] = (char)(0x80 | (character >> 6 & 0x3F));
    out[2] = (char)(0x80 | (character & 0x3F));
    out[3] = '\0';
}

/* A character that the text does not have; "" if it has all of them. */
static void choose_stand_in(const char *text, size_t len, char out[YAML_STAND_IN_BYTES])
{
    bool used[PRIVATE_COUNT] = {false};
    for (size_t i = 0; i + PRIVATE_BYTES <= len; i++) {
        const unsigned char *c = (const unsigned char *)text + i;
        uint32_t character = (c[0] & 0x0FU) << 12 | (c[1] & 0x3FU) << 6 | (c[2] & 0x3FU);
        if ((c[0] & 0xF0) == 0xE0 && character >= PRIVATE_FIRST &&
            character < PRIVATE_FIRST + PRIVATE_COUNT)
            used[character - PRIVATE_FIRST] = true;
    }
    out[0] = '\0';
    for (uint32_t i = 0; i < PRIVATE_COUNT && !*out; i++)
        if (!used[i])
            put_private(PRIVATE_FIRST + i, out);
}

/* The next backslash that, in double quotes, would escape a single quote.  NULL: none. */
static const char *find_escaped_quote(const char *text, const char *end)
{
    const char *at = text;
    while (at < end && (at = memchr(at, '\\', (size_t)(end - at)))) {
        if (end - at < 2)
            return NULL;
        if (at[1] == '\'')
            return at;
        at += at[1] == '\\' ? 2 : 1;
    }
    return NULL;
}

/* kubectl takes one carriage return from the end of a line, and go-yaml reads a lone one as a line
 * end. */
static const char *find_carriage_returns(const char *text, const char *end)
{
    return memmem(text, (size_t)(end - text), "\r\r\n", 3);
}

static void copy_lines(struct yaml_text *t, const char *text, const char *end)
{
    const char *returns;
    while ((returns = find_carriage_returns(text, end))) {
        stw_buf_add(&t->copy, text, (size_t)(returns - text));
        stw_buf_adds(&t->copy, "\r\n");
        text = returns + 3;
    }
    stw_buf_add(&t->copy, text, (size_t)(end - text));
}

static void copy_text(struct yaml_text *t, const char *text, const char *end)
{
    const char *escape;
    while (*t->stand_in && (escape = find_escaped_quote(text, end))) {
        copy_lines(t, text, escape);
        stw_buf_adds(&t->copy, t->stand_in);
        text = escape + 1;
    }
    copy_lines(t, text, end);
}

int yaml_text_init(struct yaml_text *t, const char *text, size_t len, size_t lines)
{
    bool ended = len == 0 || text[len - 1] == '\n';
    bool escaped = len > 0 && find_escaped_quote(text, text + len);

    *t = (struct yaml_text){.next = text, .end = text + len, .lines = lines};
    if (ended && !escaped && !find_carriage_returns(text, text + len))
        return 0;
    if (escaped)
        choose_stand_in(text, len, t->stand_in);
    t->copy = STW_BUF_INIT(len * PRIVATE_BYTES + 1);
    t->copy.secret = true;
    copy_text(t, text, text + len);
    if (!ended)
        stw_buf_addc(&t->copy, '\n');
    t->next = t->copy.data;
    t->end = t->next + t->copy.len;
    return t->copy.failed ? -1 : 0;
}

void yaml_move_place(struct yaml_place *place, const char *from, const char *to)
{
    for (; from < to; from++) {
        place->column += ((unsigned char)*from & 0xC0) != 0x80;
        if (*from == '\n')
            *place = (struct yaml_place){place->line + 1, 1};
    }
}

void yaml_text_done(struct yaml_text *t)
{
    stw_buf_done(&t->copy);
}

static bool is_separator(const char *line, const char *end)
{
    return end - line >= 3 && memcmp(line, "---", 3) == 0;
}

/* Only blanks and a comment may follow the dashes. */
static int check_separator(const struct yaml_text *t, const char *line, const char *end,
                           struct yaml_place *place, struct stw_error *err)
{
    const char *rest = line + 3;
    rest += strspn(rest, " \t\r\v\f");
    if (rest >= end || *rest == '\n' || *rest == '#')
        return 0;
    *place = (struct yaml_place){t->lines + 1, (size_t)(rest - line) + 1};
    return stw_fail(err, STW_ERR_INVALID,
                    "kubectl reads no text after the dashes that separate documents; begin it on "
                    "the next line");
}

static const char byte_order_mark[] = "\xEF\xBB\xBF";
#define MARK_BYTES (sizeof(byte_order_mark) - 1)

/* Both readers skip the mark at the beginning.  Elsewhere libyaml skips it in places where kubectl
 * reads it as a letter. */
static int finish_part(struct yaml_part *part, const char *end, struct yaml_place *place,
                       struct stw_error *err)
{
    part->len = (size_t)(end - part->text);
    if (part->len == 0)
        return 0;
    if (part->len >= MARK_BYTES && memcmp(part->text, byte_order_mark, MARK_BYTES) == 0) {
        part->text += MARK_BYTES;
        part->len -= MARK_BYTES;
    }
    const char *mark = memmem(part->text, part->len, byte_order_mark, MARK_BYTES);
    if (!mark)
        return 1;
    *place = (struct yaml_place){part->lines + 1, 1};
    yaml_move_place(place, part->text, mark);
    return stw_fail(
        err, STW_ERR_INVALID,
        "a byte order mark (U+FEFF) is allowed only at the beginning of a document; write "
        "\\uFEFF in double quotes");
}

int yaml_next_part(struct yaml_text *t, struct yaml_part *ret, struct yaml_place *place,
                   struct stw_error *err)
{
    *ret = (struct yaml_part){.text = t->next, .lines = t->lines};
    while (t->next < t->end) {
        const char *line = t->next, *stop = memchr(line, '\n', (size_t)(t->end - line));
        bool separates = is_separator(line, t->end);
        if (separates && check_separator(t, line, t->end, place, err) != 0)
            return -1;
        t->next = stop ? stop + 1 : t->end;
        t->lines++;
        if (separates && line > ret->text)
            return finish_part(ret, line, place, err);
    }
    return finish_part(ret, t->end, place, err);
}

void yaml_restore_escapes(const char *stand_in, bool double_quoted, char *text, size_t *len)
{
    char *out = text;
    if (!*stand_in)
        return;
    for (const char *in = text, *end = text + *len; in < end;) {
        if (end - in >= PRIVATE_BYTES && memcmp(in, stand_in, PRIVATE_BYTES) == 0) {
            if (!double_quoted)
                *out++ = '\\';
            in += PRIVATE_BYTES;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
    *len = (size_t)(out - text);
}
