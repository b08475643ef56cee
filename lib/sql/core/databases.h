/* SPDX-License-Identifier: Apache-2.0
 *
 * Databases that steward creates for an object.  The object's mark on the server makes a database
 * its own; one without that mark is neither changed nor dropped.
 *
 * PostgreSQL keeps the mark as the comment of the database, which only its owner and superusers can change:
 * the admin, or the account of the very object that the mark names.  MySQL and MariaDB have the table steward.databases. */
#ifndef STW_SQL_DATABASES_H
#define STW_SQL_DATABASES_H

#include "sql/core/sql.h"

/* On PostgreSQL a new database has a name with this prefix until it is marked. */
#define STW_DATABASE_NEW_PREFIX "steward_new_"

/* One database; all pointers are borrowed, lists are ended by NULL or are NULL. */
struct stw_database {
    const char *name;
    const char *const *extensions, *const *schemas; /* PostgreSQL */
    const char *character_set, *collation;          /* NULL: the server's default */
    bool owner; /* PostgreSQL: the account owns it; else the admin does */
    bool
        keep; /* for a drop: only what an interrupted creation has left is dropped, and the mark says
                  that the rest stays on purpose */
};

struct stw_databases {
    const struct stw_database *items;
    size_t count;
    const struct stw_target *target;
    const char *ns, *owner, *owner_uid, *cluster; /* as in struct stw_account */
    bool adopt;       /* one that an object of the same name in another cluster had, if the target's
                   allowAdoption has its name */
    const char *user; /* the account, which owns the schemas */
};

/* What was found and done, for each database. */
struct stw_database_report {
    enum stw_sql_trouble trouble;
    struct stw_error err;
    bool owned;     /* it has the mark of this object */
    bool immutable; /* `trouble` is about a property that cannot change */
    bool created, changed, extended, schemas_added, owner_changed, dropped;
    bool of_account; /* PostgreSQL: the account owned it before */
};

/* Creates what is missing, and extensions.  Returns 0 when all are as wanted, else -1.  After a
 * connection is lost, the rest has the same trouble.  Can be interrupted at any point and run
 * again. */
int stw_databases_create(struct stw_pool *p, const struct stw_databases *want,
                         struct stw_database_report *each);
/* Creates the schemas of those that are owned, and gives them their owner.  The account must exist. */
int stw_databases_add_schemas(struct stw_pool *p, const struct stw_databases *want,
                              struct stw_database_report *each);
/* Drops each database that has the mark of this object, with all its data.  Others, and missing
 * ones, are not an error, and not `dropped`. */
int stw_databases_drop(struct stw_pool *p, const struct stw_databases *want,
                       struct stw_database_report *each);

#endif
