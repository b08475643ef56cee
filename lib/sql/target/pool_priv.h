/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections to one server: at most max_connections.  A caller that needs one waits for a short
 * while. */
#ifndef STW_SQL_POOL_PRIV_H
#define STW_SQL_POOL_PRIV_H

#include "base/util.h"
#include "sql/core/engine.h"

/* As stw_pool_create (core/engines.c), for this engine. */
int stw_pool_make(const struct stw_pool_config *config, const struct stw_engine_ops *ops,
                  struct stw_pool **ret, struct stw_error *err) STW_MUST_CHECK;
/* A connection to `database` (NULL: the admin's), exclusive to the caller until put back. */
struct stw_conn *stw_pool_take(struct stw_pool *p, const char *database,
                               struct stw_fault *f) STW_MUST_CHECK;
/* `lost`: it is closed.  `conn` may be NULL. */
void stw_pool_put(struct stw_pool *p, struct stw_conn *conn, bool lost);
/* Who owns a database may refuse connections to it, or have them ended: this says nothing about the
 * server.  False: the fault is the server's. */
bool stw_pool_blame_database(struct stw_fault *f, const char *database, enum stw_sql_step step);
void stw_pool_close_idle(struct stw_pool *p);
/* The idle connection by which logins can be freed, or NULL; `ret_held_up`: the last login to the admin's database
 * had no answer in time. */
struct stw_conn *stw_pool_take_standing(struct stw_pool *p, bool *ret_held_up) STW_MUST_CHECK;
/* That connection has had an answer, so the server is not down: until a login succeeds, all callers use what is
 * connected to the admin's database already, and wait for it. */
void stw_pool_hold(struct stw_pool *p);
bool stw_pool_is_held(struct stw_pool *p);
/* Logs in, and out, unless there was no idle connection by which logins can be freed.  False: `f`, which is BUSY
 * while there is no place for a connection: it waits for none. */
bool stw_pool_ping(struct stw_pool *p, struct stw_fault *f);
/* A connection to the admin's database that is none of the pool's, for a moment; the caller closes it. */
struct stw_conn *stw_pool_open_beside(struct stw_pool *p, struct stw_fault *f) STW_MUST_CHECK;
/* Another session holds a lock in this database: for some seconds others do not wait for it, too. */
void stw_pool_note_locked(struct stw_pool *p, const char *database);
/* Whether such a lock is in a database that `counts`.  When its seconds are over, one caller gets false and looks
 * again, and the others a moment later. */
typedef bool stw_pool_counts_fn(const void *ctx, const char *database);
bool stw_pool_knows_locked(struct stw_pool *p, stw_pool_counts_fn *counts, const void *ctx);
/* That caller has read all databases that `counts`. */
void stw_pool_forget_locked(struct stw_pool *p, stw_pool_counts_fn *counts, const void *ctx);
const struct stw_engine_ops *stw_pool_ops(const struct stw_pool *p);
const struct stw_target *stw_pool_target(const struct stw_pool *p);
void stw_pool_count(struct stw_pool *p, unsigned statements, bool ok);
void stw_pool_sent(struct stw_pool *p); /* calls the hook for tests */

#endif
