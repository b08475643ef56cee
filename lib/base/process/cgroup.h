/* SPDX-License-Identifier: Apache-2.0
 *
 * The limits of this process's control group. */
#ifndef STW_BASE_CGROUP_H
#define STW_BASE_CGROUP_H

#include <stdint.h>

/* Memory limit in bytes: the lowest of the process's group and its ancestors (cgroup v1 and v2); 0:
 * no limit. */
uint64_t stw_cgroup_memory_limit(void);

#endif
