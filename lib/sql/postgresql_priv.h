/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the PostgreSQL engine, for PostgreSQL 10 and later.
 *
 * Roles and rights on databases belong to the whole server, and can be read from any database.
 * Rights on schemas and tables can be read only in their own database, so that a session uses one
 * connection after another.  All statements for one database are one transaction. */
#ifndef STW_SQL_POSTGRESQL_PRIV_H
#define STW_SQL_POSTGRESQL_PRIV_H

#include "base/util.h"
#include "sql/engine.h"

/* postgresql_error.c.  `message` and `detail` are the server's; NULL: none. */
void stw_pg_fault(struct stw_fault *f, const char *state, const char *message, const char *detail,
                  enum stw_sql_step step);
/* For a failed connection: `message` as libpq returns it with PQERRORS_SQLSTATE. */
void stw_pg_connect_fault(struct stw_fault *f, const char *message);

/* postgresql_look.c */
int stw_pg_check(const struct stw_facts *k, const struct stw_account *a,
                 struct stw_error *err) STW_MUST_CHECK;
int stw_pg_look(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                struct stw_fault *f);

/* postgresql_rights.c */
int stw_pg_expand(const struct stw_facts *k, const struct stw_account *a,
                  const struct stw_seen *seen, struct stw_rights *ret,
                  struct stw_error *err) STW_MUST_CHECK;
int stw_pg_look_rights(struct stw_session *s, const struct stw_account *a,
                       const struct stw_rights *want, struct stw_seen *seen, struct stw_fault *f);
bool stw_pg_is_all_tables(const struct stw_right *r);

/* postgresql_future.c: rights on the tables (or sequences, for USAGE) that a schema will have. */
/* A condition on the schema `n`: whether all who may create a table there, or any role, give the
 * right to the role `user` with this oid. */
void stw_pg_put_future(struct stw_buf *out, const struct stw_right *r, const char *user,
                       const char *oid, bool all);
/* Gives or revokes `privileges`, a list for one statement; `r` has the scope and the option. */
void stw_pg_write_future(struct stw_script *s, bool give, const char *user,
                         const struct stw_right *r, const char *privileges);

/* postgresql_roles.c */
int stw_pg_look_roles(struct stw_session *s, const struct stw_account *a, stw_row_fn *row,
                      void *ctx, struct stw_fault *f);

/* postgresql_adopt.c */
int stw_pg_look_adoption(struct stw_session *s, const struct stw_account *a,
                         const struct stw_seen *seen, struct stw_buf *excess, struct stw_fault *f);

/* postgresql_heir.c: the new owner of what a role owns.  The first function runs before a drop; it
 * finds and checks the new owner, and fails with OWNS_OBJECTS before anything is changed. */
#define STW_PG_HEIR_PREFIX "steward_heir_"
/* The role of a namespace that gets what its dropped accounts own. */
void stw_pg_name_heir(const char *ns, char out[STW_PG_NAME_SIZE]);
int stw_pg_look_heir(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                     struct stw_fault *f);
void stw_pg_write_heir(const struct stw_account *a, const struct stw_seen *seen,
                       struct stw_script *s);

/* postgresql_write.c */
void stw_pg_create(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, const struct stw_verifier *v, struct stw_script *s);
void stw_pg_alter(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                  const struct stw_verifier *v, bool options, struct stw_script *s);
void stw_pg_rights(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, const struct stw_rights *want,
                   const struct stw_grants_plan *p, struct stw_script *s);
void stw_pg_mark(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 enum stw_mark_state state, const char *made, const struct stw_rights *rights,
                 struct stw_script *s);
void stw_pg_unmark(const struct stw_facts *k, const struct stw_account *a,
                   const struct stw_login *l, struct stw_script *s);
void stw_pg_lock(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 struct stw_script *s);
int stw_pg_count_sessions(struct stw_session *s, const struct stw_account *a, unsigned *ret,
                          bool *ret_hidden, struct stw_fault *f);
void stw_pg_drop(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 const struct stw_seen *seen, const char *admin, struct stw_script *s);

#endif
