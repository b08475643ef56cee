/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by the files of DatabaseUser's rules.  values.c has those on single values, rules.c those on the
 * whole object, grants.c, databases.c and settings.c those on parts of it. */
#ifndef STW_KINDS_DATABASEUSER_SPEC_PRIV_H
#define STW_KINDS_DATABASEUSER_SPEC_PRIV_H

#include "kinds/databaseuser/spec.h"
#include "sql/target/dialect.h"

/* A DatabaseUser being checked. */
struct dbu_scene {
    const struct stw_admission *a;
    const struct dbu_spec *user, *old;    /* old NULL on CREATE */
    const char *target_name;              /* value of the label; "" when it names none */
    const struct stw_target *target;      /* NULL: unknown */
    const struct stw_engine_info *engine; /* NULL: unknown */
    struct stw_findings *f;
};

void dbu_check_grants(const struct dbu_scene *s);
void dbu_check_settings(const struct dbu_scene *s);
void dbu_check_databases(const struct dbu_scene *s);
/* Warns before the deletion of an object what happens to its databases. */
void dbu_advise_databases(const struct stw_admission *a, struct stw_findings *f);

/* Returns false, with a finding, when the engine would not store the name unchanged: it is longer
 * than `max` (in the engine's unit), or, on engines that compare names padded and store three bytes
 * a character, it has a blank at its end or characters beyond U+FFFF. */
bool dbu_check_name(const struct dbu_scene *s, const char *path, const char *name, uint32_t max);
/* In the engine's unit. */
size_t dbu_name_length(const struct dbu_scene *s, const char *name);
/* Adds a finding that shows a string value; long values are truncated. */
void dbu_add_finding(const struct dbu_scene *s, const char *path, enum stw_finding_code code,
                     const char *value, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Adds the finding `not supported on <engine>`. */
void dbu_add_unsupported(const struct dbu_scene *s, const char *path, const char *value);

#define DBU_WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

#endif
