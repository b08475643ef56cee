/* SPDX-License-Identifier: Apache-2.0
 *
 * The deletion of an object. */
#ifndef STW_KINDS_DATABASEUSER_CLEANUP_H
#define STW_KINDS_DATABASEUSER_CLEANUP_H

#include "controller/controller.h"

struct dbu;

void dbu_cleanup(struct dbu *d, struct stw_result *result);

#endif
