/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 encoding and decoding. */
#include "base/base64.h"

#include <stdint.h>

static const char alphabet[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char digit_at(uint32_t bits, unsigned shift)
{
    return alphabet[(bits >> shift) & 63U];
}

/* Four digits for one to three bytes. */
static void encode_group(const unsigned char *in, size_t len, char out[4])
{
    uint32_t bits = (uint32_t)in[0] << 16 | (len > 1 ? (uint32_t)in[1] << 8 : 0) |
                    (len > 2 ? (uint32_t)in[2] : 0);
    out[0] = digit_at(bits, 18);
    out[1] = digit_at(bits, 12);
    out[2] = len > 1 ? digit_at(bits, 6) : '=';
    out[3] = len > 2 ? digit_at(bits, 0) : '=';
}

void stw_base64_encode(const void *data, size_t len, struct stw_buf *out)
{
    const unsigned char *in = data;
    size_t size = (len + 2) / 3 * 4, whole = len - len % 3;
    char *to = size > 0 ? stw_buf_reserve(out, size) : NULL;
    if (!to)
        return;
    for (size_t i = 0; i < whole; i += 3, to += 4)
        encode_group(in + i, 3, to);
    if (whole < len)
        encode_group(in + whole, len - whole, to);
    out->len += size;
    out->data[out->len] = '\0';
}

static int decode_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int stw_base64_decode(const char *text, size_t len, struct stw_buf *out)
{
    uint32_t bits = 0;
    unsigned digits = 0, pads = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\n' || text[i] == '\r')
            continue;
        if (text[i] == '=') {
            pads++;
            continue;
        }
        int d = decode_digit(text[i]);
        if (d < 0 || pads > 0)
            return -1;
        bits = bits << 6 | (uint32_t)d;
        if (++digits % 4 == 0)
            stw_buf_add(out, (char[]){(char)(bits >> 16), (char)(bits >> 8), (char)bits}, 3);
    }
    unsigned rest = digits % 4;
    if (rest == 1 || pads != (4 - rest) % 4)
        return -1;
    if (rest >= 2)
        stw_buf_addc(out, (char)(rest == 2 ? bits >> 4 : bits >> 10));
    if (rest == 3)
        stw_buf_addc(out, (char)(bits >> 2));
    return out->failed ? -1 : 0;
}

int stw_base64_json(struct stw_json string, struct stw_buf *out)
{
    stw_autobuf struct stw_buf text = {.max = SIZE_MAX, .secret = true};
    if (stw_json_type(string) != STW_JSON_STRING)
        return -1;
    stw_json_str(string, &text);
    return text.failed ? -1 : stw_base64_decode(stw_buf_str(&text), text.len, out);
}

char *stw_base64_json_take(struct stw_json string, size_t max)
{
    stw_autobuf struct stw_buf out = {.max = max, .secret = true};
    return stw_base64_json(string, &out) == 0 && out.len > 0 ? stw_buf_take(&out) : NULL;
}
