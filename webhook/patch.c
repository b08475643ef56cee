/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/patch.h"

#include "base/base64.h"

/* The API server accepts objects of about 1.5 MiB; defaults are far smaller than the objects. */
#define PATCH_MAX ((size_t)1 << 20)
#define PATCH_FIRST ((size_t)480) /* large enough for the usual patch */

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

void stw_patch_base64(const struct stw_patch *p, struct stw_buf *out)
{
    if (p->count == 0)
        return;
    if (p->ops.failed) {
        out->failed = true;
        return;
    }
    size_t whole = p->ops.len - p->ops.len % 3, rest = p->ops.len - whole;
    /* Encode the last `rest` bytes with the closing bracket: three bytes at most. */
    unsigned char tail[3] = {0};
    for (size_t i = 0; i < rest; i++)
        tail[i] = (unsigned char)p->ops.data[whole + i];
    tail[rest] = ']';
    stw_base64_encode(p->ops.data, whole, out);
    stw_base64_encode(tail, rest + 1, out);
}
