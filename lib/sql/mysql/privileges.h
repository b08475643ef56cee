/* SPDX-License-Identifier: Apache-2.0
 *
 * The privileges of MySQL and MariaDB: their names, where each can be granted, and how the
 * catalogue shows them. */
#ifndef STW_SQL_MYSQL_PRIVILEGES_H
#define STW_SQL_MYSQL_PRIVILEGES_H

#include "base/util.h"
#include "sql/core/engine.h"

#define STW_MYSQL_GLOBAL 1u
#define STW_MYSQL_DATABASE 2u
#define STW_MYSQL_TABLE 4u
#define STW_ONLY_MARIADB 8u
#define STW_ONLY_MYSQL8 16u
#define STW_MYSQL_COLUMN_OF 32u
#define STW_MYSQL_ROUTINE_OF 64u

struct stw_mysql_privilege {
    const char *name;
    const char *column; /* "Select" for Select_priv; NULL: there is none */
    int bit;            /* in "access" of MariaDB's mysql.global_priv; -1: none */
    unsigned on;
};

extern const struct stw_mysql_privilege stw_mysql_privileges[]; /* the last one has no name */

bool stw_mysql_privilege_fits(const struct stw_mysql_privilege *p, const struct stw_facts *k,
                              unsigned on);
/* Notes a column of mysql.db, "Select_priv"; one that is not in the table is added to k->more.  ALL
 * on a database includes these too. */
void stw_mysql_privilege_learn(struct stw_facts *k, const struct stw_cell *column);
/* The name in the table or in `k` for one that a user writes or the catalogue shows; NULL:
 * unknown. */
const char *stw_mysql_privilege_name(const struct stw_facts *k, const char *text, size_t len);
/* Adds each privilege of a list "Select,Create View"; the caller fills in the rest of `r`. */
void stw_mysql_rights_of_list(struct stw_right r, const struct stw_cell *list,
                              const struct stw_facts *k, struct stw_rights *ret);
void stw_mysql_rights_of_bits(struct stw_right r, uint64_t bits, const struct stw_facts *k,
                              struct stw_rights *ret);
/* A database's name as grants on databases store it: a pattern, unless k->literal_names. */
void stw_mysql_pattern(struct stw_buf *out, const char *database, const struct stw_facts *k);
/* See core/engine.h: expand. */
int stw_mysql_expand(const struct stw_facts *k, const struct stw_account *a,
                     const struct stw_seen *seen, struct stw_rights *ret,
                     struct stw_error *err) STW_MUST_CHECK;

#endif
