/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include "base/plain_priv.h"
#include "base/util.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>

static void free_buf_data(struct stw_buf *b)
{
    if (b->secret)
        stw_wipe(b->data, b->cap);
    free(b->data);
    b->data = NULL;
}

void stw_buf_done(struct stw_buf *b)
{
    free_buf_data(b);
    b->len = b->cap = 0;
    b->failed = false;
}

void stw_buf_clear(struct stw_buf *b)
{
    if (b->data) {
        if (b->secret)
            stw_wipe(b->data, b->cap);
        b->data[0] = '\0';
    }
    b->len = 0;
    b->failed = false;
}

const char *stw_buf_str(const struct stw_buf *b)
{
    return b->data ? b->data : "";
}

/* Moves to a block of `cap` bytes.  A secret is not moved by realloc, which may free the old block
 * without wiping it. */
static bool move_to(struct stw_buf *b, size_t cap)
{
    assert(cap > b->len);
    if (!b->secret) {
        char *data = realloc(b->data, cap);
        if (!data)
            return false;
        b->data = data;
        b->cap = cap;
        return true;
    }
    char *data = malloc(cap);
    if (!data)
        return false;
    if (b->data)
        memcpy(data, b->data, b->len + 1);
    free_buf_data(b);
    b->data = data;
    b->cap = cap;
    return true;
}

char *stw_buf_reserve(struct stw_buf *b, size_t len)
{
    if (b->failed)
        return NULL;
    if (b->len > b->max || len > b->max - b->len || len > SIZE_MAX / 4) {
        b->failed = true;
        return NULL;
    }
    size_t need = b->len + len + 1;
    if (need > b->cap) {
        size_t cap = STW_MAX(need, STW_MIN(b->cap * 2, b->max));
        if (!move_to(b, STW_MAX(cap, (size_t)64))) {
            b->failed = true;
            return NULL;
        }
        b->data[b->len] = '\0';
    }
    return b->data + b->len;
}

void stw_buf_add(struct stw_buf *b, const void *data, size_t len)
{
    char *to = stw_buf_reserve(b, len);
    if (!to)
        return;
    if (len > 0)
        memcpy(to, data, len);
    to[len] = '\0';
    b->len += len;
}

void stw_buf_adds(struct stw_buf *b, const char *text)
{
    stw_buf_add(b, text, strlen(text));
}

void stw_buf_adds_lower(struct stw_buf *b, const char *text)
{
    for (; *text; text++)
        stw_buf_addc(b, (char)tolower((unsigned char)*text));
}

void stw_buf_addc(struct stw_buf *b, char c)
{
    if (b->failed || b->len >= b->max || b->len + 1 >= b->cap) {
        stw_buf_add(b, &c, 1);
        return;
    }
    b->data[b->len++] = c;
    b->data[b->len] = '\0';
}

void stw_buf_addi(struct stw_buf *b, int64_t v)
{
    char digits[24];
    size_t i = sizeof(digits);
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

    do {
        digits[--i] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (v < 0)
        digits[--i] = '-';
    stw_buf_add(b, digits + i, sizeof(digits) - i);
}

void stw_buf_vaddf(struct stw_buf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    size_t room = b->cap > b->len ? b->cap - b->len : 0;
    int n = b->failed ? 0 : vsnprintf(room ? b->data + b->len : NULL, room, fmt, ap);

    if (n < 0)
        b->failed = true;
    else if (!b->failed && (size_t)n < room && (size_t)n <= b->max - b->len)
        b->len += (size_t)n;
    else if (!b->failed) {
        if (room)
            b->data[b->len] = '\0';
        if (stw_buf_reserve(b, (size_t)n)) {
            stw_vformat(b->data + b->len, (size_t)n + 1, fmt, again);
            b->len += (size_t)n;
        }
    }
    va_end(again);
}

void stw_buf_addf(struct stw_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    stw_buf_vaddf(b, fmt, ap);
    va_end(ap);
}

char *stw_buf_take(struct stw_buf *b)
{
    if (b->failed || !stw_buf_reserve(b, 0)) {
        stw_buf_done(b);
        return NULL;
    }
    char *data = stw_take(b->data);
    b->len = b->cap = 0;
    return data;
}

/* The character after the backslash in the escape of a byte; 'u': the six-byte form; 0: no escape
 * needed. */
static const char escape_of[256] = {
    [0 ... 7] = 'u', ['\b'] = 'b', ['\t'] = 't',      ['\n'] = 'n', [11] = 'u',
    ['\f'] = 'f',    ['\r'] = 'r', [14 ... 31] = 'u', ['"'] = '"',  ['\\'] = '\\',
};

static void add_escape(struct stw_buf *b, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char kind = escape_of[c];
    if (kind == 'u') {
        char text[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
        stw_buf_add(b, text, sizeof(text));
    } else {
        char text[2] = {'\\', kind};
        stw_buf_add(b, text, sizeof(text));
    }
}

void stw_buf_json_str(struct stw_buf *b, const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len, *plain = p;
    (void)stw_buf_reserve(b, len + 2);
    stw_buf_addc(b, '"');
    for (; (p = stw_skip_plain(p, end)) < end; p++) {
        if (!escape_of[*p])
            continue;
        stw_buf_add(b, plain, (size_t)(p - plain));
        add_escape(b, *p);
        plain = p + 1;
    }
    stw_buf_add(b, plain, (size_t)(end - plain));
    stw_buf_addc(b, '"');
}

void stw_buf_json_strz(struct stw_buf *b, const char *text)
{
    stw_buf_json_str(b, text, strlen(text));
}
