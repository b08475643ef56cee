/* SPDX-License-Identifier: Apache-2.0
 *
 * The stream of a snapshot: fed in pieces it must give the same bytes and the same result as fed at
 * once, and a stream that is accepted as complete ends with the SHA-256 of the bytes before it.
 * The first byte sets the size of the pieces. */
#include "etcd/etcd_priv.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int sink(void *ctx, const void *data, size_t len, struct stw_error *err)
{
    (void)err;
    stw_buf_add(ctx, data, len);
    return 0;
}

static int feed(const char *text, size_t len, size_t piece, struct stw_buf *out,
                struct stw_error *err)
{
    struct stw_etcd_stream s;
    uint64_t size = 0;
    char sha256[65];
    int r = 0;
    if (stw_etcd_stream_init(&s, sink, out) != 0)
        abort();
    for (size_t at = 0; r == 0 && at < len; at += piece)
        r = stw_etcd_stream_add(&s, text + at, len - at < piece ? len - at : piece, err);
    if (r == 0)
        r = stw_etcd_stream_end(&s, &size, sha256, err);
    if (r == 0 && size != out->len)
        abort();
    stw_etcd_stream_done(&s);
    return r;
}

static void look(const struct stw_buf *whole)
{
    unsigned char digest[32];
    if (whole->len <= 32 ||
        EVP_Digest(whole->data, whole->len - 32, digest, NULL, EVP_sha256(), NULL) != 1 ||
        memcmp(whole->data + whole->len - 32, digest, 32) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stw_buf whole = STW_BUF_INIT(1u << 20), pieces = STW_BUF_INIT(1u << 20);
    struct stw_error a_err = {0}, b_err = {0};
    if (size < 1 || size > 65536)
        return 0;
    const char *text = (const char *)data + 1;
    int a = feed(text, size - 1, size, &whole, &a_err);
    int b = feed(text, size - 1, (size_t)data[0] + 1, &pieces, &b_err);
    if (a != b || whole.len != pieces.len || strcmp(a_err.text, b_err.text) != 0 ||
        memcmp(stw_buf_str(&whole), stw_buf_str(&pieces), whole.len) != 0)
        abort();
    if (a == 0)
        look(&whole);
    stw_buf_done(&whole);
    stw_buf_done(&pieces);
    return 0;
}
