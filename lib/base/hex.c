/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hex.h"

#include <stdio.h>

void stw_hex_encode(const void *data, size_t len, enum stw_hex letters, char *out)
{
    const char *digits = letters == STW_HEX_UPPER ? "0123456789ABCDEF" : "0123456789abcdef";
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i++) {
        *out++ = digits[p[i] >> 4];
        *out++ = digits[p[i] & 15];
    }
    *out = '\0';
}

void stw_hash_format(struct stw_hash h, char out[STW_HASH_LEN])
{
    stw_format(out, STW_HASH_LEN, "%016llx%016llx", (unsigned long long)h.hi,
               (unsigned long long)h.lo);
}

/* At most 16 digits: those before the first other character. */
static uint64_t parse_word(const char *text)
{
    uint64_t v = 0;
    for (int i = 0, digit; i < 16 && (digit = stw_hex_digit(text[i])) >= 0; i++)
        v = v << 4 | (uint64_t)digit;
    return v;
}

struct stw_hash stw_hash_parse(const char *text)
{
    return (struct stw_hash){.hi = parse_word(text),
                             .lo = strlen(text) > 16 ? parse_word(text + 16) : 0};
}

/* The unreserved characters of RFC 3986, section 2.3. */
static bool is_unreserved(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

static void escape_text(const char *text, char kept, struct stw_buf *out)
{
    char escaped[4] = "%";
    for (; *text; text++) {
        if (is_unreserved(*text) || *text == kept) {
            stw_buf_addc(out, *text);
            continue;
        }
        stw_hex_encode(text, 1, STW_HEX_UPPER, escaped + 1);
        stw_buf_add(out, escaped, 3);
    }
}

void stw_url_escape(const char *text, struct stw_buf *out)
{
    escape_text(text, '\0', out);
}

void stw_url_escape_path(const char *text, struct stw_buf *out)
{
    escape_text(text, '/', out);
}
