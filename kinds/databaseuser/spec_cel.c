/* SPDX-License-Identifier: Apache-2.0
 *
 * The rules of a DatabaseUser in CEL.  Each stands for a C rule in spec_rules.c or spec_grants.c,
 * and has its message.  Rules that depend on the target are not in them: CEL sees neither labels
 * nor the configuration of steward. */
#include "kinds/databaseuser/spec_priv.h"

#include "schema/core.h"

/* --- values */

#define NO_CONTROL "must not hold control characters"

const struct stw_cel stw_databaseuser_cel_text[] = {
    {"!self.matches(r'[\\x00-\\x1f\\x7f-\\x{9f}]')", NO_CONTROL}, {0}};

const struct stw_cel stw_databaseuser_cel_user[] = {
    {"!self.matches(r'[\\x00-\\x1f\\x7f-\\x{9f}]')", NO_CONTROL},
    {"!self.startsWith(' ') && !self.endsWith(' ')", "must not start or end with a blank"},
    {0},
};

const struct stw_cel stw_databaseuser_cel_key[] = {
    {"self.matches(r'^[-._a-zA-Z0-9]*$')", "must consist of letters, digits, '-', '_' and '.'"},
    {0},
};

/* 29 February of each year is in it. */
const struct stw_cel stw_databaseuser_cel_until[] = {
    {"self == 'infinity' || self.matches(r'^[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|"
     "(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|[12][0-9]))T"
     "([01][0-9]|2[0-4]):[0-5][0-9]:[0-6][0-9]Z$')",
     "must be a time like 2030-01-31T12:00:00Z, or infinity"},
    {0},
};

const struct stw_cel stw_databaseuser_cel_alphabet[] = {
    {"self.matches(r'^[!-~]*$') && self.split('').all(c, self.indexOf(c) == self.lastIndexOf(c))",
     "must consist of different visible ASCII characters"},
    {0},
};

const struct stw_cel stw_databaseuser_cel_plugin[] = {
    {"self.matches(r'^[a-z0-9_]*$')", "must consist of small letters, digits and '_'"},
    {0},
};

const struct stw_cel stw_databaseuser_cel_subject[] = {
    {"self.matches(r'^/[ -~]*$')", SUBJECT_FORM},
    {0},
};

const struct stw_cel stw_databaseuser_cel_setting[] = {
    {"self.matches(r'^[a-z0-9_]*$')", "must consist of small letters, digits and '_'"},
    {0},
};

const struct stw_cel stw_databaseuser_cel_every[] = {
    {"self.matches(r'^[1-9][0-9]{0,3}[mhd]$')",
     "must be 1 to 9999 minutes, hours or days, such as 90m, 12h or 30d"},
    {0},
};

/* --- rules */

#define HAS_CONNECTION(object) "has(" object ".connectionSecret)"
#define HAS_NAME(object) "(" HAS_CONNECTION(object) " && has(" object ".connectionSecret.name))"
#define HAS_KEYS(map) HAS_CONNECTION("self") " && has(self.connectionSecret." map ")"
#define CONNECTION_KEYS(map)                                                                       \
    {                                                                                              \
        .at = "connectionSecret." map, .type = STW_CEL_ENTRIES, .code = STW_INVALID,               \
        .rule = "!(" HAS_KEYS(map) ") || self.connectionSecret." map                               \
                                   ".all(k, size(k) <= 253 && k.matches('^[-._a-zA-Z0-9]+$'))",    \
        .message = "must be 1 to 253 letters, digits, '-', '_' and '.'",                           \
    }
#define CONNECTION_METADATA(map)                                                                   \
    {                                                                                              \
        .at = "connectionSecret." map, .type = STW_CEL_ENTRIES, .code = STW_FORBIDDEN,             \
        .rule = "!(" HAS_KEYS(map) ") || self.connectionSecret." map                               \
                                   ".all(k, !k.startsWith('{domain}/') && !k.matches("             \
                                   "r'^([^/]*\\.)?(kubernetes|k8s)\\.io/|"                         \
                                   "^([^/]*\\.)?argocd\\.argoproj\\.io/'))",                       \
        .message = RESERVED_KEY,                                                                   \
    }
#define OF_GRANTS(code_, condition, text)                                                          \
    {                                                                                              \
        .at = "grants", .type = STW_CEL_ENTRIES, .code = (code_),                                  \
        .rule = "!has(self.grants) || self.grants.all(g, " condition ")", .message = (text),       \
    }
#define SAME(field)                                                                                \
    "(has(g." field ") ? has(h." field ") && g." field " == h." field " : !has(h." field "))"

/* All of lib/sql/target/dialect.c; a unit test compares. */
#define PRIVILEGES                                                                                 \
    "'ALL', 'ALTER', 'ALTER ROUTINE', 'BACKUP_ADMIN', 'BINLOG MONITOR', 'CONNECT', "               \
    "'CREATE', 'CREATE ROUTINE', 'CREATE TEMPORARY TABLES', 'CREATE VIEW', "                       \
    "'DELETE', 'DELETE HISTORY', 'DROP', 'EVENT', 'EXECUTE', 'FLUSH_TABLES', "                     \
    "'INDEX', 'INNODB_REDO_LOG_ARCHIVE', 'INSERT', 'LOCK TABLES', 'MAINTAIN', "                    \
    "'PROCESS', 'REFERENCES', 'REPLICATION CLIENT', 'REPLICATION SLAVE', 'SELECT', "               \
    "'SHOW DATABASES', 'SHOW VIEW', 'SHOW_ROUTINE', 'SLAVE MONITOR', 'TEMPORARY', "                \
    "'TRIGGER', 'TRUNCATE', 'UPDATE', 'USAGE'"

#define IS_IAM(object) "(has(" object ".authentication) && " object ".authentication == 'IAM')"
#define NOT_IN_IAM(field)                                                                          \
    {                                                                                              \
        .at = "" field, .code = STW_FORBIDDEN, .rule = "!has(self." field ") || !" IS_IAM("self"), \
        .message = NOT_WITH_IAM,                                                                   \
    }

const struct stw_cel_rule stw_databaseuser_cel[] = {
    {.at = "password",
     .code = STW_REQUIRED,
     .rule = "has(self.password) || " IS_IAM("self"),
     .message = PASSWORD_OR_IAM},
    NOT_IN_IAM("password"),
    NOT_IN_IAM("rotation"),
    NOT_IN_IAM("authPlugin"),
    {.at = "authentication",
     .type = STW_CEL_TRANSITION,
     .code = STW_FORBIDDEN,
     .rule = IS_IAM("self") " == " IS_IAM("oldSelf"),
     .message = AUTHENTICATION_STAYS},
    {.at = "password.name",
     .code = STW_REQUIRED,
     .rule = "!has(self.password) || has(self.password.name) || has(self.password.generate)",
     .message = "set one of name, generate"},
    {.at = "password.generate",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.password) || !has(self.password.name) || self.password.name == '' || "
             "!has(self.password.generate)",
     .message = "set only one of name, generate"},
    {.at = "password.trimNewline",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.password) || !has(self.password.generate) || !self.password.trimNewline",
     .message = "a generated password has no newline"},
    {.at = "connectionSecret.name",
     .code = STW_INVALID,
     .rule = "!" HAS_CONNECTION("self") " || !has(self.connectionSecret.name) || "
                                        "!has(self.password) || has(self.password.generate) || "
                                        "!has(self.password.name) || "
                                        "self.connectionSecret.name != self.password.name",
     .message = "must differ from the Secret of the password"},
    {.at = "connectionSecret.name",
     .type = STW_CEL_TRANSITION,
     .code = STW_FORBIDDEN,
     .rule = "!" HAS_NAME("self") " || !" HAS_NAME(
         "oldSelf") " || "
                    "oldSelf.connectionSecret.name == '' || self.connectionSecret.name == '' || "
                    "self.connectionSecret.name == oldSelf.connectionSecret.name",
     .message = "field is immutable",
     .expression = "'field is immutable (was \"' + oldSelf.connectionSecret.name + '\")'"},
    {.at = "rotation.every",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.rotation) || !has(self.rotation.every) || self.rotation.every == '' || "
             "!has(self.password) || has(self.password.generate)",
     .message = EVERY_NEEDS_GENERATE},
    {.at = "connectionSecret",
     .code = STW_REQUIRED,
     .rule = "!has(self.rotation) || !has(self.rotation.strategy) || "
             "self.rotation.strategy != 'TwinAccounts' || has(self.connectionSecret)",
     .message = TWINS_NEED_CONNECTION},
    CONNECTION_KEYS("keys"),
    CONNECTION_KEYS("template"),
    CONNECTION_METADATA("labels"),
    CONNECTION_METADATA("annotations"),
    STW_CEL_LABELS(HAS_KEYS("labels"), "self.connectionSecret.labels", "connectionSecret.labels"),
    STW_CEL_KEYS(HAS_KEYS("annotations"), "self.connectionSecret.annotations",
                 "connectionSecret.annotations"),
    {.at = "connectionSecret.template",
     .type = STW_CEL_ENTRIES,
     .code = STW_DUPLICATE,
     .rule = "!(" HAS_KEYS("keys") ") || !(" HAS_KEYS(
         "template") ") || "
                     "self.connectionSecret.template.all(k, !(k in self.connectionSecret.keys))",
     .message = "keys has it"},
    {.at = "connectionSecret.template",
     .type = STW_CEL_ENTRIES,
     .code = STW_INVALID,
     .rule = "!(" HAS_KEYS("template") ") || self.connectionSecret.template.all(k, "
                                       "self.connectionSecret.template[k].matches(r'^([^{]|\\{[^{]|"
                                       "\\{\\{(host|port|user|"
                                       "password|database|engine|uri|jdbcUrl|ca)\\}\\})*\\{?$'))",
     .message = "double braces must hold one of host, port, user, password, database, engine, "
                "uri, jdbcUrl, ca, as in {{host}}"},
    {.at = "hosts",
     .type = STW_CEL_ENTRIES,
     .code = STW_DUPLICATE,
     .rule = "!has(self.hosts) || self.hosts.all(h, "
             "self.hosts.exists_one(i, i.lowerAscii() == h.lowerAscii()))",
     .message = "hosts must differ"},
    {.at = "databases",
     .type = STW_CEL_ENTRIES,
     .code = STW_DUPLICATE,
     .rule = "!has(self.databases) || self.databases.all(d, !has(d.name) || "
             "self.databases.exists_one(e, has(e.name) && e.name == d.name))",
     .message = "databases must differ"},
    {.at = "settings",
     .type = STW_CEL_ENTRIES,
     .code = STW_DUPLICATE,
     .rule = "!has(self.settings) || self.settings.all(g, !has(g.name) || "
             "self.settings.exists_one(h, " SAME("name") " && " SAME("database") "))",
     .message = "settings must differ"},
    {.at = "requireCertificate",
     .code = STW_FORBIDDEN,
     .rule = "!has(self.requireCertificate) || (!has(self.requireCertificate.subject) && "
             "!has(self.requireCertificate.issuer)) || "
             "(has(self.requireTLS) && self.requireTLS == 'X509')",
     .message = CERTIFICATE_NEEDS_X509},
    {.at = "reassignOwnedTo",
     .code = STW_INVALID,
     .rule = "!has(self.reassignOwnedTo) || !has(self.user) || self.reassignOwnedTo != self.user",
     .message = "must be another role than spec.user"},
    OF_GRANTS(STW_DUPLICATE,
              "has(g.columns) || self.grants.exists_one(h, !has(h.columns) && " SAME(
                  "database") " && " SAME("schema") " && " SAME("table") " && " SAME("routine") ")",
              "two are for the same; put the privileges into one list"),
    OF_GRANTS(STW_FORBIDDEN, "!has(g.table) || !has(g.routine)", ONE_OF_TABLE_ROUTINE),
    OF_GRANTS(STW_FORBIDDEN, "!has(g.columns) || (has(g.table) && g.table != '*')",
              COLUMNS_NEED_TABLE),
    OF_GRANTS(STW_INVALID,
              "!has(g.schema) || g.schema != '*' || ((!has(g.table) || g.table == '*') && "
              "(!has(g.routine) || g.routine == '*'))",
              NOT_IN_EVERY_SCHEMA),
    OF_GRANTS(STW_INVALID,
              "!has(g.privileges) || size(g.privileges) == 1 || !('ALL' in g.privileges)",
              "the other privileges must be left out, because ALL is in the list"),
    OF_GRANTS(STW_INVALID, "!has(g.privileges) || g.privileges.all(p, p in [" PRIVILEGES "])",
              "no engine has such a privilege"),
    {0},
};
