/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/util.h"

#include <assert.h>
#include <stdio.h>

int stw_vfail(struct stw_error *err, enum stw_err code, const char *fmt, va_list ap)
{
    if (err) {
        err->code = code;
        err->http = 0;
        err->retry_after_ms = 0;
        /* The analyzer of clang 14 does not see va_start through a call. */
        stw_vformat(err->text, sizeof(err->text), fmt, ap); // NOLINT(clang-analyzer-valist*)
    }
    return -1;
}

int(stw_fail)(struct stw_error *err, enum stw_err code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)stw_vfail(err, code, fmt, ap);
    va_end(ap);
    return -1;
}

int(stw_fail_memory)(struct stw_error *err)
{
    return stw_fail(err, STW_ERR_INTERNAL, "out of memory");
}

int(stw_error_wrap)(struct stw_error *err, const char *fmt, ...)
{
    if (!err)
        return -1;
    char inner[sizeof(err->text)];
    memcpy(inner, err->text, sizeof(inner));
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->text, sizeof(err->text), fmt, ap); // NOLINT(clang-analyzer-valist*)
    va_end(ap);
    size_t used = n < 0 ? 0 : STW_MIN((size_t)n, sizeof(err->text) - 1);
    stw_format(err->text + used, sizeof(err->text) - used, ": %s", inner);
    return -1;
}

int stw_error_pass_over(int rc, enum stw_err code, struct stw_error *err)
{
    if (rc == 0 || err->code != code)
        return rc;
    *err = (struct stw_error){0};
    return 0;
}

const char *stw_err_name(enum stw_err code)
{
    static const char *const names[] = {
        [STW_OK] = "OK",
        [STW_ERR_INTERNAL] = "Internal",
        [STW_ERR_INVALID] = "Invalid",
        [STW_ERR_NOT_FOUND] = "NotFound",
        [STW_ERR_CONFLICT] = "Conflict",
        [STW_ERR_EXISTS] = "AlreadyExists",
        [STW_ERR_FORBIDDEN] = "Forbidden",
        [STW_ERR_GONE] = "Gone",
        [STW_ERR_TOO_LARGE] = "TooLarge",
        [STW_ERR_THROTTLED] = "Throttled",
        [STW_ERR_UNAVAILABLE] = "Unavailable",
        [STW_ERR_TIMEOUT] = "Timeout",
        [STW_ERR_CANCELLED] = "Cancelled",
    };
    static_assert(STW_COUNT(names) == STW_ERR_CODES, "one name for each code");
    size_t i = (size_t)code;
    return i < STW_COUNT(names) ? names[i] : "Unknown";
}
