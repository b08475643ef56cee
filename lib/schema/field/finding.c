/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/finding.h"

#include "base/hex.h"
#include "base/util.h"
#include "base/visible.h"
#include "schema/rule/kind_priv.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define ERRORS_MAX 100
#define WARNINGS_MAX 50
#define VALUE_MAX 80     /* bytes of a value that are shown */
#define MESSAGE_MAX 2048 /* of one message or warning */
#define STEPS_UNSEEN 15U /* steps between two readings of the clock, as a mask */

static const struct {
    const char *label, *cause;
    bool shows_value;
} codes[] = {
    [STW_REQUIRED] = {"Required value", "FieldValueRequired", false},
    [STW_INVALID] = {"Invalid value", "FieldValueInvalid", true},
    [STW_NOT_SUPPORTED] = {"Unsupported value", "FieldValueNotSupported", true},
    [STW_FORBIDDEN] = {"Forbidden", "FieldValueForbidden", false},
    [STW_DUPLICATE] = {"Duplicate value", "FieldValueDuplicate", true},
    [STW_UNKNOWN_FIELD] = {"Forbidden", "FieldValueForbidden", false},
};
static_assert(STW_COUNT(codes) == STW_FINDING_CODES, "one row for each code");

static void finding_done(struct stw_finding *e)
{
    free(e->path);
    free(e->value);
    free(e->message);
}

void stw_findings_done(struct stw_findings *f)
{
    for (size_t i = 0; i < f->error_count; i++)
        finding_done(&f->errors[i]);
    for (size_t i = 0; i < f->warning_count; i++)
        free(f->warnings[i]);
    free(f->errors);
    free(f->warnings);
    *f = (struct stw_findings){0};
}

void stw_findings_drop(struct stw_findings *f, size_t index)
{
    finding_done(&f->errors[index]);
    f->error_count--;
    memmove(&f->errors[index], &f->errors[index + 1],
            (f->error_count - index) * sizeof(*f->errors));
}

/* Bytes of one character or one escape, which must not be split. */
static size_t unit_len(const char *text, size_t left, bool in_string)
{
    unsigned char c = (unsigned char)*text;
    size_t len = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
    if (in_string && c == '\\')
        len = left > 1 && text[1] == 'u' ? 6 : 2;
    return STW_MIN(len, left);
}

/* The API server escapes <, > and & in what it sends; users should see them plain. */
static void add_unit(struct stw_buf *out, const char *text, size_t len)
{
    if (len == 6 && memcmp(text, "\\u00", 4) == 0) {
        int high = stw_hex_digit(text[4]), low = stw_hex_digit(text[5]);
        int c = high * 16 + low;
        if (high >= 2 && low >= 0 && c < 0x7f && c != '"' && c != '\\') {
            stw_buf_addc(out, (char)c);
            return;
        }
    }
    stw_buf_add(out, text, len);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void append_shortened(struct stw_buf *out, const char *text, size_t len)
{
    bool in_string = false;
    size_t unit;
    for (size_t i = 0; i < len; i += unit) {
        unit = unit_len(text + i, len - i, in_string);
        if (!in_string && is_blank(text[i]))
            continue;
        bool closes = in_string && text[i] == '"' && i + 1 == len;
        if (out->len + unit > VALUE_MAX && !closes) {
            stw_buf_adds(out, in_string ? "...\"" : "...");
            return;
        }
        if (text[i] == '"')
            in_string = !in_string;
        add_unit(out, text + i, unit);
    }
}

static char *short_value(const char *text, size_t len)
{
    struct stw_buf out = STW_BUF_INIT(VALUE_MAX + 16);
    append_shortened(&out, text, len);
    return stw_buf_take(&out);
}

__attribute__((format(printf, 1, 0))) static char *message_text(const char *fmt, va_list ap)
{
    char text[MESSAGE_MAX];
    if (vsnprintf(text, sizeof(text), fmt, ap) < 0)
        return NULL;
    return strdup(text);
}

/* Makes space for one more after `count` elements; arrays grow by doubling from 8. */
static bool grow_array(void **array, size_t count, size_t size)
{
    if (count != 0 && (count < 8 || (count & (count - 1)) != 0))
        return true;
    void *more = realloc(*array, (count < 8 ? 8 : count * 2) * size);
    if (!more)
        return false;
    *array = more;
    return true;
}

static bool grow_errors(struct stw_findings *f)
{
    void *array = f->errors;
    bool ok = grow_array(&array, f->error_count, sizeof(*f->errors));
    f->errors = array;
    return ok;
}

__attribute__((format(printf, 6, 0))) static void
append_error(struct stw_findings *f, const char *path, enum stw_finding_code code,
             const char *value, size_t value_len, const char *fmt, va_list ap)
{
    if (f->error_count == ERRORS_MAX) {
        f->errors_left_out++;
        return;
    }
    struct stw_finding e = {
        .code = code,
        .path = strdup(path),
        .value = value ? short_value(value, value_len) : NULL,
        .message = message_text(fmt, ap),
    };
    if (!e.path || !e.message || (value && !e.value) || !grow_errors(f)) {
        finding_done(&e);
        f->failed = true;
        return;
    }
    f->errors[f->error_count++] = e;
}

static uint64_t cpu_ns(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

void stw_findings_limit(struct stw_findings *f, uint32_t cpu_ms)
{
    f->cpu_end_ns = cpu_ns() + (uint64_t)cpu_ms * 1000000U;
    f->spent = false;
    f->steps = 0;
}

bool stw_findings_spent(struct stw_findings *f)
{
    if (f->cpu_end_ns && !f->spent && (++f->steps & STEPS_UNSEEN) == 0)
        f->spent = cpu_ns() >= f->cpu_end_ns;
    return f->spent;
}

bool stw_findings_full(struct stw_findings *f)
{
    if (f->error_count < ERRORS_MAX)
        return false;
    f->errors_left_out++;
    return true;
}

void stw_findings_too_complex(struct stw_findings *f)
{
    while (f->error_count > 0)
        stw_findings_drop(f, f->error_count - 1);
    f->errors_left_out = 0;
    stw_findings_add(f, "spec", STW_INVALID, NULL, "%s",
                     "the object is too complex: it takes too long to check; make its lists, maps "
                     "and values smaller");
}

void stw_findings_add(struct stw_findings *f, const char *path, enum stw_finding_code code,
                      const char *value, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    append_error(f, path, code, value, value ? strlen(value) : 0, fmt, ap);
    va_end(ap);
}

void stw_findings_at(struct stw_findings *f, const char *path, enum stw_finding_code code,
                     struct stw_json value, const char *fmt, ...)
{
    va_list ap;
    size_t len = 0;
    const char *raw = stw_json_type(value) == STW_JSON_ABSENT ? NULL : stw_json_raw(value, &len);
    va_start(ap, fmt);
    append_error(f, path, code, raw, len, fmt, ap);
    va_end(ap);
}

static char *visible_text(const char *text)
{
    struct stw_buf out = STW_BUF_INIT(SIZE_MAX);
    stw_visible_add(&out, text, strlen(text));
    return stw_buf_take(&out);
}

static void append_warning(struct stw_findings *f, char *text)
{
    void *array = f->warnings;
    bool ok = text && grow_array(&array, f->warning_count, sizeof(*f->warnings));
    f->warnings = array;
    if (!ok) {
        free(text);
        f->failed = true;
        return;
    }
    f->warnings[f->warning_count++] = text;
}

/* The last entry has the number of warnings that were left out. */
static void leave_out_warning(struct stw_findings *f)
{
    char *text = NULL;
    if (asprintf(&text, "%zu more warnings are not shown", ++f->warnings_left_out) < 0)
        text = NULL;
    if (text && f->warning_count > WARNINGS_MAX)
        free(f->warnings[--f->warning_count]);
    append_warning(f, text);
}

bool stw_findings_unheard(struct stw_findings *f)
{
    if (f->strict)
        return stw_findings_full(f);
    if (f->unknown_told)
        return true;
    if (f->warning_count < WARNINGS_MAX)
        return false;
    leave_out_warning(f);
    return true;
}

void stw_findings_warn(struct stw_findings *f, const char *fmt, ...)
{
    va_list ap;
    if (f->warning_count >= WARNINGS_MAX) {
        leave_out_warning(f);
        return;
    }
    va_start(ap, fmt);
    stw_autofree char *text = message_text(fmt, ap);
    va_end(ap);
    append_warning(f, text ? visible_text(text) : NULL);
}

static void add_visible(struct stw_buf *out, const char *text)
{
    stw_visible_add(out, text, strlen(text));
}

void stw_finding_detail(const struct stw_finding *e, struct stw_buf *out)
{
    stw_buf_adds(out, codes[e->code].label);
    if (codes[e->code].shows_value && e->value) {
        stw_buf_adds(out, ": ");
        add_visible(out, e->value);
    }
    if (e->message[0]) {
        stw_buf_adds(out, ": ");
        add_visible(out, e->message);
    }
}

void stw_finding_text(const struct stw_finding *e, struct stw_buf *out)
{
    add_visible(out, e->path);
    stw_buf_adds(out, ": ");
    stw_finding_detail(e, out);
}

void stw_findings_text(const struct stw_findings *f, struct stw_buf *out)
{
    for (size_t i = 0; i < f->error_count; i++) {
        stw_buf_adds(out, i ? ", " : "");
        stw_finding_text(&f->errors[i], out);
    }
}

const char *stw_finding_cause(enum stw_finding_code code)
{
    assert(code < STW_FINDING_CODES);
    return codes[code].cause;
}
