/* SPDX-License-Identifier: Apache-2.0
 *
 * What a registry wants before it answers: "WWW-Authenticate: Bearer realm=..,service=..", RFC 9110
 * and the token specification of registries.  All of it is input from the network. */
#include "base/buf.h"
#include "base/hex.h"
#include "base/json.h"
#include "registry/registry_priv.h"

#define SCHEME "Bearer "
#define TOKEN_BYTES                                                                                \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/=" /* RFC 6750 */

static const char *skip(const char *p, const char *set)
{
    return p + strspn(p, set);
}

/* Reads a value, quoted or not, and returns where it ends; NULL: it is malformed or does not fit. */
static const char *read_value(const char *p, char *out, size_t size)
{
    bool quoted = *p == '"';
    size_t len = 0;
    for (p += quoted; *p && (quoted ? *p != '"' : !strchr(" \t,", *p)); p++) {
        if (quoted && *p == '\\' && p[1])
            p++;
        if (len + 1 >= size || (unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
            return NULL;
        out[len++] = *p;
    }
    out[len] = '\0';
    if (quoted && *p != '"')
        return NULL;
    return p + quoted;
}

int registry_challenge_parse(const char *value, struct registry_challenge *ret)
{
    char text[1024];
    *ret = (struct registry_challenge){0};
    if (strncasecmp(value, SCHEME, strlen(SCHEME)) != 0)
        return -1;
    for (const char *p = value + strlen(SCHEME); *(p = skip(p, " \t,"));) {
        const char *key = p;
        size_t len = strcspn(p, "= \t,\"");
        if (p[len] != '=') /* of another scheme */
            break;
        p = read_value(p + len + 1, text, sizeof(text));
        if (!p)
            return -1;
        if (len == 5 && strncasecmp(key, "realm", len) == 0)
            stw_format(ret->realm, sizeof(ret->realm), "%s", text);
        else if (len == 7 && strncasecmp(key, "service", len) == 0 &&
                 stw_format_whole(ret->service, sizeof(ret->service), "%s", text) != 0)
            return -1;
    }
    return *ret->realm ? 0 : -1;
}

/* By scheme, host and port, as they are written. */
static bool is_listed(const struct stw_registries *r, const char *url)
{
    for (size_t i = 0; i < r->count; i++) {
        size_t len = strlen(r->all[i].origin);
        if (strncasecmp(url, r->all[i].origin, len) == 0 &&
            (url[len] == '/' || url[len] == '?' || !url[len]))
            return true;
    }
    return false;
}

int registry_token_url(const struct stw_registries *r, const struct registry_challenge *c,
                       const char *path, char out[REGISTRY_URL_LEN])
{
    stw_autobuf struct stw_buf url = STW_BUF_INIT(REGISTRY_URL_LEN - 1);
    char scope[STW_IMAGE_PATH_LEN + 32];
    if (!is_listed(r, c->realm) || strpbrk(c->realm, " #\\\"<>"))
        return -1;
    stw_buf_addf(&url, "%s%c", c->realm, strchr(c->realm, '?') ? '&' : '?');
    if (*c->service) {
        stw_buf_adds(&url, "service=");
        stw_url_escape(c->service, &url);
        stw_buf_addc(&url, '&');
    }
    stw_format(scope, sizeof(scope), "repository:%s:pull", path);
    stw_buf_adds(&url, "scope=");
    stw_url_escape(scope, &url);
    return url.failed ? -1 : stw_format_whole(out, REGISTRY_URL_LEN, "%s", stw_buf_str(&url));
}

int registry_token_parse(const char *text, size_t len, char out[REGISTRY_TOKEN_LEN])
{
    stw_autojson struct stw_json_doc doc = {.max = 1000};
    if (stw_json_scan(&doc, text, len, NULL) != 0)
        return -1;
    struct stw_json root = stw_json_root(&doc);
    if (stw_json_strcpy(stw_json_get(root, "token"), out, REGISTRY_TOKEN_LEN) != 0 &&
        stw_json_strcpy(stw_json_get(root, "access_token"), out, REGISTRY_TOKEN_LEN) != 0)
        return -1;
    return *out && strspn(out, TOKEN_BYTES) == strlen(out) ? 0 : -1;
}
