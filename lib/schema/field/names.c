/* SPDX-License-Identifier: Apache-2.0
 *
 * Hand-written parsers for names and image references: the grammars are small, and POSIX regular
 * expressions are neither fast nor bounded. */
#include "schema/names.h"

#include "base/util.h"

#define LABEL_MAX 63
#define SUBDOMAIN_MAX 253
#define IMAGE_MAX 1024
#define IMAGE_NAME_MAX 255
#define LIBRARY_LEN 8 /* "library/", which runtimes write before a name without a slash */
#define TAG_MAX 128
#define PERCENT_MAX 999999

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}
static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}
static bool is_lower_alnum(char c)
{
    return is_lower(c) || is_digit(c);
}
static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}
static bool is_alnum(char c)
{
    return is_lower_alnum(c) || is_upper(c);
}

/* [a-z0-9]([-a-z0-9]*[a-z0-9])? of at most 63 bytes. */
static bool is_label(const char *s, size_t len)
{
    if (len == 0 || len > LABEL_MAX || !is_lower_alnum(s[0]) || !is_lower_alnum(s[len - 1]))
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_lower_alnum(s[i]) && s[i] != '-')
            return false;
    return true;
}

bool stw_is_dns1123_label(const char *s)
{
    return is_label(s, strlen(s));
}

bool stw_is_dns1035_label(const char *s)
{
    return is_lower(s[0]) && is_label(s, strlen(s));
}

/* As in the API server, only the total length is limited, not that of each part. */
bool stw_is_dns1123_subdomain(const char *s)
{
    size_t len = strlen(s);
    char before = '.';
    if (len == 0 || len > SUBDOMAIN_MAX)
        return false;
    for (size_t i = 0; i < len; i++) {
        bool edge = before == '.' || i + 1 == len || s[i + 1] == '.';
        if (s[i] == '.' ? before == '.' || i + 1 == len
                        : !is_lower_alnum(s[i]) && (s[i] != '-' || edge))
            return false;
        before = s[i];
    }
    return true;
}

bool stw_is_qualified_name(const char *s)
{
    char prefix[SUBDOMAIN_MAX + 1];
    const char *slash = strchr(s, '/'), *name = slash ? slash + 1 : s;
    size_t len = strlen(name), before = slash ? (size_t)(slash - s) : 0;
    if (slash && before > SUBDOMAIN_MAX)
        return false;
    memcpy(prefix, s, before);
    prefix[before] = '\0';
    if ((slash && !stw_is_dns1123_subdomain(prefix)) || len == 0 || len > LABEL_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_alnum(name[i]) && (!memchr("-_.", name[i], 3) || i == 0 || i + 1 == len))
            return false;
    return true;
}

bool stw_is_label_value(const char *s)
{
    return !*s || (!strchr(s, '/') && stw_is_qualified_name(s));
}

int stw_percent_parse(const char *s, int64_t *ret)
{
    char digits[16];
    size_t len = strspn(s, "0123456789");
    if (len == 0 || len >= sizeof(digits) || !stw_streq(s + len, "%"))
        return -1;
    memcpy(digits, s, len);
    digits[len] = '\0';
    return stw_parse_int(digits, 0, PERCENT_MAX, ret);
}

const char *stw_check_dns1123_subdomain(const char *s)
{
    return stw_is_dns1123_subdomain(s) ? NULL : STW_SUBDOMAIN_TEXT;
}

/* A part of a longer string. */
struct name_piece {
    const char *at;
    size_t len;
};

/* Splits `s` at its first (or last) `c`: `s` keeps the part before it, the rest is returned.  `at`
 * of the rest is NULL when there is no `c`. */
static struct name_piece split_at_char(struct name_piece *s, char c, bool last)
{
    const char *found = last ? memrchr(s->at, c, s->len) : memchr(s->at, c, s->len);
    struct name_piece rest = {NULL, 0};
    if (!found)
        return rest;
    rest.at = found + 1;
    rest.len = s->len - (size_t)(found - s->at) - 1;
    s->len = (size_t)(found - s->at);
    return rest;
}

static bool is_hex(struct name_piece s, size_t len)
{
    if (s.len != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_digit(s.at[i]) && (s.at[i] < 'a' || s.at[i] > 'f'))
            return false;
    return true;
}

static bool is_digest(struct name_piece s)
{
    static const struct {
        const char *name;
        size_t hex;
    } algorithms[] = {{"sha256", 64}, {"sha384", 96}, {"sha512", 128}};
    struct name_piece hex = split_at_char(&s, ':', false);
    for (size_t i = 0; hex.at && i < STW_COUNT(algorithms); i++)
        if (s.len == 6 && memcmp(s.at, algorithms[i].name, 6) == 0)
            return is_hex(hex, algorithms[i].hex);
    return false;
}

static bool is_tag(struct name_piece s)
{
    if (s.len == 0 || s.len > TAG_MAX || s.at[0] == '.' || s.at[0] == '-')
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.at[i]) && !memchr("_.-", s.at[i], 3))
            return false;
    return true;
}

/* Runs of [a-z0-9] with one of ".", "_", "__" or any number of "-" between them. */
static bool is_path_component(struct name_piece s)
{
    size_t i = 0;
    if (s.len == 0 || !is_lower_alnum(s.at[0]) || !is_lower_alnum(s.at[s.len - 1]))
        return false;
    while (i < s.len) {
        size_t start = i;
        char c = s.at[i];
        while (i < s.len && s.at[i] == c && !is_lower_alnum(c))
            i++;
        size_t run = i - start;
        if (run && !(c == '-' || (c == '.' && run == 1) || (c == '_' && run <= 2)))
            return false;
        if (run && !is_lower_alnum(s.at[i]))
            return false;
        i += run == 0;
    }
    return true;
}

static bool is_path(struct name_piece s)
{
    while (s.at) {
        struct name_piece rest = split_at_char(&s, '/', false);
        if (!is_path_component(s))
            return false;
        s = rest;
    }
    return true;
}

static bool is_host_part(struct name_piece s)
{
    if (s.len == 0 || !is_alnum(s.at[0]) || !is_alnum(s.at[s.len - 1]))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!is_alnum(s.at[i]) && s.at[i] != '-')
            return false;
    return true;
}

static bool is_port(struct name_piece s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_digit(s.at[i]))
            return false;
    return s.len > 0;
}

/* "[2001:db8::1]": hexadecimal digits and colons in brackets, as in the reference grammar. */
static bool is_ipv6(struct name_piece s)
{
    if (s.len < 3 || s.at[s.len - 1] != ']')
        return false;
    for (size_t i = 1; i + 1 < s.len; i++)
        if (s.at[i] != ':' && !is_digit(s.at[i]) && ((s.at[i] | 32) < 'a' || (s.at[i] | 32) > 'f'))
            return false;
    return true;
}

static bool is_host(struct name_piece s)
{
    if (s.at[0] != '[') {
        struct name_piece port = split_at_char(&s, ':', false);
        if (port.at && !is_port(port))
            return false;
    } else {
        if (s.at[s.len - 1] != ']' && !is_port(split_at_char(&s, ':', true)))
            return false;
        return is_ipv6(s);
    }
    while (s.at) {
        struct name_piece rest = split_at_char(&s, '.', false);
        if (!is_host_part(s))
            return false;
        s = rest;
    }
    return true;
}

/* As in container runtimes, the first component is a host when it cannot be one of a path. */
static bool looks_like_host(struct name_piece s)
{
    if (s.len == 9 && memcmp(s.at, "localhost", 9) == 0)
        return true;
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] == '.' || s.at[i] == ':' || is_upper(s.at[i]))
            return true;
    return false;
}

static bool is_image_name(struct name_piece s)
{
    struct name_piece host = s, path = split_at_char(&host, '/', false);
    size_t longest = path.at ? IMAGE_NAME_MAX : IMAGE_NAME_MAX - LIBRARY_LEN;
    if (s.len == 0 || s.len > longest)
        return false;
    if (path.at && looks_like_host(host))
        return host.len > 0 && is_host(host) && is_path(path);
    return is_path(s);
}

/* Splits off the tag: the part after the last ':' that no '/' follows. */
static struct name_piece split_tag(struct name_piece *s)
{
    struct name_piece none = {NULL, 0}, name = *s, tag = split_at_char(&name, ':', true);
    if (!tag.at || memchr(tag.at, '/', tag.len))
        return none;
    *s = name;
    return tag;
}

bool stw_is_image(const char *text)
{
    struct name_piece s = {text, strlen(text)};
    if (s.len == 0 || s.len > IMAGE_MAX || is_hex(s, 64)) /* 64 digits are the ID of an image */
        return false;
    struct name_piece digest = split_at_char(&s, '@', false);
    struct name_piece tag = split_tag(&s);
    return (!digest.at || is_digest(digest)) && (!tag.at || is_tag(tag)) && is_image_name(s);
}

bool stw_image_floats(const char *text)
{
    struct name_piece s = {text, strlen(text)};
    if (split_at_char(&s, '@', false).at)
        return false;
    struct name_piece tag = split_tag(&s);
    return !tag.at || (tag.len == 6 && memcmp(tag.at, "latest", 6) == 0);
}

void stw_image_tag(const char *text, char *out, size_t out_size)
{
    struct name_piece s = {text, strlen(text)};
    (void)split_at_char(&s, '@', false);
    struct name_piece tag = split_tag(&s);
    size_t len = tag.at ? STW_MIN(tag.len, out_size - 1) : 0;
    if (len)
        memcpy(out, tag.at, len);
    out[len] = '\0';
}

const char *stw_check_image(const char *s)
{
    return stw_is_image(s) ? NULL : STW_IMAGE_TEXT;
}

const char *stw_warn_image(const char *s)
{
    return stw_image_floats(s)
               ? "image has no tag or uses \":latest\"; rollouts are not reproducible"
               : NULL;
}
