/* SPDX-License-Identifier: Apache-2.0
 *
 * Fault points: a test can end the process by SIGKILL after each write of a sequence that must
 * survive it.  Also the length of a day, and pod templates of another version.  Empty unless built with -Dfault_points=true, which no
 * release is. */
#ifndef STW_BASE_FAULT_H
#define STW_BASE_FAULT_H

#include <stddef.h>
#include <stdint.h>

#ifdef STW_FAULT_POINTS
/* Counts the calls and ends the process at number STEWARD_FAULT_AT (from 1).  Writes number and
 * name of each to the file STEWARD_FAULT_LOG. */
void stw_fault_point(const char *name);
/* The length of a certificate's day in seconds: STEWARD_DAY_SECONDS from the environment, so that a
 * test sees certificates expire. */
int64_t stw_day_s(void);
/* The text of STEWARD_TEMPLATE: an annotation that pod templates get, so that a test has a version
 * with other ones; or NULL. */
const char *stw_fault_template(void);
#else
static inline void stw_fault_point(const char *name)
{
    (void)name;
}
static inline int64_t stw_day_s(void)
{
    return 86400;
}
static inline const char *stw_fault_template(void)
{
    return NULL;
}
#endif

#endif
