/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/patch.h"

#include <stdint.h>

/* The API server takes objects of about 1.5 MiB; defaults are far smaller than what they default.
 */
#define PATCH_MAX ((size_t)1 << 20)
#define PATCH_FIRST ((size_t)480) /* so that the usual patch need not grow */

void stw_patch_init(struct stw_patch *p)
{
    *p = (struct stw_patch){.ops = STW_BUF_INIT(PATCH_MAX)};
}

void stw_patch_done(struct stw_patch *p)
{
    stw_buf_done(&p->ops);
    p->count = 0;
}

void stw_patch_add(struct stw_patch *p, const char *pointer, const char *json)
{
    if (p->count == 0)
        (void)stw_buf_reserve(&p->ops, PATCH_FIRST);
    stw_buf_adds(&p->ops,
                 p->count == 0 ? "[{\"op\":\"add\",\"path\":" : ",{\"op\":\"add\",\"path\":");
    stw_buf_json_strz(&p->ops, pointer);
    stw_buf_adds(&p->ops, ",\"value\":");
    stw_buf_adds(&p->ops, json);
    stw_buf_addc(&p->ops, '}');
    p->count++;
}

static const char digits[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static char digit(uint32_t bits, unsigned shift)
{
    return digits[(bits >> shift) & 63U];
}

/* Four digits for one to three bytes. */
static void encode(const unsigned char *in, size_t len, char out[4])
{
    uint32_t bits = (uint32_t)in[0] << 16 | (len > 1 ? (uint32_t)in[1] << 8 : 0) |
                    (len > 2 ? (uint32_t)in[2] : 0);
    out[0] = digit(bits, 18);
    out[1] = digit(bits, 12);
    out[2] = len > 1 ? digit(bits, 6) : '=';
    out[3] = len > 2 ? digit(bits, 0) : '=';
}

void stw_patch_base64(const struct stw_patch *p, struct stw_buf *out)
{
    if (p->count == 0)
        return;
    if (p->ops.failed) {
        out->failed = true;
        return;
    }
    const unsigned char *ops = (const unsigned char *)p->ops.data;
    size_t whole = p->ops.len - p->ops.len % 3, rest = p->ops.len - whole;
    char *to = stw_buf_reserve(out, whole / 3 * 4 + 4);
    if (!to)
        return;
    for (size_t i = 0; i < whole; i += 3, to += 4)
        encode(ops + i, 3, to);
    /* The array's end joins what three does not divide: never more than three bytes. */
    unsigned char tail[3] = {0};
    for (size_t i = 0; i < rest; i++)
        tail[i] = ops[whole + i];
    tail[rest] = ']';
    encode(tail, rest + 1, to);
    out->len += whole / 3 * 4 + 4;
    out->data[out->len] = '\0';
}
