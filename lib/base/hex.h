/* SPDX-License-Identifier: Apache-2.0
 *
 * Hexadecimal digits, and the percent-encoding of URLs. */
#ifndef STW_BASE_HEX_H
#define STW_BASE_HEX_H

#include "base/buf.h"
#include "base/util.h"

/* The value of a hexadecimal digit, or -1. */
static inline int stw_hex_digit(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

enum stw_hex { STW_HEX_LOWER, STW_HEX_UPPER };

/* Writes two digits for each byte, and a NUL. */
void stw_hex_encode(const void *data, size_t len, enum stw_hex letters, char *out);

#define STW_HASH_LEN 33
/* 32 digits: the high half first. */
void stw_hash_format(struct stw_hash h, char out[STW_HASH_LEN]);
struct stw_hash stw_hash_parse(const char *text);

/* Appends `text` percent-encoded (RFC 3986): for one part of a path or one value of a query. */
void stw_url_escape(const char *text, struct stw_buf *out);
/* The same for a whole path: keeps each '/'. */
void stw_url_escape_path(const char *text, struct stw_buf *out);

#endif
