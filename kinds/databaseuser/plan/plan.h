/* SPDX-License-Identifier: Apache-2.0
 *
 * What a DatabaseUser needs next: a pure function (spec, status, Secrets, readers, server) -> one step.
 * No I/O, no clock, no state of its own.  tests/unit/kinds/databaseuser/test_plan_model.c walks through
 * the states that an object can reach, and checks the invariants:
 *
 *   D1  The password that the connection Secret publishes logs in.  With an overlap (DualPassword and
 *       TwinAccounts) this holds after each single step, and for the credential before it as well.
 *   D2  What locks out (a new password, a locked login, the end of an account) waits for no right, no
 *       database, and no other login.
 *   D3  No step waits long for a lock of another client: the engines keep it (lib/sql/core/engine.h).
 *   D4  Nothing of another owner is published or changed.
 *   D5  An object that needs no step can log in with the wanted password, and with nothing else.
 *   D6  The finalizer is there before anything is made, and goes when nothing of it is left.
 *
 * A run asks for one step after the other, carries it out (act.c; of a deletion, end/cleanup.c), and notes in
 * the view what came of it.  steward may be killed before or after each step; the next run begins with a new view.
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
#ifndef STW_KINDS_DATABASEUSER_PLAN_H
#define STW_KINDS_DATABASEUSER_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum dbu_login { DBU_LOGIN_NONE, DBU_LOGIN_BASE, DBU_LOGIN_A, DBU_LOGIN_B, DBU_LOGINS };

enum dbu_strategy { DBU_IN_PLACE, DBU_DUAL_PASSWORD, DBU_TWINS };

enum dbu_password {
    DBU_PASSWORD_UNREAD,
    DBU_PASSWORD_SETTLED, /* nothing has changed since the server was compared with it: not needed */
    DBU_PASSWORD_KNOWN,
    DBU_PASSWORD_MISSING, /* the account keeps the one that it has */
    DBU_PASSWORD_FAILED,  /* it is not known whether there is one */
};

enum dbu_connection {
    DBU_CONNECTION_UNREAD,
    DBU_CONNECTION_ABSENT,
    DBU_CONNECTION_OURS,    /* see `named` */
    DBU_CONNECTION_BLOCKED, /* another owner's */
    DBU_CONNECTION_UNKNOWN, /* it cannot be read */
    DBU_CONNECTION_WRITTEN, /* in this run: as the plan wants it */
    DBU_CONNECTION_FAILED,  /* to be written: it may have been, though */
};

/* What came of a call that brings a login to what is wanted. */
enum dbu_outcome {
    DBU_NOT_ASKED,
    DBU_AS_WANTED,
    DBU_RIGHTS_REFUSED, /* it can log in; a right is refused, until its cause is changed */
    DBU_RIGHTS_FAILED,  /* it can log in; its rights are not known now */
    DBU_LOGIN_ABSENT,   /* of KEEP_RIGHTS: it does not exist */
    DBU_LOGIN_FAILED,   /* it cannot log in as wanted, or that is not known */
};

struct dbu_login_view {
    enum dbu_outcome outcome;
    unsigned calls; /* in this run */
    bool found;     /* of LOCK: it exists, and is of this object */
    bool could;     /* it existed, and could log in, before this run */
    bool kept;      /* its rights were looked at, without its password */
    bool locked;    /* a lock was asked for in this run; if that failed, so says `outcome` */
    bool sessions;  /* it may have some that logged in by what has just ended */
    bool ended;     /* of a deletion: dropped, locked or released */
};

enum dbu_ending { DBU_END_DROP, DBU_END_LOCK, DBU_END_RELEASE };

struct dbu_view {
    /* spec and target */
    enum dbu_strategy strategy;
    bool owner_role; /* the server has roles that own what their members create */
    bool publishes;  /* a connection Secret is wanted */
    bool databases;  /* some are wanted, or were */
    bool cuts;       /* InPlace: what has ended ends for sessions as well */

    /* the wanted password */
    enum dbu_password password;
    bool due;       /* it is generated, and its time is over */
    bool as_status; /* it is the one of the status */

    /* status; all of it may be missing */
    bool created;
    bool has_logins;         /* the object has, or had, more than one */
    enum dbu_login login;    /* that applications use */
    enum dbu_login previous; /* that works as well */
    int64_t rotation;
    bool overlap; /* an older credential works as well, until a time */
    bool over;    /* which has passed, by all clocks */

    /* the connection Secret */
    enum dbu_connection connection;
    bool there;           /* LOOK found it, and it was ours */
    enum dbu_login named; /* NONE: it does not say which */
    int64_t named_rotation;
    bool as_named;        /* the wanted password is the one of the Secret */
    bool readable;        /* the password that it has was read */
    bool named_as_status; /* the one of the Secret is that of the status */

    /* what reads the connection Secret: followed in this run; still has an older credential */
    bool followed, readers_wait;

    /* this run */
    bool finalizer;
    bool databases_done, schemas_done;
    bool compared;               /* the server has another password than the settled one */
    bool changed;                /* the password was set */
    bool old_valid;              /* an older password of the login is valid */
    bool waits;                  /* the password is not set before that has ended */
    bool later;                  /* the password is set by the next run */
    bool retired;                /* the login before this one was locked */
    bool stop;                   /* the server cannot be used */
    struct dbu_login_view owner; /* by SYNC_OWNER */
    struct dbu_login_view logins[DBU_LOGINS];

    /* a deletion */
    bool deleting;
    bool drops;     /* databases with their data */
    bool not_ended; /* a login could not be ended, for a reason of its own */
    enum dbu_ending ending;
};

/* Which login applications use, and which is next. */
struct dbu_turn {
    enum dbu_login current;  /* that applications read before this run */
    enum dbu_login next;     /* that they read after it */
    enum dbu_login previous; /* works as well, until the end of the overlap */
    int64_t rotation;        /* counts changes of the login; that of `next` */
    bool is_new;             /* the wanted password is not that of `current` */
    bool begins;             /* `previous` is one since this run */
    bool waits;              /* `next` stays `current` for now */
    bool blocked;            /* because the connection Secret cannot be written */
    bool confirmed;          /* the connection Secret was seen to name `current` */
};

enum dbu_act {
    DBU_END_RUN,
    DBU_READ_PASSWORD, /* and make it, if it is generated and there is none */
    DBU_RENEW_PASSWORD,
    DBU_ADD_FINALIZER,
    DBU_NOTE_LOGINS, /* in the status, that there are several, before there are */
    DBU_LOOK,        /* at the connection Secret */
    DBU_CREATE_DATABASES,
    DBU_SYNC_OWNER,   /* the account without a suffix, which keeps its login as it is */
    DBU_SYNC,         /* `login`: password, options, rights */
    DBU_KEEP_RIGHTS,  /* `login`, which keeps its password */
    DBU_PUBLISH,      /* writes the connection Secret */
    DBU_FOLLOW,       /* restarts what reads it, and looks who has not read it yet */
    DBU_LOCK,         /* `login`; `waits`: not while it has sessions */
    DBU_END_SESSIONS, /* of `login` */
    DBU_ADD_SCHEMAS,
    DBU_DROP_DATABASES,
    DBU_END_LOGIN, /* `login`, by `ending` */
    DBU_REMOVE_FINALIZER,
    DBU_ACTS
};

struct dbu_step {
    enum dbu_act act;
    enum dbu_login login;
    /* SYNC: the account has two passwords, or may have; see struct stw_account */
    bool password_is_new, keep_old, set_later, discard_old, old_stays;
    bool keep_password; /* SYNC: a new password waits */
    bool waits;         /* LOCK */
    bool needed;        /* LOCK: it is made if it does not exist */
    enum dbu_ending ending;
};

void dbu_plan(const struct dbu_view *v, struct dbu_step *ret);

/* What the status says afterwards of the credentials, for the next run. */
enum dbu_end { DBU_END_KEPT, DBU_END_NONE, DBU_END_BEGINS, DBU_END_STAYS };
struct dbu_memory {
    bool created; /* there is an account */
    bool logins;  /* `login`, `previous` and `rotation` are written */
    enum dbu_login login, previous;
    int64_t rotation;
    bool password;      /* the fingerprint of the wanted password is written */
    bool password_read; /* the one that the connection Secret names is */
    enum dbu_end end; /* of the older credential: as it is in the status; none; a whole overlap from
                         now; the one of the status, and at most an overlap from now */
};
void dbu_remember(const struct dbu_view *v, struct dbu_memory *ret);

/* The object has, or had, more than one login. */
bool dbu_has_logins(const struct dbu_view *v);
void dbu_turn_of(const struct dbu_view *v, struct dbu_turn *ret);
/* The same, and its rotations are those of two logins: not if it went back to one account. */
bool dbu_turns(const struct dbu_view *v, const struct dbu_turn *t);
/* The wanted password is not the one that was last set. */
bool dbu_is_new(const struct dbu_view *v, const struct dbu_turn *t);
/* `next` can log in as wanted. */
bool dbu_can_log_in(const struct dbu_view *v, const struct dbu_turn *t);
/* Applications can read `next`. */
bool dbu_is_published(const struct dbu_view *v, const struct dbu_turn *t);

#endif
