/* SPDX-License-Identifier: Apache-2.0
 *
 * A new leader terminates the sessions of earlier leaders before its first statement: one of them
 * may have been suspended between its check of the lease and its statement (base/fence.h).  A
 * session has the lease and the epoch in its name: on PostgreSQL the application_name; on MySQL and
 * MariaDB, whose sessions have no name that others see, a lock of GET_LOCK, which is released with
 * its session.  Any account may take a lock of any name, so that the name is made with a secret that only
 * the admin reads, in steward.takeover; before there is one, and by former versions, it is made without. */
#ifndef STW_SQL_TAKEOVER_H
#define STW_SQL_TAKEOVER_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define STW_TAKEOVER_NAME_MAX 64
#define STW_TAKEOVER_TEXT_MAX (128u << 10)
#define STW_TAKEOVER_EPOCHS 16 /* earlier leaders to check, on MySQL and MariaDB */

/* "steward/<hash of the Lease>/<epoch>"; false without an election: nothing is taken over. */
bool stw_takeover_name(char out[STW_TAKEOVER_NAME_MAX]);
/* MySQL: takes the first free lock of this epoch, and returns a row with 1; finds the sessions with a lock
 * of an earlier epoch, of either name. */
void stw_takeover_mysql_lock(size_t slots, bool secret, struct stw_buf *out);
void stw_takeover_mysql_former(size_t slots, bool secret, struct stw_buf *out);
/* PostgreSQL: terminates the sessions of earlier epochs, and returns a row for each. */
void stw_takeover_pg_former(struct stw_buf *out);
/* PostgreSQL: fails when there is a session of a later epoch; for the start of a transaction. */
void stw_takeover_pg_guard(struct stw_buf *out);

#endif
