/* SPDX-License-Identifier: Apache-2.0
 *
 * How soon a run is repeated after trouble with a server. */
#ifndef STW_KINDS_DATABASEUSER_RETRY_H
#define STW_KINDS_DATABASEUSER_RETRY_H

#include "base/error.h"
#include "sql/core/sql.h"

/* The error code that determines the wait before a retry. */
enum stw_err dbu_error_code(enum stw_sql_trouble t);

#endif
