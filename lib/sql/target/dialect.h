/* SPDX-License-Identifier: Apache-2.0
 *
 * Differences between database engines that the rules need: length limits, reserved names,
 * privileges.  The SQL statements are in lib/sql. */
#ifndef STW_SQL_DIALECT_H
#define STW_SQL_DIALECT_H

/* Logins with tokens of AWS IAM, as Amazon RDS and Aurora have them: members of this role of PostgreSQL;
 * on MySQL and MariaDB accounts with this plugin, whose text is the same for all. */
#define STW_IAM_ROLE "rds_iam"
#define STW_IAM_PLUGIN "AWSAuthenticationPlugin"
#define STW_IAM_TEXT "RDS"

#include "sql/target/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Levels at which a privilege can be granted; bits. */
enum stw_engine_place {
    STW_ON_ALL = 1, /* every database: "*" */
    STW_ON_DATABASE = 2,
    STW_ON_SCHEMA = 4,
    STW_ON_TABLE = 8,
    STW_ON_ROUTINE = 16,
    STW_ON_COLUMN = 32,
};

/* A privilege that users may be given.  None of them lets an account become an admin. */
struct stw_engine_privilege {
    const char *name; /* NULL ends a table */
    unsigned places;
    bool
        listed; /* only where allowedPrivileges of the target has it, and never with grant option */
};

struct stw_engine_info {
    const char *name;
    int64_t port;
    uint32_t user_max, name_max; /* of account names; of database, schema and table names */
    bool names_in_bytes;         /* both limits count bytes, else characters */
    bool has_hosts;              /* accounts are user@host */
    bool has_schemas, has_all_databases, has_require_tls, has_hourly_limits, has_owned_objects;
    const char *const *reserved; /* account names, case-insensitive; a '*' at the end matches any
                                    suffix.  NULL-terminated */
    /* In the same form: the server's own databases and schemas.  The right to write there would
     * make an account an admin. */
    const char *const *reserved_databases, *const *reserved_schemas;
    const struct stw_engine_privilege *privileges;
    /* Plugins that check the password of a login, and whose verifiers password/password.c can make; ended by
     * NULL. */
    const char *const *auth_plugins;
};

const struct stw_engine_info *stw_engine_info(enum stw_engine e);
bool stw_engine_reserves(enum stw_engine e, const char *user);
/* Whether an account of the target may not be a member of `role` because of `of`, which is that role or one
 * that it is a member of.  Roles are reserved like accounts, except those of PostgreSQL for monitoring
 * and reading that allowedRoles has by their full names, and what belongs to them. */
bool stw_engine_reserves_role(const struct stw_target *t, const char *role, const char *of);
bool stw_engine_reserves_database(enum stw_engine e, const char *database);
bool stw_engine_reserves_schema(enum stw_engine e, const char *schema);
/* NULL: the engine does not have the privilege, or it may not be granted. */
const struct stw_engine_privilege *stw_engine_privilege(enum stw_engine e, const char *name);

/* Whether no target may allow the setting of PostgreSQL: it changes whose rights a session has, loads
 * libraries, or hides what the session does.  Also names that are not in lower case, and those of
 * extensions, which the server does not know before they are loaded. */
bool stw_engine_reserves_setting(const char *name);

bool stw_engine_has_plugin(enum stw_engine e, const char *plugin);

/* Every privilege of an engine at one of `places`, as `"A", "B"`; for messages. */
void stw_engine_list_privileges(enum stw_engine e, unsigned places, struct stw_buf *out);
/* Appends names in the same form. */
void stw_engine_list_names(const char *const *names, struct stw_buf *out);

#endif
