/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two files of DatabaseUser share: the table names its rules. */
#ifndef STW_KINDS_DATABASEUSER_PRIV_H
#define STW_KINDS_DATABASEUSER_PRIV_H

#include "kinds/databaseuser.h"

/* Of one value, for rows of the table. */
const char *stw_databaseuser_check_user(const char *user);
const char *stw_databaseuser_check_text(const char *text);
const char *stw_databaseuser_check_host(const char *host);
const char *stw_databaseuser_check_key(const char *key);

/* Of the whole object, and of the world around it. */
void stw_databaseuser_validate(const struct stw_admission *a, const void *spec,
                               const void *old_spec, struct stw_findings *f);

#endif
