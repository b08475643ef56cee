/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on single values of a DatabaseUser, for the rows of its tables. */
#include "kinds/databaseuser/spec/spec_priv.h"

#include "base/clock.h"
#include "base/util.h"
#include "sql/core/databases.h"

#define KEY_CHARACTERS "-._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* U+0000 to U+001F, U+007F to U+009F, in UTF-8. */
static bool has_control(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f || (c[0] == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F))
            return true;
    return false;
}

const char *dbu_check_text(const char *text)
{
    return has_control(text) ? DBU_NO_CONTROL : NULL;
}

/* Servers that pad names with blanks treat "app " as "app". */
const char *dbu_check_user(const char *user)
{
    if (has_control(user))
        return DBU_NO_CONTROL;
    if (user[0] == ' ' || (*user && user[strlen(user) - 1] == ' '))
        return DBU_NO_BLANK;
    return NULL;
}

const char *dbu_check_host(const char *host)
{
    for (const char *c = host; *c; c++)
        if (*c <= ' ' || *c >= 0x7f || strchr("'\"`\\", *c))
            return "must be a name, an address or a pattern, without quotes, backslashes and "
                   "blanks";
    return NULL;
}

const char *dbu_check_key(const char *key)
{
    if (key[strspn(key, KEY_CHARACTERS)])
        return DBU_KEY_FORM;
    return NULL;
}

const char *dbu_check_alphabet(const char *alphabet)
{
    for (const char *c = alphabet; *c; c++)
        if (*c <= ' ' || *c >= 0x7f || strchr(c + 1, *c))
            return DBU_ALPHABET_FORM;
    return NULL;
}

const char *dbu_check_plugin(const char *plugin)
{
    if (plugin[strspn(plugin, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return DBU_WORD_FORM;
    return NULL;
}

const char *dbu_check_subject(const char *subject)
{
    for (const char *c = subject; *c; c++)
        if (*c < ' ' || *c > '~')
            return DBU_SUBJECT_FORM;
    return *subject == '/' ? NULL : DBU_SUBJECT_FORM;
}

const char *dbu_check_every(const char *every)
{
    size_t digits = strspn(every, "0123456789");
    return digits >= 1 && digits <= 4 && *every != '0' && strlen(every) == digits + 1 &&
                   strchr("mhd", every[digits])
               ? NULL
               : DBU_EVERY_FORM;
}

const char *dbu_check_until(const char *until)
{
    int64_t wall_us;
    bool whole = strlen(until) == strlen("2030-01-31T12:00:00Z");
    return stw_streq(until, "infinity") || (whole && stw_time_parse(until, &wall_us) == 0)
               ? NULL
               : DBU_UNTIL_FORM;
}

const char *dbu_check_database(const char *name)
{
    if (stw_streq(name, "*"))
        return DBU_ONE_DATABASE;
    if (strncmp(name, STW_DATABASE_NEW_PREFIX, strlen(STW_DATABASE_NEW_PREFIX)) == 0)
        return DBU_NEW_PREFIX;
    return dbu_check_text(name);
}

const char *dbu_check_schema(const char *name)
{
    if (stw_streq(name, "public"))
        return DBU_SCHEMA_PUBLIC;
    return dbu_check_text(name);
}

const char *dbu_check_extension(const char *name)
{
    return name[strspn(name, DBU_WORD "-")] ? "must consist of letters, digits, '-' and '_'" : NULL;
}

const char *dbu_check_character_set(const char *name)
{
    return name[strspn(name, DBU_WORD)] ? "must consist of letters, digits and '_'" : NULL;
}

const char *dbu_check_collation(const char *name)
{
    return name[strspn(name, DBU_WORD "-.@")]
               ? "must consist of letters, digits, '-', '_', '.' and '@'"
               : NULL;
}

const char *dbu_check_setting(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] ? DBU_WORD_FORM : NULL;
}

int64_t dbu_interval_s(const char *every)
{
    char *unit;
    long long n = every ? strtoll(every, &unit, 10) : 0;
    if (n <= 0)
        return 0;
    return n * (*unit == 'd' ? 86400 : *unit == 'h' ? 3600 : 60);
}
