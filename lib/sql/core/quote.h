/* SPDX-License-Identifier: Apache-2.0
 *
 * The only functions that put outside text into statements: for each engine one for names and one
 * for strings.  Text with a NUL cannot be quoted: the buffer fails, and no statement is sent. */
#ifndef STW_SQL_QUOTE_H
#define STW_SQL_QUOTE_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* `name` in backticks, which quote a name in every sql_mode. */
void stw_mysql_name(struct stw_buf *out, const char *name);
/* 'text'; `no_backslash` is the connection's SERVER_STATUS_NO_BACKSLASH_ESCAPES. */
void stw_mysql_string(struct stw_buf *out, const char *text, size_t len, bool no_backslash);
void stw_mysql_strz(struct stw_buf *out, const char *text, bool no_backslash);

/* "name" */
void stw_pg_name(struct stw_buf *out, const char *name);
/* 'text', or E'text' when there is a backslash, which means the same with either value of
 * standard_conforming_strings. */
void stw_pg_string(struct stw_buf *out, const char *text, size_t len);
void stw_pg_strz(struct stw_buf *out, const char *text);

#endif
