/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STW_BASE_UTF8_H
#define STW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the valid UTF-8 sequence at `p` (p < end), or 0.  Shortest form only, no surrogates,
 * nothing beyond U+10FFFF (RFC 3629). */
static inline size_t stw_utf8_len(const unsigned char *p, const unsigned char *end)
{
    size_t left = (size_t)(end - p);
    unsigned char c = p[0];
    if (c < 0x80)
        return 1;
    if (c < 0xC2 || c > 0xF4 || left < 2 || (p[1] & 0xC0) != 0x80)
        return 0;
    if (c < 0xE0)
        return 2;
    if (left < 3 || (p[2] & 0xC0) != 0x80)
        return 0;
    if (c < 0xF0) {
        if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] > 0x9F))
            return 0;
        return 3;
    }
    if (left < 4 || (p[3] & 0xC0) != 0x80)
        return 0;
    if ((c == 0xF0 && p[1] < 0x90) || (c == 0xF4 && p[1] > 0x8F))
        return 0;
    return 4;
}

/* The character of such a sequence of `len` bytes. */
static inline uint32_t stw_utf8_code(const unsigned char *p, size_t len)
{
    uint32_t code = len == 1 ? p[0] : p[0] & (0x7FU >> len);
    for (size_t i = 1; i < len; i++)
        code = code << 6 | (p[i] & 0x3FU);
    return code;
}

static inline bool stw_utf8_valid(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + len;
    while (p < end) {
        size_t n = stw_utf8_len(p, end);
        if (n == 0)
            return false;
        p += n;
    }
    return true;
}

#endif
