/* SPDX-License-Identifier: Apache-2.0
 *
 * AWS Signature Version 4 of one request ("Signing AWS API requests" in AWS's IAM guide).
 *
 * libcurl supports it, too (CURLOPT_AWS_SIGV4), but its versions differ: 7.88 signs the query as
 * given, 8.14 signs a re-encoded one and rejects CURLOPT_PATH_AS_IS. */
#include "base/hex.h"
#include "base/util.h"
#include "store/s3_priv.h"

#include <openssl/crypto.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define REQUEST_MAX (24u << 10)

void s3_hash_hex(const void *data, size_t len, char out[S3_HASH_HEX])
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    SHA256(len > 0 ? data : "", len, sum);
    stw_hex_encode(sum, sizeof(sum), STW_HEX_LOWER, out);
}

struct s3_url s3_url_parts(const char *url)
{
    struct s3_url u = {0};
    const char *scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url;
    u.host = host;
    u.host_len = strcspn(host, "/?");
    u.path = host + u.host_len;
    u.path_len = strcspn(u.path, "?");
    u.query = u.path[u.path_len] ? u.path + u.path_len + 1 : "";
    return u;
}

static void add_signed_header(struct stw_buf *request, struct stw_buf *names, const char *name,
                              const char *value, size_t len)
{
    stw_buf_addf(request, "%s:", name);
    stw_buf_add(request, value, len);
    stw_buf_addc(request, '\n');
    stw_buf_addf(names, "%s%s", names->len ? ";" : "", name);
}

/* `line`: "name: value" as it is sent; NULL: it is not sent. */
static void add_header_line(struct stw_buf *request, struct stw_buf *names, const char *line)
{
    char name[64];
    if (!line)
        return;
    size_t len = strcspn(line, ":");
    stw_format(name, sizeof(name), "%.*s", (int)len, line);
    const char *value = line + len + 2;
    add_signed_header(request, names, name, value, strlen(value));
}

/* Header names must be in sorted order.  Query and path are sent in the form that is signed. */
static void make_request(const struct s3 *s, const struct s3_to_sign *r, struct stw_buf *names,
                         struct stw_buf *out)
{
    struct s3_url u = s3_url_parts(r->url);
    stw_buf_addf(out, "%s\n", r->method);
    stw_buf_add(out, u.path, u.path_len);
    stw_buf_addf(out, "\n%s\n", u.query);
    if (r->md5)
        add_signed_header(out, names, "content-md5", r->md5, strlen(r->md5));
    add_signed_header(out, names, "host", u.host, u.host_len);
    add_signed_header(out, names, "x-amz-content-sha256", r->body_hash, strlen(r->body_hash));
    add_signed_header(out, names, "x-amz-date", r->date, strlen(r->date));
    add_header_line(out, names, s->token_header);
    if (r->with_sse)
        add_header_line(out, names, s->sse_header);
    stw_buf_addf(out, "\n%s\n%s", stw_buf_str(names), r->body_hash);
}

static bool apply_hmac(unsigned char key[SHA256_DIGEST_LENGTH], const char *text)
{
    unsigned char out[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    bool ok = HMAC(EVP_sha256(), key, SHA256_DIGEST_LENGTH, (const unsigned char *)text,
                   strlen(text), out, &len) != NULL;
    memcpy(key, out, SHA256_DIGEST_LENGTH);
    OPENSSL_cleanse(out, sizeof(out));
    return ok;
}

/* Derives the key of this day, region and service, and replaces it by the signature of `text`. */
static bool compute_signature(const struct s3 *s, const char *day, const char *text,
                              unsigned char key[SHA256_DIGEST_LENGTH])
{
    struct stw_buf secret = {.max = 8192, .secret = true};
    unsigned char out[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    stw_buf_addf(&secret, "AWS4%s", s->secret_key ? s->secret_key : "");
    bool ok = !secret.failed && HMAC(EVP_sha256(), stw_buf_str(&secret), (int)secret.len,
                                     (const unsigned char *)day, strlen(day), out, &len) != NULL;
    stw_buf_done(&secret);
    memcpy(key, out, SHA256_DIGEST_LENGTH);
    OPENSSL_cleanse(out, sizeof(out));
    return ok && apply_hmac(key, s->region) && apply_hmac(key, "s3") &&
           apply_hmac(key, "aws4_request") && apply_hmac(key, text);
}

int s3_sign(const struct s3 *s, const struct s3_to_sign *r, struct stw_buf *ret)
{
    struct stw_buf request = {.max = REQUEST_MAX, .secret = true}; /* the token is in it */
    stw_autobuf struct stw_buf names = STW_BUF_INIT(256), text = STW_BUF_INIT(1024);
    char day[9], hash[S3_HASH_HEX];
    unsigned char signature[SHA256_DIGEST_LENGTH] = {0};
    stw_format(day, sizeof(day), "%.8s", r->date);
    make_request(s, r, &names, &request);
    s3_hash_hex(stw_buf_str(&request), request.len, hash);
    bool ok = !request.failed && !names.failed;
    stw_buf_done(&request);
    stw_buf_addf(&text, ALGORITHM "\n%s\n%s/%s/s3/aws4_request\n%s", r->date, day, s->region, hash);
    if (!ok || text.failed || !compute_signature(s, day, stw_buf_str(&text), signature))
        return -1;
    stw_buf_addf(ret,
                 "Authorization: " ALGORITHM " Credential=%s/%s/%s/s3/aws4_request, "
                 "SignedHeaders=%s, Signature=",
                 s->access_key, day, s->region, stw_buf_str(&names));
    stw_hex_encode(signature, sizeof(signature), STW_HEX_LOWER, hash);
    stw_buf_adds(ret, hash);
    OPENSSL_cleanse(signature, sizeof(signature));
    return ret->failed ? -1 : 0;
}
