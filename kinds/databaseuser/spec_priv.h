/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of DatabaseUser's rules.  spec_values.c has those on single values, spec_rules.c those
 * on the whole object, spec_grants.c, spec_databases.c and spec_settings.c those on parts of it. */
#ifndef STW_KINDS_DATABASEUSER_SPEC_PRIV_H
#define STW_KINDS_DATABASEUSER_SPEC_PRIV_H

#include "kinds/databaseuser/spec.h"
#include "sql/target/dialect.h"

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

#define STW_DATABASEUSER_WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

#endif
