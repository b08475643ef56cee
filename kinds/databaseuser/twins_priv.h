/* SPDX-License-Identifier: Apache-2.0
 *
 * TwinAccounts: an object has two logins, NAME_a and NAME_b, of which applications use one.  A new
 * password is given to the other, whose name then goes into the connection Secret; the one before it
 * stays valid for the overlap and is then locked, until its turn comes again.
 *
 * On PostgreSQL both are members of the role NAME, which cannot log in, has the rights, and owns what
 * they create.  MySQL and MariaDB have no owners: there both logins have the rights, and NAME exists
 * only where it was the account before (and is locked, for it may be the definer of views).
 *
 * Which login applications use, the fingerprint of its password, and a number that grows with each
 * change are annotations of the connection Secret, written in one request with its values.  The
 * status has a copy, and the login before it.  The higher number counts: so a run that was killed
 * anywhere is continued, and an older Secret that is restored does not bring its login back. */
#ifndef STW_KINDS_DATABASEUSER_TWINS_PRIV_H
#define STW_KINDS_DATABASEUSER_TWINS_PRIV_H

#include "base/clock.h"
#include "kinds/databaseuser/fingerprint.h"

#include <stdbool.h>
#include <stdint.h>

struct dbuser;
struct dbu_desired;
struct stw_aspect;
struct stw_pool;

#define DBU_LOGIN_MAX 256
#define DBU_LOGIN_ANNOTATION "{domain}/login"
#define DBU_FINGERPRINT_ANNOTATION "{domain}/password-fingerprint"
#define DBU_ROTATION_ANNOTATION "{domain}/rotation"

/* What the connection Secret says about itself. */
struct dbu_secret_login {
    char login[DBU_LOGIN_MAX], fingerprint[STW_FINGERPRINT_LEN];
    int64_t rotation;
};

enum dbu_login { DBU_LOGIN_NONE, DBU_LOGIN_BASE, DBU_LOGIN_A, DBU_LOGIN_B, DBU_LOGINS };

struct dbu_twins {
    enum dbu_login current;               /* that applications read before this run */
    enum dbu_login next;                  /* that they read after it, if `published` */
    enum dbu_login previous;              /* works as well, until the end of the overlap */
    char of_current[STW_FINGERPRINT_LEN]; /* of its password; "": unknown */
    int64_t rotation;                     /* counts changes of the login; that of `next` */
    bool is_new;                          /* the Secret has another password than `current` */
    bool begins;                          /* `previous` is one since this run */
    bool waits;                           /* `next` stays `current` for now */
    bool blocked;      /* because the connection Secret cannot be read, or is another's */
    bool confirmed;    /* the connection Secret was seen to name `next` */
    bool published;    /* `next` counts: applications can read it */
    unsigned sessions; /* of `previous` on the server; it is not locked while it has any */
    bool hidden;       /* the server does not show them to steward */
    bool retired;      /* `previous` was locked in this run */
};

/* The strategy, resolved for the engine of the target. */
bool dbu_twins_wanted(const struct dbuser *d);
/* Whether the object has, or had, more than one account. */
bool dbu_twins_used(const struct dbuser *d);
/* The same, and its rotations are those of twins: not if it went back to one account. */
bool dbu_twins_active(const struct dbuser *d);

/* Before anything is read: takes the logins from the status. */
void dbu_twins_recall(struct dbuser *d);
/* The login has to change, for which the password is needed. */
bool dbu_twins_need_password(const struct dbuser *d);
/* The name of the login that applications read after this run. */
const char *dbu_login_name(struct dbuser *d);
/* A login's name from the name of the account. */
void dbu_login_make(const char *user, enum dbu_login which, char out[DBU_LOGIN_MAX]);

/* Decides `next` and `previous`.  Pure. */
void dbu_twins_plan(struct dbuser *d);
/* Brings the accounts to the plan, except those that have to be locked; sets the report. */
void dbu_twins_sync(struct dbuser *d, struct stw_pool *pool, const struct dbu_desired *desired);
/* After the connection Secret: locks what shall not log in. */
void dbu_twins_finish(struct dbuser *d, struct stw_pool *pool);

/* The overlap is over. */
bool dbu_twins_is_over(const struct dbuser *d);
/* Another login than before this run. */
bool dbu_twins_change(const struct dbuser *d);
/* After a run: until when `previous` works.  false: there is none; `ret_in_ms` may be set. */
bool dbu_twins_end(const struct dbuser *d, char ret[STW_TIME_LEN], uint64_t *ret_in_ms);
void dbu_twins_find(const struct dbuser *d, struct stw_aspect *a);
void dbu_twins_tell(const struct dbuser *d);

#endif
