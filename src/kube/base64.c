/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64, both ways. */
#include "kube/base64.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void stw_base64_encode(const void *data, size_t len, struct stw_buf *out)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t v = (uint32_t)p[i] << 16;
        v |= left > 1 ? (uint32_t)p[i + 1] << 8 : 0;
        v |= left > 2 ? p[i + 2] : 0;
        char quad[4] = {alphabet[v >> 18], alphabet[v >> 12 & 63], '=', '='};
        if (left > 1)
            quad[2] = alphabet[v >> 6 & 63];
        if (left > 2)
            quad[3] = alphabet[v & 63];
        stw_buf_add(out, quad, sizeof(quad));
    }
}

static int digit(char c)
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
        int d = digit(text[i]);
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
