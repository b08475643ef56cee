/* SPDX-License-Identifier: Apache-2.0
 *
 * The rule in a zone's footer: a POSIX TZ string with the wider range of hours of RFC 8536. */
#ifndef STW_SCHEMA_ZONE_PRIV_H
#define STW_SCHEMA_ZONE_PRIV_H

#include "schema/zone.h"

/* A day of any year, and a time of that day. */
struct stw_zone_day {
    char form; /* 'M': weekday of a week of a month, 'J': day 1-365 without 29 February, 'N': 0-365
                */
    uint8_t month, week, weekday;
    uint16_t day;
    int32_t time; /* seconds after midnight; may be negative or beyond the day */
};

struct stw_zone_rule {
    bool there, has_dst;
    int32_t std, dst; /* offsets */
    struct stw_zone_day begin, end;
};

/* -1: not a valid rule. */
int stw_zone_rule_parse(const char *text, size_t len, struct stw_zone_rule *ret);
void stw_zone_rule_period(const struct stw_zone_rule *r, int64_t at, struct stw_zone_period *ret);

#endif
