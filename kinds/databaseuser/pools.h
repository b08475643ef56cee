/* SPDX-License-Identifier: Apache-2.0
 *
 * One connection pool for each database target: created when it is first needed, replaced when the
 * target's configuration changes.  Also limits how many workers a target may occupy, so that a dead
 * or slow server never holds all workers while users of another one wait, and how many a namespace
 * may occupy whose statements wait for locks.  Any thread. */
#ifndef STW_KINDS_DATABASEUSER_POOLS_H
#define STW_KINDS_DATABASEUSER_POOLS_H

#include "base/clock.h"
#include "base/metrics.h"
#include "base/util.h"
#include "sql/core/sql.h"
#include "sql/target/target.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_pools;
struct stw_pools_entry;
struct stw_pools_tenant;

struct stw_pools_config {
    const struct stw_clock *clock;
    struct stw_metrics *metrics; /* or NULL */
    uint32_t workers;            /* that may be inside at the same time */
    stw_sql_password_fn *password;
    /* `key` was turned away before; it may enter now. */
    void (*wake)(void *ctx, const char *key);
    /* The server of a target responds again. */
    void (*recovered)(void *ctx, const char *target);
    /* The identity of the cluster (sql/core/mark.h); NULL: not known yet, and no visit can begin. */
    const char *(*cluster)(void *ctx);
    void *ctx; /* for the four */
};

/* NULL: no memory. */
struct stw_pools *stw_pools_create(const struct stw_pools_config *config) STW_MUST_CHECK;
void stw_pools_cancel(struct stw_pools *p);  /* aborts waits for servers */
void stw_pools_destroy(struct stw_pools *p); /* no visit may be open; NULL is allowed */

enum stw_pools_answer {
    STW_POOLS_IN,
    STW_POOLS_LATER, /* full or suspect: wake() is called for the key, or it is retried by itself */
    STW_POOLS_FAILED /* a pool cannot be created; `err` */
};

struct stw_visit {
    struct stw_pools_entry *entry;
    struct stw_pools_tenant *tenant;
    struct stw_pool *pool;
    bool suspicious;
};

/* `key` ("namespace/name") asks to work on a target of this list.  After IN the caller must call
 * leave().  Keys that wait are woken in turns of their namespaces. */
enum stw_pools_answer stw_pools_enter(struct stw_pools *p, struct stw_targets *targets,
                                      const struct stw_target *target, const char *key,
                                      struct stw_visit *ret, struct stw_error *err);
/* `trouble`: the result of the work on the server.  After LOCKED the namespace has at most half of the
 * target's connections for a minute, so that locks that one tenant holds do not delay the others. */
void stw_pools_leave(struct stw_pools *p, struct stw_visit *v, enum stw_sql_trouble trouble);

/* Whether the server of a target could not be used at the last visit. */
bool stw_pools_troubled(struct stw_pools *p, const char *target);
/* How long the server of a target has not been used without a break, in ms; 0: it could be at the last visit. */
uint64_t stw_pools_down_ms(struct stw_pools *p, const char *target);
/* Of the objects on a target that is down, the next `count` are told: returns how many were before, since it went
 * down. */
uint32_t stw_pools_tell(struct stw_pools *p, const char *target, uint32_t count);
/* Another process leads: this one no longer says whether servers answer, until it enters one again. */
void stw_pools_pause(struct stw_pools *p);
/* What the visits of the last STW_POOLS_FRESH_MS say about the server of a target. */
enum stw_pools_sight {
    STW_POOLS_NOT_YET, /* nothing, and these pools are younger than that */
    STW_POOLS_UNSEEN,  /* nothing */
    STW_POOLS_ANSWERS,
    STW_POOLS_TROUBLED,
};
#define STW_POOLS_FRESH_MS (15u * 60000)
enum stw_pools_sight stw_pools_sight(struct stw_pools *p, const char *target);
/* The next visit is let through to the server: something about its login has changed. */
void stw_pools_poke(struct stw_pools *p, const char *target);
/* Closes connections that were not used for a minute. */
void stw_pools_tidy(struct stw_pools *p);
/* Closes the pools of targets that are no longer in the list. */
void stw_pools_prune(struct stw_pools *p, const struct stw_targets *targets);

#endif
