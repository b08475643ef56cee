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

struct dbu_pools;
struct dbu_pools_entry;
struct dbu_pools_tenant;

struct dbu_pools_config {
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
struct dbu_pools *dbu_pools_create(const struct dbu_pools_config *config) STW_MUST_CHECK;
void dbu_pools_cancel(struct dbu_pools *p);  /* aborts waits for servers */
void dbu_pools_destroy(struct dbu_pools *p); /* no visit may be open; NULL is allowed */

enum dbu_pools_answer {
    DBU_POOLS_IN,
    DBU_POOLS_LATER, /* full or suspect: wake() is called for the key, or it comes after again_ms */
    DBU_POOLS_FAILED /* a pool cannot be created; `err` */
};

struct dbu_visit {
    struct dbu_pools_entry *entry;
    struct dbu_pools_tenant *tenant;
    struct stw_pool *pool;
    bool suspicious;
    uint64_t again_ms; /* alone, of LATER: when the key comes again by itself */
};

/* `key` ("namespace/name") asks to work on a target of this list.  After IN the caller must call
 * leave().  Keys that wait are woken in turns of their namespaces.  While no visit ends, one more is let in each
 * second: a visit may be slow for what only it wants. */
enum dbu_pools_answer dbu_pools_enter(struct dbu_pools *p, struct stw_targets *targets,
                                      const struct stw_target *target, const char *key,
                                      struct dbu_visit *ret, struct stw_error *err);
/* `trouble`: the result of the work on the server.  After LOCKED the namespace has at most half of the
 * target's connections for a minute, so that locks that one tenant holds do not delay the others. */
void dbu_pools_leave(struct dbu_pools *p, struct dbu_visit *v, enum stw_sql_trouble trouble);

/* Whether the server of a target could not be used at the last visit. */
bool dbu_pools_troubled(struct dbu_pools *p, const char *target);
/* How long the server of a target has not been used without a break, in ms; 0: it could be at the last visit. */
uint64_t dbu_pools_down_ms(struct dbu_pools *p, const char *target);
/* Of the objects on a target that is down, the next `count` are told: returns how many were before, since it went
 * down. */
uint32_t dbu_pools_tell(struct dbu_pools *p, const char *target, uint32_t count);
/* Another process leads: this one no longer says whether servers answer, until a run that may write
 * (base/fence.h) enters one again. */
void dbu_pools_pause(struct dbu_pools *p);
/* What the visits of the last DBU_POOLS_FRESH_MS say about the server of a target. */
enum dbu_pools_sight {
    DBU_POOLS_NOT_YET, /* nothing, and these pools are younger than that */
    DBU_POOLS_UNSEEN,  /* nothing */
    DBU_POOLS_ANSWERS,
    DBU_POOLS_TROUBLED,
};
#define DBU_POOLS_FRESH_MS (15u * 60000)
enum dbu_pools_sight dbu_pools_sight(struct dbu_pools *p, const char *target);
/* The next visit is let through to the server: something about its login has changed. */
void dbu_pools_poke(struct dbu_pools *p, const char *target);
/* Closes connections that were not used for a minute. */
void dbu_pools_tidy(struct dbu_pools *p);
/* Closes the pools of targets that are no longer in the list. */
void dbu_pools_prune(struct dbu_pools *p, const struct stw_targets *targets);

#endif
