/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on single values of a DatabaseUser, for the rows of its tables. */
#include "kinds/databaseuser/spec_priv.h"

#include "base/clock.h"
#include "base/util.h"

#define KEY_CHARACTERS "-._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* U+0000 to U+001F, U+007F to U+009F, in UTF-8. */
static bool has_control(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f || (c[0] == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F))
            return true;
    return false;
}

const char *stw_databaseuser_check_text(const char *text)
{
    return has_control(text) ? "must not hold control characters" : NULL;
}

/* Servers that pad names with blanks treat "app " as "app". */
const char *stw_databaseuser_check_user(const char *user)
{
    if (has_control(user))
        return "must not hold control characters";
    if (user[0] == ' ' || (*user && user[strlen(user) - 1] == ' '))
        return "must not start or end with a blank";
    return NULL;
}

const char *stw_databaseuser_check_host(const char *host)
{
    for (const char *c = host; *c; c++)
        if (*c <= ' ' || *c >= 0x7f || strchr("'\"`\\", *c))
            return "must be a name, an address or a pattern, without quotes, backslashes and "
                   "blanks";
    return NULL;
}

const char *stw_databaseuser_check_key(const char *key)
{
    if (key[strspn(key, KEY_CHARACTERS)])
        return "must consist of letters, digits, '-', '_' and '.'";
    return NULL;
}

const char *stw_databaseuser_check_alphabet(const char *alphabet)
{
    for (const char *c = alphabet; *c; c++)
        if (*c <= ' ' || *c >= 0x7f || strchr(c + 1, *c))
            return "must consist of different visible ASCII characters";
    return NULL;
}

const char *stw_databaseuser_check_plugin(const char *plugin)
{
    if (plugin[strspn(plugin, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return "must consist of small letters, digits and '_'";
    return NULL;
}

const char *stw_databaseuser_check_subject(const char *subject)
{
    for (const char *c = subject; *c; c++)
        if (*c < ' ' || *c > '~')
            return SUBJECT_FORM;
    return *subject == '/' ? NULL : SUBJECT_FORM;
}

const char *stw_databaseuser_check_every(const char *every)
{
    size_t digits = strspn(every, "0123456789");
    return digits >= 1 && digits <= 4 && *every != '0' && strlen(every) == digits + 1 &&
                   strchr("mhd", every[digits])
               ? NULL
               : "must be 1 to 9999 minutes, hours or days, such as 90m, 12h or 30d";
}

const char *stw_databaseuser_check_until(const char *until)
{
    int64_t wall_us;
    bool whole = strlen(until) == strlen("2030-01-31T12:00:00Z");
    return stw_streq(until, "infinity") || (whole && stw_time_parse(until, &wall_us) == 0)
               ? NULL
               : "must be a time like 2030-01-31T12:00:00Z, or infinity";
}

int64_t stw_databaseuser_interval_s(const char *every)
{
    char *unit;
    long long n = every ? strtoll(every, &unit, 10) : 0;
    if (n <= 0)
        return 0;
    return n * (*unit == 'd' ? 86400 : *unit == 'h' ? 3600 : 60);
}
