/* SPDX-License-Identifier: Apache-2.0
 *
 * The Services of a cluster, and its disruption budget. */
#ifndef STW_KINDS_ETCDCLUSTER_SERVICES_H
#define STW_KINDS_ETCDCLUSTER_SERVICES_H

#include "base/resource.h"

#include <jansson.h>

struct ec;

/* New trees, or NULL if out of memory. */
json_t *ec_service_headless(const struct ec *e);
json_t *ec_service_client(const struct ec *e);
json_t *ec_budget(const struct ec *e, const struct stw_resource *r);

void ec_ensure_services(struct ec *e);
void ec_ensure_budget(struct ec *e);

#endif
