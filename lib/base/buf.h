/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing byte buffer with a cap.  The first failure (cap or memory) sticks in `failed` and later
 * additions do nothing, so a writer checks once, at the end.  Not thread-safe: one owner. */
#ifndef STW_BASE_BUF_H
#define STW_BASE_BUF_H

#include "base/util.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stw_buf {
    char *data; /* NUL-terminated once something was added; NULL before */
    size_t len;
    size_t cap;
    size_t max;  /* limit in bytes */
    bool failed; /* over the cap, or out of memory */
    bool secret; /* memory is wiped before it is freed */
};

/* An empty buffer with this cap. */
#define STW_BUF_INIT(max_bytes) ((struct stw_buf){.max = (max_bytes)})
/* Of a variable: stw_buf_done at the end of its scope. */
#define stw_autobuf __attribute__((cleanup(stw_buf_done)))

void stw_buf_done(struct stw_buf *b);  /* frees; the buffer is as after STW_BUF_INIT */
void stw_buf_clear(struct stw_buf *b); /* empties, keeps the memory, clears `failed` */
/* The caller owns the result; "" when empty, NULL when failed. */
char *stw_buf_take(struct stw_buf *b) STW_MUST_CHECK;
const char *stw_buf_str(const struct stw_buf *b); /* "" when empty */

void stw_buf_add(struct stw_buf *b, const void *data, size_t len);
void stw_buf_adds(struct stw_buf *b, const char *text);
void stw_buf_adds_lower(struct stw_buf *b, const char *text); /* ASCII letters in lower case */
void stw_buf_addc(struct stw_buf *b, char c);
void stw_buf_addi(struct stw_buf *b, int64_t v);
void stw_buf_addf(struct stw_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void stw_buf_vaddf(struct stw_buf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
/* Reserves `len` more bytes.  Returns data + len, where the caller writes them, or NULL on
 * failure. */
char *stw_buf_reserve(struct stw_buf *b, size_t len);

/* Appends a quoted JSON string; `text` is `len` bytes of valid UTF-8.  Escapes only what RFC 8259
 * requires, so that text that is read and written again is unchanged. */
void stw_buf_json_str(struct stw_buf *b, const char *text, size_t len);
void stw_buf_json_strz(struct stw_buf *b, const char *text);

#endif
