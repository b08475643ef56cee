/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"

#include "base/error.h"
#include "base/process/sandbox.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

int stw_format_whole(char *out, size_t size, const char *fmt, ...)
{
    va_list ap;
    assert(size > 0);
    va_start(ap, fmt);
    int len = vsnprintf(out, size, fmt, ap);
    va_end(ap);
    if (len >= 0 && (size_t)len < size)
        return 0;
    out[0] = '\0';
    return -1;
}

void stw_lower(const char *text, char *out, size_t size)
{
    size_t i = 0;
    for (; i + 1 < size && text[i]; i++)
        out[i] = (char)tolower((unsigned char)text[i]);
    if (size > 0)
        out[i] = '\0';
}

void stw_wipe(void *p, size_t len)
{
    if (p && len > 0)
        explicit_bzero(p, len);
}

void stw_wipe_free(char *text)
{
    if (text)
        stw_wipe(text, strlen(text));
    free(text);
}

size_t stw_bare_len(const char *text, size_t len)
{
    if (len == 0 || text[len - 1] != '\n')
        return len;
    return len > 1 && text[len - 2] == '\r' ? len - 2 : len - 1;
}

struct stw_hash stw_hash_bytes(const void *data, size_t len)
{
    XXH128_hash_t h = XXH3_128bits(data, len);
    return (struct stw_hash){.lo = h.low64, .hi = h.high64};
}

int stw_parse_int(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    const char *p = text;
    bool negative = *p == '-';
    int64_t v = 0;

    p += negative;
    if (*p == '\0')
        return -1;
    /* Counts downwards, as INT64_MIN has no positive counterpart. */
    for (; *p; p++) {
        if (*p < '0' || *p > '9')
            return -1;
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, *p - '0', &v))
            return -1;
    }
    if (!negative && __builtin_sub_overflow(0, v, &v))
        return -1;
    if (v < min || v > max)
        return -1;
    *ret = v;
    return 0;
}

/* Reads up to the end or `cap` bytes.  Returns the number of bytes, or -1 with errno. */
static ssize_t read_full(int fd, char *data, size_t cap)
{
    size_t len = 0;
    while (len < cap) {
        ssize_t n = read(fd, data + len, cap - len);
        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

/* The size of pipes and /proc files is unknown, so the buffer grows up to one byte over `max`.  The
 * content may be secret: memory is wiped before it is freed. */
static int read_fd_to_end(int fd, size_t max, char **ret, size_t *ret_len)
{
    size_t cap = STW_MIN(max + 1, (size_t)16 * 1024), len = 0;
    char *data = malloc(cap + 1);
    while (data) {
        ssize_t n = read_full(fd, data + len, cap - len);
        if (n < 0)
            break;
        len += (size_t)n;
        if (len < cap || len > max) {
            data[len] = '\0';
            *ret = data;
            *ret_len = len;
            return 0;
        }
        size_t grown = STW_MIN(max + 1, cap * 2);
        char *bigger = malloc(grown + 1);
        if (bigger)
            memcpy(bigger, data, len);
        stw_wipe(data, cap);
        free(data);
        data = bigger;
        cap = grown;
    }
    int saved = data ? errno : ENOMEM;
    stw_wipe(data, len);
    free(data);
    errno = saved;
    return -1;
}

int stw_read_file(const char *path, size_t max, char **ret, size_t *ret_len, struct stw_error *err)
{
    stw_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *data = NULL;
    size_t len = 0;

    if (fd < 0) {
        enum stw_err code = errno == ENOENT || errno == ENOTDIR ? STW_ERR_NOT_FOUND
                            : errno == EACCES                   ? STW_ERR_FORBIDDEN
                                                                : STW_ERR_INTERNAL;
        return stw_fail(err, code, "cannot open %s: %s%s", path, strerrordesc_np(errno),
                        stw_sandbox_hint(errno));
    }
    if (read_fd_to_end(fd, max, &data, &len) != 0)
        return stw_fail(err, STW_ERR_INTERNAL, "cannot read %s: %s", path, strerrordesc_np(errno));
    if (len > max) {
        stw_wipe(data, len);
        free(data);
        return stw_fail(err, STW_ERR_TOO_LARGE, "%s is larger than the %zu bytes allowed for it",
                        path, max);
    }
    *ret = data;
    if (ret_len)
        *ret_len = len;
    return 0;
}
