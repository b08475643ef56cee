/* SPDX-License-Identifier: Apache-2.0 */
#include "base/duration.h"

#include "base/util.h"

#include <ctype.h>

#define MAX_MS (10LL * 366 * 24 * 3600 * 1000)

/* Go accepts both micro signs: U+00B5 and U+03BC. */
static const struct {
    const char *name;
    double ms;
} units[] = {
    {"ns", 1e-6}, {"us", 1e-3}, {"\xc2\xb5s", 1e-3}, {"\xce\xbcs", 1e-3},
    {"ms", 1},    {"s", 1000},  {"m", 60000},        {"h", 3600000},
};

/* Reads "12", "1.5" or ".5".  Unlike strtod it accepts no sign and no exponent. */
static const char *parse_decimal(const char *p, double *ret)
{
    double value = 0, place = 1;
    bool digits = false;
    for (; isdigit((unsigned char)*p); p++, digits = true)
        value = value * 10 + (*p - '0');
    if (*p == '.')
        for (p++; isdigit((unsigned char)*p); p++, digits = true)
            value += (*p - '0') * (place /= 10);
    *ret = value;
    return digits ? p : NULL;
}

static const char *parse_unit(const char *p, double *ret_ms)
{
    size_t len = strcspn(p, "0123456789.");
    for (size_t i = 0; i < STW_COUNT(units); i++) {
        if (strlen(units[i].name) == len && strncmp(p, units[i].name, len) == 0) {
            *ret_ms = units[i].ms;
            return p + len;
        }
    }
    return NULL;
}

int stw_duration_parse(const char *text, int64_t *ret_ms)
{
    double total = 0;
    if (stw_streq(text, "0")) {
        *ret_ms = 0;
        return 0;
    }
    const char *p = text;
    do {
        double value, scale;
        if (!(p = parse_decimal(p, &value)) || !(p = parse_unit(p, &scale)))
            return -1;
        total += value * scale;
    } while (*p && total <= MAX_MS);
    if (*p || total > MAX_MS)
        return -1;
    *ret_ms = (int64_t)total;
    return 0;
}
