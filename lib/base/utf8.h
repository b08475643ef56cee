/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STW_BASE_UTF8_H
#define STW_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

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
