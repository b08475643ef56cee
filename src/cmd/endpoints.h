/* SPDX-License-Identifier: Apache-2.0
 *
 * --store-endpoints, without the API server's addresses. */
#ifndef STW_CMD_ENDPOINTS_H
#define STW_CMD_ENDPOINTS_H

#include "base/process/reach.h"
#include "base/util.h"

/* `server`: the URL of the API server; its host is resolved. */
int stw_endpoints_allow(const char *list, const char *server, struct stw_reach **ret,
                        struct stw_error *err) STW_MUST_CHECK;

#endif
