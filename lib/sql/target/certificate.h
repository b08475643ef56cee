/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STW_SQL_CERTIFICATE_H
#define STW_SQL_CERTIFICATE_H

#include "sql/target/target.h"

/* Whether what a login reads are regular files, or not there. */
int stw_login_files_check(const struct stw_target *t, struct stw_error *err);
/* Whether the admin can log in with certificateFile and keyFile now: the error names the file, and what is
 * wrong with it.  0 as well if the target has none. */
int stw_certificate_check(const struct stw_target *t, struct stw_error *err);

#endif
