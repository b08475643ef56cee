/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of the MySQL and MariaDB engine, for MySQL 5.7 and later and MariaDB 10.4 and
 * later.  The server itself reports which of the two it is. */
#ifndef STW_SQL_MYSQL_PRIV_H
#define STW_SQL_MYSQL_PRIV_H

#include "base/util.h"
#include "sql/core/engine.h"

/* error.c: sets the fault for an error number.  `message` is the server's. */
void stw_mysql_fault(struct stw_fault *f, unsigned number, const char *state, const char *message,
                     enum stw_sql_step step);
/* After a failed connection: says its cause; `error` is of its socket, or 0. */
void stw_mysql_name_cause(struct stw_fault *f, int error);

/* Whether the lookup of a mark failed because the place for marks is missing, or of a former version. */
bool stw_mysql_needs_place(const struct stw_fault *f, enum stw_mark_place *ret);

/* server.c */
int stw_mysql_look_server(struct stw_session *s, struct stw_server_report *r, struct stw_fault *f);

/* marks.c */
void stw_mysql_put_marks(const struct stw_facts *k, const struct stw_marks_page *page,
                         struct stw_buf *out);
bool stw_mysql_lacks_marks(const struct stw_fault *f);

/* look.c */
bool stw_mysql_has_two_passwords(const struct stw_facts *k);
int stw_mysql_check(const struct stw_facts *k, const struct stw_account *a,
                    struct stw_error *err) STW_MUST_CHECK;
int stw_mysql_look(struct stw_session *s, const struct stw_account *a, struct stw_seen *seen,
                   struct stw_fault *f);
/* The rights on what is wanted or in a mark, and whether the columns of the grants exist. */
int stw_mysql_look_rights(struct stw_session *s, const struct stw_account *a,
                          const struct stw_rights *want, struct stw_seen *seen,
                          struct stw_fault *f);

/* adopt.c */
int stw_mysql_look_adoption(struct stw_session *s, const struct stw_account *a,
                            const struct stw_seen *seen, struct stw_buf *excess,
                            struct stw_fault *f);

/* definer.c */
int stw_mysql_look_create(struct stw_session *s, const struct stw_account *a, struct stw_fault *ret,
                          struct stw_fault *f);

/* former.c */
struct stw_statement *stw_mysql_write_dropped(struct stw_script *s);
void stw_mysql_note_dropped(const struct stw_facts *k, const struct stw_account *a,
                            struct stw_script *s);
/* A condition: no other namespace has dropped an account of this name whose sessions may still be open. */
void stw_mysql_put_not_dropped(struct stw_buf *out, const struct stw_facts *k,
                               const struct stw_account *a);
int stw_mysql_look_former(struct stw_session *s, const struct stw_account *a, struct stw_fault *ret,
                          struct stw_fault *f);

/* roles.c */
int stw_mysql_look_roles(struct stw_session *s, const struct stw_account *a, stw_row_fn *row,
                         void *ctx, struct stw_fault *f);
/* The roles that a login shall activate; whether others are set now. */
bool stw_mysql_find_defaults(const struct stw_facts *k, const struct stw_account *a,
                             const struct stw_login *l, const struct stw_rights *want,
                             const struct stw_rights *take, struct stw_rights *ret);

/* sessions.c */
int stw_mysql_count_sessions(struct stw_session *s, const struct stw_account *a, unsigned *ret,
                             bool *ret_hidden, struct stw_fault *f);
int stw_mysql_end_sessions(struct stw_session *s, const struct stw_account *a,
                           struct stw_fault *f) STW_MUST_CHECK;

/* require.c */
void stw_mysql_put_requirement(const struct stw_facts *k, const struct stw_account *a,
                               const struct stw_login *l, struct stw_buf *out);
/* Sets `options_differ` and `loosened`. */
void stw_mysql_compare_requirement(const struct stw_account *a, struct stw_login *l);

/* write.c */
/* The plugin that the password of an account is set with; `l` NULL: of a new one. */
const char *stw_mysql_plugin(const struct stw_facts *k, const struct stw_account *a,
                             const struct stw_login *l);
void stw_mysql_prepare(enum stw_mark_place found, struct stw_script *s);
void stw_mysql_create(const struct stw_facts *k, const struct stw_account *a,
                      const struct stw_login *l, const struct stw_verifier *v,
                      struct stw_script *s);
void stw_mysql_alter(const struct stw_facts *k, const struct stw_account *a,
                     const struct stw_login *l, const struct stw_verifier *v, bool options,
                     struct stw_script *s);
void stw_mysql_discard(const struct stw_account *a, const struct stw_login *l,
                       struct stw_script *s);
void stw_mysql_rights(const struct stw_facts *k, const struct stw_account *a,
                      const struct stw_login *l, const struct stw_rights *want,
                      const struct stw_grants_plan *p, struct stw_script *s);
void stw_mysql_mark(const struct stw_facts *k, const struct stw_account *a,
                    const struct stw_login *l, enum stw_mark_state state, const char *made,
                    const struct stw_rights *rights, struct stw_script *s);
void stw_mysql_unmark(const struct stw_facts *k, const struct stw_account *a,
                      const struct stw_login *l, struct stw_script *s);
void stw_mysql_lock(const struct stw_facts *k, const struct stw_account *a,
                    const struct stw_login *l, struct stw_script *s);
void stw_mysql_drop(const struct stw_facts *k, const struct stw_account *a,
                    const struct stw_login *l, const struct stw_seen *seen, const char *admin,
                    struct stw_script *s);

#endif
