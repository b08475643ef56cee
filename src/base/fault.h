/* SPDX-License-Identifier: Apache-2.0
 *
 * Points at which a test ends the process by SIGKILL: behind each write of a sequence that must
 * survive it.  Nothing at all, unless built with -Dfault_points=true, which no release is. */
#ifndef STW_BASE_FAULT_H
#define STW_BASE_FAULT_H

#ifdef STW_FAULT_POINTS
/* Counts, and at the one that STEWARD_FAULT_AT names (from 1) the process ends.  Each is noted by
 * number and name in the file that STEWARD_FAULT_LOG names. */
void stw_fault_point(const char *name);
#else
static inline void stw_fault_point(const char *name)
{
    (void)name;
}
#endif

#endif
