/* SPDX-License-Identifier: Apache-2.0
 *
 * Points at which a test ends the process by SIGKILL: behind each write of a sequence that must
 * survive it; and how long a day is.  Nothing at all, unless built with -Dfault_points=true, which
 * no release is. */
#ifndef STW_BASE_FAULT_H
#define STW_BASE_FAULT_H

#include <stdint.h>

#ifdef STW_FAULT_POINTS
/* Counts, and at the one that STEWARD_FAULT_AT names (from 1) the process ends.  Each is noted by
 * number and name in the file that STEWARD_FAULT_LOG names. */
void stw_fault_point(const char *name);
/* Seconds of what certificates call a day: STEWARD_DAY_SECONDS of the environment, so that a test
 * sees them end. */
int64_t stw_day_s(void);
#else
static inline void stw_fault_point(const char *name)
{
    (void)name;
}
static inline int64_t stw_day_s(void)
{
    return 86400;
}
#endif

#endif
