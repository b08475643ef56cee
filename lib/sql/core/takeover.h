/* SPDX-License-Identifier: Apache-2.0
 *
 * A new leader terminates the sessions of earlier leaders before its first statement: one of them
 * may have been suspended between its check of the lease and its statement (base/fence.h).  A
 * session has the cluster, the lease and the epoch in its name: on PostgreSQL the application_name; on MySQL and
 * MariaDB, whose sessions have no name that others see, a lock of GET_LOCK, which is released with
 * its session.  Any account may take a lock of any name, so that the name is made with a secret that only
 * the admin reads, in steward.takeover; before there is one, it is made without.
 *
 * The former version's names have no cluster, so that they can be of another cluster with the same name of the
 * Lease.  Sessions of its earlier leaders are ended as well.  A later one, after a change back to the former
 * version, ends no sessions of this version; PostgreSQL's guard stops those that began before its own. */
#ifndef STW_SQL_TAKEOVER_H
#define STW_SQL_TAKEOVER_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define STW_TAKEOVER_NAME_MAX 64
#define STW_TAKEOVER_TEXT_MAX (1u << 20)
#define STW_TAKEOVER_EPOCHS 16 /* earlier leaders to check, on MySQL and MariaDB */

/* False without an election: sessions have no name, and nothing is taken over. */
bool stw_takeover_needed(void);
/* "steward/<hash of the cluster and the Lease>/<epoch>"; false without an election.  `cluster`, here and
 * below, is that of the marks (mark.h). */
bool stw_takeover_name(const char *cluster, char out[STW_TAKEOVER_NAME_MAX]);
/* MySQL: takes the first free lock of this epoch, and returns a row with 1; finds the sessions with a lock
 * of an earlier epoch, of any name. */
void stw_takeover_mysql_lock(const char *cluster, size_t slots, bool secret, struct stw_buf *out);
void stw_takeover_mysql_former(const char *cluster, size_t slots, bool secret, struct stw_buf *out);
/* PostgreSQL: terminates the sessions of earlier epochs, and returns a row for each. */
void stw_takeover_pg_former(const char *cluster, struct stw_buf *out);
/* PostgreSQL: fails when there is a session of a later epoch; for the start of a transaction. */
void stw_takeover_pg_guard(const char *cluster, struct stw_buf *out);

#endif
