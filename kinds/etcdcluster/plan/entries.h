/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries of the view, by name. */
#ifndef STW_KINDS_ETCDCLUSTER_ENTRIES_H
#define STW_KINDS_ETCDCLUSTER_ENTRIES_H

#include "kinds/etcdcluster/plan/view.h"

struct ec;
struct ec_detail;

size_t ec_index(const struct ec *e, const char *name); /* EC_MEMBERS_MAX: not there */
/* Returns the entry of that name, or adds one; NULL: there are too many. */
struct ec_member *ec_entry(struct ec *e, const char *name, struct ec_detail **ret);
void ec_fresh_name(const struct ec *e, char out[EC_NAME_MAX]);

#endif
