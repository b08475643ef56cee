/* SPDX-License-Identifier: Apache-2.0
 *
 * What a server says about itself and about the admin's login, for `steward doctor`, and whether it still
 * answers. */
#ifndef STW_SQL_SERVER_H
#define STW_SQL_SERVER_H

#include "sql/core/sql.h"

#define STW_SERVER_MISSING_MAX 8

struct stw_server_right {
    char what[200];      /* what the admin lacks, and what does not work without it */
    char statement[700]; /* that gives it */
};

struct stw_server_report {
    enum stw_sql_trouble trouble;
    struct stw_error err;
    char version[64];
    char tls[32];    /* "TLSv1.3"; "": the connection has none */
    bool by_role;    /* the admin has rights by a role, which are not compared */
    bool no_threads; /* MySQL and MariaDB: performance_schema is off */
    struct stw_server_right missing[STW_SERVER_MISSING_MAX];
    size_t missing_count;
};

/* Logs in and asks; nothing is changed.  Returns 0, or -1. */
int stw_server_look(struct stw_pool *p, struct stw_server_report *r);

/* Whether the server takes a login: an open connection says nothing of a password that was changed.  It has the
 * connect timeout, and `ret_trouble` is BUSY if that could not be tried.  Returns 0, or -1. */
int stw_server_ping(struct stw_pool *p, enum stw_sql_trouble *ret_trouble, struct stw_error *err);

#endif
