/* SPDX-License-Identifier: Apache-2.0
 *
 * resource.Quantity: <number><suffix>, as k8s.io/apimachinery/pkg/api/resource reads and writes it.
 */
#include "base/util.h"
#include "schema/names.h"

#define NANO 1000000000
#define DIGITS_MAX 28 /* significant digits that are kept: as many as 2^63-1 has in nano */
#define EXPONENT_MAX 100

enum format { DECIMAL_SI, DECIMAL_EXPONENT, BINARY_SI };

static const struct suffix {
    const char *text;
    enum format format;
    int exponent; /* of 10, or of 2 */
} suffixes[] = {
    {"n", DECIMAL_SI, -9}, {"u", DECIMAL_SI, -6}, {"m", DECIMAL_SI, -3}, {"", DECIMAL_SI, 0},
    {"k", DECIMAL_SI, 3},  {"M", DECIMAL_SI, 6},  {"G", DECIMAL_SI, 9},  {"T", DECIMAL_SI, 12},
    {"P", DECIMAL_SI, 15}, {"E", DECIMAL_SI, 18}, {"Ki", BINARY_SI, 10}, {"Mi", BINARY_SI, 20},
    {"Gi", BINARY_SI, 30}, {"Ti", BINARY_SI, 40}, {"Pi", BINARY_SI, 50}, {"Ei", BINARY_SI, 60},
};

struct number {
    unsigned __int128 digits; /* without the point */
    int fraction;             /* decimal places of `digits` */
    bool negative, inexact;   /* some digits were dropped */
    const char *first;        /* in the text, after sign and leading zeros */
    int whole_len, fraction_len;
};

/* Adds one digit, or, when there are too many, only its power of ten. */
static void add_digit(struct number *n, char c, int *count, bool behind_point)
{
    if (*count >= DIGITS_MAX) {
        n->inexact |= c != '0';
        n->fraction -= !behind_point;
        return;
    }
    n->digits = n->digits * 10 + (unsigned)(c - '0');
    n->fraction += behind_point;
    *count += n->digits != 0;
}

/* Reads <signedNumber>; returns the text after it, or NULL when there is no digit. */
static const char *read_number(const char *s, struct number *n)
{
    int count = 0, seen = 0;
    n->negative = *s == '-';
    s += *s == '-' || *s == '+';
    for (; *s == '0'; s++)
        seen++;
    n->first = s;
    for (; *s >= '0' && *s <= '9'; s++, seen++, n->whole_len++)
        add_digit(n, *s, &count, false);
    if (*s == '.')
        for (s++; *s >= '0' && *s <= '9'; s++, seen++, n->fraction_len++)
            add_digit(n, *s, &count, true);
    return seen ? s : NULL;
}

static int read_suffix(const char *s, struct suffix *ret)
{
    for (size_t i = 0; i < STW_COUNT(suffixes); i++)
        if (stw_streq(s, suffixes[i].text)) {
            *ret = suffixes[i];
            return 0;
        }
    int64_t exponent;
    if (*s != 'e' && *s != 'E')
        return -1;
    s += s[1] == '+' && s[2] != '-' ? 2 : 1;
    if (stw_parse_int(s, -EXPONENT_MAX, EXPONENT_MAX, &exponent) != 0)
        return -1;
    *ret = (struct suffix){"", DECIMAL_EXPONENT, (int)exponent};
    return 0;
}

/* Multiplies by 2^power.  Low digits are dropped when the result would not fit in 128 bits. */
static void multiply_by_power_of_2(struct number *n, int power)
{
    while (n->digits >> (127 - power)) {
        n->inexact |= n->digits % 10 != 0;
        n->digits /= 10;
        n->fraction--;
    }
    n->digits <<= power;
}

/* digits * 10^power, capped at 2^63-1 (in nano) and rounded away from zero. */
static stw_quantity scale_to_nano(unsigned __int128 digits, int power, bool inexact)
{
    const unsigned __int128 most = (unsigned __int128)INT64_MAX * NANO;
    for (; power > 0 && digits != 0 && digits <= most; power--)
        digits *= 10;
    for (; power < 0 && digits != 0; power++) {
        inexact |= digits % 10 != 0;
        digits /= 10;
    }
    digits += inexact;
    return (stw_quantity)STW_MIN(digits, most);
}

static int parse_quantity(const char *text, struct number *n, struct suffix *suffix,
                          stw_quantity *ret)
{
    const char *rest = read_number(text, n);
    if (!rest || read_suffix(rest, suffix) != 0)
        return -1;
    if (suffix->format == BINARY_SI)
        multiply_by_power_of_2(n, suffix->exponent);
    else
        n->fraction -= suffix->exponent;
    stw_quantity q = scale_to_nano(n->digits, 9 - n->fraction, n->inexact);
    *ret = n->negative ? -q : q;
    return 0;
}

int stw_quantity_parse(const char *s, stw_quantity *ret)
{
    struct number n = {0};
    struct suffix suffix;
    return parse_quantity(s, &n, &suffix, ret);
}

int stw_quantity_of(struct stw_json v, stw_quantity *ret)
{
    char text[64];
    size_t len;
    if (stw_json_type(v) == STW_JSON_STRING)
        return stw_json_strcpy(v, text, sizeof(text)) == 0 ? stw_quantity_parse(text, ret) : -1;
    const char *raw = stw_json_raw(v, &len);
    if ((stw_json_type(v) != STW_JSON_INT && stw_json_type(v) != STW_JSON_REAL) ||
        len >= sizeof(text))
        return -1;
    memcpy(text, raw, len);
    text[len] = '\0';
    return stw_quantity_parse(text, ret);
}

static void add_number(struct stw_buf *out, bool negative, unsigned __int128 n)
{
    char digits[48];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + (int)(n % 10));
        n /= 10;
    } while (n);
    if (negative)
        stw_buf_addc(out, '-');
    stw_buf_add(out, digits + at, sizeof(digits) - at);
}

static void add_suffix(struct stw_buf *out, enum format format, int exponent)
{
    if (format == DECIMAL_EXPONENT) {
        if (exponent)
            stw_buf_addf(out, "e%d", exponent);
        return;
    }
    for (size_t i = 0; i < STW_COUNT(suffixes); i++)
        if (suffixes[i].format == format && suffixes[i].exponent == exponent)
            stw_buf_adds(out, suffixes[i].text);
}

/* Writes with the largest power of 1000 that leaves no fraction. */
static void write_decimal(struct stw_buf *out, stw_quantity q, enum format format)
{
    unsigned __int128 n = (unsigned __int128)(q < 0 ? -q : q);
    int exponent = -9;
    while (n % 1000 == 0) {
        n /= 1000;
        exponent += 3;
    }
    add_number(out, q < 0, n);
    add_suffix(out, format, exponent);
}

static void write_binary(struct stw_buf *out, stw_quantity q)
{
    unsigned __int128 n = (unsigned __int128)(q < 0 ? -q : q) / NANO;
    int exponent = 0;
    while (n % 1024 == 0) {
        n /= 1024;
        exponent += 10;
    }
    add_number(out, q < 0, n);
    add_suffix(out, BINARY_SI, exponent);
}

/* Whether the API server's quick path keeps the text unchanged. */
static bool keeps_text(const struct number *n, const struct suffix *s)
{
    char digits[32];
    int len = n->whole_len + n->fraction_len;
    int places = s->exponent - n->fraction_len;
    if (s->format == BINARY_SI)
        return n->fraction_len == 0 && ((n->digits >> s->exponent) & 7) != 0 &&
               n->whole_len + s->exponent * 3 / 10 <= 14;
    if (len == 0 || len > 18 || n->whole_len == 0 || places < -9 || places % 3 != 0)
        return false;
    memcpy(digits, n->first, (size_t)n->whole_len);
    memcpy(digits + n->whole_len, n->first + n->whole_len + 1, (size_t)n->fraction_len);
    return len < 3 || memcmp(digits + len - 3, "000", 3) != 0;
}

int stw_quantity_canonical(const char *s, struct stw_buf *out)
{
    struct number n = {0};
    struct suffix suffix;
    stw_quantity q;
    if (parse_quantity(s, &n, &suffix, &q) != 0)
        return -1;
    bool binary = suffix.format == BINARY_SI && q % ((stw_quantity)1024 * NANO) == 0;
    if (q == 0)
        stw_buf_adds(out, "0");
    else if (keeps_text(&n, &suffix))
        stw_buf_adds(out, s);
    else if (binary) /* a value without a factor of 1024 loses the format when it is read again */
        write_binary(out, q);
    else
        write_decimal(out, q, suffix.format == DECIMAL_EXPONENT ? DECIMAL_EXPONENT : DECIMAL_SI);
    return 0;
}
