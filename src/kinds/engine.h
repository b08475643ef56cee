/* SPDX-License-Identifier: Apache-2.0
 *
 * What database engines differ in, as far as rules ask: lengths, reserved names, privileges.  The
 * statements are controller/sql's. */
#ifndef STW_KINDS_ENGINE_H
#define STW_KINDS_ENGINE_H

#include "kinds/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What privileges are on; bits. */
enum stw_engine_place {
    STW_ON_ALL = 1, /* every database: "*" */
    STW_ON_DATABASE = 2,
    STW_ON_SCHEMA = 4,
    STW_ON_TABLE = 8,
};

/* One that may be given to users: none by which an account could become an admin. */
struct stw_engine_privilege {
    const char *name; /* NULL ends a table */
    unsigned places;
};

struct stw_engine_info {
    const char *name;
    int64_t port;
    uint32_t user_max, name_max; /* of accounts; of databases, schemas and tables */
    bool names_in_bytes;         /* what both count; else characters */
    bool has_hosts;              /* accounts are user@host */
    bool has_schemas, has_all_databases, has_require_tls, has_hourly_limits, has_owned_objects;
    const char *const *reserved; /* account names, without case; with a '*' at the end: all that
                                    start so.  Ended by NULL */
    /* In the same form: databases and schemas of the server's own, where a right to write would
     * make an admin. */
    const char *const *reserved_databases, *const *reserved_schemas;
    const struct stw_engine_privilege *privileges;
};

const struct stw_engine_info *stw_engine_info(enum stw_engine e);
bool stw_engine_reserves(enum stw_engine e, const char *user);
bool stw_engine_reserves_database(enum stw_engine e, const char *database);
bool stw_engine_reserves_schema(enum stw_engine e, const char *schema);
/* NULL: it has no such privilege, or gives it to nobody. */
const struct stw_engine_privilege *stw_engine_privilege(enum stw_engine e, const char *name);

/* Every privilege of an engine at one of `places`, as `"A", "B"`; for messages. */
void stw_engine_list_privileges(enum stw_engine e, unsigned places, struct stw_buf *out);

#endif
