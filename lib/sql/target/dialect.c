/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/target/dialect.h"

#include "base/util.h"

#include <assert.h>
#include <strings.h>

#define ALL STW_ON_ALL
#define DATABASE STW_ON_DATABASE
#define SCHEMA STW_ON_SCHEMA
#define TABLE STW_ON_TABLE
#define ROUTINE STW_ON_ROUTINE
#define COLUMN STW_ON_COLUMN

/* From "Privileges Provided by MySQL", with the levels at which GRANT accepts each.  Privileges
 * that reach beyond the data (FILE, SUPER, CREATE USER, GRANT OPTION by itself, ...)  are left to
 * administrators: so are dynamic privileges that give rights, accounts or settings of the server
 * (SYSTEM_USER, SET_USER_ID, SET_ANY_DEFINER, ROLE_ADMIN, SYSTEM_VARIABLES_ADMIN ...), change what
 * is replicated, or end sessions of others. */
static const struct stw_engine_privilege mysql_privileges[] = {
    {"ALL", DATABASE | TABLE | COLUMN},
    {"ALTER", ALL | DATABASE | TABLE},
    {"ALTER ROUTINE", ALL | DATABASE},
    {"BACKUP_ADMIN", ALL, true},
    {"CREATE", ALL | DATABASE | TABLE},
    {"CREATE ROUTINE", ALL | DATABASE},
    {"CREATE TEMPORARY TABLES", ALL | DATABASE},
    {"CREATE VIEW", ALL | DATABASE | TABLE},
    {"DELETE", ALL | DATABASE | TABLE},
    {"DROP", ALL | DATABASE | TABLE},
    {"EVENT", ALL | DATABASE},
    {"EXECUTE", ALL | DATABASE | ROUTINE},
    {"FLUSH_TABLES", ALL, true},
    {"INDEX", ALL | DATABASE | TABLE},
    {"INNODB_REDO_LOG_ARCHIVE", ALL, true},
    {"INSERT", ALL | DATABASE | TABLE | COLUMN},
    {"LOCK TABLES", ALL | DATABASE},
    {"PROCESS", ALL},
    {"REFERENCES", ALL | DATABASE | TABLE | COLUMN},
    {"REPLICATION CLIENT", ALL},
    {"REPLICATION SLAVE", ALL},
    {"SELECT", ALL | DATABASE | TABLE | COLUMN},
    {"SHOW DATABASES", ALL},
    {"SHOW VIEW", ALL | DATABASE | TABLE},
    {"SHOW_ROUTINE", ALL, true},
    {"TRIGGER", ALL | DATABASE | TABLE},
    {"UPDATE", ALL | DATABASE | TABLE | COLUMN},
    {0},
};

/* As above, with MariaDB 10.11's own privileges. */
static const struct stw_engine_privilege mariadb_privileges[] = {
    {"ALL", DATABASE | TABLE | COLUMN},
    {"ALTER", ALL | DATABASE | TABLE},
    {"ALTER ROUTINE", ALL | DATABASE},
    {"BINLOG MONITOR", ALL},
    {"CREATE", ALL | DATABASE | TABLE},
    {"CREATE ROUTINE", ALL | DATABASE},
    {"CREATE TEMPORARY TABLES", ALL | DATABASE},
    {"CREATE VIEW", ALL | DATABASE | TABLE},
    {"DELETE", ALL | DATABASE | TABLE},
    {"DELETE HISTORY", ALL | DATABASE | TABLE},
    {"DROP", ALL | DATABASE | TABLE},
    {"EVENT", ALL | DATABASE},
    {"EXECUTE", ALL | DATABASE | ROUTINE},
    {"INDEX", ALL | DATABASE | TABLE},
    {"INSERT", ALL | DATABASE | TABLE | COLUMN},
    {"LOCK TABLES", ALL | DATABASE},
    {"PROCESS", ALL},
    {"REFERENCES", ALL | DATABASE | TABLE | COLUMN},
    {"REPLICATION SLAVE", ALL},
    {"SELECT", ALL | DATABASE | TABLE | COLUMN},
    {"SHOW DATABASES", ALL},
    {"SHOW VIEW", ALL | DATABASE | TABLE},
    {"SLAVE MONITOR", ALL},
    {"TRIGGER", ALL | DATABASE | TABLE},
    {"UPDATE", ALL | DATABASE | TABLE | COLUMN},
    {0},
};

/* PostgreSQL 18, "Privileges", table 5.2.  USAGE at the level of tables is for sequences, which
 * share their names; MAINTAIN is new in 17. */
static const struct stw_engine_privilege postgresql_privileges[] = {
    {"ALL", DATABASE | SCHEMA | TABLE | COLUMN | ROUTINE},
    {"CONNECT", DATABASE},
    {"CREATE", DATABASE | SCHEMA},
    {"DELETE", TABLE},
    {"EXECUTE", ROUTINE},
    {"INSERT", TABLE | COLUMN},
    {"MAINTAIN", TABLE},
    {"REFERENCES", TABLE | COLUMN},
    {"SELECT", TABLE | COLUMN},
    {"TEMPORARY", DATABASE},
    {"TRIGGER", TABLE},
    {"TRUNCATE", TABLE},
    {"UPDATE", TABLE | COLUMN},
    {"USAGE", SCHEMA | TABLE},
    {0},
};

/* Accounts of the servers themselves, and of clouds and distributions that run them. */
static const char *const mysql_reserved[] = {
    "root", "mysql.*",   "event_scheduler", "debian-sys-maint",
    "rds*", "cloudsql*", "azure_superuser", NULL};
static const char *const mariadb_reserved[] = {
    "root", "mysql",     "mysql.*",         "mariadb.sys",      "PUBLIC", "event_scheduler",
    "rds*", "cloudsql*", "azure_superuser", "debian-sys-maint", NULL};
static const char *const postgresql_reserved[] = {
    "postgres",        "pg_*",           "PUBLIC", "none", "rds*", "cloudsql*",
    "azure_superuser", "steward_heir_*", NULL};

/* mysql.user decides who is an admin, pg_authid holds every password hash, and the database
 * `steward` holds steward's marks. */
static const char *const mysql_databases[] = {
    "mysql", "sys", "performance_schema", "information_schema", "steward", NULL};
static const char *const postgresql_databases[] = {"template0", "template1", NULL};
static const char *const postgresql_schemas[] = {"pg_*", "information_schema", NULL};
static const char *const postgresql_settings[] = {
    "role", "session_authorization", "session_*", "local_preload_libraries", "shared_*", "log_*",
    NULL};
static const char *const none[] = {NULL};

/* Not in these lists: plugins for which the client is who the system, a directory or a certificate
 * says (auth_socket, unix_socket, pam, LDAP, Kerberos): such an account would not need its
 * password. */
static const char *const mysql_plugins[] = {"caching_sha2_password", "mysql_native_password",
                                            "sha256_password", NULL};
static const char *const mariadb_plugins[] = {"ed25519", "mysql_native_password", "parsec", NULL};

/* Limits of account names: mysql.user of MySQL 8.0 and MariaDB 10.11, NAMEDATALEN - 1 of
 * PostgreSQL. */
static const struct stw_engine_info engines[] = {
    [STW_ENGINE_MYSQL] = {.name = "mysql",
                          .port = 3306,
                          .user_max = 32,
                          .name_max = 64,
                          .has_hosts = true,
                          .has_all_databases = true,
                          .has_require_tls = true,
                          .has_hourly_limits = true,
                          .reserved = mysql_reserved,
                          .reserved_databases = mysql_databases,
                          .reserved_schemas = none,
                          .privileges = mysql_privileges,
                          .auth_plugins = mysql_plugins},
    [STW_ENGINE_MARIADB] = {.name = "mariadb",
                            .port = 3306,
                            .user_max = 80,
                            .name_max = 64,
                            .has_hosts = true,
                            .has_all_databases = true,
                            .has_require_tls = true,
                            .has_hourly_limits = true,
                            .reserved = mariadb_reserved,
                            .reserved_databases = mysql_databases,
                            .reserved_schemas = none,
                            .privileges = mariadb_privileges,
                            .auth_plugins = mariadb_plugins},
    [STW_ENGINE_POSTGRESQL] = {.name = "postgresql",
                               .port = 5432,
                               .user_max = 63,
                               .name_max = 63,
                               .names_in_bytes = true,
                               .has_schemas = true,
                               .has_owned_objects = true,
                               .reserved = postgresql_reserved,
                               .reserved_databases = postgresql_databases,
                               .reserved_schemas = postgresql_schemas,
                               .privileges = postgresql_privileges,
                               .auth_plugins = none},
};
static_assert(STW_COUNT(engines) == STW_ENGINES, "one row for each engine");

const struct stw_engine_info *stw_engine_info(enum stw_engine e)
{
    assert(e < STW_ENGINES);
    return &engines[e];
}

const char *stw_engine_name(enum stw_engine e)
{
    assert(e < STW_ENGINES);
    return engines[e].name;
}

static bool is_name_match(const char *pattern, const char *name)
{
    size_t len = strlen(pattern);
    if (pattern[len - 1] == '*')
        return strncasecmp(pattern, name, len - 1) == 0;
    return strcasecmp(pattern, name) == 0;
}

static bool is_in(const char *const *patterns, const char *name)
{
    for (; *patterns; patterns++)
        if (is_name_match(*patterns, name))
            return true;
    return false;
}

bool stw_engine_reserves(enum stw_engine e, const char *user)
{
    return is_in(engines[e].reserved, user);
}

/* Not pg_write_all_data, pg_maintain, pg_signal_backend, and those for files and programs: by themselves,
 * or with some extensions, they make an account an admin. */
static const char *const readers[] = {"pg_monitor",        "pg_read_all_settings",
                                      "pg_read_all_stats", "pg_stat_scan_tables",
                                      "pg_read_all_data",  NULL};

static bool has_name(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (stw_streq(*names, name))
            return true;
    return false;
}

bool stw_engine_reserves_role(const struct stw_target *t, const char *role, const char *of)
{
    bool given = t->engine == STW_ENGINE_POSTGRESQL && has_name(readers, role) &&
                 has_name(readers, of) && has_name(t->allowed_roles, role);
    return stw_engine_reserves(t->engine, of) && !given;
}

bool stw_engine_reserves_database(enum stw_engine e, const char *database)
{
    return is_in(engines[e].reserved_databases, database);
}

bool stw_engine_reserves_schema(enum stw_engine e, const char *schema)
{
    return is_in(engines[e].reserved_schemas, schema);
}

const struct stw_engine_privilege *stw_engine_privilege(enum stw_engine e, const char *name)
{
    for (const struct stw_engine_privilege *p = engines[e].privileges; p->name; p++)
        if (stw_streq(p->name, name))
            return p;
    return NULL;
}

bool stw_engine_reserves_setting(const char *name)
{
    return name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] ||
           is_in(postgresql_settings, name);
}

bool stw_engine_has_plugin(enum stw_engine e, const char *plugin)
{
    for (const char *const *p = engines[e].auth_plugins; *p; p++)
        if (stw_streq(*p, plugin))
            return true;
    return false;
}

void stw_engine_list_privileges(enum stw_engine e, unsigned places, struct stw_buf *out)
{
    const char *comma = "";
    for (const struct stw_engine_privilege *p = engines[e].privileges; p->name; p++) {
        if (!(p->places & places))
            continue;
        stw_buf_addf(out, "%s\"%s\"", comma, p->name);
        comma = ", ";
    }
}

void stw_engine_list_names(const char *const *names, struct stw_buf *out)
{
    for (size_t i = 0; names && names[i]; i++)
        stw_buf_addf(out, "%s\"%s\"", i > 0 ? ", " : "", names[i]);
}
