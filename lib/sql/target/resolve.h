/* SPDX-License-Identifier: Apache-2.0
 *
 * The addresses of a database server, in bounded time.  The system's lookup cannot be cancelled,
 * and with a silent name server it takes as long as /etc/resolv.conf allows.  So it has a thread of
 * its own, which is abandoned when the caller stops waiting. */
#ifndef STW_SQL_RESOLVE_H
#define STW_SQL_RESOLVE_H

#include "base/error.h"
#include "base/util.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#define STW_ADDRESSES_MAX 8
#define STW_LOOKUPS_MAX 16 /* at the same time, including abandoned ones */

struct stw_addresses {
    size_t count; /* at least 1 */
    char text[STW_ADDRESSES_MAX][INET6_ADDRSTRLEN];
};

/* 0; or -1 with STW_ERR_TIMEOUT, STW_ERR_NOT_FOUND or, when no lookup could be started,
 * STW_ERR_UNAVAILABLE.  A numeric address needs no lookup. */
int stw_resolve(const char *host, uint64_t timeout_ms, struct stw_addresses *ret,
                struct stw_error *err) STW_MUST_CHECK;

/* The same with another function than getaddrinfo; for tests. */
typedef int stw_lookup_fn(const char *host, const char *service, const struct addrinfo *hints,
                          struct addrinfo **ret);
int stw_resolve_by(stw_lookup_fn *lookup, const char *host, uint64_t timeout_ms,
                   struct stw_addresses *ret, struct stw_error *err) STW_MUST_CHECK;

#endif
