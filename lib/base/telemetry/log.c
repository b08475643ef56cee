/* SPDX-License-Identifier: Apache-2.0
 *
 * Each line is built in one buffer on the caller's stack and written by one write(2), which
 * log_writer.c calls on its thread or on the caller's.  Any thread may log: the settings are atomics, the context is
 * thread-local. */
#include "base/log.h"

#include "base/clock.h"
#include "base/telemetry/log_priv.h"
#include "base/util.h"
#include "base/visible.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>

#define TAIL_BYTES 8 /* reserved to close a truncated line */

static atomic_int log_level = STW_LOG_INFO;
static atomic_int log_format = STW_LOG_TEXT;
static atomic_int log_fd = STDERR_FILENO;
static _Thread_local const struct stw_log_field *log_fields;

static const char *const level_names[] = {
    [STW_LOG_DEBUG] = "debug",
    [STW_LOG_INFO] = "info",
    [STW_LOG_WARN] = "warn",
    [STW_LOG_ERROR] = "error",
};
static_assert(STW_COUNT(level_names) == STW_LOG_LEVELS, "one name for each level");
static const char *const level_heads[] = {
    [STW_LOG_DEBUG] = "DEBUG ",
    [STW_LOG_INFO] = "INFO  ",
    [STW_LOG_WARN] = "WARN  ",
    [STW_LOG_ERROR] = "ERROR ",
};
static_assert(STW_COUNT(level_heads) == STW_LOG_LEVELS, "one head for each level");

void stw_log_setup(enum stw_log_format format, enum stw_log_level level, int fd)
{
    assert(level < STW_LOG_LEVELS);
    atomic_store(&log_format, (int)format);
    atomic_store(&log_level, (int)level);
    atomic_store(&log_fd, fd);
}

enum stw_log_level stw_log_set_level(enum stw_log_level level)
{
    return (enum stw_log_level)atomic_exchange(&log_level, (int)level);
}

bool stw_log_on(enum stw_log_level level)
{
    return (int)level >= atomic_load_explicit(&log_level, memory_order_relaxed);
}

void stw_log_context(const struct stw_log_field *fields)
{
    log_fields = fields;
}

/* All or nothing, so that an escape or a UTF-8 sequence is never cut in two. */
static bool add_line_bytes(struct stw_log_line *l, const char *data, size_t len)
{
    if (l->full || l->len + len > sizeof(l->data) - TAIL_BYTES) {
        l->full = true;
        return false;
    }
    memcpy(l->data + l->len, data, len);
    l->len += len;
    return true;
}

static void add_line_string(struct stw_log_line *l, const char *text)
{
    (void)add_line_bytes(l, text, strlen(text));
}

/* Adds the character at `at` and sets `ret_len` to its bytes; `before` is the byte in front of it. */
static bool add_char(struct stw_log_line *l, const char *at, const char *end, char before,
                     size_t *ret_len)
{
    static const char shorts[256] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r',
                                     ['\t'] = 't', ['"'] = '"',  ['\\'] = '\\'};
    char escape[STW_ESCAPE_MAX] = {'\\', shorts[(unsigned char)*at]};

    *ret_len = 1;
    if (escape[1])
        return add_line_bytes(l, escape, 2);
    if (stw_json_escape(at, end, before, escape, ret_len))
        return add_line_bytes(l, escape, strlen(escape));
    return add_line_bytes(l, at, *ret_len);
}

/* Adds a JSON string; invalid UTF-8 becomes U+FFFD.  TAIL_BYTES includes the closing quote. */
static void add_quoted(struct stw_log_line *l, const char *text)
{
    const char *end = text + strlen(text);
    size_t len;
    if (!add_line_bytes(l, "\"", 1))
        return;
    for (const char *at = text; at < end; at += len)
        if (!add_char(l, at, end, at > text ? at[-1] : '\0', &len))
            break;
    l->data[l->len++] = '"';
}

/* A short value is written without quotes when it is unambiguous. */
static bool is_bare(const char *text)
{
    size_t len = 0;
    for (; len < 256 && text[len]; len++) {
        unsigned char c = (unsigned char)text[len];
        if (c <= ' ' || c >= 0x7F || strchr("\"=\\#", c))
            return false;
    }
    return len > 0 && len < 256;
}

static void add_value(struct stw_log_line *l, const struct stw_log_field *f, bool json)
{
    char num[48];
    switch (f->type) {
    case STW_FIELD_STR:
        if (!json && is_bare(f->str))
            add_line_string(l, f->str);
        else
            add_quoted(l, f->str);
        return;
    case STW_FIELD_BOOL:
        add_line_string(l, f->num ? "true" : "false");
        return;
    case STW_FIELD_INT:
        stw_format(num, sizeof(num), "%" PRId64, f->num);
        break;
    case STW_FIELD_SECONDS:
        stw_format(num, sizeof(num), "%s%" PRIu64 ".%06" PRIu64, f->num < 0 ? "-" : "",
                   (f->num < 0 ? 0 - (uint64_t)f->num : (uint64_t)f->num) / 1000000,
                   (f->num < 0 ? 0 - (uint64_t)f->num : (uint64_t)f->num) % 1000000);
        break;
    }
    add_line_string(l, num);
}

/* Only the last string may be truncated; everything else is added whole or not at all, so that a
 * program can still parse a truncated line. */
static void add_fields(struct stw_log_line *l, const struct stw_log_field *f, bool json)
{
    for (; f && f->key; f++) {
        if (f->type == STW_FIELD_STR && !f->str)
            continue;
        size_t before = l->len;
        if (json) {
            add_line_string(l, ",");
            add_quoted(l, f->key);
            add_line_string(l, ":");
        } else {
            add_line_string(l, " ");
            add_line_string(l, f->key);
            add_line_string(l, "=");
        }
        if (l->full) {
            l->len = before;
            return;
        }
        size_t value = l->len;
        add_value(l, f, json);
        if (l->full && (f->type != STW_FIELD_STR || l->len == value)) {
            l->len = before;
            return;
        }
    }
}

static void build_json(struct stw_log_line *l, enum stw_log_level level, const char *now,
                       const char *msg, const struct stw_log_field *fields)
{
    add_line_string(l, "{\"time\":\"");
    add_line_string(l, now);
    add_line_string(l, "\",\"level\":\"");
    add_line_string(l, level_names[level]);
    add_line_string(l, "\",\"msg\":");
    add_quoted(l, msg);
    add_fields(l, log_fields, true);
    add_fields(l, fields, true);
    l->data[l->len++] = '}';
}

static void build_text(struct stw_log_line *l, enum stw_log_level level, const char *now,
                       const char *msg, const struct stw_log_field *fields)
{
    add_line_string(l, now);
    add_line_string(l, " ");
    add_line_string(l, level_heads[level]);
    if (strpbrk(msg, "\r\n"))
        add_quoted(l, msg);
    else
        add_line_string(l, msg);
    add_fields(l, log_fields, false);
    add_fields(l, fields, false);
}

bool stw_log_put(const char *data, size_t len)
{
    struct pollfd p = {.fd = atomic_load(&log_fd), .events = POLLOUT};
    while (len > 0) { /* a pipe may accept only a part */
        ssize_t n = write(p.fd, data, len);
        if (n < 0 &&
            errno == EAGAIN) /* another process made it non-blocking for all who share it */
            (void)poll(&p, 1, -1);
        else if (n <= 0 && !(n < 0 && errno == EINTR))
            return false;
        data += STW_MAX(n, 0);
        len -= (size_t)STW_MAX(n, 0);
    }
    return true;
}

int stw_log_fd(void)
{
    return atomic_load(&log_fd);
}

void stw_log_line_build(struct stw_log_line *l, enum stw_log_level level, const char *msg,
                        const struct stw_log_field *fields)
{
    char now[STW_TIME_LEN];
    l->len = 0;
    l->full = false;
    stw_time_format_micro(stw_wall_us(&stw_clock_system), now);
    if (atomic_load(&log_format) == STW_LOG_JSON)
        build_json(l, level, now, msg, fields);
    else
        build_text(l, level, now, msg, fields);
    l->data[l->len++] = '\n';
}

int stw_log_level_parse(const char *text, enum stw_log_level *ret)
{
    for (size_t i = 0; i < STW_COUNT(level_names); i++) {
        if (stw_streq(text, level_names[i])) {
            *ret = (enum stw_log_level)i;
            return 0;
        }
    }
    return -1;
}

int stw_log_format_parse(const char *text, enum stw_log_format *ret)
{
    if (!stw_streq(text, "json") && !stw_streq(text, "text"))
        return -1;
    *ret = stw_streq(text, "json") ? STW_LOG_JSON : STW_LOG_TEXT;
    return 0;
}
