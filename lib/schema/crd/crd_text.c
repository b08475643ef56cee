/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys and strings of the YAML of a CustomResourceDefinition. */
#include "base/util.h"
#include "schema/rule/kind_priv.h"

#include <ctype.h>

void stw_crd_key(struct stw_buf *out, int indent, const char *key)
{
    for (int i = 0; i < indent; i++)
        stw_buf_addc(out, ' ');
    stw_buf_adds(out, key);
    stw_buf_addc(out, ':');
}

/* The length of the mark of a name (base/operator.h) at the beginning of a text, or 0. */
static size_t mark_length(const char *text)
{
    static const char mark[] = "{operator}";
    return strncmp(text, mark, strlen(mark)) == 0 ? strlen(mark) : 0;
}

/* True when text needs no quotes: it starts with a letter or with '.' and a letter, cannot be read
 * as another type, and has no character that is special in YAML. */
static bool is_safe(const char *text)
{
    static const char *const words[] = {"y",   "n",    "yes",   "no",  "on",
                                        "off", "true", "false", "null"};
    for (size_t i = 0; i < STW_COUNT(words); i++)
        if (strcasecmp(text, words[i]) == 0)
            return false;
    if (!isalpha((unsigned char)text[text[0] == '.']) && mark_length(text) == 0)
        return false;
    for (size_t len; *text; text += len)
        if ((len = mark_length(text)) == 0 &&
            (len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789 .,;-_/()")) == 0)
            return false;
    return true;
}

void stw_crd_scalar(struct stw_buf *out, const char *text)
{
    if (is_safe(text)) {
        stw_buf_adds(out, text);
        return;
    }
    stw_buf_addc(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            stw_buf_addc(out, '\'');
        stw_buf_addc(out, *text);
    }
    stw_buf_addc(out, '\'');
}

void stw_crd_string(struct stw_buf *out, int indent, const char *key, const char *value)
{
    if (!value)
        return;
    stw_crd_key(out, indent, key);
    stw_buf_addc(out, ' ');
    stw_crd_scalar(out, value);
    stw_buf_addc(out, '\n');
}
