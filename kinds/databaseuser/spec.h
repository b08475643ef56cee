/* SPDX-License-Identifier: Apache-2.0
 *
 * DatabaseUser: an account on a database server.  The label `target` names the server. */
#ifndef STW_KINDS_DATABASEUSER_SPEC_H
#define STW_KINDS_DATABASEUSER_SPEC_H

#include "kinds/databaseuser/schema.h"
#include "kinds/databaseuser/secret/connection.h"
#include "schema/kind.h"

/* Set before the first statement is sent: by the webhook when it knows the target and the Secret,
 * otherwise by the controller.  Removed after the last statement. */
#define DBU_FINALIZER "mygroup.handsomeguy.cn/databaseuser"
#define DBU_TARGET_LABEL "target"
#define DBU_TARGET_MAX 63 /* the limit of any label value */

/* How steward makes the password; set when no Secret is named. */
struct dbu_spec_generate {
    int64_t length;
    const char *alphabet;
};

/* The Secret "<name of the object>-password" has a generated password. */
#define DBU_PASSWORD_SUFFIX "-password"

struct dbu_spec_password {
    const char *name, *key; /* a Secret in the object's namespace, a key in it */
    bool trim_newline;      /* one newline at the end (and a carriage return before it) is not part
                               of the password */
    struct dbu_spec_generate generate;
};

/* 0: no limit.  PostgreSQL supports only max_user_connections. */
struct dbu_spec_limits {
    int64_t max_user_connections, max_queries_per_hour, max_updates_per_hour,
        max_connections_per_hour;
};

/* Of the client's certificate, as the server compares them; NULL: any. */
struct dbu_spec_certificate {
    const char *subject, *issuer;
};

/* One element of `grants`, read with stw_fields_decode(dbu_grant_fields, ...). */
struct dbu_spec_grant {
    const char *database; /* "*": all */
    const char *schema;   /* PostgreSQL; NULL: the database itself */
    const char *routine;  /* instead of `table`; NULL: none; PostgreSQL, "*": all in the schema */
    const char *table;    /* NULL: the database or schema itself; "*": all tables in it */
    struct stw_json columns;    /* list of strings; absent: the whole table */
    struct stw_json privileges; /* list of strings, in upper case */
    bool grant_option;
};

/* Has the names of databases that may be dropped, separated by commas; for stw_operator_text. */
#define DBU_CONFIRM_DROP "{domain}/confirm-drop"
#define DBU_CONFIRM_DROP_TEXT "steward.dev/confirm-drop" /* where no operator is known */

/* One element of `databases`, read with dbu_database_fields. */
struct dbu_spec_database {
    const char *name;
    struct stw_json extensions, schemas;   /* lists of strings */
    const char *character_set, *collation; /* NULL: the server's default */
    const char *deletion_policy;           /* "Retain", "Delete" */
    bool owner;                            /* PostgreSQL */
};

/* Whether the object's annotation has the name of this database. */
bool dbu_confirms(struct stw_json object, const char *annotation, const char *name);

/* One element of `settings`, read with dbu_setting_fields. */
struct dbu_spec_setting {
    const char *name, *value;
    const char *database; /* NULL: all */
};

/* How a password that has changed reaches the server; absent: it replaces the old one. */
struct dbu_spec_rotation {
    const char *strategy; /* "Auto", "DualPassword", "TwinAccounts", "InPlace" */
    int64_t overlap_seconds;
    const char *every; /* "30d", "12h", "90m"; NULL: only when the Secret changes */
};
/* In seconds; 0: none. */
int64_t dbu_interval_s(const char *every);

/* The two logins of TwinAccounts are the user with these after it. */
#define DBU_TWIN_A "_a"
#define DBU_TWIN_B "_b"

struct dbu_spec {
    const char *user;
    const char *authentication; /* "Password", "IAM"; NULL: Password */
    struct dbu_spec_password password;
    struct stw_json hosts;     /* list of strings; absent: ["%"] */
    struct stw_json grants;    /* list; absent: none */
    struct stw_json databases; /* list; absent: none */
    struct stw_json roles;     /* list of strings; absent: none */
    struct stw_json settings;  /* PostgreSQL: list; absent: as they are on the server */
    const char *auth_plugin;   /* MySQL and MariaDB; NULL: the server's default */
    const char *grants_policy; /* "Managed", "Exact", "Additive" */
    const char *require_tls;   /* "None", "SSL", "X509" */
    struct dbu_spec_certificate certificate; /* absent in JSON: as it is on the server */
    struct dbu_spec_limits limits;
    const char *deletion_policy;   /* "Delete", "Lock", "Retain" */
    const char *adoption_policy;   /* "Fail", "Adopt" */
    const char *reassign_owned_to; /* PostgreSQL; NULL: a role without rights */
    int64_t resync_seconds;
    const char *valid_until; /* PostgreSQL; NULL: as it is on the server */
    struct dbu_spec_connection connection;
    struct dbu_spec_rotation rotation;
};

/* Whether the account has no password, and logs in with tokens of IAM. */
bool dbu_is_iam(const struct dbu_spec *u);

struct stw_target;
struct stw_targets;

/* The target of an object without the label: the one that has its account by `status`, or else the
 * default.  NULL: the list has no default. */
const struct stw_target *dbu_target_without_label(const struct stw_targets *all,
                                                  struct stw_json status);

/* The key of an account in the index "databaseusers.account": "<target in lower case>/<user>".
 * Target names are case-insensitive, account names case-sensitive. */
void dbu_account_key(const char *target, const char *user, struct stw_buf *out);

#endif
