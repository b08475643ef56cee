/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of a database server, in bounded time.  The system's lookup cannot be ended, and
 * with a name server that is silent it lasts as long as /etc/resolv.conf says; so it has a thread
 * of its own, which is left behind when nobody waits any more. */
#ifndef STW_CONTROLLER_SQL_RESOLVE_H
#define STW_CONTROLLER_SQL_RESOLVE_H

#include "base/error.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#define STW_ADDRESSES_MAX 8
#define STW_LOOKUPS_MAX 16 /* at the same time, those left behind included */

struct stw_addresses {
    size_t count; /* at least 1 */
    char text[STW_ADDRESSES_MAX][INET6_ADDRSTRLEN];
};

/* 0; or -1 with STW_ERR_TIMEOUT, STW_ERR_NOT_FOUND or, when no lookup could be begun,
 * STW_ERR_UNAVAILABLE.  A numeric address is its own answer. */
int stw_resolve(const char *host, uint64_t timeout_ms, struct stw_addresses *ret,
                struct stw_error *err);

/* The same by another lookup than getaddrinfo; for tests. */
typedef int stw_lookup_fn(const char *host, const char *service, const struct addrinfo *hints,
                          struct addrinfo **ret);
int stw_resolve_by(stw_lookup_fn *lookup, const char *host, uint64_t timeout_ms,
                   struct stw_addresses *ret, struct stw_error *err);

#endif
