/* SPDX-License-Identifier: Apache-2.0
 *
 * What the control group of this process may use. */
#ifndef STW_BASE_CGROUP_H
#define STW_BASE_CGROUP_H

#include <stdint.h>

/* Bytes of memory, the least of all groups around the process (cgroup v1 and v2); 0: no limit. */
uint64_t stw_cgroup_memory_limit(void);

#endif
