/* SPDX-License-Identifier: Apache-2.0
 *
 * The conditions that are specific to the kind. */
#ifndef STW_KINDS_ETCDCLUSTER_CONDITIONS_H
#define STW_KINDS_ETCDCLUSTER_CONDITIONS_H

#include "controller/condition.h"

#include <stdbool.h>
#include <stddef.h>

struct ec;

/* A pod has a problem that a user can fix, or the current step takes too long. */
bool ec_is_degraded(const struct ec *e, const char **ret_reason, char *text, size_t size);
void ec_conditions(const struct ec *e, struct stw_conditions *c); /* those specific to the kind */
bool ec_all_healthy(const struct ec *e);
unsigned ec_alarms(const struct ec *e);  /* of all members */
bool ec_quorum_lost(const struct ec *e); /* for at least EC_QUORUM_GRACE_S */
/* Some member runs, or ran last, another version than the wanted one. */
bool ec_upgrading(const struct ec *e);
const char *ec_tls_reason(const struct ec *e);
/* The reason of the condition Resizing, and its message; NULL: no volume is too small. */
const char *ec_resizing(const struct ec *e);
void ec_resizing_text(const struct ec *e, char *out, size_t size);

#endif
