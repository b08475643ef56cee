/* SPDX-License-Identifier: Apache-2.0
 *
 * Text that others wrote, in output for a terminal, a log or a CI job.  Names, values and messages
 * may contain escape sequences, line ends, characters that change the direction of text, and commands
 * of CI systems ("::error::", "##vso[...]").  What goes to such an output goes through these
 * functions, which write each of these as an escape.  Other UTF-8 stays as it is. */
#ifndef STW_BASE_VISIBLE_H
#define STW_BASE_VISIBLE_H

#include "base/buf.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes for the longest escape, as JSON: a pair of surrogates; with its NUL. */
#define STW_ESCAPE_MAX 16

/* Whether a character is written as an escape: controls, formats (Unicode Cf), blanks and line ends
 * other than U+0020, what is never shown, and noncharacters. */
bool stw_is_hidden(uint32_t code);

/* The JSON escape of the character at `at` (at < end), such as \u001b, in `escape`; `before` is the
 * byte in front of it, 0 for none.  False: it is written as it is.  `ret_len` is its length in
 * bytes.  Invalid UTF-8 becomes U+FFFD, one byte at a time. */
bool stw_json_escape(const char *at, const char *end, char before, char escape[STW_ESCAPE_MAX],
                     size_t *ret_len);

/* Appends the text as a part of a line: \n, \x1b, \u202e, \U000e0041, and \xff for a byte that is not
 * UTF-8. */
void stw_visible_add(struct stw_buf *out, const char *text, size_t len);
/* The same in place: `text` has max + 1 bytes.  It is cut to `max` bytes, between characters. */
void stw_visible_replace(char *text, size_t max);
/* Appends the text as the start of a line, where CI systems read "::" as the start of a command. */
void stw_visible_add_line(struct stw_buf *out, const char *text, size_t len);
/* Appends the text as valid UTF-8: \xff for a byte that is not, all else as it is.  For values in
 * JSON. */
void stw_valid_add(struct stw_buf *out, const char *text, size_t len);

/* Prints one line: the formatted text, with all control characters made visible, and a line end.
 * A text beyond 1 MiB is cut. */
void stw_print_line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void stw_vprint_line(FILE *out, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/* Prints each line of a text of several lines. */
void stw_print_lines(FILE *out, const char *text);
/* Prints a JSON text and nothing after it.  It stays the same JSON; line ends between values stay. */
void stw_print_json(FILE *out, const char *json, size_t len);

#endif
