/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts errors of the API server and of the connection to struct stw_error: the code determines
 * what callers do, the text is the server's own message. */
#include "base/backoff.h"
#include "base/json.h"
#include "base/util.h"
#include "kube/client/client_priv.h"

#include <ctype.h>

/* metav1.StatusReason.  A reason is more precise than the HTTP status, which several reasons
 * share. */
static const struct {
    const char *reason;
    enum stw_err code;
} by_reason[] = {
    {"AlreadyExists", STW_ERR_EXISTS},
    {"Conflict", STW_ERR_CONFLICT},
    {"NotFound", STW_ERR_NOT_FOUND},
    {"Gone", STW_ERR_GONE},
    {"Expired", STW_ERR_GONE},
    {"Invalid", STW_ERR_INVALID},
    {"BadRequest", STW_ERR_INVALID},
    {"Forbidden", STW_ERR_FORBIDDEN},
    {"Unauthorized", STW_ERR_FORBIDDEN},
    {"TooManyRequests", STW_ERR_THROTTLED},
    {"Timeout", STW_ERR_TIMEOUT},
    {"ServerTimeout", STW_ERR_UNAVAILABLE},
    {"ServiceUnavailable", STW_ERR_UNAVAILABLE},
    {"InternalError", STW_ERR_UNAVAILABLE},
    {"RequestEntityTooLarge", STW_ERR_TOO_LARGE},
};

static const struct {
    int http;
    enum stw_err code;
} by_http[] = {
    {401, STW_ERR_FORBIDDEN}, {403, STW_ERR_FORBIDDEN}, {404, STW_ERR_NOT_FOUND},
    {408, STW_ERR_TIMEOUT},   {409, STW_ERR_CONFLICT},  {410, STW_ERR_GONE},
    {413, STW_ERR_TOO_LARGE}, {429, STW_ERR_THROTTLED}, {504, STW_ERR_TIMEOUT},
};

/* An apply whose values do not match the schema.  All versions so far return a 500, although the
 * object is invalid. */
static const char bad_patch[] = "failed to create typed patch object";

static enum stw_err code_of(int http, struct stw_json reason, const char *message)
{
    if (strncmp(message, bad_patch, strlen(bad_patch)) == 0)
        return STW_ERR_INVALID;
    for (size_t i = 0; i < STW_COUNT(by_reason); i++)
        if (stw_json_is(reason, by_reason[i].reason))
            return by_reason[i].code;
    for (size_t i = 0; i < STW_COUNT(by_http); i++)
        if (by_http[i].http == http)
            return by_http[i].code;
    return http >= 500 ? STW_ERR_UNAVAILABLE : STW_ERR_INVALID;
}

void stw_status_object_error(int http, struct stw_json status, struct stw_error *err)
{
    int64_t code = 0, seconds = 0;
    struct stw_json reason = stw_json_get(status, "reason");
    struct stw_buf text = STW_BUF_INIT(64u << 10);
    if (http == 0 && stw_json_int(stw_json_get(status, "code"), &code) == 0 && code > 0 &&
        code < 1000)
        http = (int)code;
    stw_json_str(stw_json_get(status, "message"), &text);
    if (text.len == 0)
        stw_buf_addf(&text, "the server answered %d", http);
    (void)stw_fail(err, code_of(http, reason, stw_buf_str(&text)), "%s", stw_buf_str(&text));
    err->http = http;
    err->retry_after_ms = 0;
    struct stw_json wait = stw_json_path(status, "details.retryAfterSeconds");
    if (stw_json_int(wait, &seconds) == 0 && seconds > 0)
        err->retry_after_ms =
            (uint32_t)STW_MIN(seconds, (int64_t)STW_RETRY_AFTER_MAX_MS / 1000) * 1000;
    stw_buf_done(&text);
}

/* A plain-text error of a proxy or of the server's panic handler: its first line. */
static void plain_error(int http, const struct stw_buf *body, struct stw_error *err)
{
    char line[200];
    size_t n = 0;
    const char *text = stw_buf_str(body);
    for (; text[n] && text[n] != '\n' && n + 1 < sizeof(line); n++)
        line[n] = isprint((unsigned char)text[n]) ? text[n] : '?';
    line[n] = '\0';
    if (n > 0 && line[0] != '<')
        (void)stw_fail(err, code_of(http, STW_JSON_NONE, ""), "the server answered %d: %s", http,
                       line);
    else
        (void)stw_fail(err, code_of(http, STW_JSON_NONE, ""), "the server answered %d", http);
    err->http = http;
    err->retry_after_ms = 0;
}

void stw_status_error(int http, const struct stw_buf *body, struct stw_error *err)
{
    struct stw_json_doc doc = {0};
    struct stw_json root = STW_JSON_NONE;
    if (body->len > 0 && stw_json_scan(&doc, body->data, body->len, NULL) == 0)
        root = stw_json_root(&doc);
    if (stw_json_is(stw_json_get(root, "kind"), "Status"))
        stw_status_object_error(http, root, err);
    else
        plain_error(http, body, err);
    stw_json_done(&doc);
}

/* strerror's text in the form that Go and curl users know: "connection refused". */
static void os_error(long number, char *out, size_t size)
{
    char text[128];
    const char *s = strerror_r((int)number, text, sizeof(text));
    stw_format(out, size, "%s", s);
    out[0] = (char)tolower((unsigned char)out[0]);
}

void stw_curl_error(CURLcode code, const char *server, const char *curl_text, CURL *easy,
                    struct stw_error *err)
{
    char os[128];
    long number = 0;
    const char *text = curl_text[0] ? curl_text : curl_easy_strerror(code);
    enum stw_err to = STW_ERR_UNAVAILABLE;
    switch (code) {
    case CURLE_COULDNT_CONNECT:
        (void)curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
        if (number != 0) {
            os_error(number, os, sizeof(os));
            text = os;
        }
        break;
    case CURLE_COULDNT_RESOLVE_HOST:
        text = "no such host";
        break;
    case CURLE_OPERATION_TIMEDOUT:
        /* curl's texts: no server was asked. */
        if (strncmp(text, "Connection timed out", 20) != 0 &&
            strncmp(text, "Resolving timed out", 19) != 0)
            to = STW_ERR_TIMEOUT;
        /* curl's text for a request that only waited for a connection. */
        if (strstr(text, "after 0 milliseconds"))
            text = "no connection in time";
        break;
    case CURLE_OUT_OF_MEMORY:
        to = STW_ERR_INTERNAL;
        break;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
        to = STW_ERR_INVALID;
        break;
    default:
        break;
    }
    (void)stw_fail(err, to, "%s: %s", server, text);
    if (err) {
        err->http = 0;
        err->retry_after_ms = 0;
    }
}
