/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STW_BASE_PLAIN_PRIV_H
#define STW_BASE_PLAIN_PRIV_H

/* Text that is the same inside and outside a JSON string.  It is skipped 16 bytes at a time, or 8
 * without SSE2. */

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The first byte from `p` on that is not plain ASCII: a quote, a backslash, a control character or
 * part of a longer sequence; `end` when there is none. */
static inline const unsigned char *stw_skip_plain(const unsigned char *p, const unsigned char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    const __m128i blank = _mm_set1_epi8(0x20);
    while (end - p >= 16) {
        __m128i v;
        memcpy(&v, p, sizeof(v));
        /* Signed comparison: control characters and all bytes from 0x80 are below a blank. */
        __m128i hit = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, slash)),
                                   _mm_cmplt_epi8(v, blank));
        unsigned mask = (unsigned)_mm_movemask_epi8(hit);
        if (mask)
            return p + __builtin_ctz(mask);
        p += 16;
    }
#else
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones << 7;
    while (end - p >= 8) {
        uint64_t v;
        memcpy(&v, p, sizeof(v));
        uint64_t q = v ^ (ones * '"'), s = v ^ (ones * '\\');
        /* May report a false byte after a true one but never misses one; the loop below decides. */
        if ((((q - ones) & ~q) | ((s - ones) & ~s) | (v - ones * 0x20) | v) & highs)
            break;
        p += 8;
    }
#endif
    while (p < end && *p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\')
        p++;
    return p;
}

#endif
