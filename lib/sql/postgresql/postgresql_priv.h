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
#include "sql/core/engine.h"

/* error.c.  `message` and `detail` are the server's; NULL: none. */
void stw_pg_fault(struct stw_fault *f, const char *state, const char *message, const char *detail,
                  enum stw_sql_step step);
/* A message or detail of the server's that names objects, on one line; NULL: none. */
void stw_pg_clean_names(const char *detail, char out[STW_MISSING_SIZE]);
/* For a failed connection: `message` as libpq returns it with PQERRORS_SQLSTATE. */
void stw_pg_connect_fault(struct stw_fault *f, const char *message);

/* look.c */
int stw_pg_check(const struct stw_facts *k, const struct stw_account *a,
                 struct stw_error *err) STW_MUST_CHECK;
int stw_pg_look(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                struct stw_fault *f);

/* rights.c */
int stw_pg_expand(const struct stw_facts *k, const struct stw_account *a,
                  const struct stw_seen *seen, struct stw_rights *ret,
                  struct stw_error *err) STW_MUST_CHECK;
int stw_pg_look_rights(struct stw_session *s, const struct stw_account *a,
                       const struct stw_rights *want, struct stw_seen *seen, struct stw_fault *f);
/* scope.c */
/* Also all sequences or functions: what a right at the level of tables is on follows from its
 * privilege. */
bool stw_pg_is_all_tables(const struct stw_right *r);
bool stw_pg_is_all_schemas(const struct stw_right *r);
/* The schemas that the right is on, as a table {oid, nspname, nspowner, nspacl, within}.  All schemas are
 * those that are neither the server's nor an extension's; `within` are as many as rights are given on, of
 * each owner the oldest ones: one's schemas do not take the place of another's. */
void stw_pg_put_schemas(struct stw_buf *out, const struct stw_right *r);
/* A condition: the schema with this oid is an extension's. */
void stw_pg_put_of_extension(struct stw_buf *out, const char *oid);
enum stw_pg_what { STW_PG_TABLES, STW_PG_SEQUENCES, STW_PG_ROUTINES, STW_PG_WHATS };
enum stw_pg_what stw_pg_what(const struct stw_right *r);

/* routines.c: EXECUTE on functions and procedures. */
#define STW_PG_STATE_WITHHELD                                                                      \
    "STW01" /* our SQLSTATE: there are only functions that are not given */
/* 'x', schema, whether all have it, whether one has it, name, option. */
void stw_pg_write_routines_look(struct stw_buf *out, const struct stw_right *r, const char *user,
                                const char *oid);
/* All that the role has: 'p', schema, name, NULL, privilege, option. */
void stw_pg_write_routines_have(struct stw_buf *out, const char *oid);
void stw_pg_write_routines(struct stw_script *s, bool give, const char *user,
                           const struct stw_right *r);

/* future.c: rights on the tables, sequences or functions that a schema will have. */
/* A condition: whether all who may create a table in the schemas of the right, or any role, give the right
 * there to the role `user` with this oid. */
void stw_pg_put_future(struct stw_buf *out, const struct stw_right *r, const char *user,
                       const char *oid, bool all);
/* pg_default_acl.defaclobjtype of these. */
const char *stw_pg_future_type(const struct stw_right *r);
/* Gives or revokes `privileges`, a list for one statement; `r` has the scope and the option. */
void stw_pg_write_future(struct stw_script *s, bool give, const char *user,
                         const struct stw_right *r, const char *privileges);

/* server.c */
int stw_pg_look_server(struct stw_session *s, struct stw_server_report *r, struct stw_fault *f);

/* marks.c */
void stw_pg_put_marks(const struct stw_facts *k, const struct stw_marks_page *page,
                      struct stw_buf *out);

/* roles.c */
/* A condition: the role with this oid is privileged, also through others. */
void stw_pg_put_privileged(struct stw_buf *out, const char *oid);
int stw_pg_look_roles(struct stw_session *s, const struct stw_account *a, stw_row_fn *row,
                      void *ctx, struct stw_fault *f);

/* adopt.c */
int stw_pg_look_adoption(struct stw_session *s, const struct stw_account *a,
                         const struct stw_seen *seen, struct stw_buf *excess, struct stw_fault *f);

/* heir.c: the new owner of what a role owns. */
#define STW_PG_HEIR_PREFIX "steward_heir_"
/* The role of a namespace that gets what its dropped accounts own. */
void stw_pg_name_heir(const char *cluster, const char *ns, char out[STW_PG_NAME_SIZE]);
/* As former versions named it, in every cluster. */
void stw_pg_name_former_heir(const char *ns, char out[STW_PG_NAME_SIZE]);
/* Before a drop: finds and checks the new owner, and fails with OWNS_OBJECTS if it cannot be one.
 * After that takes the rights of the role. */
int stw_pg_look_drop(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                     struct stw_fault *f);
void stw_pg_write_heir(const struct stw_account *a, const struct stw_seen *seen,
                       struct stw_script *s);

/* borrow.c.  In a DO block with the variables `me name := current_user` and `lent boolean`
 * a statement runs as another role, which the admin is made a member of for as long. */
/* A condition: whether the role named `me` can become the one with this oid. */
void stw_pg_put_reachable(struct stw_buf *out, const char *me, const char *oid);
/* The role to run as for what the owner may do, and for what only this role itself may do: `me` when
 * that one cannot be reached. */
void stw_pg_put_owner_role(struct stw_buf *out, const char *oid);
void stw_pg_put_grantor_role(struct stw_buf *out, const char *oid);
void stw_pg_put_become(struct stw_buf *out, const char *role);
void stw_pg_put_return(struct stw_buf *out, const char *role);
/* Parts of a DO block that leaves out what another session has locked, of a script with `around_locks`; empty in
 * others.  `declare` and `begin` come first in its sections, `end` is last. */
struct stw_pg_around {
    const char *declare, *begin, *end;
    const char
        *order; /* in array_agg(): locked objects of one owner keep no others from their turn */
};
#define STW_PG_IN_TIME "EXIT WHEN clock_timestamp() > till; " /* first in a loop over objects */
const struct stw_pg_around *stw_pg_around(const struct stw_script *s);
/* The handler of an exception block in which what `what`, an expression, names may be locked. */
void stw_pg_put_around(struct stw_buf *out, const struct stw_script *s, const char *what);
/* DO with this body. */
void stw_pg_put_do(struct stw_buf *out, const struct stw_buf *body);
/* What the first of the roles owns that goes to the second. */
enum stw_pg_reassigns { STW_PG_REASSIGNS_NOTHING, STW_PG_REASSIGNS_ALL, STW_PG_REASSIGNS_TABLES };
/* A statement that the admin runs itself, as a member of all of these roles, ended by NULL. */
void stw_pg_write_as_member(struct stw_script *s, enum stw_sql_step step, const char *database,
                            const struct stw_facts *k, const char *const *roles,
                            enum stw_pg_reassigns reassigns, const struct stw_buf *statement);

/* acl.c */
struct stw_pg_acl {
    const char *user;
    const struct stw_right *scope; /* and the option */
    size_t count;                  /* of the privileges */
    bool all_grantors;             /* takes also what others than the owner and the admin gave */
    unsigned time_ms;              /* on all schemas: when it stops, and the rest waits */
    struct stw_buf names;          /* "'SELECT','INSERT'" */
    struct stw_buf plain;          /* the statement for the whole scope */
    struct stw_buf before, after;  /* the name of one object */
};
void stw_pg_acl_done(struct stw_pg_acl *p);
/* "SCHEMA": what the scope of a right is. */
const char *stw_pg_acl_kind(const struct stw_right *scope);
void stw_pg_write_acl(struct stw_script *s, bool give, const char *database,
                      const struct stw_pg_acl *p);
/* Takes rights on databases, schemas, tables and columns from all who gave them; those of one of the
 * databases, or on databases if it is NULL. */
void stw_pg_write_sweep(struct stw_script *s, const char *database, const char *user,
                        const struct stw_rights *rights);
/* Before a drop: takes all rights on objects of all databases; fails when one remains. */
int stw_pg_shed(struct stw_session *s, const struct stw_account *a, const struct stw_seen *seen,
                struct stw_fault *f);

/* settings.c */
/* What is set for the account and for the role that it acts as, and what it asks for. */
int stw_pg_look_settings(struct stw_session *s, const struct stw_account *a, struct stw_login *l,
                         struct stw_fault *f);
void stw_pg_settings(const struct stw_account *a, const struct stw_login *l, struct stw_script *s);

/* write.c */
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
/* sessions.c */
struct stw_statement *stw_pg_write_end_of_sessions(const struct stw_facts *k,
                                                   const struct stw_account *a,
                                                   struct stw_script *s);
int stw_pg_end_sessions(struct stw_session *s, const struct stw_account *a, struct stw_fault *f);
bool stw_pg_free_logins(struct stw_session *s);
/* The statement for that, in any database. */
void stw_pg_put_free_logins(struct stw_buf *out, const char *database);
int stw_pg_unblock(struct stw_session *s, const struct stw_seen *seen, bool drop,
                   struct stw_fault *f);
/* databases.c: takes back what an owner can set that keeps the admin from working in the database. */
void stw_pg_write_open(struct stw_script *s, const struct stw_facts *k, const char *database);
/* The same file: a row function for one count.  `ctx` is an unsigned *. */
int stw_pg_read_count(void *ctx, const struct stw_cell *c, unsigned count);
int stw_pg_count_sessions(struct stw_session *s, const struct stw_account *a, unsigned *ret,
                          bool *ret_hidden, struct stw_fault *f);
void stw_pg_drop(const struct stw_facts *k, const struct stw_account *a, const struct stw_login *l,
                 const struct stw_seen *seen, const char *admin, struct stw_script *s);

#endif
