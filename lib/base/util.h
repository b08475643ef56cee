/* SPDX-License-Identifier: Apache-2.0
 *
 * Cleanup attributes and small helpers that every file uses. */
#ifndef STW_BASE_UTIL_H
#define STW_BASE_UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* For stw_autofree. */
static inline void stw_freep(void *p)
{
    void *v;
    memcpy(&v, p, sizeof(v));
    free(v);
}

/* For stw_autoclose. */
static inline void stw_closep(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

/* On a function whose result the caller must look at: it returns 0 or -1, or a new object. */
#define STW_MUST_CHECK __attribute__((warn_unused_result))

/* Of a variable: freed, or closed, at the end of its scope. */
#define stw_autofree __attribute__((cleanup(stw_freep)))
#define stw_autoclose __attribute__((cleanup(stw_closep)))

/* Returns a pointer and sets the variable to NULL. */
#define stw_take(p)                                                                                \
    __extension__({                                                                                \
        __typeof__(p) stw_taken_ = (p);                                                            \
        (p) = NULL;                                                                                \
        stw_taken_;                                                                                \
    })

/* Number of elements of an array. */
#define STW_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define STW_MIN(a, b) ((a) < (b) ? (a) : (b))
#define STW_MAX(a, b) ((a) > (b) ? (a) : (b))

/* Whether two texts are equal. */
static inline bool stw_streq(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Equal texts, or both NULL. */
static inline bool stw_same(const char *a, const char *b)
{
    return a == b || (a && b && stw_streq(a, b));
}

/* Writes a formatted text into an array and cuts it at `size` - 1 bytes: for messages, and for texts
 * that always fit, such as numbers.  A macro, so that gcc's -Wformat-truncation checks each call. */
#define stw_format(out, size, ...) ((void)snprintf(out, size, __VA_ARGS__))
#define stw_vformat(out, size, fmt, ap) ((void)vsnprintf(out, size, fmt, ap))

/* The same for names, keys, paths and URLs, where a cut text is wrong: returns 0, or -1 with an
 * empty text in `out` when it does not fit. */
int stw_format_whole(char *out, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4))) STW_MUST_CHECK;

/* Copies in lower case (ASCII letters), cut at `size` - 1 bytes; `out` may be `text` itself. */
void stw_lower(const char *text, char *out, size_t size);

/* Overwrites memory in a way that the compiler may not drop. */
void stw_wipe(void *p, size_t len);
void stw_wipe_free(char *text); /* may be NULL */
/* The length of a value without one newline at its end, and a carriage return before it. */
size_t stw_bare_len(const char *text, size_t len);

/* 128-bit hash (XXH3) of some bytes: for tables and change detection, never for secrets. */
struct stw_hash {
    uint64_t lo, hi;
};
struct stw_hash stw_hash_bytes(const void *data, size_t len);
static inline bool stw_hash_equal(struct stw_hash a, struct stw_hash b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/* Zero means that there is no hash. */
static inline bool stw_hash_is_set(struct stw_hash h)
{
    return h.lo != 0 || h.hi != 0;
}

/* Parses a whole decimal number within [min, max].  Returns 0 or -1 (also on blanks, signs other
 * than a leading '-', and trailing text). */
int stw_parse_int(const char *text, int64_t min, int64_t max, int64_t *ret);

/* Reads a file of at most `max` bytes; `*ret` is NUL-terminated and owned by the caller. */
struct stw_error;
int stw_read_file(const char *path, size_t max, char **ret, size_t *ret_len,
                  struct stw_error *err) STW_MUST_CHECK;

#endif
