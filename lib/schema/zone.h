/* SPDX-License-Identifier: Apache-2.0
 *
 * One time zone, parsed from the bytes of a TZif file (RFC 8536, versions 1 to 4); the rule in its
 * footer covers the time after its table.  Immutable, so any thread may read it. */
#ifndef STW_SCHEMA_ZONE_H
#define STW_SCHEMA_ZONE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STW_ZONE_FILE_MAX (64 * 1024) /* bytes; those of the tz database have under 4 KiB */
#define STW_ZONE_OFFSET_MAX (26 * 3600)

struct stw_zone;

/* -1: STW_ERR_INVALID, or STW_ERR_INTERNAL when out of memory. */
int stw_zone_parse(const void *data, size_t len, struct stw_zone **ret, struct stw_error *err);
void stw_zone_destroy(struct stw_zone *z);
extern const struct stw_zone stw_zone_utc;

/* A period with one offset: from `start` up to, but not including, `end`.  Seconds since the epoch;
 * INT64_MIN and INT64_MAX where it has no limit. */
struct stw_zone_period {
    int64_t start, end;
    int32_t offset; /* seconds that the zone's clock is ahead of UTC */
};
void stw_zone_period(const struct stw_zone *z, int64_t at, struct stw_zone_period *ret);

#endif
