/* SPDX-License-Identifier: Apache-2.0
 *
 * What an engine knows about databases: its part of databases.h. */
#ifndef STW_SQL_DATABASES_PRIV_H
#define STW_SQL_DATABASES_PRIV_H

#include "sql/core/databases.h"
#include "sql/core/engine.h"

struct stw_database_seen {
    bool exists, empty;
    bool unfinished; /* PostgreSQL: a new one without its name is left of an interrupted creation */
    bool foreign;    /* PostgreSQL: its owner could have written the mark */
    bool of_account; /* PostgreSQL: its owner is the account of the object */
    enum stw_mark_place place;
    bool character_set_differs, collation_differs;
    struct stw_mark mark;
};

static inline struct stw_mark_id stw_databases_mark_id(const struct stw_databases *want)
{
    return (struct stw_mark_id){
        .cluster = want->cluster, .owner = want->owner, .uid = want->owner_uid};
}

struct stw_database_ops {
    int (*look)(struct stw_session *s, const struct stw_databases *want,
                const struct stw_database *db, struct stw_database_seen *seen, struct stw_fault *f);
    /* Creates and marks it; `seen` is of a database that does not exist. */
    void (*create)(const struct stw_facts *k, const struct stw_databases *want,
                   const struct stw_database *db, const struct stw_database_seen *seen,
                   struct stw_script *s);
    /* Removes what an interrupted or refused creation has left, without its database on MySQL. */
    void (*clear)(const struct stw_facts *k, const struct stw_databases *want,
                  const struct stw_database *db, struct stw_script *s);
    /* Marks a database that exists, and that has `seen->mark`, for this object: OWNED or KEPT. */
    void (*mark)(const struct stw_facts *k, const struct stw_databases *want,
                 const struct stw_database *db, const struct stw_database_seen *seen,
                 enum stw_mark_state state, struct stw_script *s);
    /* Changes character set and collation; NULL: they cannot change. */
    void (*alter)(const struct stw_database *db, struct stw_script *s);
    void (*drop)(const struct stw_facts *k, const struct stw_databases *want,
                 const struct stw_database *db, const struct stw_database_seen *seen,
                 struct stw_script *s);
    /* Counts the sessions of other accounts in a database; NULL: they cannot stop `drop`. */
    int (*count_sessions)(struct stw_session *s, const struct stw_database *db, unsigned *ret,
                          struct stw_fault *f);
    /* Extensions and schemas of a database of ours; NULL: the engine has none. */
    int (*extend)(struct stw_session *s, const struct stw_databases *want,
                  const struct stw_database *db, struct stw_database_report *r,
                  struct stw_fault *f);
    int (*add_schemas)(struct stw_session *s, const struct stw_databases *want,
                       const struct stw_database *db, struct stw_database_report *r,
                       struct stw_fault *f);
    const char *create_right; /* what the admin needs to create one, for messages */
};

extern const struct stw_database_ops stw_mysql_databases, stw_pg_databases;

#endif
