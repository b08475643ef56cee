/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of DatabaseUser.  spec.c has the table, which names the rules on
 * single values (spec_values.c).  spec_rules.c has the rules on the whole object, spec_grants.c,
 * spec_databases.c and spec_settings.c have the tables of and the rules on grants, databases and settings. */
#ifndef STW_KINDS_DATABASEUSER_SPEC_PRIV_H
#define STW_KINDS_DATABASEUSER_SPEC_PRIV_H

#include "kinds/databaseuser/spec.h"
#include "sql/target/dialect.h"

/* Rules on one value, for rows of the table. */
const char *stw_databaseuser_check_user(const char *user);
const char *stw_databaseuser_check_text(const char *text);
const char *stw_databaseuser_check_host(const char *host);
const char *stw_databaseuser_check_key(const char *key);
const char *stw_databaseuser_check_until(const char *until);
const char *stw_databaseuser_check_every(const char *every);
const char *stw_databaseuser_check_alphabet(const char *alphabet);
const char *stw_databaseuser_check_setting(const char *name);
const char *stw_databaseuser_check_plugin(const char *plugin);
const char *stw_databaseuser_check_subject(const char *subject);

/* The same and the rules in CEL. */
extern const struct stw_cel stw_databaseuser_cel_user[], stw_databaseuser_cel_text[],
    stw_databaseuser_cel_key[], stw_databaseuser_cel_until[], stw_databaseuser_cel_every[],
    stw_databaseuser_cel_alphabet[], stw_databaseuser_cel_plugin[], stw_databaseuser_cel_setting[],
    stw_databaseuser_cel_subject[];
extern const struct stw_cel_rule stw_databaseuser_cel[];

void stw_databaseuser_validate(const struct stw_admission *a, const void *spec,
                               const void *old_spec, struct stw_findings *f);
void stw_databaseuser_advise_delete(const struct stw_admission *a, struct stw_findings *f);

#define STW_DATABASEUSER_NO_CONTROL "^[^\\x00-\\x1f\\x7f]*$" /* the pattern of names */
#define STW_DATABASEUSER_HOSTS_MAX 20
#define STW_DATABASEUSER_ROLES_MAX 20
#define STW_DATABASEUSER_KEYS_MAX 20       /* of a connection Secret */
#define STW_DATABASEUSER_PRIVILEGES_MAX 40 /* of one grant */

/* A DatabaseUser being checked. */
struct stw_dbu_scene {
    const struct stw_admission *a;
    const struct stw_databaseuser *user, *old; /* old NULL on CREATE */
    const char *target_name;                   /* value of the label; "" when it names none */
    const struct stw_target *target;           /* NULL: unknown */
    const struct stw_engine_info *engine;      /* NULL: unknown */
    struct stw_findings *f;
};

void stw_databaseuser_check_grants(const struct stw_dbu_scene *s);
void stw_databaseuser_check_settings(const struct stw_dbu_scene *s);
void stw_databaseuser_check_databases(const struct stw_dbu_scene *s);
/* Warns before the deletion of an object what happens to its databases. */
void stw_databaseuser_advise_databases(const struct stw_admission *a, struct stw_findings *f);

/* Returns false, with a finding, when the engine would not store the name unchanged: it is longer
 * than `max` (in the engine's unit), or, on engines that compare names padded and store three bytes
 * a character, it has a blank at its end or characters beyond U+FFFF. */
bool stw_databaseuser_check_name(const struct stw_dbu_scene *s, const char *path, const char *name,
                                 uint32_t max);
/* In the engine's unit. */
size_t stw_databaseuser_name_length(const struct stw_dbu_scene *s, const char *name);
/* Adds a finding that shows a string value; long values are truncated. */
void stw_databaseuser_add(const struct stw_dbu_scene *s, const char *path,
                          enum stw_finding_code code, const char *value, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Adds the finding `not supported on <engine>`. */
void stw_databaseuser_add_unsupported(const struct stw_dbu_scene *s, const char *path,
                                      const char *value);

/* Of the rules in C and in CEL. */
#define EVERY_NEEDS_GENERATE                                                                       \
    "needs spec.password.generate: the password of a named Secret is changed by who writes it"
#define RESERVED_KEY "reserved: steward, Kubernetes or Argo CD acts on keys of this domain"
#define CERTIFICATE_NEEDS_X509 "needs requireTLS X509"
#define SUBJECT_FORM "must be printable ASCII and start with '/', as in /O=Example/CN=app"
#define PASSWORD_OR_IAM "set it, or authentication IAM"
#define NOT_WITH_IAM "not with authentication IAM, which uses no password"
#define AUTHENTICATION_STAYS "cannot change: the account would need, or lose, a password"
#define ONE_OF_TABLE_ROUTINE "set only one of table, routine"
#define COLUMNS_NEED_TABLE "needs table, the name of one table"
#define NOT_IN_EVERY_SCHEMA                                                                        \
    "in every schema, table or routine is \"*\" or absent; name the schema of a single one"
#define TWINS_NEED_CONNECTION                                                                      \
    "must be set, because TwinAccounts changes the name of the login, which applications read "    \
    "there"

#endif
