/* SPDX-License-Identifier: Apache-2.0
 *
 * Rules for fields that say when: a schedule of kinds/cron.h and the time zone that it is in. */
#ifndef STW_KINDS_SCHEDULE_H
#define STW_KINDS_SCHEDULE_H

#include "kinds/kind.h"

#define STW_TIME_ZONE_MAX 64 /* bytes of a name */

/* Both pass over what the field's row refuses: nothing, too little or too much.  `what` is done by
 * the clock ("restarts"), for the warning that it is done too often. */
void stw_check_schedule(const char *path, const char *schedule, const char *what,
                        struct stw_findings *f);
void stw_check_time_zone(const struct stw_admission *a, const char *path, const char *zone,
                         struct stw_findings *f);

#endif
