/* SPDX-License-Identifier: Apache-2.0
 *
 * Findings on a DatabaseUser, and the rule on all names of the server. */
#include "kinds/databaseuser/spec/spec_priv.h"

#include "base/util.h"

#include <stdio.h>

#define VALUE_SHOWN 256 /* bytes of a value; more than a finding shows */

void dbu_add_finding(const struct dbu_scene *s, const char *path, enum stw_finding_code code,
                     const char *value, const char *fmt, ...)
{
    stw_autobuf struct stw_buf json = STW_BUF_INIT(6 * VALUE_SHOWN + 3);
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (value)
        stw_buf_json_str(&json, value, strnlen(value, VALUE_SHOWN));
    stw_findings_add(s->f, path, code, value ? stw_buf_str(&json) : NULL, "%s", n < 0 ? "" : text);
    s->f->failed |= json.failed;
}

void dbu_add_unsupported(const struct dbu_scene *s, const char *path, const char *value)
{
    dbu_add_finding(s, path, STW_INVALID, value, "not supported on %s", s->engine->name);
}

/* --- names */

static size_t count_characters(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

static bool has_long_character(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0xF0)
            return true;
    return false;
}

size_t dbu_name_length(const struct dbu_scene *s, const char *name)
{
    return s->engine && s->engine->names_in_bytes ? strlen(name) : count_characters(name);
}

bool dbu_check_name(const struct dbu_scene *s, const char *path, const char *name, uint32_t max)
{
    bool bytes = s->engine && s->engine->names_in_bytes;
    const char *of = s->engine ? s->engine->name : "";
    if (dbu_name_length(s, name) > max)
        dbu_add_finding(s, path, STW_INVALID, name, "must be at most %u %s%s%s", max,
                        bytes ? "bytes" : "characters", *of ? " for " : "", of);
    else if (*of && !bytes && has_long_character(name))
        dbu_add_finding(s, path, STW_INVALID, name, "must not hold characters beyond U+FFFF on %s",
                        of);
    else if (*of && !bytes && *name && name[strlen(name) - 1] == ' ')
        dbu_add_finding(s, path, STW_INVALID, name, "must not end with a blank on %s", of);
    else
        return true;
    return false;
}
