/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules on a DatabaseUser. */
#include "kinds/databaseuser_priv.h"

#include "base/util.h"

#include <ctype.h>

#define KEY_CHARACTERS "-._abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* U+0000 to U+001F, U+007F to U+009F, in UTF-8. */
static bool has_control(const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (iscntrl(*c) || (c[0] == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F))
            return true;
    return false;
}

const char *stw_databaseuser_check_text(const char *text)
{
    return has_control(text) ? "must not hold control characters" : NULL;
}

/* Servers that pad names with blanks take "app " for "app". */
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
    if (has_control(host) || host[strcspn(host, " '\"`\\")])
        return "must not hold quotes, backslashes, blanks or control characters";
    return NULL;
}

const char *stw_databaseuser_check_key(const char *key)
{
    if (key[strspn(key, KEY_CHARACTERS)])
        return "must consist of letters, digits, '-', '_' and '.'";
    return NULL;
}

void stw_databaseuser_validate(const struct stw_admission *a, const void *spec,
                               const void *old_spec, struct stw_findings *f)
{
    (void)old_spec;
    (void)spec;
    if (!stw_json_there(stw_json_path(a->object, "metadata.labels.target")))
        stw_findings_add(f, "metadata.labels[target]", STW_REQUIRED, NULL,
                         "label \"target\" must name a database target");
}
