/* SPDX-License-Identifier: Apache-2.0
 *
 * Uploads to S3.  Data that fits into one part is a single PUT; larger data is uploaded in parts.
 * One part is in memory, so that it can be sent again without rereading the source. */
#include "base/hex.h"
#include "base/util.h"
#include "store/s3_priv.h"
#include "store/xml.h"

#include <stdio.h>

#define UPLOAD_ID_MAX 1024
#define MANIFEST_MAX_BYTES STW_STORE_UPLOAD_BYTES

struct s3_upload {
    struct stw_upload upload;
    char *key;
    char *part; /* part_bytes of the store */
    size_t filled;
    char id[UPLOAD_ID_MAX]; /* "" until a multipart upload has begun */
    unsigned parts;
    uint64_t size;           /* of the parts sent */
    struct stw_buf manifest; /* the parts as CompleteMultipartUpload lists them */
};

static struct s3_upload *upload_of(struct stw_upload *u)
{
    return (struct s3_upload *)u;
}

static struct s3 *s3_of(const struct s3_upload *u)
{
    return (struct s3 *)u->upload.store;
}

static void upload_free(struct s3_upload *u)
{
    stw_buf_done(&u->manifest);
    free(u->key);
    free(u->part);
    free(u);
}

int s3_begin(struct stw_store *s, const char *key, struct stw_upload **ret,
             enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct s3_upload *u = calloc(1, sizeof(*u));
    if (u) {
        u->upload.store = s;
        u->manifest = STW_BUF_INIT(MANIFEST_MAX_BYTES);
        u->key = strdup(key);
        u->part = malloc(s3_of(u)->part_bytes);
    }
    if (!u || !u->key || !u->part) {
        if (u)
            upload_free(u);
        return stw_store_fail_memory(trouble, err);
    }
    *ret = &u->upload;
    return 0;
}

/* --- parts */

static int take_id(void *ctx, const char *parent, const char *name, const char *text,
                   struct stw_error *err)
{
    struct s3_upload *u = ctx;
    (void)err;
    if (text && stw_streq(parent, "InitiateMultipartUploadResult") && stw_streq(name, "UploadId") &&
        strlen(text) < sizeof(u->id))
        stw_format(u->id, sizeof(u->id), "%s", text);
    return 0;
}

static int begin_parts(struct s3_upload *u, enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct s3_call call = {.method = "POST",
                           .key = u->key,
                           .query = "uploads=",
                           .content_type = "application/octet-stream",
                           .with_sse = true};
    int rc = s3_do(s3_of(u), &call, trouble, err);
    if (rc == 0 &&
        (stw_xml_walk(stw_buf_str(&call.answer), call.answer.len, take_id, u, err) != 0 || !*u->id))
        rc = stw_store_fail(trouble, STW_STORE_FAILED, err,
                            "the store's answer names no upload: it does not speak S3's "
                            "multipart uploads");
    s3_call_done(&call);
    stw_buf_adds(&u->manifest, "<CompleteMultipartUpload>");
    return rc;
}

/* The ETag is from the server and is copied into XML. */
static bool is_plain(const char *etag)
{
    for (const char *p = etag; *p; p++)
        if ((unsigned char)*p <= 0x20 || (unsigned char)*p > 0x7e || strchr("<>&", *p))
            return false;
    return *etag != '\0';
}

static int send_part(struct s3_upload *u, enum stw_store_trouble *trouble, struct stw_error *err)
{
    stw_autobuf struct stw_buf query = STW_BUF_INIT(4 * UPLOAD_ID_MAX);
    if (!*u->id && begin_parts(u, trouble, err) != 0)
        return -1;
    if (u->parts == S3_PARTS_MAX)
        return stw_store_fail(trouble, STW_STORE_FAILED, err,
                              "more than %d parts of %zu bytes are more than S3 takes",
                              S3_PARTS_MAX, s3_of(u)->part_bytes);
    stw_buf_addf(&query, "partNumber=%u&uploadId=", u->parts + 1);
    stw_url_escape(u->id, &query);
    struct s3_call call = {.method = "PUT",
                           .key = u->key,
                           .query = stw_buf_str(&query),
                           .body = u->part,
                           .body_len = u->filled,
                           .moves_data = true};
    int rc = s3_do(s3_of(u), &call, trouble, err);
    if (rc == 0 && !is_plain(call.etag))
        rc =
            stw_store_fail(trouble, STW_STORE_FAILED, err, "the store took a part without an ETag");
    if (rc == 0) {
        u->parts++;
        u->size += u->filled;
        u->filled = 0;
        stw_buf_addf(&u->manifest, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
                     u->parts, call.etag);
    }
    s3_call_done(&call);
    return rc;
}

int s3_write(struct stw_upload *upload, const void *data, size_t len,
             enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct s3_upload *u = upload_of(upload);
    const char *at = data;
    while (len > 0) {
        size_t n = STW_MIN(len, s3_of(u)->part_bytes - u->filled);
        if (n == 0) {
            if (send_part(u, trouble, err) != 0)
                return -1;
            continue;
        }
        memcpy(u->part + u->filled, at, n);
        u->filled += n;
        at += n;
        len -= n;
    }
    return 0;
}

/* --- the end */

int s3_abort_parts(struct s3 *s, const char *key, const char *id, bool last_desired,
                   enum stw_store_trouble *trouble, struct stw_error *err)
{
    stw_autobuf struct stw_buf query = STW_BUF_INIT(4 * UPLOAD_ID_MAX);
    stw_buf_adds(&query, "uploadId=");
    stw_url_escape(id, &query);
    struct s3_call call = {
        .method = "DELETE", .key = key, .query = stw_buf_str(&query), .last_desired = last_desired};
    int rc = s3_do(s, &call, trouble, err);
    bool gone = rc != 0 && stw_streq(call.code, "NoSuchUpload");
    s3_call_done(&call);
    return gone ? 0 : rc;
}

void s3_abort(struct stw_upload *upload)
{
    struct s3_upload *u = upload_of(upload);
    enum stw_store_trouble trouble;
    if (*u->id) /* if this fails, clean() finds the upload later */
        (void)s3_abort_parts(s3_of(u), u->key, u->id, true, &trouble, NULL);
    upload_free(u);
}

static int put_whole(struct s3_upload *u, enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct s3_call call = {.method = "PUT",
                           .key = u->key,
                           .body = u->part,
                           .body_len = u->filled,
                           .with_sse = true,
                           .moves_data = true};
    int rc = s3_do(s3_of(u), &call, trouble, err);
    s3_call_done(&call);
    return rc;
}

struct sought_upload {
    const char *key;
    uint64_t size;
    bool found;
};

static int seek_object(void *ctx, const char *key, uint64_t size_bytes)
{
    struct sought_upload *s = ctx;
    s->found = s->found || (stw_streq(key, s->key) && size_bytes == s->size);
    return 0;
}

/* The server does not know the upload any more.  If the object exists, an earlier attempt, whose
 * answer was lost, has completed it (libcurl itself retries on a reused connection). */
static bool is_complete(struct s3_upload *u)
{
    struct sought_upload sought = {.key = u->key, .size = u->size};
    enum stw_store_trouble trouble;
    return stw_store_list(u->upload.store, u->key, seek_object, &sought, &trouble, NULL) == 0 &&
           sought.found;
}

static int take_result(void *ctx, const char *parent, const char *name, const char *text,
                       struct stw_error *err)
{
    bool *complete = ctx;
    (void)text;
    (void)err;
    if (!*parent && stw_streq(name, "CompleteMultipartUploadResult"))
        *complete = true;
    return 0;
}

/* The server may send status 200 before the work is done, so only the body shows success (API
 * reference, CompleteMultipartUpload). */
static int complete_parts(struct s3_upload *u, enum stw_store_trouble *trouble,
                          struct stw_error *err)
{
    stw_autobuf struct stw_buf query = STW_BUF_INIT(4 * UPLOAD_ID_MAX);
    bool complete = false;
    stw_buf_adds(&query, "uploadId=");
    stw_url_escape(u->id, &query);
    stw_buf_adds(&u->manifest, "</CompleteMultipartUpload>");
    if (u->manifest.failed)
        return stw_store_fail_memory(trouble, err);
    struct s3_call call = {.method = "POST",
                           .key = u->key,
                           .query = stw_buf_str(&query),
                           .content_type = "application/xml",
                           .body = u->manifest.data,
                           .body_len = u->manifest.len,
                           .moves_data = true};
    int rc = s3_do(s3_of(u), &call, trouble, err);
    if (rc == 0 && (stw_xml_walk(stw_buf_str(&call.answer), call.answer.len, take_result, &complete,
                                 NULL) != 0 ||
                    !complete))
        rc = stw_store_fail(trouble, STW_STORE_FAILED, err,
                            "the store could not put the parts together");
    else if (rc != 0 && stw_streq(call.code, "NoSuchUpload") && is_complete(u)) {
        *trouble = STW_STORE_FINE;
        rc = 0;
    }
    s3_call_done(&call);
    return rc;
}

int s3_finish(struct stw_upload *upload, enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct s3_upload *u = upload_of(upload);
    int rc;
    if (!*u->id)
        rc = put_whole(u, trouble, err);
    else
        rc =
            u->filled > 0 && send_part(u, trouble, err) != 0 ? -1 : complete_parts(u, trouble, err);
    if (rc == 0)
        upload_free(u);
    else
        s3_abort(upload);
    return rc;
}
