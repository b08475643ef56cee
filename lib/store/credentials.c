/* SPDX-License-Identifier: Apache-2.0 */
#include "store/credentials.h"

#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>

struct span {
    const char *at;
    size_t len;
};

static const struct {
    const char *name;
    size_t offset, size;
} keys[] = {
    {"aws_access_key_id", offsetof(struct stw_credentials, access_key),
     sizeof(((struct stw_credentials *)0)->access_key)},
    {"aws_secret_access_key", offsetof(struct stw_credentials, secret_key),
     sizeof(((struct stw_credentials *)0)->secret_key)},
    {"aws_session_token", offsetof(struct stw_credentials, session_token),
     sizeof(((struct stw_credentials *)0)->session_token)},
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct span trim_blanks(struct span s)
{
    while (s.len > 0 && is_blank(s.at[0])) {
        s.at++;
        s.len--;
    }
    while (s.len > 0 && is_blank(s.at[s.len - 1]))
        s.len--;
    return s;
}

static bool is_span_equal(struct span s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

/* The values go into headers, which they must not end. */
static bool is_printable(struct span s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.at[i] <= 0x20 || s.at[i] > 0x7e)
            return false;
    return true;
}

static int store_known_key(struct span key, struct span value, struct stw_credentials *c,
                           struct stw_error *err)
{
    for (size_t i = 0; i < STW_COUNT(keys); i++) {
        if (!is_span_equal(key, keys[i].name))
            continue;
        if (value.len >= keys[i].size || !is_printable(value))
            return stw_fail(err, STW_ERR_INVALID,
                            "%s is longer than %zu bytes, or holds blanks or control characters",
                            keys[i].name, keys[i].size - 1);
        char *to = (char *)c + keys[i].offset;
        memcpy(to, value.at, value.len);
        to[value.len] = '\0';
    }
    return 0;
}

static int read_line(struct span line, const char *profile, bool *inside, struct stw_credentials *c,
                     struct stw_error *err)
{
    line = trim_blanks(line);
    if (line.len == 0 || line.at[0] == '#' || line.at[0] == ';')
        return 0;
    if (line.at[0] == '[') {
        struct span name = {line.at + 1, line.len >= 2 ? line.len - 2 : 0};
        *inside = line.at[line.len - 1] == ']' && is_span_equal(trim_blanks(name), profile);
        return 0;
    }
    const char *equals = memchr(line.at, '=', line.len);
    if (!*inside || !equals)
        return 0;
    struct span key = {line.at, (size_t)(equals - line.at)};
    struct span value = {equals + 1, (size_t)(line.at + line.len - equals - 1)};
    return store_known_key(trim_blanks(key), trim_blanks(value), c, err);
}

int stw_credentials_parse(const char *text, size_t len, const char *profile,
                          struct stw_credentials *ret, struct stw_error *err)
{
    const char *end = text + len, *wanted = profile ? profile : "default";
    bool inside = false;
    memset(ret, 0, sizeof(*ret));
    if (len > STW_CREDENTIALS_MAX_BYTES)
        return stw_fail(err, STW_ERR_TOO_LARGE, "credentials have more than %u bytes",
                        STW_CREDENTIALS_MAX_BYTES);
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        struct span line = {text, (size_t)((newline ? newline : end) - text)};
        if (read_line(line, wanted, &inside, ret, err) != 0)
            goto refused;
        text = newline ? newline + 1 : end;
    }
    if (*ret->access_key && *ret->secret_key)
        return 0;
    (void)stw_fail(err, STW_ERR_INVALID,
                   "credentials have no section [%s] with aws_access_key_id and "
                   "aws_secret_access_key",
                   wanted);
refused:
    stw_credentials_wipe(ret);
    return -1;
}

void stw_credentials_wipe(struct stw_credentials *c)
{
    stw_wipe(c, sizeof(*c));
}
