/* SPDX-License-Identifier: Apache-2.0
 *
 * One question: HEAD of the manifest; if the registry wants a token, a GET of the token and the HEAD
 * again.  Bodies and headers have limits, and the deadline is that of all of it. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/fence.h"
#include "registry/registry_priv.h"

#define HEADERS_MAX_BYTES (64u << 10)
#define TOKEN_MAX_BYTES (64u << 10)
#define ACCEPT                                                                                     \
    "Accept: application/vnd.oci.image.index.v1+json, "                                            \
    "application/vnd.oci.image.manifest.v1+json, "                                                 \
    "application/vnd.docker.distribution.manifest.list.v2+json, "                                  \
    "application/vnd.docker.distribution.manifest.v2+json"

struct ask {
    const struct stw_registries *r;
    CURL *easy;
    const struct stw_image_tag *tag;
    uint64_t deadline_ms;
    /* of the current request */
    struct stw_buf body;
    size_t header_bytes;
    bool too_long, challenged;
    char digest[STW_DIGEST_LEN];
    struct registry_challenge challenge;
};

static const char *host_of(const struct ask *a)
{
    return strstr(a->tag->registry->origin, "://") + 3;
}

/* --- libcurl's callbacks */

static size_t on_body(char *data, size_t one, size_t len, void *ctx)
{
    struct ask *a = ctx;
    stw_buf_add(&a->body, data, one * len);
    a->too_long = a->too_long || a->body.failed;
    return a->too_long ? 0 : one * len;
}

/* The value of a header line, if it has this name; its length is in `*len`. */
static const char *value_of(const char *line, size_t *len, const char *name)
{
    size_t from = strlen(name), to = *len;
    if (to < from || strncasecmp(line, name, from) != 0)
        return NULL;
    while (from < to && (line[from] == ' ' || line[from] == '\t'))
        from++;
    while (to > from && (unsigned char)line[to - 1] <= ' ')
        to--;
    *len = to - from;
    return line + from;
}

static void take_digest(struct ask *a, const char *line, size_t len)
{
    const char *value = value_of(line, &len, "docker-content-digest:");
    if (value)
        stw_format(a->digest, sizeof(a->digest), "%.*s",
                   stw_image_is_digest(value, len) ? (int)len : 0, value);
}

static void take_challenge(struct ask *a, const char *line, size_t len)
{
    char text[4096];
    const char *value = value_of(line, &len, "www-authenticate:");
    if (value && !a->challenged && len < sizeof(text) && !memchr(value, '\0', len)) {
        stw_format(text, sizeof(text), "%.*s", (int)len, value);
        a->challenged = registry_challenge_parse(text, &a->challenge) == 0;
    }
}

static size_t on_header(char *data, size_t one, size_t len, void *ctx)
{
    struct ask *a = ctx;
    len *= one;
    a->header_bytes += len;
    a->too_long = a->too_long || a->header_bytes > HEADERS_MAX_BYTES;
    if (len >= 5 && strncmp(data, "HTTP/", 5) == 0)
        a->digest[0] = '\0'; /* of an interim response */
    take_digest(a, data, len);
    take_challenge(a, data, len);
    return a->too_long ? 0 : len;
}

static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)ctx;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return !stw_fence_may_write();
}

/* --- a request */

static long left_ms(const struct ask *a)
{
    uint64_t now = stw_now_ms(&stw_clock_system);
    return a->deadline_ms > now ? (long)(a->deadline_ms - now) : 0;
}

static void set_up(struct ask *a, const char *url, bool head, struct curl_slist *headers,
                   long timeout_ms)
{
    CURL *h = a->easy;
    curl_easy_reset(h);
    curl_easy_setopt(h, CURLOPT_URL, url);
    curl_easy_setopt(h, CURLOPT_NOBODY, head ? 1L : 0L);
    curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h, CURLOPT_WRITEDATA, a);
    curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h, CURLOPT_HEADERDATA, a);
    curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, on_progress);
}

/* A server that does not answer is not asked again in this round. */
static int fail_by_curl(struct ask *a, CURLcode rc, struct stw_error *err)
{
    if (rc == CURLE_ABORTED_BY_CALLBACK)
        return stw_fail(err, STW_ERR_CANCELLED, "stopped");
    if (rc == CURLE_OUT_OF_MEMORY)
        return stw_fail_memory(err);
    if (a->too_long)
        return stw_fail(err, STW_ERR_TOO_LARGE, "registry %s answers too much", host_of(a));
    return stw_fail(err, rc == CURLE_OPERATION_TIMEDOUT ? STW_ERR_TIMEOUT : STW_ERR_UNAVAILABLE,
                    "registry %s cannot be reached: %s", host_of(a), curl_easy_strerror(rc));
}

/* `*ret_status`: of the answer, also of one that is an error. */
static int request(struct ask *a, const char *url, bool head, struct curl_slist *headers,
                   long *ret_status, struct stw_error *err)
{
    long timeout_ms = left_ms(a);
    stw_buf_done(&a->body);
    a->body = (struct stw_buf){.max = TOKEN_MAX_BYTES, .secret = true};
    a->header_bytes = 0;
    a->too_long = a->challenged = false;
    a->digest[0] = '\0';
    if (stw_fence_check(err) != 0)
        return -1;
    if (timeout_ms == 0) /* for libcurl: no limit */
        return stw_fail(err, STW_ERR_TIMEOUT, "there was no time to ask registry %s", host_of(a));
    set_up(a, url, head, headers, timeout_ms);
    CURLcode rc = curl_easy_perform(a->easy);
    if (rc != CURLE_OK)
        return fail_by_curl(a, rc, err);
    (void)curl_easy_getinfo(a->easy, CURLINFO_RESPONSE_CODE, ret_status);
    return 0;
}

/* --- the manifest */

static int fail_by_status(const struct ask *a, long status, struct stw_error *err)
{
    const char *host = host_of(a);
    if (status == 401 || status == 403)
        return stw_fail(err, STW_ERR_FORBIDDEN,
                        "registry %s does not let anonymous clients read it", host);
    if (status == 404)
        return stw_fail(err, STW_ERR_NOT_FOUND, "registry %s has no such tag", host);
    if (status == 429)
        return stw_fail(err, STW_ERR_THROTTLED, "registry %s limits requests", host);
    if (status >= 300 && status < 400)
        return stw_fail(err, STW_ERR_INVALID, "registry %s redirects, which is not followed", host);
    if (status >= 500)
        return stw_fail(err, STW_ERR_UNAVAILABLE, "registry %s answers %ld", host, status);
    return stw_fail(err, STW_ERR_INVALID, "registry %s answers %ld", host, status);
}

static int head_manifest(struct ask *a, const char *token, long *ret_status, struct stw_error *err)
{
    stw_autobuf struct stw_buf bearer = {.max = REGISTRY_TOKEN_LEN + 64, .secret = true};
    char url[REGISTRY_URL_LEN];
    if (stw_format_whole(url, sizeof(url), "%s/v2/%s/manifests/%s", a->tag->registry->origin,
                         a->tag->path, a->tag->tag) != 0)
        return stw_fail(err, STW_ERR_INVALID, "the name is too long");
    struct curl_slist *headers = curl_slist_append(NULL, ACCEPT), *more = headers;
    if (token) {
        stw_buf_addf(&bearer, "Authorization: Bearer %s", token);
        more = headers ? curl_slist_append(headers, stw_buf_str(&bearer)) : NULL;
    }
    int rc = more && !bearer.failed ? request(a, url, true, headers, ret_status, err)
                                    : stw_fail_memory(err);
    curl_slist_free_all(headers);
    return rc;
}

/* --- the token */

static int get_token(struct ask *a, char out[REGISTRY_TOKEN_LEN], struct stw_error *err)
{
    char url[REGISTRY_URL_LEN];
    long status = 0;
    if (registry_token_url(a->r, &a->challenge, a->tag->path, url) != 0)
        return stw_fail(err, STW_ERR_FORBIDDEN,
                        "registry %s wants a token from a server that is not listed", host_of(a));
    if (request(a, url, false, NULL, &status, err) != 0)
        return -1;
    if (status != 200) {
        (void)fail_by_status(a, status, err);
        err->http = (int)status; /* there was an answer */
        return -1;
    }
    if (registry_token_parse(stw_buf_str(&a->body), a->body.len, out) != 0)
        return stw_fail(err, STW_ERR_INVALID, "the token for registry %s is malformed", host_of(a));
    return 0;
}

static int ask_with_token(struct ask *a, long *ret_status, struct stw_error *err)
{
    char *token = calloc(1, REGISTRY_TOKEN_LEN);
    if (!token)
        return stw_fail_memory(err);
    int rc = get_token(a, token, err);
    if (rc == 0)
        rc = head_manifest(a, token, ret_status, err);
    stw_wipe_free(token);
    return rc;
}

static int ask_anonymously(struct ask *a, struct stw_error *err)
{
    long status = 0;
    if (head_manifest(a, NULL, &status, err) != 0)
        return -1;
    if (status == 401 && a->challenged && ask_with_token(a, &status, err) != 0)
        return -1;
    if (status != 200) {
        (void)fail_by_status(a, status, err);
        err->http = (int)status;
        return -1;
    }
    if (!*a->digest)
        return stw_fail(err, STW_ERR_INVALID, "registry %s answers without a digest", host_of(a));
    return 0;
}

int registry_ask(const struct stw_registries *r, const struct stw_image_tag *tag,
                 uint64_t deadline_ms, char out[STW_DIGEST_LEN], struct stw_error *err)
{
    struct ask *a = calloc(1, sizeof(*a));
    if (!tag->registry->easy)
        tag->registry->easy = curl_easy_init();
    if (!a || !tag->registry->easy) {
        free(a);
        return stw_fail_memory(err);
    }
    a->r = r;
    a->easy = tag->registry->easy;
    a->tag = tag;
    a->deadline_ms = deadline_ms;
    int rc = ask_anonymously(a, err);
    if (rc == 0)
        stw_format(out, STW_DIGEST_LEN, "%s", a->digest);
    stw_buf_done(&a->body);
    free(a);
    return rc;
}
