/* SPDX-License-Identifier: Apache-2.0
 *
 * S3 and compatible stores: MinIO, Ceph, Garage and others. */
#include "base/clock.h"
#include "base/hex.h"
#include "base/util.h"
#include "store/s3_priv.h"
#include "store/xml.h"

#include <arpa/inet.h>
#include <stdio.h>

#define TIMEOUT_MS 30000
#define PAGES_MAX 1000 /* of a thousand keys */
#define QUERY_MAX (4 * STW_STORE_KEY_MAX + 8192)
#define MARKER_MAX 4096
#define CA_MAX_BYTES (1u << 20)

static struct s3 *s3_of(struct stw_store *s)
{
    return (struct s3 *)s;
}

/* --- reading */

static int s3_read(struct stw_store *s, const char *key, stw_store_sink_fn *sink, void *ctx,
                   enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct s3_call call = {
        .method = "GET", .key = key, .sink = sink, .sink_ctx = ctx, .moves_data = true};
    int rc = s3_do(s3_of(s), &call, trouble, err);
    s3_call_done(&call);
    return rc;
}

static int s3_remove(struct stw_store *s, const char *key, enum stw_store_trouble *trouble,
                     struct stw_error *err)
{
    struct s3_call call = {.method = "DELETE", .key = key};
    int rc = s3_do(s3_of(s), &call, trouble, err);
    if (rc != 0 && *trouble == STW_STORE_NOT_FOUND) {
        *trouble = STW_STORE_FINE;
        rc = 0;
    }
    s3_call_done(&call);
    return rc;
}

/* --- listing: one page after the other */

struct store_page {
    /* of the entry that is being parsed */
    char key[3 * STW_STORE_KEY_MAX + 1], id[MARKER_MAX], began[64];
    int64_t size;
    /* of the page */
    bool truncated, encoded;
    char next[MARKER_MAX], next_id[MARKER_MAX];

    const char *prefix;
    stw_store_each_fn *each;
    void *each_ctx;
    bool stopped;

    struct s3 *sweeping; /* a listing of uploads: aborts those begun before `before_us` */
    const struct stw_store_filter *mine;
    int64_t before_us;
    unsigned *count;
    enum stw_store_trouble trouble; /* which ended the sweep, with its error */
    struct stw_error why;
};

/* In place.  -1: it is not URL-encoded, or contains a NUL. */
static int decode_url_text(char *text)
{
    char *to = text;
    for (; *text; text++) {
        if (*text == '+') {
            *to++ = ' ';
        } else if (*text != '%') {
            *to++ = *text;
        } else {
            int high = stw_hex_digit(text[1]), low = high < 0 ? -1 : stw_hex_digit(text[2]);
            if (low < 0 || (high == 0 && low == 0))
                return -1;
            *to++ = (char)(high << 4 | low);
            text += 2;
        }
    }
    *to = '\0';
    return 0;
}

static int end_object(struct store_page *p, struct stw_error *err)
{
    if (p->encoded && decode_url_text(p->key) != 0)
        return stw_fail(err, STW_ERR_INVALID, "the store lists a key that is not encoded");
    /* Ignore keys without the requested prefix, even if the server lists them. */
    if (strncmp(p->key, p->prefix, strlen(p->prefix)) != 0 || p->size < 0)
        return 0;
    p->stopped = p->each(p->each_ctx, p->key, (uint64_t)p->size) != 0;
    return p->stopped ? -1 : 0;
}

/* An upload that the store refuses to abort is skipped.  A store that does not answer is not asked
 * about the next one. */
static int end_upload(struct store_page *p, struct stw_error *err)
{
    int64_t began;
    if (p->encoded && decode_url_text(p->key) != 0)
        return stw_fail(err, STW_ERR_INVALID, "the store lists a key that is not encoded");
    if (strncmp(p->key, p->prefix, strlen(p->prefix)) != 0 || !*p->id ||
        !p->mine->mine(p->mine->ctx, p->key) || stw_time_parse(p->began, &began) != 0 ||
        began >= p->before_us)
        return 0;
    p->why = (struct stw_error){0};
    int rc = s3_abort_parts(p->sweeping, p->key, p->id, false, &p->trouble, &p->why);
    if (rc == 0)
        (*p->count)++;
    p->stopped = rc != 0 && (p->trouble == STW_STORE_CONNECT || p->why.code == STW_ERR_CANCELLED);
    return p->stopped ? -1 : 0;
}

static int end_entry(struct store_page *p, struct stw_error *err)
{
    int rc = p->sweeping ? end_upload(p, err) : end_object(p, err);
    p->key[0] = p->id[0] = p->began[0] = '\0';
    p->size = -1;
    return rc;
}

struct member {
    const char *parent, *name;
    size_t offset, size; /* of a text in struct store_page */
};

#define TEXT(parent_name, element, member)                                                         \
    {                                                                                              \
        (parent_name), (element), offsetof(struct store_page, member),                             \
            sizeof(((struct store_page *)0)->member)                                               \
    }
static const struct member texts[] = {
    TEXT("Contents", "Key", key),
    TEXT("Upload", "Key", key),
    TEXT("Upload", "UploadId", id),
    TEXT("Upload", "Initiated", began),
    TEXT("ListBucketResult", "NextContinuationToken", next),
    TEXT("ListMultipartUploadsResult", "NextKeyMarker", next),
    TEXT("ListMultipartUploadsResult", "NextUploadIdMarker", next_id),
};
#undef TEXT

static int take_text(struct store_page *p, const char *parent, const char *name, const char *text,
                     struct stw_error *err)
{
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        if (!stw_streq(texts[i].parent, parent) || !stw_streq(texts[i].name, name))
            continue;
        if (strlen(text) >= texts[i].size)
            return stw_fail(err, STW_ERR_INVALID, "the store lists a %s that is too long", name);
        stw_format((char *)p + texts[i].offset, texts[i].size, "%s", text);
        return 0;
    }
    if (stw_streq(parent, "Contents") && stw_streq(name, "Size"))
        return stw_parse_int(text, 0, INT64_MAX, &p->size) == 0
                   ? 0
                   : stw_fail(err, STW_ERR_INVALID, "the store lists a size that is not a number");
    if (strncmp(parent, "List", 4) == 0 && stw_streq(name, "IsTruncated"))
        p->truncated = stw_streq(text, "true");
    return 0;
}

static int take_element(void *ctx, const char *parent, const char *name, const char *text,
                        struct stw_error *err)
{
    struct store_page *p = ctx;
    bool in_list =
        stw_streq(parent, "ListBucketResult") || stw_streq(parent, "ListMultipartUploadsResult");
    if (in_list && !text && (stw_streq(name, "Contents") || stw_streq(name, "Upload")))
        return end_entry(p, err);
    return text ? take_text(p, parent, name, text, err) : 0;
}

/* A first pass, because EncodingType may come after the keys that it applies to. */
static int take_encoding(void *ctx, const char *parent, const char *name, const char *text,
                         struct stw_error *err)
{
    struct store_page *p = ctx;
    (void)err;
    if (text && strncmp(parent, "List", 4) == 0 && stw_streq(name, "EncodingType"))
        p->encoded = stw_streq(text, "url");
    return 0;
}

static int read_page(struct s3 *s, struct store_page *p, const char *query,
                     enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct s3_call call = {.method = "GET", .query = query, .lists = true};
    struct stw_error xml = {0};
    p->truncated = p->encoded = false;
    p->next[0] = p->next_id[0] = '\0';
    p->size = -1;
    int rc = s3_do(s, &call, trouble, err);
    const char *text = stw_buf_str(&call.answer);
    if (rc == 0 && (stw_xml_walk(text, call.answer.len, take_encoding, p, &xml) != 0 ||
                    stw_xml_walk(text, call.answer.len, take_element, p, &xml) != 0))
        rc = p->stopped ? -1 : stw_store_fail(trouble, STW_STORE_FAILED, err, "%s", xml.text);
    s3_call_done(&call);
    return rc;
}

typedef void query_fn(const struct store_page *p, struct stw_buf *out);

/* Parameters are sorted by name, as SigV4 requires. */
static void objects_query(const struct store_page *p, struct stw_buf *out)
{
    if (*p->next) {
        stw_buf_adds(out, "continuation-token=");
        stw_url_escape(p->next, out);
        stw_buf_addc(out, '&');
    }
    stw_buf_adds(out, "encoding-type=url&list-type=2&max-keys=1000&prefix=");
    stw_url_escape(p->prefix, out);
}

static void uploads_query(const struct store_page *p, struct stw_buf *out)
{
    stw_buf_adds(out, "encoding-type=url&");
    if (*p->next) {
        stw_buf_adds(out, "key-marker=");
        stw_url_escape(p->next, out);
        stw_buf_addc(out, '&');
    }
    stw_buf_adds(out, "max-uploads=1000&prefix=");
    stw_url_escape(p->prefix, out);
    if (*p->next_id) {
        stw_buf_adds(out, "&upload-id-marker=");
        stw_url_escape(p->next_id, out);
    }
    stw_buf_adds(out, "&uploads=");
}

static int read_pages(struct s3 *s, struct store_page *p, query_fn *make_query,
                      enum stw_store_trouble *trouble, struct stw_error *err)
{
    for (unsigned n = 0; n < PAGES_MAX; n++) {
        stw_autobuf struct stw_buf query = STW_BUF_INIT(QUERY_MAX);
        make_query(p, &query);
        if (query.failed)
            return stw_store_fail(trouble, STW_STORE_FAILED, err, "the prefix is too long");
        if (read_page(s, p, stw_buf_str(&query), trouble, err) != 0)
            return -1;
        if (!p->truncated)
            return 0;
        if (!*p->next)
            return stw_store_fail(trouble, STW_STORE_FAILED, err,
                                  "the store's list is incomplete and has no marker for the rest");
        if (p->sweeping && p->encoded && decode_url_text(p->next) != 0)
            return stw_store_fail(trouble, STW_STORE_FAILED, err, "the store's marker is not text");
    }
    return stw_store_fail(trouble, STW_STORE_FAILED, err, "more than %d objects under one prefix",
                          PAGES_MAX * 1000);
}

static int s3_list(struct stw_store *s, const char *prefix, stw_store_each_fn *each, void *ctx,
                   enum stw_store_trouble *trouble, struct stw_error *err)
{
    struct store_page *p = calloc(1, sizeof(*p));
    if (!p)
        return stw_store_fail_memory(trouble, err);
    p->prefix = prefix;
    p->each = each;
    p->each_ctx = ctx;
    int rc = read_pages(s3_of(s), p, objects_query, trouble, err);
    free(p);
    return rc;
}

static int s3_clean(struct stw_store *s, const char *prefix, const struct stw_store_filter *mine,
                    int64_t before_us, unsigned *ret_count, enum stw_store_trouble *trouble,
                    struct stw_error *err)
{
    struct store_page *p = calloc(1, sizeof(*p));
    struct stw_error why = {0};
    if (!p)
        return stw_store_fail_memory(trouble, err);
    p->prefix = prefix;
    p->sweeping = s3_of(s);
    p->mine = mine;
    p->before_us = before_us;
    p->count = ret_count;
    int rc = read_pages(s3_of(s), p, uploads_query, trouble, &why);
    if (p->stopped) {
        *trouble = p->trouble;
        why = p->why;
    }
    free(p);
    if (rc != 0 && (why.http == 501 || why.http == 405)) { /* it does not support such a list */
        *trouble = STW_STORE_FINE;
        return 0;
    }
    if (rc != 0 && err)
        *err = why;
    return rc;
}

/* --- the store */

static void s3_destroy(struct stw_store *store)
{
    struct s3 *s = s3_of(store);
    curl_easy_cleanup(s->easy);
    stw_wipe_free(s->access_key);
    stw_wipe_free(s->secret_key);
    stw_wipe_free(s->token_header);
    free(s->base);
    free(s->region);
    free(s->sse_header);
    free(s->ca);
    free(s->bucket);
    stw_store_done(store);
    free(s);
}

static const struct stw_store_ops ops = {
    .begin = s3_begin,
    .write = s3_write,
    .finish = s3_finish,
    .abort = s3_abort,
    .read = s3_read,
    .list = s3_list,
    .clean = s3_clean,
    .remove = s3_remove,
    .destroy = s3_destroy,
};

static const char *aws_domain(const char *region)
{
    return strncmp(region, "cn-", 3) == 0 ? "amazonaws.com.cn" : "amazonaws.com";
}

static bool is_address(const char *host, size_t len)
{
    char text[64];
    unsigned char to[16];
    if (host[0] == '[')
        return true;
    len = strcspn(host, ":/") < len ? strcspn(host, ":/") : len;
    if (len >= sizeof(text))
        return false;
    memcpy(text, host, len);
    text[len] = '\0';
    return inet_pton(AF_INET, text, to) == 1;
}

/* The bucket goes before the host name, or into the path if it must: an IP address has no
 * subdomains, and a bucket name with a dot would not match the host's certificate. */
static int make_base(const struct stw_store_s3 *c, struct stw_buf *out)
{
    stw_autobuf struct stw_buf aws = STW_BUF_INIT(512);
    const char *endpoint = c->endpoint;
    if (!endpoint) {
        stw_buf_addf(&aws, "https://s3.%s.%s", c->region, aws_domain(c->region));
        endpoint = stw_buf_str(&aws);
    }
    const char *host = strstr(endpoint, "://");
    if (aws.failed ||
        (strncmp(endpoint, "https://", 8) != 0 && strncmp(endpoint, "http://", 7) != 0))
        return -1;
    host += 3;
    size_t len = strlen(endpoint);
    while (len > 0 && endpoint[len - 1] == '/')
        len--;
    size_t scheme = (size_t)(host - endpoint), rest = len > scheme ? len - scheme : 0;
    if (rest == 0)
        return -1;
    bool after = c->path_style || strchr(c->bucket, '.') || is_address(host, rest);
    stw_buf_add(out, endpoint, scheme);
    if (!after)
        stw_buf_addf(out, "%s.", c->bucket);
    stw_buf_add(out, host, rest);
    if (after) {
        stw_buf_addc(out, '/');
        stw_url_escape(c->bucket, out);
    }
    return out->failed ? -1 : 0;
}

/* NULL if `text` is NULL.  Sets `*failed` if out of memory. */
static char *copy_with_affixes(const char *prefix, const char *text, const char *suffix,
                               bool *failed)
{
    char *made = NULL;
    if (!text)
        return NULL;
    if (asprintf(&made, "%s%s%s", prefix, text, suffix) < 0) {
        *failed = true;
        return NULL;
    }
    return made;
}

/* Whether AWS is trusted: its host is listed, or all are and the operator's environment has a
 * proxy (the variables that libcurl reads), which then gets the connection. */
static bool aws_by_proxy(const struct stw_store_s3 *c)
{
    static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
    stw_autobuf struct stw_buf url = STW_BUF_INIT(512);
    bool proxy = false;
    stw_buf_addf(&url, "https://s3.%s.%s", c->region, aws_domain(c->region));
    for (size_t i = 0; i < STW_COUNT(names); i++) {
        const char *value = getenv(names[i]);
        proxy = proxy || (value && *value);
    }
    return stw_reach_host(c->reach, stw_buf_str(&url)) || (proxy && stw_reach_any(c->reach));
}

static int configure_s3(struct s3 *s, const struct stw_store_s3 *c, struct stw_error *err)
{
    struct stw_buf base = STW_BUF_INIT(2048);
    bool failed = false;
    if (make_base(c, &base) != 0) {
        stw_buf_done(&base);
        return stw_fail(err, STW_ERR_INVALID,
                        "the endpoint is not a URL such as https://s3.example.com");
    }
    s->base = stw_buf_take(&base);
    s->region = copy_with_affixes("", c->region, "", &failed);
    s->access_key = copy_with_affixes("", c->access_key, "", &failed);
    s->secret_key = copy_with_affixes("", c->secret_key, "", &failed);
    s->token_header = copy_with_affixes("x-amz-security-token: ", c->session_token, "", &failed);
    s->sse_header = copy_with_affixes("x-amz-server-side-encryption: ", c->sse, "", &failed);
    s->ca = copy_with_affixes("", c->ca, "", &failed);
    s->bucket = copy_with_affixes("", c->bucket, "", &failed);
    s->reach = c->reach;
    s->trusted =
        !c->reach || (c->endpoint ? stw_reach_host(c->reach, c->endpoint) : aws_by_proxy(c));
    s->timeout_ms = c->timeout_ms ? c->timeout_ms : TIMEOUT_MS;
    s->part_bytes = c->part_bytes ? c->part_bytes : STW_STORE_PART_BYTES;
    s->easy = curl_easy_init();
    return failed || !s->easy ? stw_fail_memory(err) : 0;
}

int stw_store_s3_create(const struct stw_store_s3 *config, struct stw_store **ret,
                        struct stw_error *err)
{
    struct s3 *s = calloc(1, sizeof(*s));
    if (!s || stw_store_init(&s->store, &ops, err) != 0) {
        free(s);
        return stw_fail_memory(err);
    }
    if (configure_s3(s, config, err) != 0) {
        s3_destroy(&s->store);
        return -1;
    }
    *ret = &s->store;
    return 0;
}
