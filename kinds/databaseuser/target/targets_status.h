/* SPDX-License-Identifier: Apache-2.0
 *
 * The targets that the namespace may use, in the status. */
#ifndef STW_KINDS_DATABASEUSER_TARGETS_STATUS_H
#define STW_KINDS_DATABASEUSER_TARGETS_STATUS_H

#include <jansson.h>

struct dbu;

void dbu_targets_add_status(const struct dbu *d, json_t *status);

#endif
