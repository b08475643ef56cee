/* SPDX-License-Identifier: Apache-2.0
 *
 * All marks of one cluster on a server (mark.h), to find those whose objects have ended.  Marks that say
 * that an account or a database is kept on purpose are left out. */
#ifndef STW_SQL_MARKS_H
#define STW_SQL_MARKS_H

#include "sql/core/sql.h"

#define STW_MARKS_MAX 20000u     /* that are read at once, of accounts and of databases each */
#define STW_MARKS_PAGE_ROWS 1000 /* of one answer */

struct stw_found_mark {
    bool database;     /* it is of a database, not of an account */
    const char *name;  /* of the account or the database */
    const char *host;  /* MySQL and MariaDB: of the account; else "" */
    const char *owner; /* "namespace/name" */
    const char *uid;
};
/* Borrows.  A value other than 0 ends reading and fails the call (no memory). */
typedef int stw_found_mark_fn(void *ctx, const struct stw_found_mark *m);

struct stw_marks_report {
    enum stw_sql_trouble trouble;
    struct stw_error err;
    unsigned count;
    bool more; /* the rest was not read */
};

/* Uses one connection; nothing is changed.  A server without marks has none.  Returns 0, or -1. */
int stw_marks_list(struct stw_pool *p, const char *cluster, stw_found_mark_fn *each, void *ctx,
                   struct stw_marks_report *r);

#endif
