/* SPDX-License-Identifier: Apache-2.0
 *
 * Database servers that accounts can be created on: the list `targets` of steward's configuration
 * file, parsed and checked as a whole.  Targets belong to the administrator of the cluster, so they
 * are not a kind.  Pure: files are read and watched elsewhere.  A list never changes; a new
 * configuration makes a new one. */
#ifndef STW_SQL_TARGET_H
#define STW_SQL_TARGET_H

#include "base/buf.h"
#include "base/error.h"
#include "base/json.h"
#include "schema/finding.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stw_engine { STW_ENGINE_MYSQL, STW_ENGINE_MARIADB, STW_ENGINE_POSTGRESQL, STW_ENGINES };
const char *stw_engine_name(enum stw_engine e); /* "mysql", as in the configuration */

enum stw_tls_mode {
    STW_TLS_DISABLE,
    STW_TLS_REQUIRE,     /* encrypted; the server is not verified */
    STW_TLS_VERIFY_CA,   /* and its certificate is signed by our CA */
    STW_TLS_VERIFY_FULL, /* and the certificate is for this host; the default */
    STW_TLS_MODES
};

/* One server.  All strings live as long as the list. */
struct stw_target {
    const char *name; /* as written; case-insensitive */
    enum stw_engine engine;
    const char *host;
    int64_t port;
    const char *admin_user;
    const char *admin_database;           /* PostgreSQL: the one to log in to; default "postgres" */
    const char *secret_name, *secret_key; /* the admin's password: in a Secret in steward's
                                             namespace, or */
    const char *password_file;            /* in a file, which is read at each login; or neither,
                                             with */
    const char *certificate_file, *key_file; /* of the admin, PEM, read at each login; NULL: none */
    enum stw_tls_mode tls_mode;
    const char *tls_ca_file;               /* PEM; NULL: the system's */
    const char *const *allowed_namespaces; /* ended by NULL; NULL: all */
    const char *const
        *allowed_privileges;  /* upper case; NULL: all that users may be given, but those that
                                              must be listed */
    bool allow_all_databases; /* grants on database "*" */
    bool allow_iam;           /* accounts that log in with tokens of IAM */
    bool is_default;          /* for objects that name no target; at most one in a list */
    /* Patterns, see stw_target_allows_database; NULL-terminated.  NULL: the default, given at
     * each. */
    const char *const *allowed_databases; /* "{namespace}", "{namespace}-*", "{namespace}_*" */
    const char *const *allow_adoption;    /* accounts that may be adopted; default: none */
    const char *const *allowed_owners;    /* PostgreSQL: values of reassignOwnedTo; default: none */
    const char *const *allowed_roles;     /* roles that accounts may be members of; default: none */
    const char *const *allowed_auth_plugins; /* names; MySQL and MariaDB: default: none */
    const char *const *allow_create;         /* databases that steward may create; default: none */
    const char *const *allowed_extensions;   /* PostgreSQL, of those databases; default: none */
    const char *const *allowed_settings;     /* PostgreSQL: names; NULL: stw_target_settings */
    int64_t max_users;                       /* accounts made by steward; 0: no limit */
    int64_t max_connections;                 /* of the pool; default 4 */
    int64_t connect_timeout_seconds, statement_timeout_seconds; /* defaults 5, 10 */
    int64_t ping_seconds; /* between pings; 0: none; default 15 */
};

struct stw_targets; /* reference-counted */

/* `list`: the JSON value of `targets`; absent or null gives an empty list.  All errors go to `f`,
 * with a path as in "targets[0].port: Invalid value: ...".  Returns 0, or -1 with nothing in
 * `ret`. */
int stw_targets_parse(struct stw_json list, struct stw_targets **ret, struct stw_findings *f);
struct stw_targets *stw_targets_ref(struct stw_targets *t); /* NULL is allowed, as below */
void stw_targets_unref(struct stw_targets *t);
struct stw_targets *stw_targets_now(void *targets); /* stw_targets_ref, for stw_product.targets */
const struct stw_target *stw_targets_find(const struct stw_targets *t, const char *name);
/* The one with `default: true`, or NULL. */
const struct stw_target *stw_targets_default(const struct stw_targets *t);
size_t stw_targets_count(const struct stw_targets *t);
const struct stw_target *stw_targets_at(const struct stw_targets *t, size_t i);

/* Whether objects of namespace `ns` may have rights on the database, adopt the account, name the
 * role in reassignOwnedTo, be members of the role, have the database created, or have the extension
 * in it.  In the patterns of a target, '*' matches any
 * number of characters, and "{namespace}" is replaced with `ns`.  Case-sensitive. */
bool stw_target_allows_database(const struct stw_target *t, const char *ns, const char *database);
bool stw_target_allows_adoption(const struct stw_target *t, const char *ns, const char *user);
bool stw_target_allows_owner(const struct stw_target *t, const char *ns, const char *role);
bool stw_target_allows_role(const struct stw_target *t, const char *ns, const char *role);
bool stw_target_allows_create(const struct stw_target *t, const char *ns, const char *database);
bool stw_target_allows_extension(const struct stw_target *t, const char *ns, const char *extension);
/* Whether objects of the namespace may name the target; `ns` NULL: unknown, and only "all" has it. */
bool stw_target_accepts_namespace(const struct stw_target *t, const char *ns);
/* The patterns of its databases, also if they are the default; ended by NULL. */
const char *const *stw_target_databases(const struct stw_target *t);
/* Appends a pattern of a target with the namespace in it. */
void stw_target_put_pattern(const char *pattern, const char *ns, struct stw_buf *out);
bool stw_target_allows_plugin(const struct stw_target *t, const char *plugin);
/* Whether allowedPrivileges has it.  "GRANT OPTION" is a privilege here. */
bool stw_target_allows_privilege(const struct stw_target *t, const char *privilege);
/* What accounts of PostgreSQL may be set without allowedSettings; ended by NULL. */
extern const char *const stw_target_settings[];
bool stw_target_allows_setting(const struct stw_target *t, const char *setting);
/* Whether allowedPrivileges has it. */
bool stw_target_lists_privilege(const struct stw_target *t, const char *privilege);

/* Whether the admin has a password; if not, it has a certificate. */
bool stw_target_has_password(const struct stw_target *t);
/* Whether all settings that a login depends on are equal, from host and port to the timeouts. */
bool stw_target_same_login(const struct stw_target *a, const struct stw_target *b);

#endif
