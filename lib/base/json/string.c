/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks and decodes strings.  They are most of the bytes of an admission review (a page in a
 * MyWeb, for example). */
#include "base/hex.h"
#include "base/json/json_priv.h"
#include "base/plain_priv.h"
#include "base/utf8.h"

#include <string.h>

/* The character of a one-letter escape; 0: the letter is not an escape. */
static const char short_of[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

/* The code unit of four hexadecimal digits, or -1. */
static inline int32_t parse_hex4(const unsigned char *p)
{
    int32_t unit = 0;
    for (int i = 0; i < 4; i++) {
        int digit = stw_hex_digit((char)p[i]);
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

static const unsigned char *refuse_string(struct stw_json_fault *fault, const char *what)
{
    fault->what = what;
    return NULL;
}

/* `p` is after "\u"; returns the end of the escape and adds its UTF-8 length to `*decoded`. */
static const unsigned char *scan_unicode(const unsigned char *p, const unsigned char *end,
                                         size_t *decoded, struct stw_json_fault *fault)
{
    int32_t unit = end - p >= 4 ? parse_hex4(p) : -1;
    if (unit < 0)
        return refuse_string(fault, "\"\\u\" is not followed by four hexadecimal digits");
    if (unit < 0xD800 || unit > 0xDFFF) {
        *decoded += unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
        return p + 4;
    }
    int32_t low = end - p >= 10 && p[4] == '\\' && p[5] == 'u' ? parse_hex4(p + 6) : -1;
    if (unit > 0xDBFF || low < 0xDC00 || low > 0xDFFF)
        return refuse_string(fault, "a surrogate pair is incomplete");
    *decoded += 4;
    return p + 10;
}

/* `p` is at a backslash; returns the end of the escape. */
static inline const unsigned char *scan_escape(const unsigned char *p, const unsigned char *end,
                                               size_t *decoded, struct stw_json_fault *fault)
{
    if (end - p < 2)
        return refuse_string(fault, "a string is not closed");
    if (p[1] == 'u')
        return scan_unicode(p + 2, end, decoded, fault);
    if (!short_of[p[1]])
        return refuse_string(fault, "a backslash is followed by a character that is not an escape");
    *decoded += 1;
    return p + 2;
}

static const unsigned char *scan_special(const unsigned char *p, const unsigned char *end,
                                         size_t *decoded, struct stw_json_fault *fault)
{
    if (p == end)
        return refuse_string(fault, "a string is not closed");
    if (*p < 0x20)
        return refuse_string(fault, "a control character in a string must be escaped");
    do {
        size_t len = stw_utf8_len(p, end);
        if (len == 0)
            return refuse_string(fault, "a string is not valid UTF-8");
        p += len;
        *decoded += len;
    } while (p < end && *p >= 0x80);
    return p;
}

const char *stw_json_scan_string(const char *text, const char *from, const char *to,
                                 struct stw_json_token *token, struct stw_json_fault *fault)
{
    const unsigned char *p = (const unsigned char *)from, *end = (const unsigned char *)to;
    size_t decoded = 0;

    token->escaped = token->nul = 0;
    for (;;) {
        const unsigned char *hit = stw_skip_plain(p, end), *behind;
        decoded += (size_t)(hit - p);
        p = hit;
        if (p < end && *p == '"')
            break;
        if (p < end && *p == '\\') {
            token->escaped = 1;
            behind = scan_escape(p, end, &decoded, fault);
            token->nul |= behind && behind - p == 6 && memcmp(p, "\\u0000", 6) == 0;
        } else {
            behind = scan_special(p, end, &decoded, fault);
        }
        if (!behind) {
            fault->at = (size_t)((const char *)p - text);
            return NULL;
        }
        p = behind;
    }
    token->size = (uint32_t)decoded;
    return (const char *)p;
}

static size_t put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (char)(0xC0 | c >> 6);
        to[1] = (char)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (char)(0xE0 | c >> 12);
        to[1] = (char)(0x80 | (c >> 6 & 0x3F));
        to[2] = (char)(0x80 | (c & 0x3F));
        return 3;
    }
    to[0] = (char)(0xF0 | c >> 18);
    to[1] = (char)(0x80 | (c >> 12 & 0x3F));
    to[2] = (char)(0x80 | (c >> 6 & 0x3F));
    to[3] = (char)(0x80 | (c & 0x3F));
    return 4;
}

size_t stw_json_decode(struct stw_json_decoder *d, const char **piece)
{
    if (d->p == d->end)
        return 0;
    if (*d->p != '\\') {
        const char *slash = memchr(d->p, '\\', (size_t)(d->end - d->p));
        *piece = d->p;
        d->p = slash ? slash : d->end;
        return (size_t)(d->p - *piece);
    }
    *piece = d->store;
    const unsigned char *p = (const unsigned char *)d->p + 1;
    if (*p != 'u') {
        d->store[0] = short_of[*p];
        d->p += 2;
        return 1;
    }
    uint32_t c = (uint32_t)parse_hex4(p + 1);
    d->p += 6;
    if (c >= 0xD800 && c <= 0xDBFF) {
        c = 0x10000 + ((c - 0xD800) << 10) + ((uint32_t)parse_hex4(p + 7) - 0xDC00);
        d->p += 6;
    }
    return put_utf8(d->store, c);
}
