/* SPDX-License-Identifier: Apache-2.0
 *
 * The Secret with the password, and which version of it was compared with what a server stores. */
#ifndef STW_KINDS_DATABASEUSER_SECRET_H
#define STW_KINDS_DATABASEUSER_SECRET_H

#include "base/buf.h"
#include "base/error.h"
#include "base/hex.h"
#include "controller/controller.h"
#include "kinds/databaseuser/spec.h"

enum dbu_secret_state {
    DBU_SECRET_UNREAD,
    DBU_SECRET_FOUND,
    DBU_SECRET_MISSING,
    DBU_SECRET_NO_KEY,
    DBU_SECRET_FOREIGN, /* of a generated password: another owner's */
    DBU_SECRET_EMPTY,   /* also if nothing is left without its newline */
    DBU_SECRET_ERROR,   /* `err` */
};

struct dbu_secret {
    enum dbu_secret_state state;
    bool newline;         /* the password ends in one, and is used like that */
    struct stw_buf value; /* for FOUND; wiped by dbu_secret_done */
    char resource_version[STW_RV_LEN];
    struct stw_error err;
};

/* Extracts the value of `key` from the whole object `secret`. */
void dbu_secret_take(struct stw_json secret, const char *key, bool trim_newline,
                     struct dbu_secret *ret);
/* The cached version of a Secret; false: there is no such Secret. */
bool dbu_secret_version(struct stw_run *run, const char *name, char ret_version[STW_RV_LEN]);
/* Reads the Secret from the API server, unless the cache shows that it does not exist. */
void dbu_secret_read(struct stw_run *run, const struct dbu_spec_password *from,
                     struct dbu_secret *ret);
void dbu_secret_done(struct dbu_secret *s);
/* Fills `ret` with a value of any Secret, without one newline at its end.  For admins'
 * passwords. */
int dbu_secret_text(struct stw_client *client, const char *ns, const char *name, const char *key,
                    struct stw_buf *ret, struct stw_error *err) STW_MUST_CHECK;

/* Remembers which version of which Secret was compared with what a server stores, so that a check
 * of a settled account need not read the Secret.  It holds only digests, which reveal nothing.  Any
 * thread. */
struct dbu_compared;
struct dbu_compared *dbu_compared_create(void) STW_MUST_CHECK; /* NULL: no memory */
void dbu_compared_destroy(struct dbu_compared *c);             /* `c` may be NULL */
void dbu_compared_put(struct dbu_compared *c, const char *key, struct stw_hash secret,
                      struct stw_hash stored);
/* What the server stored then; zero if unknown for this object and Secret. */
struct stw_hash dbu_compared_get(struct dbu_compared *c, const char *key, struct stw_hash secret);
void dbu_compared_forget(struct dbu_compared *c, const char *key);

#endif
