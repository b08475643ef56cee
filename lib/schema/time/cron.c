/* SPDX-License-Identifier: Apache-2.0
 *
 * The parser.  It accepts what robfig/cron v3 (used by CronJob) accepts, and also 7 for Sunday.  It
 * refuses some mistakes that robfig/cron accepts; docs/eru.md lists them. */
#include "schema/cron.h"

#include "base/util.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <strings.h>

#define BLANKS " \t\n\v\f\r"
#define HUGE_NUMBER 1000000u /* numbers are capped here, above the maximum of any field */

struct bounds {
    const char *name;
    unsigned min, max;         /* of a written value */
    unsigned star_max;         /* of '*' and of "n/step" */
    const char *const *values; /* names, from `min` on */
};

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                          "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

static const struct bounds bounds[] = {
    [STW_CRON_MINUTE] = {"minute", 0, 59, 59, NULL},
    [STW_CRON_HOUR] = {"hour", 0, 23, 23, NULL},
    [STW_CRON_DAY] = {"day of month", 1, 31, 31, NULL},
    [STW_CRON_MONTH] = {"month", 1, 12, 12, month_names},
    [STW_CRON_WEEKDAY] = {"day of week", 0, 7, 6, weekday_names},
};
static_assert(STW_COUNT(bounds) == STW_CRON_FIELDS, "one row for each field");

static const struct {
    const char *name, *fields;
} macros[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

/* A part of the text. */
struct cron_piece {
    const char *at;
    size_t len;
};

/* A parsed field. */
struct cron_field {
    enum stw_cron_field which;
    uint64_t bits;
    bool star, wide_step;
};

struct cron_range {
    unsigned low, high, step;
    bool star, single; /* written without a hyphen */
};

#define PIECE(p) (int)STW_MIN((p).len, (size_t)40), (p).at

static int report_field_error(const struct cron_field *f, struct stw_error *err, const char *fmt,
                              ...) __attribute__((format(printf, 3, 4)));

static int report_field_error(const struct cron_field *f, struct stw_error *err, const char *fmt,
                              ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)stw_vfail(err, STW_ERR_INVALID, fmt, ap);
    va_end(ap);
    return stw_error_wrap(err, "field %d (%s)", (int)f->which + 1, bounds[f->which].name);
}

/* Splits the part up to the first `end` off `rest`; false when `rest` is used up. */
static bool next_part(struct cron_piece *rest, char end, struct cron_piece *part)
{
    const char *found;
    if (!rest->at)
        return false;
    found = memchr(rest->at, end, rest->len);
    *part = (struct cron_piece){rest->at, found ? (size_t)(found - rest->at) : rest->len};
    if (!found)
        rest->at = NULL;
    else
        *rest = (struct cron_piece){found + 1, rest->len - part->len - 1};
    return true;
}

static int read_number(const struct cron_field *f, struct cron_piece p, unsigned *ret,
                       struct stw_error *err)
{
    unsigned n = 0;
    if (p.len == 0)
        return report_field_error(f, err, "a number is missing");
    for (size_t i = 0; i < p.len; i++) {
        if (!isdigit((unsigned char)p.at[i]))
            return report_field_error(f, err, "\"%.*s\" is not a number%s", PIECE(p),
                                      bounds[f->which].values ? " or a name" : "");
        n = STW_MIN(n * 10 + (unsigned)(p.at[i] - '0'), HUGE_NUMBER);
    }
    *ret = n;
    return 0;
}

static int read_value(const struct cron_field *f, struct cron_piece p, unsigned *ret,
                      struct stw_error *err)
{
    const struct bounds *b = &bounds[f->which];
    for (unsigned i = 0; b->values && b->values[i]; i++) {
        if (p.len == 3 && strncasecmp(p.at, b->values[i], 3) == 0) {
            *ret = b->min + i;
            return 0;
        }
    }
    if (read_number(f, p, ret, err) != 0)
        return -1;
    if (*ret < b->min || *ret > b->max)
        return report_field_error(f, err, "%.*s is outside %u-%u", PIECE(p), b->min, b->max);
    return 0;
}

static bool is_star(struct cron_piece p)
{
    return p.len == 1 && (*p.at == '*' || *p.at == '?');
}

/* "*", "n" or "n-m": the part before the step. */
static int read_span(const struct cron_field *f, struct cron_piece text, struct cron_range *r,
                     struct stw_error *err)
{
    struct cron_piece rest = text, low = {0}, high = {0};
    (void)next_part(&rest, '-', &low);
    r->single = !next_part(&rest, '-', &high);
    r->star = is_star(text);
    if (r->star) {
        r->low = bounds[f->which].min;
        r->high = bounds[f->which].star_max;
        return 0;
    }
    if (rest.at)
        return report_field_error(f, err, "\"%.*s\" has more than one '-'", PIECE(text));
    if (read_value(f, low, &r->low, err) != 0)
        return -1;
    r->high = r->low;
    if (!r->single && read_value(f, high, &r->high, err) != 0)
        return -1;
    if (r->low > r->high)
        return report_field_error(f, err, "range \"%.*s\" is reversed", PIECE(text));
    return 0;
}

/* "n/step" extends to the end of the field's range. */
static int read_step(const struct cron_field *f, struct cron_piece text, struct cron_range *r,
                     struct stw_error *err)
{
    unsigned max = bounds[f->which].star_max;
    if (read_number(f, text, &r->step, err) != 0)
        return -1;
    if (r->step == 0)
        return report_field_error(f, err, "a step must be at least 1");
    if (r->single && !r->star)
        r->high = STW_MAX(r->low, max);
    return 0;
}

static int read_item(struct cron_field *f, struct cron_piece item, struct stw_error *err)
{
    struct cron_range r = {.step = 1};
    struct cron_piece rest = item, span = {0}, step = {0};
    if (item.len == 0)
        return report_field_error(f, err, "an item of the list is empty");
    (void)next_part(&rest, '/', &span);
    bool stepped = next_part(&rest, '/', &step);
    if (rest.at)
        return report_field_error(f, err, "\"%.*s\" has more than one '/'", PIECE(item));
    if (read_span(f, span, &r, err) != 0 || (stepped && read_step(f, step, &r, err) != 0))
        return -1;
    f->wide_step |= r.step > 1 && r.step > r.high - r.low;
    f->star |= r.star && r.step == 1;
    for (unsigned v = r.low; v <= r.high; v += r.step)
        f->bits |= UINT64_C(1) << v;
    return 0;
}

static int read_field(struct cron_field *f, struct cron_piece text, struct stw_error *err)
{
    struct cron_piece item;
    while (next_part(&text, ',', &item))
        if (read_item(f, item, err) != 0)
            return -1;
    return 0;
}

static void keep_field(const struct cron_field *f, struct stw_cron *c)
{
    switch (f->which) {
    case STW_CRON_MINUTE:
        c->minutes = f->bits;
        break;
    case STW_CRON_HOUR:
        c->hours = (uint32_t)f->bits;
        break;
    case STW_CRON_DAY:
        c->days = (uint32_t)f->bits;
        c->any_day = f->star;
        break;
    case STW_CRON_MONTH:
        c->months = (uint16_t)f->bits;
        break;
    default: /* 7 is Sunday as well */
        c->weekdays = (uint8_t)((f->bits | f->bits >> 7) & 0x7f);
        c->any_weekday = f->star;
        break;
    }
    if (f->wide_step)
        c->wide_steps |= (uint8_t)(1u << f->which);
}

static unsigned split_fields(const char *text, struct cron_piece parts[STW_CRON_FIELDS])
{
    unsigned count = 0;
    for (const char *at = text + strspn(text, BLANKS); *at; at += strspn(at, BLANKS)) {
        size_t len = strcspn(at, BLANKS);
        if (count < STW_CRON_FIELDS)
            parts[count] = (struct cron_piece){at, len};
        count++;
        at += len;
    }
    return count;
}

/* The five fields of a macro; NULL: an unknown macro. */
static const char *expand_macro(struct cron_piece name)
{
    for (size_t i = 0; i < STW_COUNT(macros); i++)
        if (strlen(macros[i].name) == name.len && memcmp(macros[i].name, name.at, name.len) == 0)
            return macros[i].fields;
    return NULL;
}

static int check_form(const struct cron_piece *first, unsigned count, struct stw_error *err)
{
    if (count > 0 && first->len > 2 &&
        (strncmp(first->at, "TZ=", 3) == 0 || strncmp(first->at, "CRON_TZ=", 8) == 0))
        return stw_fail(err, STW_ERR_INVALID, "use spec.timeZone");
    if (count > 0 && *first->at == '@')
        return stw_fail(err, STW_ERR_INVALID,
                        "field 1: \"%.*s\" is not one of @yearly, @annually, @monthly, @weekly, "
                        "@daily, @midnight, @hourly",
                        PIECE(*first));
    if (count != STW_CRON_FIELDS)
        return stw_fail(err, STW_ERR_INVALID, "must have 5 fields, got %u", count);
    return 0;
}

int stw_cron_parse(const char *text, struct stw_cron *ret, struct stw_error *err)
{
    struct cron_piece parts[STW_CRON_FIELDS] = {0};
    struct stw_cron c = {0};
    unsigned count;
    if (strlen(text) > STW_CRON_MAX)
        return stw_fail(err, STW_ERR_INVALID, "must be at most %d bytes", STW_CRON_MAX);
    count = split_fields(text, parts);
    if (count == 1 && expand_macro(parts[0]))
        count = split_fields(expand_macro(parts[0]), parts);
    if (check_form(&parts[0], count, err) != 0)
        return -1;
    for (unsigned i = 0; i < STW_CRON_FIELDS; i++) {
        struct cron_field f = {.which = (enum stw_cron_field)i};
        if (read_field(&f, parts[i], err) != 0)
            return -1;
        keep_field(&f, &c);
    }
    *ret = c;
    return 0;
}

const char *stw_cron_field_name(enum stw_cron_field f)
{
    return bounds[f].name;
}

/* When both day fields are restricted, a match of either is enough, and every month has every
 * weekday. */
bool stw_cron_never(const struct stw_cron *c)
{
    static const unsigned longest[] = {0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (!c->any_day && !c->any_weekday)
        return false;
    for (unsigned m = 1; m <= 12; m++)
        if ((c->months >> m & 1) && (c->days & ((UINT64_C(2) << longest[m]) - 1)))
            return false;
    return true;
}

bool stw_cron_oftener(const struct stw_cron *c, unsigned minutes)
{
    const unsigned day = 24 * 60;
    unsigned last = 0;
    bool seen = false;
    for (unsigned at = 0; at < day + minutes; at++) { /* continues into the following day */
        if (!(c->hours >> (at / 60 % 24) & 1) || !(c->minutes >> (at % 60) & 1))
            continue;
        if (seen && at - last < minutes)
            return true;
        seen = true;
        last = at;
    }
    return false;
}
