/* SPDX-License-Identifier: Apache-2.0
 *
 * The field tables of DatabaseUser.  Its rules are in spec_rules.c. */
#include "kinds/databaseuser/spec.h"

#include "base/util.h"
#include "kinds/common/product.h"
#include "kinds/databaseuser/spec_priv.h"
#include "schema/core.h"
#include "schema/names.h"
#include "schema/rows.h"
#include "sql/target/target.h"

#include <stdio.h>

static const struct stw_field generate_fields[] = {
    {.name = "length",
     STW_FIELD(STW_T_INT, struct stw_databaseuser_generate, length),
     .help = "Number of characters.",
     .def = "32",
     STW_RANGE(16, STW_DATABASEUSER_LENGTH_MAX),
     .format = "int32"},
    {.name = "alphabet",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser_generate, alphabet),
     .help = "Characters of the password, each as likely as the others.  The password has at least "
             "one of each kind that is in it: capital and small letters, digits, others.",
     .def = "\"" STW_DATABASEUSER_ALPHABET "\"",
     STW_RANGE(16, 94),
     .pattern = "^[!-~]+$",
     .check = stw_databaseuser_check_alphabet,
     .cel = stw_databaseuser_cel_alphabet},
    {0},
};

static const struct stw_field password_fields[] = {
    {.name = "name",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser_password, name),
     .help = "Name of a Secret in the same namespace.  Either this or generate.",
     STW_RANGE(1, 253),
     STW_CHECK_SUBDOMAIN},
    {.name = "key",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser_password, key),
     .help = "Key in the Secret whose value is the password.",
     .def = "\"password\"",
     STW_RANGE(1, 253),
     .pattern = "^[-._a-zA-Z0-9]+$",
     .check = stw_databaseuser_check_key,
     .cel = stw_databaseuser_cel_key},
    {.name = "trimNewline",
     STW_FIELD(STW_T_BOOL, struct stw_databaseuser_password, trim_newline),
     .help = "Whether a newline at the end of the value is left out of the password.",
     .def = "false"},
    {.name = "generate",
     STW_FIELD(STW_T_OBJECT, struct stw_databaseuser_password, generate),
     .help = "Steward makes the password, in a Secret that has the name of this object and "
             "\"-password\" after it, and that is deleted with this object.",
     .fields = generate_fields},
    {0},
};

static const struct stw_field connection_key = {
    .name = "", .type = STW_T_STRING, .required = true, .values = stw_connection_names};
static const struct stw_field connection_template = {.name = "",
                                                     .type = STW_T_STRING,
                                                     .required = true,
                                                     STW_RANGE(1, 4096),
                                                     .check = stw_connection_check_template};

static const struct stw_field connection_annotation = {
    .name = "", .type = STW_T_STRING, STW_RANGE(0, 4096)};

static const struct stw_field connection_fields[] = {
    {.name = "name",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser_connection, name),
     .help = "Name of the Secret.  It must not exist yet; it is deleted with this object.",
     .required = true,
     STW_RANGE(1, 253),
     STW_CHECK_SUBDOMAIN},
    {.name = "keys",
     STW_FIELD(STW_T_MAP, struct stw_databaseuser_connection, keys),
     .help = "Keys of the Secret, each with the name of a value: host, port, user, password, "
             "database, engine, uri, jdbcUrl or ca.  Without keys and template, all values are "
             "there under their names, and ca as ca.crt.",
     STW_RANGE(0, STW_DATABASEUSER_KEYS_MAX),
     .item = &connection_key},
    {.name = "template",
     STW_FIELD(STW_T_MAP, struct stw_databaseuser_connection, template),
     .help = "More keys, each with a text in which {{host}}, {{password}} and so on are replaced.",
     STW_RANGE(0, STW_DATABASEUSER_KEYS_MAX),
     .item = &connection_template},
    {.name = "labels",
     STW_FIELD(STW_T_MAP, struct stw_databaseuser_connection, labels),
     .help = "More labels of the Secret.  Those that others set stay.",
     STW_RANGE(0, STW_DATABASEUSER_KEYS_MAX),
     .item = &stw_core_label_item},
    {.name = "annotations",
     STW_FIELD(STW_T_MAP, struct stw_databaseuser_connection, annotations),
     .help = "Annotations of the Secret.  Those that others set stay.",
     STW_RANGE(0, STW_DATABASEUSER_KEYS_MAX),
     .item = &connection_annotation},
    {0},
};

static const char *const strategies[] = {"Auto", "DualPassword", "TwinAccounts", "InPlace", NULL};

static const struct stw_field rotation_fields[] = {
    {.name = "strategy",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser_rotation, strategy),
     .help = "What happens to the old password: DualPassword leaves it valid for overlapSeconds "
             "(MySQL 8.0.14 and later).  TwinAccounts has two logins, NAME_a and NAME_b: the new "
             "password is given to the other one, which replaces it in the connection Secret, and "
             "the old one works for overlapSeconds.  InPlace ends it at once.  Auto is "
             "DualPassword on MySQL, and TwinAccounts on PostgreSQL and MariaDB.",
     .def = "\"Auto\"",
     .values = strategies},
    {.name = "overlapSeconds",
     STW_FIELD(STW_T_INT, struct stw_databaseuser_rotation, overlap_seconds),
     .help = "How long the old password stays valid, in seconds.  A newer one is set after that.",
     .def = "3600",
     STW_RANGE(1, 604800),
     .format = "int32"},
    {.name = "every",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser_rotation, every),
     .help =
         "With password.generate: steward makes another password when the last one has been set "
         "for this time, such as 30d, 12h or 90m.",
     STW_RANGE(1, 5),
     .pattern = "^[1-9][0-9]{0,3}[mhd]$",
     .check = stw_databaseuser_check_every,
     .cel = stw_databaseuser_cel_every},
    {0},
};

static const struct stw_field limit_fields[] = {
    {.name = "maxUserConnections",
     STW_FIELD(STW_T_INT, struct stw_databaseuser_limits, max_user_connections),
     .help = "Connections at the same time; 0: no limit.",
     .def = "0",
     STW_RANGE(0, INT32_MAX),
     .format = "int32"},
    {.name = "maxQueriesPerHour",
     STW_FIELD(STW_T_INT, struct stw_databaseuser_limits, max_queries_per_hour),
     .help = "Statements in an hour; 0: no limit.  MySQL and MariaDB.",
     .def = "0",
     STW_RANGE(0, INT32_MAX),
     .format = "int32"},
    {.name = "maxUpdatesPerHour",
     STW_FIELD(STW_T_INT, struct stw_databaseuser_limits, max_updates_per_hour),
     .help = "Statements that change something in an hour; 0: no limit.  MySQL and MariaDB.",
     .def = "0",
     STW_RANGE(0, INT32_MAX),
     .format = "int32"},
    {.name = "maxConnectionsPerHour",
     STW_FIELD(STW_T_INT, struct stw_databaseuser_limits, max_connections_per_hour),
     .help = "Logins in an hour; 0: no limit.  MySQL and MariaDB.",
     .def = "0",
     STW_RANGE(0, INT32_MAX),
     .format = "int32"},
    {0},
};

#define SUBJECT_ROW(word, member_, text)                                                           \
    {                                                                                              \
        .name = (word), STW_FIELD(STW_T_STRING, struct stw_databaseuser_certificate, member_),     \
        .help = (text), STW_RANGE(1, STW_DATABASEUSER_SUBJECT_MAX), .pattern = "^/[ -~]*$",        \
        .check = stw_databaseuser_check_subject, .cel = stw_databaseuser_cel_subject,              \
    }

static const struct stw_field certificate_fields[] = {
    SUBJECT_ROW("subject", subject, "Subject of the certificate, such as /O=Example/CN=app."),
    SUBJECT_ROW("issuer", issuer, "Issuer of the certificate, such as /O=Example/CN=Example CA."),
    {0},
};

static const struct stw_field host = {.name = "",
                                      .type = STW_T_STRING,
                                      .required = true,
                                      STW_RANGE(1, 255),
                                      .pattern = "^[!#-&(-\\[\\]-_a-~]+$",
                                      .check = stw_databaseuser_check_host};

static const struct stw_field grant = {
    .name = "", .type = STW_T_OBJECT, .fields = stw_databaseuser_grant_fields};

static const struct stw_field database = {
    .name = "", .type = STW_T_OBJECT, .fields = stw_databaseuser_database_fields};

static const struct stw_field setting = {
    .name = "", .type = STW_T_OBJECT, .fields = stw_databaseuser_setting_fields};

static const struct stw_field role = {.name = "",
                                      .type = STW_T_STRING,
                                      .required = true,
                                      STW_RANGE(1, 80),
                                      .pattern = STW_DATABASEUSER_NO_CONTROL,
                                      .check = stw_databaseuser_check_user};

static const char *const authentications[] = {"Password", STW_DATABASEUSER_IAM, NULL};
static const char *const grants_policies[] = {"Managed", "Exact", "Additive", NULL};
static const char *const tls_modes[] = {"None", "SSL", "X509", NULL};
static const char *const deletion_policies[] = {"Delete", "Lock", "Retain", NULL};
static const char *const adoption_policies[] = {"Fail", "Adopt", NULL};

static const struct stw_field spec_fields[] = {
    {.name = "user",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser, user),
     .help = "Name of the account; at most 32 characters on MySQL, 80 on MariaDB, 63 bytes on "
             "PostgreSQL.",
     .required = true,
     .immutable = true,
     .has_range = true,
     .rule_range = true,
     .min = 1,
     .max = 80,
     .pattern = STW_DATABASEUSER_NO_CONTROL,
     .check = stw_databaseuser_check_user,
     .cel = stw_databaseuser_cel_user},
    {.name = "authentication",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser, authentication),
     .help =
         "How the account logs in: Password, the default, or IAM, with tokens of AWS IAM and no "
         "password, where the target allows it.  Cannot change.",
     .values = authentications},
    {.name = "password",
     STW_FIELD(STW_T_OBJECT, struct stw_databaseuser, password),
     .help = "Where the password is.  Required, except with authentication IAM.",
     .type_text = "must be an object {name, key} that names a Secret; plain-text passwords are not "
                  "accepted",
     .fields = password_fields},
    {.name = "hosts",
     STW_FIELD(STW_T_LIST, struct stw_databaseuser, hosts),
     .help = "MySQL and MariaDB: hosts that the account may log in from, with % for any number of "
             "characters and _ for one.",
     .def = "[\"%\"]",
     STW_RANGE(1, STW_DATABASEUSER_HOSTS_MAX),
     .item = &host},
    {.name = "grants",
     STW_FIELD(STW_T_LIST, struct stw_databaseuser, grants),
     .help = "Rights of the account; none when absent.",
     STW_RANGE(0, STW_DATABASEUSER_GRANTS_MAX),
     .item = &grant},
    {.name = "databases",
     STW_FIELD(STW_T_LIST, struct stw_databaseuser, databases),
     .help = "Databases that are created for this account, from the target's allowCreateDatabases; "
             "none when absent.  Rights on them are in grants.",
     STW_RANGE(0, STW_DATABASEUSER_DATABASES_MAX),
     .item = &database},
    {.name = "roles",
     STW_FIELD(STW_T_LIST, struct stw_databaseuser, roles),
     .help = "Roles of the server that the account is a member of, from the target's allowedRoles; "
             "none when absent.  A login activates all of them, on MariaDB the first.",
     STW_RANGE(0, STW_DATABASEUSER_ROLES_MAX),
     .item = &role},
    {.name = "settings",
     STW_FIELD(STW_T_LIST, struct stw_databaseuser, settings),
     .help =
         "PostgreSQL: settings of the account's sessions (ALTER ROLE ... SET).  Of those in the "
         "target's allowedSettings, the account has these and no others.  When absent, they are "
         "left as they are on the server.",
     STW_RANGE(0, STW_DATABASEUSER_SETTINGS_MAX),
     .item = &setting},
    {.name = "authPlugin",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser, auth_plugin),
     .help =
         "MySQL and MariaDB: plugin of the server that checks the password of a login, from the "
         "target's allowedAuthPlugins; when absent, the server's default.",
     STW_RANGE(1, STW_DATABASEUSER_PLUGIN_MAX),
     .pattern = "^[a-z0-9_]+$",
     .check = stw_databaseuser_check_plugin,
     .cel = stw_databaseuser_cel_plugin},
    {.name = "grantsPolicy",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser, grants_policy),
     .help = "Which rights are revoked: Managed those that steward gave and that grants no longer "
             "has; Exact all that grants does not have; Additive none.",
     .def = "\"Managed\"",
     .values = grants_policies},
    {.name = "requireTLS",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser, require_tls),
     .help = "MySQL and MariaDB: what the account's connections must be: SSL encrypted, X509 also "
             "with a client certificate.",
     .def = "\"None\"",
     .values = tls_modes},
    {.name = "requireCertificate",
     STW_FIELD(STW_T_OBJECT, struct stw_databaseuser, certificate),
     .help =
         "MySQL and MariaDB, with requireTLS X509: what the client's certificate must have.  When "
         "absent, that is left as it is on the server.",
     .fields = certificate_fields},
    {.name = "limits",
     STW_FIELD(STW_T_OBJECT, struct stw_databaseuser, limits),
     .help = "Limits of the account on the server.",
     .fields = limit_fields},
    {.name = "deletionPolicy",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser, deletion_policy),
     .help = "What happens to the account when the object is deleted: Delete drops it, Lock "
             "makes logins impossible and keeps it for an object of the same name, Retain leaves "
             "it.",
     .def = "\"Delete\"",
     .values = deletion_policies},
    {.name = "adoptionPolicy",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser, adoption_policy),
     .help = "What happens to an account of this name that steward did not make: Fail leaves it as "
             "it is, Adopt takes it over.",
     .def = "\"Fail\"",
     .values = adoption_policies},
    {.name = "reassignOwnedTo",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser, reassign_owned_to),
     .help = "PostgreSQL: role that gets what the account owns when it is dropped; one of the "
             "target's allowedOwners.  When absent, a role without rights that steward creates.",
     STW_RANGE(1, 63),
     .pattern = STW_DATABASEUSER_NO_CONTROL,
     .check = stw_databaseuser_check_text,
     .cel = stw_databaseuser_cel_text},
    {.name = "validUntil",
     STW_FIELD(STW_T_STRING, struct stw_databaseuser, valid_until),
     .help = "PostgreSQL: when the password expires, as 2030-01-31T12:00:00Z, or infinity.  When "
             "absent, it is left as it is on the server.",
     STW_RANGE(1, 32),
     .pattern = "^(infinity|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)$",
     .check = stw_databaseuser_check_until,
     .cel = stw_databaseuser_cel_until},
    {.name = "connectionSecret",
     STW_FIELD(STW_T_OBJECT, struct stw_databaseuser, connection),
     .help = "A Secret that steward writes for applications: what they need to log in.",
     .fields = connection_fields},
    {.name = "rotation",
     STW_FIELD(STW_T_OBJECT, struct stw_databaseuser, rotation),
     .help = "How a new password of the Secret replaces the old one; when absent, at once.",
     .fields = rotation_fields},
    {.name = "resyncSeconds",
     STW_FIELD(STW_T_INT, struct stw_databaseuser, resync_seconds),
     .help = "How often, in seconds, the account is compared with the server at least.",
     .def = "300",
     STW_RANGE(30, 86400),
     .format = "int32"},
    {0},
};

static const struct stw_field status_text = {.name = "", .type = STW_T_STRING};

static const struct stw_field status_connection[] = {
    {.name = "name", .type = STW_T_STRING, .help = "Name of the Secret."},
    {.name = "resourceVersion", .type = STW_T_STRING, .help = "Its version as it was written."},
    {.name = "inputs", .type = STW_T_STRING, .help = "Hash of what it was made from."},
    {0},
};

static const struct stw_field status_rotation[] = {
    {.name = "publishedTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When the connection Secret got the new credential."},
    {.name = "restarted",
     .type = STW_T_INT,
     .format = "int32",
     .help = "How many workloads were restarted, because they ask for it."},
    {.name = "replacedTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Since when no pod is left that has read the older one, as far as steward can see."},
    {.name = "endTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When the older one ended."},
    {0},
};

static const struct stw_field status_database_fields[] = {
    {.name = "name", .type = STW_T_STRING, .help = "Name of the database."},
    {.name = "deletionPolicy",
     .type = STW_T_STRING,
     .help = "What happens to it when its entry is taken out of the spec."},
    {0},
};

static const struct stw_field status_database = {
    .name = "", .type = STW_T_OBJECT, .fields = status_database_fields};

static const struct stw_field status_target_fields[] = {
    {.name = "name", .type = STW_T_STRING, .help = "Value of the label target."},
    {.name = "engine", .type = STW_T_STRING, .help = "Engine of the server."},
    {.name = "state",
     .type = STW_T_STRING,
     .help = "Reachable, Unreachable, or Unknown if steward has not used it lately; as of the last "
             "check of this object."},
    {.name = "default",
     .type = STW_T_BOOL,
     .help = "Whether it is the target of objects without the label."},
    {.name = "databases",
     .type = STW_T_LIST,
     .help = "Databases that grants may name: names and patterns, the first 10.",
     .item = &status_text,
     STW_RANGE(0, STW_DATABASEUSER_PATTERNS_SHOWN)},
    {.name = "createDatabases",
     .type = STW_T_LIST,
     .help = "Databases that the spec may have created: names and patterns, the first 10.",
     .item = &status_text,
     STW_RANGE(0, STW_DATABASEUSER_PATTERNS_SHOWN)},
    {.name = "leftOut",
     .type = STW_T_INT,
     .format = "int64",
     .help = "How many names and patterns were left out of both lists."},
    {0},
};

static const struct stw_field status_target = {
    .name = "", .type = STW_T_OBJECT, .fields = status_target_fields};

static const struct stw_field status_fields[] = {
    {.name = "account",
     .type = STW_T_STRING,
     .help = "The account as it was made, such as app@%; from then on the target cannot change."},
    {.name = "hosts",
     .type = STW_T_LIST,
     .help = "Hosts that it was made for.",
     .item = &status_text},
    {.name = "target", .type = STW_T_STRING, .help = "Target that it was made on."},
    {.name = "engine", .type = STW_T_STRING, .help = "Engine of the target."},
    {.name = "serverVersion", .type = STW_T_STRING, .help = "Version that the server reports."},
    {.name = "secretResourceVersion",
     .type = STW_T_STRING,
     .help = "Version of the Secret that the password was taken from."},
    {.name = "passwordFingerprint",
     .type = STW_T_STRING,
     .help = "Keyed hash of the password; only steward has the key."},
    {.name = "lastRotationTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When the password was last set on the server."},
    {.name = "oldPasswordValidUntil",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "Until when the password before the last one is valid as well."},
    {.name = "nextRotationTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "With rotation.every: when steward makes the next password."},
    {.name = "login",
     .type = STW_T_STRING,
     .help = "With TwinAccounts: the login that the connection Secret has."},
    {.name = "previousLogin",
     .type = STW_T_STRING,
     .help = "With TwinAccounts: the login before it, as long as it works."},
    {.name = "rotation",
     .type = STW_T_INT,
     .format = "int64",
     .help = "With TwinAccounts: how often the login has changed."},
    {.name = "lastRotation",
     .type = STW_T_OBJECT,
     .help = "The steps of the latest rotation, of those that keep the older credential.",
     .fields = status_rotation},
    {.name = "currentGrants",
     .type = STW_T_LIST,
     .help = "Rights that steward gave and that hold.",
     .item = &status_text},
    {.name = "foreignGrants",
     .type = STW_T_LIST,
     .help = "Rights that others gave, the first 50.",
     .item = &status_text,
     STW_RANGE(0, 50)},
    {.name = "owned",
     .type = STW_T_BOOL,
     .help = "Whether steward made the account or took it over."},
    {.name = "ownershipMark", .type = STW_T_STRING, .help = "The mark of this on the server."},
    {.name = "lastVerifiedTime",
     .type = STW_T_STRING,
     .format = "date-time",
     .help = "When the account was last compared with the server."},
    {.name = "databases",
     .type = STW_T_LIST,
     .help = "Databases on the server that this object created.",
     .item = &status_database},
    {.name = "targets",
     .type = STW_T_LIST,
     .help = "Targets that this namespace may use, the first 20.",
     .item = &status_target,
     STW_RANGE(0, STW_DATABASEUSER_TARGETS_SHOWN)},
    {.name = "targetsLeftOut",
     .type = STW_T_INT,
     .format = "int64",
     .help = "How many targets were left out of that list."},
    {.name = "connectionSecret",
     .type = STW_T_OBJECT,
     .help = "The Secret with the connection.",
     .fields = status_connection},
    {0},
};

static const struct stw_column columns[] = {
    {.name = "User", .type = "string", .json_path = ".spec.user"},
    {.name = "Target", .type = "string", .json_path = ".status.target"},
    STW_COLUMN_READY,
    {.name = "Reason",
     .type = "string",
     .json_path = ".status.conditions[?(@.type==\"Ready\")].reason"},
    {.name = "Rotated", .type = "date", .json_path = ".status.lastRotationTime"},
    {.name = "Engine", .type = "string", .json_path = ".status.engine", .priority = 1},
    {.name = "Secret", .type = "string", .json_path = ".spec.password.name", .priority = 1},
    {.name = "Login", .type = "string", .json_path = ".status.login", .priority = 1},
    STW_COLUMN_AGE,
    {0},
};

/* --- the finalizer */

static bool has_finalizer(struct stw_json list)
{
    struct stw_json key, one;
    stw_json_foreach (list, key, one)
        if (stw_json_is(one, STW_DATABASEUSER_FINALIZER))
            return true;
    return false;
}

/* --- the label */

static struct stw_json label_of(const struct stw_admission *a)
{
    return stw_json_path(a->object, "metadata.labels." STW_DATABASEUSER_TARGET_LABEL);
}

/* The label, or what an object without it gets; NULL: no target in the configuration. */
static const struct stw_target *find_target(const struct stw_admission *a,
                                            const struct stw_targets *all)
{
    char name[STW_DATABASEUSER_TARGET_MAX + 1];
    struct stw_json label = label_of(a);
    if (!stw_json_there(label))
        return stw_databaseuser_target_without_label(all, stw_json_get(a->old_object, "status"));
    return stw_json_strcpy(label, name, sizeof(name)) == 0 ? stw_targets_find(all, name) : NULL;
}

/* Names of targets need no escapes. */
static void default_label(const struct stw_admission *a, const struct stw_target *t,
                          struct stw_defaults *d)
{
    char json[2 * STW_DATABASEUSER_TARGET_MAX];
    struct stw_json labels = stw_json_path(a->object, "metadata.labels");
    bool there = stw_json_there(labels);
    if (!t || stw_json_there(label_of(a)) || (there && stw_json_type(labels) != STW_JSON_OBJECT))
        return;
    stw_format(json, sizeof(json),
               there ? "\"%s\"" : "{\"" STW_DATABASEUSER_TARGET_LABEL "\":\"%s\"}", t->name);
    stw_default_add(
        d, there ? "/metadata/labels/" STW_DATABASEUSER_TARGET_LABEL : "/metadata/labels", json);
}

/* --- the finalizer and the label */

/* What the controller checks before it sets the finalizer: without a target or a Secret no account
 * is created, and a deletion needs no cleanup. */
static bool is_about_to_be_made(const struct stw_admission *a, struct stw_json spec)
{
    const struct stw_lookup *lookup = a->env ? a->env->lookup : NULL;
    char secret[254], key[512];
    if (a->operation != STW_CREATE || !a->ns || !lookup || !lookup->has ||
        stw_json_strcpy(stw_json_path(spec, "password.name"), secret, sizeof(secret)) != 0)
        return false;
    stw_format(key, sizeof(key), "%s/%s", a->ns, secret);
    return lookup->has(lookup->ctx, "secrets", key) == 1;
}

/* Setting the finalizer here saves a request.  The controller adds it to objects that were admitted
 * without it. */
static void default_finalizer(const struct stw_admission *a, struct stw_json spec,
                              struct stw_defaults *d)
{
    struct stw_json list = stw_json_path(a->object, "metadata.finalizers");
    bool there = stw_json_there(list);
    if ((there && stw_json_type(list) != STW_JSON_ARRAY) || has_finalizer(list) ||
        !is_about_to_be_made(a, spec))
        return;
    if (there)
        stw_default_add(d, "/metadata/finalizers/-", "\"" STW_DATABASEUSER_FINALIZER "\"");
    else
        stw_default_add(d, "/metadata/finalizers", "[\"" STW_DATABASEUSER_FINALIZER "\"]");
}

static void default_more(const struct stw_admission *a, struct stw_json spec,
                         struct stw_defaults *d)
{
    struct stw_targets *all = stw_product_targets(a->env);
    const struct stw_target *t = find_target(a, all);
    default_label(a, t, d);
    if (t)
        default_finalizer(a, spec, d);
    stw_targets_unref(all);
}

static const char *const short_names[] = {"dbu", NULL};
static const char *const spec_labels[] = {STW_DATABASEUSER_TARGET_LABEL, NULL};

const struct stw_kind stw_kind_databaseuser = {
    .group = "handsomeguy.cn",
    .version = "v1alpha1",
    .kind = "DatabaseUser",
    .plural = "databaseusers",
    .namespaced = true,
    .singular = "databaseuser",
    .short_names = short_names,
    .help = "DatabaseUser is an account on a MySQL, MariaDB or PostgreSQL server.",
    .spec = spec_fields,
    .spec_size = sizeof(struct stw_databaseuser),
    .status = status_fields,
    .cel = stw_databaseuser_cel,
    .columns = columns,
    .spec_labels = spec_labels,
    .operations = STW_CREATE | STW_UPDATE | STW_DELETE,
    .finalizer = STW_DATABASEUSER_FINALIZER,
    .finalizer_later = true,
    .default_more = default_more,
    .validate = stw_databaseuser_validate,
    .advise_delete = stw_databaseuser_advise_delete,
};
