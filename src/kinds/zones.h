/* SPDX-License-Identifier: Apache-2.0
 *
 * Time zones by their IANA names.  Where the files come from is the caller's; each is read once and
 * kept, since many schedules share few zones.  Any thread. */
#ifndef STW_KINDS_ZONES_H
#define STW_KINDS_ZONES_H

#include "kinds/zone.h"

struct stw_zones;

/* Reads the TZif file of a zone, whose name has been checked; `*ret` is the caller's. */
typedef int stw_zone_read_fn(const char *name, size_t max, char **ret, size_t *ret_len,
                             struct stw_error *err);

struct stw_zones *stw_zones_create(stw_zone_read_fn *read); /* NULL: no memory */
void stw_zones_destroy(struct stw_zones *z);                /* NULL is fine */

/* NULL: there is no such zone.  What is given lives as long as `z`.  UTC is there without files. */
const struct stw_zone *stw_zones_get(struct stw_zones *z, const char *name);

/* The form of a name such as "America/Argentina/Ushuaia", and none of the files beside the zones.
 */
bool stw_zone_name_ok(const char *name);

#endif
