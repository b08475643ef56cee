/* SPDX-License-Identifier: Apache-2.0
 *
 * The logins of an object, for its status, its events, and its connection Secret.  plan.h decides
 * about them. */
#ifndef STW_KINDS_DATABASEUSER_TWINS_PRIV_H
#define STW_KINDS_DATABASEUSER_TWINS_PRIV_H

#include "base/clock.h"
#include "kinds/databaseuser/fingerprint.h"
#include "kinds/databaseuser/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct dbuser;
struct stw_aspect;

#define DBU_LOGIN_MAX 256
#define DBU_LOGIN_ANNOTATION "{domain}/login"
#define DBU_FINGERPRINT_ANNOTATION "{domain}/password-fingerprint"
#define DBU_ROTATION_ANNOTATION "{domain}/rotation"

/* What the connection Secret says about itself. */
struct dbu_secret_login {
    char login[DBU_LOGIN_MAX], fingerprint[STW_FINGERPRINT_LEN];
    int64_t rotation;
    bool shows_wanted; /* its values are those of the wanted password */
};

/* The turn of this run, and what came of it. */
struct dbu_twins {
    struct dbu_turn turn;
    bool published;    /* `turn.next` counts: applications can read it */
    unsigned sessions; /* of `turn.previous` on the server; it is not locked while it has any */
    bool hidden;       /* the server does not show them to steward */
};
/* Takes it from the view. */
void dbu_twins_take(struct dbuser *d);

/* The strategy, resolved for the engine of the target. */
bool dbu_twins_wanted(const struct dbuser *d);
/* The name of the login that applications read after this run. */
const char *dbu_login_name(struct dbuser *d);
/* A login's name from the name of the account. */
void dbu_login_make(const char *user, enum dbu_login which, char out[DBU_LOGIN_MAX]);
/* The login of this name; NONE: it is not one of the object. */
enum dbu_login dbu_login_find(const struct dbuser *d, const char *name);

/* Another login than before this run. */
bool dbu_twins_change(const struct dbuser *d);
void dbu_twins_find(const struct dbuser *d, struct stw_aspect *a);
void dbu_twins_tell(const struct dbuser *d);

#endif
