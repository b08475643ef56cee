/* SPDX-License-Identifier: Apache-2.0
 *
 * Integers only: a binary fraction of a decimal one is a little more or less than it. */
#include "base/duration.h"

#include "base/util.h"

#include <ctype.h>

#define NS_PER_MS UINT64_C(1000000)
#define MAX_NS (UINT64_C(10) * 366 * 24 * 3600 * 1000 * NS_PER_MS)

/* Go accepts both micro signs: U+00B5 and U+03BC. */
static const struct {
    const char *name;
    uint64_t ns;
} units[] = {
    {"ns", 1},
    {"us", 1000},
    {"\xc2\xb5s", 1000},
    {"\xce\xbcs", 1000},
    {"ms", NS_PER_MS},
    {"s", 1000 * NS_PER_MS},
    {"m", 60000 * NS_PER_MS},
    {"h", 3600000 * NS_PER_MS},
};

/* "12", "1.5", ".5" or "1.": digits before and after the point.  Unlike strtod it accepts no sign
 * and no exponent. */
struct decimal {
    uint64_t whole; /* above MAX_NS: it was not read to its end */
    const char *digits;
    size_t digit_count; /* after the point */
};

static const char *parse_decimal(const char *p, struct decimal *ret)
{
    const char *begin = p;
    *ret = (struct decimal){0};
    for (; isdigit((unsigned char)*p); p++)
        if (ret->whole <= MAX_NS)
            ret->whole = ret->whole * 10 + (uint64_t)(*p - '0');
    size_t count = (size_t)(p - begin);
    if (*p == '.') {
        ret->digits = ++p;
        while (isdigit((unsigned char)*p))
            p++;
        ret->digit_count = (size_t)(p - ret->digits);
    }
    return count + ret->digit_count > 0 ? p : NULL;
}

static const char *parse_unit(const char *p, uint64_t *ret_ns)
{
    size_t len = strcspn(p, "0123456789.");
    for (size_t i = 0; i < STW_COUNT(units); i++) {
        if (strlen(units[i].name) == len && strncmp(p, units[i].name, len) == 0) {
            *ret_ns = units[i].ns;
            return p + len;
        }
    }
    return NULL;
}

/* Rounded down to a nanosecond, and exact for any number of digits: with d the first digit and x
 * what those behind it make, floor((d * unit + x) / 10) = floor((d * unit + floor(x)) / 10). */
static uint64_t fraction_ns(const struct decimal *d, uint64_t unit_ns)
{
    uint64_t ns = 0;
    for (size_t i = d->digit_count; i-- > 0;)
        ns = ((uint64_t)(d->digits[i] - '0') * unit_ns + ns) / 10;
    return ns;
}

int stw_duration_parse(const char *text, int64_t *ret_ms)
{
    uint64_t total = 0;
    if (stw_streq(text, "0")) {
        *ret_ms = 0;
        return 0;
    }
    const char *p = text;
    do {
        struct decimal value;
        uint64_t unit;
        if (!(p = parse_decimal(p, &value)) || !(p = parse_unit(p, &unit)) ||
            value.whole > MAX_NS / unit)
            return -1;
        total += value.whole * unit + fraction_ns(&value, unit);
        if (total > MAX_NS)
            return -1;
    } while (*p);
    *ret_ms = (int64_t)(total / NS_PER_MS);
    return 0;
}
