/* SPDX-License-Identifier: Apache-2.0
 *
 * Passwords as servers store them, computed and checked here: a password drifts only where it
 * really differs, and servers and their logs see verifiers instead of passwords.  Pure, except for
 * the random salts. */
#ifndef STW_SQL_PASSWORD_H
#define STW_SQL_PASSWORD_H

#include "sql/core/engine.h"

/* Each returns -1 when there is no memory or the password cannot have this form.  An unknown
 * password (data NULL, or of no length) never makes a verifier. */
int stw_native_make(const struct stw_sql_secret *p, struct stw_buf *out); /* "*94BD..." */
/* "$A$005$" salt digest: SHA-256 crypt with 5,000 rounds and a salt of 20 characters. */
int stw_caching_sha2_make(const struct stw_sql_secret *p, struct stw_buf *out);
/* MariaDB's ed25519: the public key of SHA-512(password), base64 without its "=". */
int stw_ed25519_make(const struct stw_sql_secret *p, struct stw_buf *out);
/* "$5$" salt "$" digest, otherwise as caching_sha2_password. */
int stw_sha256_make(const struct stw_sql_secret *p, struct stw_buf *out);
int stw_parsec_make(const struct stw_sql_secret *p, struct stw_buf *out); /* "P0:salt:key" */
enum stw_password_state stw_parsec_check(const char *v, size_t len, const struct stw_sql_secret *p);

/* What the plugin stores for the password; -1 also for a plugin that is in no table of target/dialect.c. */
int stw_mysql_verifier_make(const char *plugin, const struct stw_sql_secret *p,
                            struct stw_buf *out) STW_MUST_CHECK;
bool stw_mysql_verifier_is_salted(const char *plugin);

/* Compares with the plugin and authentication_string of a MySQL or MariaDB account. */
enum stw_password_state stw_mysql_password_state(const char *plugin, const char *verifier,
                                                 size_t len, const struct stw_sql_secret *p);
/* Compares with PostgreSQL's rolpassword, "SCRAM-SHA-256$..."  or "md5...".  UNKNOWN when that is
 * not possible here: the password is not ASCII, and SCRAM may have normalised it. */
enum stw_password_state stw_pg_password_state(const char *user, const char *verifier, size_t len,
                                              const struct stw_sql_secret *p);

/* SHA-crypt ($5$) by Ulrich Drepper's specification, 43 characters; salts up to 20 bytes. */
int stw_sha256_crypt(const char *key, size_t key_len, const char *salt, size_t salt_len,
                     unsigned rounds, char out[44]);

void stw_sha256_hex(const char *data, size_t len, char out[STW_MARK_MADE_LEN]);

#endif
