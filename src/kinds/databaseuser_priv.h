/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of DatabaseUser share: the table (databaseuser.c) names rules of single values;
 * rules on the whole object are in databaseuser_rules.c, those on its grants in
 * databaseuser_grants.c. */
#ifndef STW_KINDS_DATABASEUSER_PRIV_H
#define STW_KINDS_DATABASEUSER_PRIV_H

#include "kinds/databaseuser.h"
#include "kinds/engine.h"

/* Of one value, for rows of the table. */
const char *stw_databaseuser_check_user(const char *user);
const char *stw_databaseuser_check_text(const char *text);
const char *stw_databaseuser_check_host(const char *host);
const char *stw_databaseuser_check_key(const char *key);

void stw_databaseuser_validate(const struct stw_admission *a, const void *spec,
                               const void *old_spec, struct stw_findings *f);
void stw_databaseuser_advise_delete(const struct stw_admission *a, struct stw_findings *f);

#define STW_DATABASEUSER_HOSTS_MAX 20
#define STW_DATABASEUSER_PRIVILEGES_MAX 40 /* of one grant */

/* One DatabaseUser under its rules. */
struct stw_dbu_scene {
    const struct stw_admission *a;
    const struct stw_databaseuser *user, *old; /* old NULL on CREATE */
    const char *target_name;                   /* the label; "" when it names none */
    const struct stw_target *target;           /* NULL: not known, here or at all */
    const struct stw_engine_info *engine;      /* NULL likewise */
    struct stw_findings *f;
};

void stw_databaseuser_check_grants(const struct stw_dbu_scene *s);

/* A name that the engine does not keep as it is: longer than `max` (in its unit), or, where names
 * are compared as padded and stored in three bytes a character, one that is not good for that: a
 * finding, and false. */
bool stw_databaseuser_check_name(const struct stw_dbu_scene *s, const char *path, const char *name,
                                 uint32_t max);
/* A finding that shows the value of a string, of which long ones are cut. */
void stw_databaseuser_add(const struct stw_dbu_scene *s, const char *path,
                          enum stw_finding_code code, const char *value, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* `not supported on <engine>` */
void stw_databaseuser_add_unsupported(const struct stw_dbu_scene *s, const char *path,
                                      const char *value);

#endif
