/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries to etcd, within an observation. */
#ifndef STW_KINDS_ETCDCLUSTER_ASK_H
#define STW_KINDS_ETCDCLUSTER_ASK_H

#include "etcd/etcd.h"

struct ec;
struct ec_detail;

/* Queries the health of all members in parallel. */
void ec_ask(struct ec *e);
/* Call after ec_ask: reads the member list, or, if no member returns one (false), takes the last.
 */
bool ec_ask_members(struct ec *e);
/* Call after ec_ask_members. */
void ec_ask_alarms(struct ec *e);
/* Without I/O: takes alarms of members and of removed ones.  NULL: not known, keeps the last. */
void ec_take_alarms(struct ec *e, const struct stw_etcd_alarms *alarms);
/* The member to query for the cluster: the leader if possible, never a member of another cluster.
 * NULL: none. */
const struct ec_detail *ec_contact(const struct ec *e, size_t *ret_index);
void ec_endpoint(const struct ec *e, size_t index, char url[STW_ETCD_URL_MAX],
                 struct stw_etcd_endpoint *ret);

#endif
