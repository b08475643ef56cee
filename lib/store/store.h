/* SPDX-License-Identifier: Apache-2.0
 *
 * A store of snapshots: objects under one prefix, written once, read back, listed, deleted.  Two
 * kinds share one table of operations: S3 and compatible stores (s3.c), and a folder of a volume
 * (folder.c, for the agent in a pod with that volume).  Does not depend on etcd or Kubernetes.
 * Error texts never contain credentials. */
#ifndef STW_STORE_STORE_H
#define STW_STORE_STORE_H

#include "base/buf.h"
#include "base/error.h"
#include "base/process/reach.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STW_STORE_KEY_MAX 1024
/* The most of a multipart upload that is in memory, and the least that S3 takes. */
#define STW_STORE_PART_BYTES (8u << 20)
#define STW_STORE_PART_MIN_BYTES (5u << 20)
#define STW_STORE_UPLOAD_BYTES (2u << 20) /* what an upload keeps of its parts, at most */

enum stw_store_trouble {
    STW_STORE_FINE,
    STW_STORE_CONNECT, /* no connection, no answer in time, or 5xx */
    STW_STORE_TLS,
    STW_STORE_DENIED,
    STW_STORE_REGION, /* the bucket is in another one */
    STW_STORE_NO_BUCKET,
    STW_STORE_NOT_FOUND, /* no such object */
    STW_STORE_FULL,
    STW_STORE_NOT_ALLOWED, /* users may not use the endpoint's address */
    STW_STORE_FAILED,
    STW_STORE_TROUBLES
};

/* A stable CamelCase reason for conditions, such as "AccessDenied". */
const char *stw_store_trouble_name(enum stw_store_trouble t);

struct stw_store; /* one thread at a time, except for cancel */

struct stw_store_s3 {
    const char *endpoint; /* URL; NULL: AWS's endpoint of the region */
    const char *region, *bucket;
    /* Copied and wiped.  Access key NULL: requests are not signed.  The token may be NULL. */
    const char *access_key, *secret_key, *session_token;
    const char *ca;  /* PEM; NULL: the system's */
    const char *sse; /* may be NULL */
    bool path_style;
    uint32_t timeout_ms; /* of a request that moves no data; 0: 30000 */
    size_t part_bytes;   /* 0: STW_STORE_PART_BYTES.  An object has 10,000 parts at most */
    /* Allowed addresses, borrowed; errors then contain no text of the server.  NULL: any address
     * (command line). */
    const struct stw_reach *reach;
};
int stw_store_s3_create(const struct stw_store_s3 *config, struct stw_store **ret,
                        struct stw_error *err) STW_MUST_CHECK;
int stw_store_folder_create(const char *path, struct stw_store **ret,
                            struct stw_error *err) STW_MUST_CHECK;
/* Aborts the running request and refuses new ones, except aborts of uploads.  Any thread may call
 * it, also repeatedly. */
void stw_store_cancel(struct stw_store *s);
/* All calls from now on must end within `ms` together: then the running one is aborted, and it and
 * later ones fail with STW_STORE_CONNECT, except aborts of uploads.  0: no limit, as at first. */
void stw_store_set_timeout(struct stw_store *s, uint64_t ms);
void stw_store_destroy(struct stw_store *s);

/* An upload.  Nothing is visible under the key until finish() succeeds; abort() leaves nothing in
 * the store.  One of the two must be called. */
struct stw_upload;
int stw_upload_begin(struct stw_store *s, const char *key, struct stw_upload **ret,
                     enum stw_store_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;
int stw_upload_write(struct stw_upload *u, const void *data, size_t len,
                     enum stw_store_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;
int stw_upload_finish(struct stw_upload *u, enum stw_store_trouble *trouble,
                      struct stw_error *err) STW_MUST_CHECK; /* frees u */
void stw_upload_abort(struct stw_upload *u);                 /* frees u; NULL is allowed */

typedef int stw_store_sink_fn(void *ctx, const void *data, size_t len, struct stw_error *err);
int stw_store_read(struct stw_store *s, const char *key, stw_store_sink_fn *sink, void *ctx,
                   enum stw_store_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;

/* Called for each object whose key begins with `prefix`, in any order; -1 ends the listing. */
typedef int stw_store_each_fn(void *ctx, const char *key, uint64_t size_bytes);
int stw_store_list(struct stw_store *s, const char *prefix, stw_store_each_fn *each, void *ctx,
                   enum stw_store_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;
/* Decides by its key whether an unfinished upload is the caller's. */
struct stw_store_filter {
    bool (*mine)(void *ctx, const char *key);
    void *ctx;
};
/* Removes unfinished uploads under `prefix` that began before `before_us` (wall clock), as left by
 * a killed process.  Only those that are `mine`.  Not an error if the store cannot list them, or
 * refuses to abort one.  `*ret_count`: how many. */
int stw_store_clean(struct stw_store *s, const char *prefix, const struct stw_store_filter *mine,
                    int64_t before_us, unsigned *ret_count, enum stw_store_trouble *trouble,
                    struct stw_error *err);
int stw_store_delete(struct stw_store *s, const char *key, enum stw_store_trouble *trouble,
                     struct stw_error *err); /* 0 also if there is no such object */

#endif
