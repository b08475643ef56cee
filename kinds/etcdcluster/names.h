/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of members: their hosts, URLs and labels. */
#ifndef STW_KINDS_ETCDCLUSTER_NAMES_H
#define STW_KINDS_ETCDCLUSTER_NAMES_H

#include "etcd/etcd.h"

#include <jansson.h>

struct ec;

void ec_host(const struct ec *e, const char *member, char out[STW_ETCD_URL_MAX]);
void ec_peer_url(const struct ec *e, const char *member, char out[STW_ETCD_URL_MAX]);
void ec_client_url(const struct ec *e, const char *member, char out[STW_ETCD_URL_MAX]);
/* New trees, or NULL if out of memory. */
json_t *ec_labels(const struct ec *e, const char *member);
json_t *ec_selector(const struct ec *e);

#endif
