/* SPDX-License-Identifier: Apache-2.0
 *
 * The error value of all modules.  The caller owns it and passes it as the last parameter.  A code
 * exists only where a caller acts on it; the text is for people.  It needs no allocation, so it
 * works when memory is exhausted. */
#ifndef STW_BASE_ERROR_H
#define STW_BASE_ERROR_H

#include <stdarg.h>
#include <stdint.h>

enum stw_err {
    STW_OK = 0,
    STW_ERR_INTERNAL,    /* memory, threads, files: ours or the machine's fault */
    STW_ERR_INVALID,     /* the input is wrong; the same input fails again */
    STW_ERR_NOT_FOUND,   /* 404 */
    STW_ERR_CONFLICT,    /* 409: read again, then retry */
    STW_ERR_EXISTS,      /* 409 AlreadyExists */
    STW_ERR_FORBIDDEN,   /* 401, 403 */
    STW_ERR_GONE,        /* 410: the resourceVersion is too old, list again */
    STW_ERR_TOO_LARGE,   /* one of our limits, or 413 */
    STW_ERR_THROTTLED,   /* 429 */
    STW_ERR_UNAVAILABLE, /* 5xx, or no answer */
    STW_ERR_TIMEOUT,     /* our deadline passed */
    STW_ERR_CANCELLED,   /* we are stopping */
    STW_ERR_CODES
};

struct stw_error {
    enum stw_err code;
    int http;                /* HTTP status where there was one, else 0 */
    uint32_t retry_after_ms; /* what a Retry-After header asked for, else 0 */
    char text[512];
};

/* Sets code and text (cut at 511 bytes), and clears the rest.  `err` belongs to the caller and may be
 * NULL.  Always returns -1, so that a function can end with it.  On any thread. */
int stw_fail(struct stw_error *err, enum stw_err code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int stw_vfail(struct stw_error *err, enum stw_err code, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* Puts "<text>: " before the existing text and keeps the code.  Always returns -1. */
int stw_error_wrap(struct stw_error *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* "out of memory"; always returns -1. */
int stw_fail_memory(struct stw_error *err);

/* clang-tidy analyses one file at a time, so this states what both return. */
#ifdef __clang_analyzer__
#define stw_fail(...) (stw_fail(__VA_ARGS__), -1)
#define stw_error_wrap(...) (stw_error_wrap(__VA_ARGS__), -1)
#define stw_fail_memory(err) (stw_fail_memory(err), -1)
#endif

/* Ignores a failure with `code`, for calls whose effect is already in place: clears `err` and
 * returns 0.  Otherwise returns `rc`. */
int stw_error_pass_over(int rc, enum stw_err code, struct stw_error *err);

/* A stable CamelCase name for a code, such as "NotFound"; for logs and metrics. */
const char *stw_err_name(enum stw_err code);

#endif
