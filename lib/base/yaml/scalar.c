/* SPDX-License-Identifier: Apache-2.0
 *
 * Resolves scalars.  The rules are those of sigs.k8s.io/yaml 1.4 (a fork of go-yaml 2.4), with
 * which kubectl reads manifests; tests/unit/base/test_yaml.c contains the results of kubectl
 * 1.32. */
#include "base/clock.h"
#include "base/utf8.h"
#include "base/util.h"
#include "base/yaml/yaml_priv.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

struct plain_word {
    const char *text;
    enum yaml_value_type type;
    double value;
};

static const struct plain_word words[] = {
    {"", YAML_VALUE_NULL, 0},
    {"~", YAML_VALUE_NULL, 0},
    {"null", YAML_VALUE_NULL, 0},
    {"Null", YAML_VALUE_NULL, 0},
    {"NULL", YAML_VALUE_NULL, 0},
    {"y", YAML_VALUE_BOOL, 1},
    {"Y", YAML_VALUE_BOOL, 1},
    {"yes", YAML_VALUE_BOOL, 1},
    {"Yes", YAML_VALUE_BOOL, 1},
    {"YES", YAML_VALUE_BOOL, 1},
    {"true", YAML_VALUE_BOOL, 1},
    {"True", YAML_VALUE_BOOL, 1},
    {"TRUE", YAML_VALUE_BOOL, 1},
    {"on", YAML_VALUE_BOOL, 1},
    {"On", YAML_VALUE_BOOL, 1},
    {"ON", YAML_VALUE_BOOL, 1},
    {"n", YAML_VALUE_BOOL, 0},
    {"N", YAML_VALUE_BOOL, 0},
    {"no", YAML_VALUE_BOOL, 0},
    {"No", YAML_VALUE_BOOL, 0},
    {"NO", YAML_VALUE_BOOL, 0},
    {"false", YAML_VALUE_BOOL, 0},
    {"False", YAML_VALUE_BOOL, 0},
    {"FALSE", YAML_VALUE_BOOL, 0},
    {"off", YAML_VALUE_BOOL, 0},
    {"Off", YAML_VALUE_BOOL, 0},
    {"OFF", YAML_VALUE_BOOL, 0},
    {".nan", YAML_VALUE_FLOAT, (double)NAN},
    {".NaN", YAML_VALUE_FLOAT, (double)NAN},
    {".NAN", YAML_VALUE_FLOAT, (double)NAN},
    {".inf", YAML_VALUE_FLOAT, HUGE_VAL},
    {".Inf", YAML_VALUE_FLOAT, HUGE_VAL},
    {".INF", YAML_VALUE_FLOAT, HUGE_VAL},
    {"+.inf", YAML_VALUE_FLOAT, HUGE_VAL},
    {"+.Inf", YAML_VALUE_FLOAT, HUGE_VAL},
    {"+.INF", YAML_VALUE_FLOAT, HUGE_VAL},
    {"-.inf", YAML_VALUE_FLOAT, -HUGE_VAL},
    {"-.Inf", YAML_VALUE_FLOAT, -HUGE_VAL},
    {"-.INF", YAML_VALUE_FLOAT, -HUGE_VAL},
};

static bool find_word(const char *text, struct yaml_value *ret)
{
    for (size_t i = 0; i < STW_COUNT(words); i++) {
        if (!stw_streq(text, words[i].text))
            continue;
        ret->type = words[i].type;
        ret->f = words[i].value;
        ret->i = words[i].value > 0;
        return true;
    }
    return false;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Handles 0x, 0o and 0b in either case, and a bare leading 0 for octal; moves *p past the
 * prefix. */
static int base_of(const char **p)
{
    static const struct {
        char letter;
        int base;
    } prefixes[] = {{'x', 16}, {'o', 8}, {'b', 2}};

    if ((*p)[0] != '0' || (*p)[1] == '\0')
        return 10;
    for (size_t i = 0; i < STW_COUNT(prefixes); i++) {
        if (((*p)[1] | 0x20) == prefixes[i].letter) {
            *p += 2;
            return prefixes[i].base;
        }
    }
    *p += 1;
    return 8;
}

/* An integer of 64 bits with or without sign, as Go's ParseInt and ParseUint in base 0. */
static bool parse_integer(const char *p, struct yaml_value *ret)
{
    bool negative = *p == '-', sign = negative || *p == '+';
    uint64_t v = 0;

    p += sign;
    int base = base_of(&p);
    if (*p == '\0')
        return false;
    for (; *p; p++) {
        int digit = digit_of(*p);
        if (digit >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)digit, &v))
            return false;
    }
    if (v > (uint64_t)INT64_MAX + negative)
        ret->type = YAML_VALUE_UINT;
    else
        ret->type = YAML_VALUE_INT;
    ret->i = (int64_t)(negative ? 0 - v : v);
    ret->u = v;
    return ret->type == YAML_VALUE_INT || !sign;
}

static const char *skip_digits(const char *p)
{
    return p + strspn(p, "0123456789");
}

/* [-+]? ( .digits | digits [. digits] ) [e [-+] digits]; anything else is a string. */
static bool parse_float(const char *text, struct yaml_value *ret)
{
    const char *p = text + (*text == '-' || *text == '+');
    const char *whole = p;

    p = skip_digits(p);
    if (p == whole && (*p != '.' || skip_digits(p + 1) == p + 1))
        return false;
    if (*p == '.')
        p = skip_digits(p + 1);
    if (*p == 'e' || *p == 'E') {
        p++;
        p += *p == '-' || *p == '+';
        const char *digits = p;
        p = skip_digits(p);
        if (p == digits)
            return false;
    }
    if (*p != '\0')
        return false;
    ret->f = strtod(text, NULL);
    ret->type = YAML_VALUE_FLOAT;
    return true;
}

/* Parses a number, ignoring underscores.  After a leading dot Go accepts them between digits
 * only. */
static bool parse_number(const char *text, struct yaml_value *ret)
{
    char plain[512] = "";
    size_t n = 0;
    bool dot = *text == '.';

    for (const char *p = text; *p; p++) {
        if (*p != '_')
            plain[n++] = *p;
        else if (dot && (digit_of(p[-1]) > 9 || digit_of(p[1]) > 9))
            return false;
        if (n == sizeof(plain))
            return false; /* far too long for a finite 64-bit number */
    }
    plain[n] = '\0';
    return (!dot && parse_integer(plain, ret)) || parse_float(plain, ret);
}

/* The first byte decides whether a text can be anything but a string. */
static void resolve_plain(const char *text, struct yaml_value *ret)
{
    if (*text && !strchr("+-.0123456789yYnNtTfFoO~", *text))
        return;
    if (find_word(text, ret))
        return;
    if (*text && strchr("+-.0123456789", *text) && !parse_number(text, ret))
        ret->type = YAML_VALUE_STR;
}

static int decode_base64(struct yaml_tree *t, const struct yaml_node *n, struct yaml_value *ret,
                         struct stw_error *err)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = yaml_alloc(t, n->len + 1);
    size_t len = 0, digits = 0, pads = 0;
    uint32_t bits = 0;

    if (!out)
        return stw_fail_memory(err);
    for (const char *p = n->text; *p; p++) {
        const char *at = strchr(alphabet, *p);
        if (*p == '\n' || *p == '\r')
            continue;
        pads += *p == '=';
        if ((!at && *p != '=') || (at && pads))
            return stw_fail(err, STW_ERR_INVALID, "!!binary does not hold valid base64");
        bits = bits << 6 | (at ? (uint32_t)(at - alphabet) : 0);
        if (++digits % 4 == 0) {
            out[len++] = (char)(bits >> 16);
            out[len++] = (char)(bits >> 8);
            out[len++] = (char)bits;
        }
    }
    if (digits % 4 != 0 || pads > 2)
        return stw_fail(err, STW_ERR_INVALID, "!!binary does not hold valid base64");
    len -= pads;
    out[len] = '\0';
    if (memchr(out, '\0', len) || !stw_utf8_valid(out, len))
        return stw_fail(err, STW_ERR_INVALID,
                        "!!binary holds bytes that are not text, which JSON cannot carry");
    ret->text = out;
    ret->len = len;
    return 0;
}

static int report_tag_mismatch(struct stw_error *err, const char *tag)
{
    return stw_fail(err, STW_ERR_INVALID, "the value is not a %s, which its tag says it is", tag);
}

/* A day, or a time of RFC 3339.  go-yaml knows more ways to write a time. */
static bool is_timestamp(const char *text)
{
    char whole[40];
    int64_t unused;
    if (strlen(text) == strlen("2006-01-02"))
        return stw_format_whole(whole, sizeof(whole), "%sT00:00:00Z", text) == 0 &&
               stw_time_parse(whole, &unused) == 0;
    return stw_time_parse(text, &unused) == 0;
}

/* Checks that a value matches its tag. */
static int check_tag(enum yaml_tag tag, struct yaml_value *v, struct stw_error *err)
{
    switch (tag) {
    case YAML_TAG_NULL:
        return v->type == YAML_VALUE_NULL ? 0 : report_tag_mismatch(err, "!!null");
    case YAML_TAG_BOOL:
        return v->type == YAML_VALUE_BOOL ? 0 : report_tag_mismatch(err, "!!bool");
    case YAML_TAG_INT:
        return v->type == YAML_VALUE_INT || v->type == YAML_VALUE_UINT
                   ? 0
                   : report_tag_mismatch(err, "!!int");
    case YAML_TAG_FLOAT:
        if (v->type == YAML_VALUE_INT) {
            v->type = YAML_VALUE_FLOAT;
            v->f = (double)v->i;
        }
        return v->type == YAML_VALUE_FLOAT ? 0 : report_tag_mismatch(err, "!!float");
    case YAML_TAG_TIMESTAMP:
        /* Stays a string. */
        return is_timestamp(v->text) ? 0 : report_tag_mismatch(err, "!!timestamp");
    default:
        return 0;
    }
}

int yaml_resolve(struct yaml_tree *t, const struct yaml_node *n, struct yaml_value *ret,
                 struct stw_error *err)
{
    *ret = (struct yaml_value){.type = YAML_VALUE_STR, .text = n->text, .len = n->len};
    switch (n->tag) {
    case YAML_TAG_NONE:
        if (n->plain)
            resolve_plain(n->text, ret);
        return 0;
    case YAML_TAG_STR:
    case YAML_TAG_MERGE:
    case YAML_TAG_OTHER:
        return 0;
    case YAML_TAG_BINARY:
        return decode_base64(t, n, ret, err);
    default:
        resolve_plain(n->text, ret);
        return check_tag((enum yaml_tag)n->tag, ret, err);
    }
}

/* The shortest decimal digits that read back as the same number: d.ddd x 10^exponent. */
struct decimal {
    char digits[24];
    int count, exponent;
    bool negative;
};

#define DECIMAL_LEN 40

/* With n digits behind the point. */
static bool reads_back(double v, bool single, int n, char text[DECIMAL_LEN])
{
    stw_format(text, DECIMAL_LEN, "%.*e", n, v);
    return single ? strtof(text, NULL) == (float)v : strtod(text, NULL) == v;
}

/* A text with more digits takes some microseconds, so few are tried.  Of a normal number, the first 15
 * digits (6 of a float) end in zeros if fewer are enough.  Others have equal distances: what n digits
 * can do, more can. */
static void write_shortest(double v, bool single, char text[DECIMAL_LEN])
{
    int low = 0, high = (single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG) - 1;
    bool normal = v >= (single ? (double)FLT_MIN : DBL_MIN);
    if (normal)
        low = (single ? FLT_DIG : DBL_DIG) - 1;
    while (normal && low < high && !reads_back(v, single, low, text))
        low++;
    while (!normal && low < high) {
        int middle = (low + high) / 2;
        if (reads_back(v, single, middle, text))
            high = middle;
        else
            low = middle + 1;
    }
    (void)reads_back(v, single, low, text);
}

static void to_decimal(double v, bool single, struct decimal *ret)
{
    char text[DECIMAL_LEN];

    write_shortest(fabs(v), single, text);
    ret->negative = signbit(v) != 0;
    ret->count = 0;
    char *p = text;
    for (; *p && *p != 'e'; p++)
        if (*p != '.')
            ret->digits[ret->count++] = *p;
    while (ret->count > 1 && ret->digits[ret->count - 1] == '0')
        ret->count--;
    ret->exponent = (int)strtol(p + (*p == 'e'), NULL, 10);
}

/* Writes a number without a fraction as an integer: 1.5e3 as 1500.  Go's JSON writes floats below
 * 1e21 this way, and such a number is then read as an integer. */
static bool add_integral(const struct decimal *d, struct stw_buf *out)
{
    char text[24];
    int n = 0;
    int64_t v;

    if (d->exponent < d->count - 1 || d->exponent > 18)
        return false;
    if (d->negative && d->digits[0] != '0')
        text[n++] = '-';
    for (int i = 0; i <= d->exponent; i++)
        text[n++] = i < d->count ? d->digits[i] : '0';
    text[n] = '\0';
    if (stw_parse_int(text, INT64_MIN, INT64_MAX, &v) != 0)
        return false;
    stw_buf_adds(out, text);
    return true;
}

static void add_scientific(const struct decimal *d, struct stw_buf *out)
{
    if (d->negative)
        stw_buf_addc(out, '-');
    stw_buf_add(out, d->digits, 1);
    if (d->count > 1) {
        stw_buf_addc(out, '.');
        stw_buf_add(out, d->digits + 1, (size_t)d->count - 1);
    }
    stw_buf_addf(out, "e%c%02d", d->exponent < 0 ? '-' : '+', abs(d->exponent));
}

/* With a point and no exponent; only for -7 < exponent < count. */
static void add_fixed(const struct decimal *d, struct stw_buf *out)
{
    if (d->negative)
        stw_buf_addc(out, '-');
    if (d->exponent < 0)
        stw_buf_add(out, "0.000000", (size_t)(1 - d->exponent));
    for (int i = 0; i < STW_MAX(d->count, d->exponent + 1); i++) {
        if (i == d->exponent + 1 && d->exponent >= 0)
            stw_buf_addc(out, '.');
        stw_buf_addc(out, i < d->count ? d->digits[i] : '0');
    }
}

static void add_float(double v, struct stw_buf *out)
{
    struct decimal d;
    to_decimal(v, false, &d);
    if (add_integral(&d, out))
        return;
    if (d.exponent > -7 && d.exponent < d.count - 1)
        add_fixed(&d, out);
    else
        add_scientific(&d, out);
}

/* kubectl converts it to a float, which is a different number. */
static int too_large(struct stw_error *err)
{
    return stw_fail(err, STW_ERR_INVALID,
                    "an integer is outside the 64-bit range; put quotes around it if a text is "
                    "meant");
}

/* 1e400: kubectl makes it a text in YAML, and refuses it in JSON. */
static bool is_beyond_float(const struct yaml_value *v)
{
    return isinf(v->f) && strpbrk(v->text, "0123456789");
}

static int beyond_float(struct stw_error *err)
{
    return stw_fail(err, STW_ERR_INVALID,
                    "a number is too large for 64 bits; put quotes around it if a text is meant");
}

int yaml_value_json(const struct yaml_value *v, struct stw_buf *out, struct stw_error *err)
{
    switch (v->type) {
    case YAML_VALUE_NULL:
        stw_buf_adds(out, "null");
        break;
    case YAML_VALUE_BOOL:
        stw_buf_adds(out, v->i ? "true" : "false");
        break;
    case YAML_VALUE_INT:
        stw_buf_addi(out, v->i);
        break;
    case YAML_VALUE_UINT:
        return too_large(err);
    case YAML_VALUE_FLOAT:
        if (fabs(v->f) >= 0x1p63 && v->text[strspn(v->text, "+-_0123456789")] == '\0')
            return too_large(err);
        if (is_beyond_float(v))
            return beyond_float(err);
        if (!isfinite(v->f))
            return stw_fail(err, STW_ERR_INVALID,
                            "infinity and not-a-number have no form in JSON; put quotes around it "
                            "if a text is meant");
        add_float(v->f, out);
        break;
    case YAML_VALUE_STR:
        stw_buf_json_str(out, v->text, v->len);
        break;
    }
    return 0;
}

/* A float as a key: with 32-bit precision and an exponent from 1e+06 on, as in Go. */
static void add_float_key(double v, struct stw_buf *out)
{
    struct decimal d;
    if (isnan(v)) {
        stw_buf_adds(out, ".nan");
    } else if (isinf(v) || fabs(v) > (double)FLT_MAX) {
        stw_buf_adds(out, v > 0 ? ".inf" : "-.inf");
    } else {
        to_decimal((double)(float)v, true, &d);
        if (d.exponent < -4 || d.exponent > 5)
            add_scientific(&d, out);
        else
            add_fixed(&d, out);
    }
}

int yaml_value_key(struct yaml_tree *t, const struct yaml_value *v, const char **ret,
                   struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(64);
    switch (v->type) {
    case YAML_VALUE_STR:
        *ret = v->text;
        return 0;
    case YAML_VALUE_NULL:
        return stw_fail(err, STW_ERR_INVALID, "a key must not be null");
    case YAML_VALUE_UINT:
        return stw_fail(err, STW_ERR_INVALID,
                        "a key is a number beyond 64 bits; put quotes around it");
    case YAML_VALUE_BOOL:
        stw_buf_adds(&text, v->i ? "true" : "false");
        break;
    case YAML_VALUE_INT:
        stw_buf_addi(&text, v->i);
        break;
    case YAML_VALUE_FLOAT:
        if (is_beyond_float(v))
            return beyond_float(err);
        add_float_key(v->f, &text);
        break;
    }
    char *copy = text.failed ? NULL : yaml_alloc(t, text.len + 1);
    if (!copy)
        return stw_fail_memory(err);
    memcpy(copy, stw_buf_str(&text), text.len + 1);
    *ret = copy;
    return 0;
}
