/* SPDX-License-Identifier: Apache-2.0
 *
 * How long upkeep of a database may take. */
#ifndef STW_KINDS_ETCDCLUSTER_MAINTENANCE_LIMITS_H
#define STW_KINDS_ETCDCLUSTER_MAINTENANCE_LIMITS_H

#include <stdint.h>

struct ec;

#define EC_DEFRAGMENT_MAX_S 1200 /* a member may take that long */
/* Bytes that the spec allows a database. */
int64_t ec_quota(const struct ec *e);
/* Bytes of the largest database of a member that answers. */
int64_t ec_largest_database(const struct ec *e);
/* Seconds that the defragmentation of a database of this size may take. */
int64_t ec_defragment_limit(int64_t bytes);
/* The same of the call of upkeep that is under way. */
int64_t ec_upkeep_limit(const struct ec *e);
/* Seconds after which the action under way counts as stuck. */
int64_t ec_action_limit(const struct ec *e);

#endif
