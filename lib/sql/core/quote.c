/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/core/quote.h"

#include <string.h>

/* Doubles each `quote` and, if `backslashes`, each backslash. */
static void append_quoted(struct stw_buf *out, const char *text, size_t len, char quote,
                          bool backslashes)
{
    if (memchr(text, '\0', len)) {
        out->failed = true;
        return;
    }
    stw_buf_addc(out, quote);
    for (size_t i = 0; i < len; i++) {
        if (text[i] == quote || (backslashes && text[i] == '\\'))
            stw_buf_addc(out, text[i]);
        stw_buf_addc(out, text[i]);
    }
    stw_buf_addc(out, quote);
}

void stw_mysql_name(struct stw_buf *out, const char *name)
{
    append_quoted(out, name, strlen(name), '`', false);
}

void stw_mysql_string(struct stw_buf *out, const char *text, size_t len, bool no_backslash)
{
    append_quoted(out, text, len, '\'', !no_backslash);
}

void stw_mysql_strz(struct stw_buf *out, const char *text, bool no_backslash)
{
    stw_mysql_string(out, text, strlen(text), no_backslash);
}

void stw_pg_name(struct stw_buf *out, const char *name)
{
    append_quoted(out, name, strlen(name), '"', false);
}

void stw_pg_string(struct stw_buf *out, const char *text, size_t len)
{
    bool backslash = len > 0 && memchr(text, '\\', len);
    if (backslash)
        stw_buf_addc(out, 'E');
    append_quoted(out, text, len, '\'', backslash);
}

void stw_pg_strz(struct stw_buf *out, const char *text)
{
    stw_pg_string(out, text, strlen(text));
}
