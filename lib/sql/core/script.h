/* SPDX-License-Identifier: Apache-2.0
 *
 * Statements to be sent to a server.  Their text may contain verifiers and passwords: it is wiped,
 * and never shown. */
#ifndef STW_SQL_SCRIPT_H
#define STW_SQL_SCRIPT_H

#include "sql/core/sql.h"

#define STW_STATEMENT_MAX_BYTES ((size_t)4 << 20)

struct stw_statement {
    struct stw_buf text;
    char *database; /* PostgreSQL: the one it runs in; NULL: the one the admin logs in to */
    enum stw_sql_step step;
    bool must_match; /* it must find a row; if not, another client made a change */
    bool may_fail;   /* the server may refuse it */
    bool alone;      /* it cannot be part of a transaction */
    bool own;        /* it takes long: it is a transaction of its own */
    bool around;     /* it leaves out what another session has locked */
    uint8_t effect;  /* set by the writer: what has been done once the statement is */
    bool done;
};

/* Zero-initialised is empty. */
struct stw_script {
    struct stw_statement *items;
    size_t count, cap;
    bool failed;       /* out of memory */
    bool around_locks; /* for the writers of rights: statements that are `around` */
};
#define stw_autoscript __attribute__((cleanup(stw_script_done)))

void stw_script_done(struct stw_script *s);
/* A new statement to write into: never NULL, but `failed` is set when there is no memory.  Valid
 * until the next call. */
struct stw_statement *stw_script_add(struct stw_script *s, enum stw_sql_step step,
                                     const char *database);
/* Whether all statements could be written. */
bool stw_script_complete(const struct stw_script *s);

#endif
