/* SPDX-License-Identifier: Apache-2.0
 *
 * How soon a run is repeated after trouble with a server. */
#include "kinds/databaseuser/status/retry.h"

#include "base/util.h"

#include <assert.h>

/* UNAVAILABLE is retried within 30 s, others within 5 min; OK: only when something changes. */
static const enum stw_err codes[] = {
    [STW_SQL_FINE] = STW_OK,
    [STW_SQL_CONNECT] = STW_ERR_UNAVAILABLE,
    [STW_SQL_CIRCUIT_OPEN] = STW_ERR_UNAVAILABLE,
    [STW_SQL_LOCKED] = STW_ERR_UNAVAILABLE,
    [STW_SQL_BUSY] = STW_ERR_UNAVAILABLE,
    [STW_SQL_AUTH] = STW_ERR_UNAVAILABLE,
    [STW_SQL_TLS] = STW_ERR_UNAVAILABLE,
    [STW_SQL_READ_ONLY] = STW_ERR_UNAVAILABLE,
    [STW_SQL_LOOKUP] = STW_ERR_INTERNAL,
    [STW_SQL_EXISTS] = STW_OK,
    [STW_SQL_NOT_OURS] = STW_OK,
    [STW_SQL_POLICY] = STW_OK,
    [STW_SQL_DENIED] = STW_OK,
    [STW_SQL_NO_OBJECT] = STW_OK,
    [STW_SQL_OWNS_OBJECTS] = STW_OK,
    [STW_SQL_UNSUPPORTED] = STW_OK,
    [STW_SQL_NO_PLUGIN] = STW_OK,
    [STW_SQL_FAILED] = STW_ERR_INTERNAL,
};
static_assert(STW_COUNT(codes) == STW_SQL_TROUBLES, "one code for each trouble");

enum stw_err dbu_error_code(enum stw_sql_trouble t)
{
    return codes[t];
}
