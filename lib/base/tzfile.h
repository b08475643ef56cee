/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of the system's time zone database. */
#ifndef STW_BASE_TZFILE_H
#define STW_BASE_TZFILE_H

#include "base/error.h"
#include "base/util.h"

#include <stddef.h>

#define STW_TZ_DIR "/usr/share/zoneinfo" /* unless $TZDIR names another, as for the C library */

/* The file of the zone `name` ("Europe/Berlin"), at most `max` bytes; the caller frees `*ret`.
 * Names that lead out of the folder are refused. */
int stw_tz_read(const char *name, size_t max, char **ret, size_t *ret_len,
                struct stw_error *err) STW_MUST_CHECK;

#endif
