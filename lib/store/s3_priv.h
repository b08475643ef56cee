/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the S3 files: one request with its retries (s3_call.c), what its errors mean
 * (s3_error.c), uploads (s3_upload.c), and the store itself (s3.c). */
#ifndef STW_STORE_S3_PRIV_H
#define STW_STORE_S3_PRIV_H

#include "base/process/memory_budget.h"
#include "base/util.h"
#include "store/store_priv.h"

#include <curl/curl.h>

#define S3_ETAG_MAX 128
#define S3_PARTS_MAX 10000 /* S3's limit */

struct s3 {
    struct stw_store store;
    char *base; /* "https://host/bucket" or "https://bucket.host"; "/" and the key follow */
    char *region;
    char *access_key, *secret_key, *token_header; /* may be NULL; wiped */
    char *sse_header, *ca;                        /* may be NULL */
    char *bucket;
    uint32_t timeout_ms;
    size_t part_bytes;
    const struct stw_reach *reach; /* NULL: anywhere */
    bool trusted;  /* the operator listed this host, or configured the proxy to AWS */
    bool with_md5; /* the store asked for Content-MD5 with data */
    CURL *easy;    /* kept for its connection */
};

/* One request.  Keys and query are sent in the form of SigV4's canonical request: parameters are
 * sorted by name, each with its "=". */
struct s3_call {
    const char *method;
    const char *key;   /* NULL: the bucket itself */
    const char *query; /* encoded; or NULL */
    const void *body;  /* for PUT and POST */
    size_t body_len;
    const char *content_type; /* or NULL */
    bool with_sse;
    bool last_desired;       /* is sent even if the store is cancelled */
    bool moves_data;         /* limited by stalls instead of the total time */
    bool lists;              /* its answer may be as long as STW_XML_BYTES_MAX */
    stw_store_sink_fn *sink; /* gets the body of a 2xx answer; NULL: `answer` does */
    void *sink_ctx;

    struct stw_buf answer; /* the body of the last try; done by the caller */
    struct stw_kept kept;  /* of the answer */
    bool no_room;          /* for the answer, in the share of all */
    char etag[S3_ETAG_MAX];
    char region[64];    /* of the bucket, as the server names it; any text */
    char code[64];      /* S3's error code */
    bool asks_checksum; /* the error may mean that a checksum of the data is missing */
    bool sink_refused;  /* the error is the sink's */
};
int s3_do(struct s3 *s, struct s3_call *c, enum stw_store_trouble *trouble,
          struct stw_error *err) STW_MUST_CHECK;
void s3_call_done(struct s3_call *c);
/* The error of an answer with this status; returns -1.  Sets c->code and c->asks_checksum. */
int s3_fail_by_answer(struct s3 *s, struct s3_call *c, long status, const struct stw_buf *body,
                      enum stw_store_trouble *trouble, struct stw_error *err);

#define S3_HASH_HEX 65
void s3_hash_hex(const void *data, size_t len, char out[S3_HASH_HEX]); /* of SHA-256 */

/* The parts of "https://host:port/path?query"; pointers into it. */
struct s3_url {
    const char *host, *path, *query;
    size_t host_len, path_len;
};
struct s3_url s3_url_parts(const char *url);

struct s3_to_sign {
    const char *method, *url;
    const char *md5;       /* as in Content-MD5; NULL: it is not sent */
    const char *body_hash; /* as in the header x-amz-content-sha256 */
    const char *date;      /* as in x-amz-date: 20260102T030405Z */
    bool with_sse;
};
/* Appends the header Authorization to `ret`.  -1: out of memory. */
int s3_sign(const struct s3 *s, const struct s3_to_sign *r, struct stw_buf *ret);

int s3_begin(struct stw_store *s, const char *key, struct stw_upload **ret,
             enum stw_store_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;
int s3_write(struct stw_upload *u, const void *data, size_t len, enum stw_store_trouble *trouble,
             struct stw_error *err) STW_MUST_CHECK;
int s3_finish(struct stw_upload *u, enum stw_store_trouble *trouble,
              struct stw_error *err) STW_MUST_CHECK;
void s3_abort(struct stw_upload *u);
/* Aborts a multipart upload; with `last_desired` even if the store is cancelled. */
int s3_abort_parts(struct s3 *s, const char *key, const char *id, bool last_desired,
                   enum stw_store_trouble *trouble, struct stw_error *err);

#endif
