/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/reference.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* --- domains */

/* One label of a host name, which ends before `len`. */
static bool is_label(const char *text, size_t len)
{
    return len > 0 && strspn(text, LETTERS UPPER DIGITS "-") >= len && text[0] != '-' &&
           text[len - 1] != '-';
}

static bool is_host(const char *text, size_t len)
{
    if (len > 2 && *text == '[') /* IPv6 */
        return text[len - 1] == ']' && strspn(text + 1, DIGITS "abcdefABCDEF:") == len - 2;
    for (;;) {
        size_t label = STW_MIN(strcspn(text, "."), len);
        if (!is_label(text, label))
            return false;
        if (label == len)
            return true;
        text += label + 1;
        len -= label + 1;
    }
}

bool stw_image_is_domain(const char *text)
{
    size_t len = strlen(text);
    const char *bracket = strchr(text, ']');
    const char *colon = strchr(bracket ? bracket : text, ':');
    int64_t port;
    if (len >= STW_IMAGE_DOMAIN_LEN)
        return false;
    if (colon && stw_parse_int(colon + 1, 1, 65535, &port) != 0)
        return false;
    return is_host(text, colon ? (size_t)(colon - text) : len);
}

/* --- paths, tags, digests */

/* The length of the separator at `text`: one of . _ __ or any number of -; 0: there is none. */
static size_t separator_len(const char *text)
{
    if (*text == '.')
        return 1;
    if (*text == '_')
        return text[1] == '_' ? 2 : 1;
    return strspn(text, "-");
}

static bool is_path(const char *text)
{
    for (;;) {
        size_t word = strspn(text, LETTERS DIGITS);
        if (word == 0)
            return false;
        text += word;
        if (!*text)
            return true;
        size_t separator = *text == '/' ? 1 : separator_len(text);
        if (separator == 0)
            return false;
        text += separator;
    }
}

static bool is_tag(const char *text)
{
    return *text && *text != '.' && *text != '-' &&
           strspn(text, LETTERS UPPER DIGITS "_.-") == strlen(text);
}

bool stw_image_is_digest(const char *text, size_t len)
{
    return len == STW_DIGEST_LEN - 1 && strncmp(text, "sha256:", 7) == 0 &&
           strspn(text + 7, DIGITS "abcdef") >= len - 7;
}

/* Any algorithm: what follows "@" is not asked for. */
static bool is_pin(const char *text)
{
    const char *colon = strchr(text, ':');
    return colon && colon > text && strlen(colon + 1) >= 32 &&
           strspn(colon + 1, DIGITS "abcdefABCDEF") == strlen(colon + 1);
}

/* --- references */

static bool names_domain(const char *text, size_t len)
{
    return memchr(text, '.', len) || memchr(text, ':', len) || strcspn(text, UPPER) < len ||
           (len == 9 && strncmp(text, "localhost", len) == 0);
}

static int split(char *rest, struct stw_image *ret)
{
    char *slash = strchr(rest, '/'), *at = strchr(rest, '@');
    if (at) {
        *at = '\0';
        ret->pinned = true;
        if (!is_pin(at + 1))
            return -1;
    }
    if (slash && names_domain(rest, (size_t)(slash - rest))) {
        *slash = '\0';
        if (!stw_image_is_domain(rest) ||
            stw_format_whole(ret->domain, sizeof(ret->domain), "%s", rest) != 0)
            return -1;
        rest = slash + 1;
    }
    char *colon = strchr(rest, ':');
    const char *tag = colon ? colon + 1 : "latest";
    if (colon)
        *colon = '\0';
    if (!is_tag(tag) || !is_path(rest) ||
        stw_format_whole(ret->tag, sizeof(ret->tag), "%s", tag) != 0)
        return -1;
    return stw_format_whole(ret->path, sizeof(ret->path), "%s", rest);
}

int stw_image_parse(const char *text, struct stw_image *ret)
{
    char copy[1024];
    *ret = (struct stw_image){0};
    if (stw_format_whole(copy, sizeof(copy), "%s", text) != 0)
        return -1;
    return split(copy, ret);
}
