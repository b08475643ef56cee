/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/zone.h"

#include "base/util.h"
#include "schema/time/zone_priv.h"

#define HEADER 44 /* bytes */
/* Limits of change times: from the Big Bang, where some files begin, to the year 36812. */
#define TIME_MIN (-(INT64_C(1) << 59))
#define TIME_MAX (INT64_C(1) << 40)

/* The number of changes is at most what a file of STW_ZONE_FILE_MAX can hold. */
struct stw_zone {
    uint32_t count;
    int32_t first_offset;      /* before the first change */
    int64_t *at;               /* ascending */
    int32_t *offset;           /* from at[i] on */
    struct stw_zone_rule rule; /* after the last change */
};

const struct stw_zone stw_zone_utc = {.rule = {.there = true}};

/* One header and the positions of the parts of its block (RFC 8536, 3.1 and 3.2). */
struct block {
    uint32_t isutcnt, isstdcnt, leapcnt, timecnt, typecnt, charcnt;
    const unsigned char *times, *indexes, *types, *end;
    unsigned time_size;
};

static uint32_t read_uint32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t read_time(const unsigned char *p, unsigned size)
{
    if (size == 4)
        return (int32_t)read_uint32(p);
    return (int64_t)((uint64_t)read_uint32(p) << 32 | read_uint32(p + 4));
}

static int report_bad_file(struct stw_error *err, const char *what)
{
    return stw_fail(err, STW_ERR_INVALID, "not a time zone file: %s", what);
}

static int read_block(const unsigned char *at, const unsigned char *end, unsigned time_size,
                      struct block *b, struct stw_error *err)
{
    if (end - at < HEADER || memcmp(at, "TZif", 4) != 0)
        return report_bad_file(err, "no header");
    *b = (struct block){.isutcnt = read_uint32(at + 20),
                        .isstdcnt = read_uint32(at + 24),
                        .leapcnt = read_uint32(at + 28),
                        .timecnt = read_uint32(at + 32),
                        .typecnt = read_uint32(at + 36),
                        .charcnt = read_uint32(at + 40),
                        .time_size = time_size};
    uint64_t size = (uint64_t)b->timecnt * (time_size + 1) + (uint64_t)b->typecnt * 6 + b->charcnt +
                    (uint64_t)b->leapcnt * (time_size + 4) + b->isstdcnt + b->isutcnt;
    if (size > (uint64_t)(end - at - HEADER))
        return report_bad_file(err, "cut short");
    b->times = at + HEADER;
    b->indexes = b->times + (size_t)b->timecnt * time_size;
    b->types = b->indexes + b->timecnt;
    b->end = at + HEADER + size;
    return 0;
}

static int type_offset(const struct block *b, unsigned type, int32_t *ret, struct stw_error *err)
{
    if (type >= b->typecnt)
        return report_bad_file(err, "no such local time type");
    *ret = (int32_t)read_uint32(b->types + (size_t)type * 6);
    if (*ret < -STW_ZONE_OFFSET_MAX || *ret > STW_ZONE_OFFSET_MAX)
        return report_bad_file(err, "an offset is out of range");
    return 0;
}

static int read_changes(const struct block *b, struct stw_zone *z, struct stw_error *err)
{
    if (type_offset(b, 0, &z->first_offset, err) != 0)
        return -1;
    for (uint32_t i = 0; i < b->timecnt; i++) {
        z->at[i] = read_time(b->times + (size_t)i * b->time_size, b->time_size);
        if (i > 0 && z->at[i] <= z->at[i - 1])
            return report_bad_file(err, "its times are not in order");
        if (z->at[i] < TIME_MIN || z->at[i] > TIME_MAX)
            return report_bad_file(err, "a time is out of range");
        if (type_offset(b, b->indexes[i], &z->offset[i], err) != 0)
            return -1;
    }
    z->count = b->timecnt;
    return 0;
}

/* "\n<rule>\n"; without a rule the last offset stays in force. */
static int read_footer(const unsigned char *at, const unsigned char *end, struct stw_zone *z,
                       struct stw_error *err)
{
    const unsigned char *line = at + 1;
    const unsigned char *stop = end > line ? memchr(line, '\n', (size_t)(end - line)) : NULL;
    if (!stop || *at != '\n')
        return report_bad_file(err, "no footer");
    if (stop == line)
        return 0;
    if (stw_zone_rule_parse((const char *)line, (size_t)(stop - line), &z->rule) != 0)
        return report_bad_file(err, "the rule in its footer is not valid");
    return 0;
}

static struct stw_zone *make_zone(uint32_t changes)
{
    struct stw_zone *z = calloc(1, sizeof(*z));
    if (!z)
        return NULL;
    z->at = calloc((size_t)changes + 1, sizeof(*z->at));
    z->offset = calloc((size_t)changes + 1, sizeof(*z->offset));
    if (z->at && z->offset)
        return z;
    stw_zone_destroy(z);
    return NULL;
}

static int read_zone(const struct block *b, const unsigned char *end, struct stw_zone **ret,
                     struct stw_error *err)
{
    struct stw_zone *z;
    if (b->leapcnt > 0)
        return report_bad_file(err, "it counts leap seconds");
    z = make_zone(b->timecnt);
    if (!z)
        return stw_fail_memory(err);
    if (read_changes(b, z, err) != 0 ||
        (b->time_size == 8 && read_footer(b->end, end, z, err) != 0)) {
        stw_zone_destroy(z);
        return -1;
    }
    *ret = z;
    return 0;
}

int stw_zone_parse(const void *data, size_t len, struct stw_zone **ret, struct stw_error *err)
{
    const unsigned char *at = data, *end = at + len;
    struct block b;
    if (len > STW_ZONE_FILE_MAX)
        return report_bad_file(err, "it is too large");
    if (read_block(at, end, 4, &b, err) != 0)
        return -1;
    if (at[4] >= '2' && read_block(b.end, end, 8, &b, err) != 0)
        return -1;
    return read_zone(&b, end, ret, err);
}

void stw_zone_destroy(struct stw_zone *z)
{
    if (!z)
        return;
    free(z->at);
    free(z->offset);
    free(z);
}

/* How many changes are at or before `at`. */
static uint32_t changes_until(const struct stw_zone *z, int64_t at)
{
    uint32_t low = 0, high = z->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (z->at[mid] <= at)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

void stw_zone_period(const struct stw_zone *z, int64_t at, struct stw_zone_period *ret)
{
    uint32_t i = changes_until(z, at);
    if (i == z->count && z->rule.there) {
        stw_zone_rule_period(&z->rule, at, ret);
        if (i > 0)
            ret->start = STW_MAX(ret->start, z->at[i - 1]);
        return;
    }
    ret->start = i > 0 ? z->at[i - 1] : INT64_MIN;
    ret->end = i < z->count ? z->at[i] : INT64_MAX;
    ret->offset = i > 0 ? z->offset[i - 1] : z->first_offset;
}
