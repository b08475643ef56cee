/* SPDX-License-Identifier: Apache-2.0
 *
 * Secrets that the object owns: the connection Secret, and that of a generated password. */
#ifndef STW_KINDS_DATABASEUSER_OWNED_SECRET_H
#define STW_KINDS_DATABASEUSER_OWNED_SECRET_H

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/spec.h"

/* The connection Secret: wanted by the spec; known to be as it was written; makes it so, with the
 * password that was read. */
bool dbu_connection_wanted(const struct dbu *d);
bool dbu_connection_is_settled(struct dbu *d);
void dbu_connection_ensure(struct dbu *d);
/* Reads what the connection Secret says about itself, and its password into d->published (empty: only
 * a part of texts); UNCHECKED: there is none. */
enum dbu_owned_state dbu_connection_look(struct dbu *d, struct dbu_secret_login *ret);

/* Whether steward makes the password. */
bool dbu_password_is_generated(const struct stw_object *o);
/* Reads the generated password into `secret`, and makes it if there is none. */
void dbu_password_ensure(struct dbu *d);
/* Makes another one, if the one that was read is that of the account; reads it. */
void dbu_password_renew(struct dbu *d);
/* A new password; `ret` is secret. */
int dbu_password_draw(const struct dbu_spec_generate *g, struct stw_buf *ret,
                      struct stw_error *err) STW_MUST_CHECK;

#endif
