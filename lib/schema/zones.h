/* SPDX-License-Identifier: Apache-2.0
 *
 * Time zones by their IANA names.  The caller provides the files; each is read once and kept, since
 * many schedules share few zones.  Thread-safe. */
#ifndef STW_SCHEMA_ZONES_H
#define STW_SCHEMA_ZONES_H

#include "base/util.h"
#include "schema/zone.h"

struct stw_zones;

/* Reads the TZif file of a zone, whose name has been checked; the caller owns `*ret`. */
typedef int stw_zone_read_fn(const char *name, size_t max, char **ret, size_t *ret_len,
                             struct stw_error *err);

struct stw_zones *stw_zones_create(stw_zone_read_fn *read) STW_MUST_CHECK; /* NULL: no memory */
void stw_zones_destroy(struct stw_zones *z);                               /* NULL is allowed */

/* NULL: there is no such zone.  The zone lives as long as `z`.  UTC needs no file. */
const struct stw_zone *stw_zones_get(struct stw_zones *z, const char *name);

/* Whether a name has a form such as "America/Argentina/Ushuaia" and is not one of the other
 * files. */
bool stw_zone_name_ok(const char *name);

#endif
