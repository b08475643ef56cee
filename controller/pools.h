/* SPDX-License-Identifier: Apache-2.0
 *
 * One pool a database target, made when it is first needed, replaced when the configuration says
 * something else of it; and who may wait for which server, so that one that is dead or slow never
 * holds all workers while users of another wait.  Any thread. */
#ifndef STW_CONTROLLER_POOLS_H
#define STW_CONTROLLER_POOLS_H

#include "base/clock.h"
#include "base/metrics.h"
#include "controller/sql/sql.h"
#include "kinds/target.h"

#include <stdbool.h>
#include <stdint.h>

struct stw_pools;
struct stw_pools_entry;

struct stw_pools_config {
    const struct stw_clock *clock;
    struct stw_metrics *metrics; /* or NULL */
    uint32_t workers;            /* that may be inside at the same time */
    stw_sql_password_fn *password;
    /* Somebody else may go in now: `key` was turned away before. */
    void (*wake)(void *ctx, const char *key);
    /* The server of a target answers again. */
    void (*recovered)(void *ctx, const char *target);
    void *ctx; /* of the three */
};

struct stw_pools *stw_pools_create(const struct stw_pools_config *config); /* NULL: no memory */
void stw_pools_cancel(struct stw_pools *p);  /* cuts off whoever waits for a server */
void stw_pools_destroy(struct stw_pools *p); /* nobody is inside any more; NULL is fine */

enum stw_pools_answer {
    STW_POOLS_IN,
    STW_POOLS_LATER, /* full or suspect: wake() comes for the key, or it asks again by itself */
    STW_POOLS_FAILED /* no pool can be made; `err` */
};

struct stw_visit {
    struct stw_pools_entry *entry;
    struct stw_pool *pool;
    bool suspicious;
};

/* `key` wants to work on a target of this list.  IN: leave() is to follow. */
enum stw_pools_answer stw_pools_enter(struct stw_pools *p, struct stw_targets *targets,
                                      const struct stw_target *target, const char *key,
                                      struct stw_visit *ret, struct stw_error *err);
/* `trouble`: how it went with the server. */
void stw_pools_leave(struct stw_pools *p, struct stw_visit *v, enum stw_sql_trouble trouble);

/* Whether the last thing known of a target is that its server could not be used. */
bool stw_pools_troubled(struct stw_pools *p, const char *target);
/* Whoever goes in next is let through to the server: something about its login has changed. */
void stw_pools_poke(struct stw_pools *p, const char *target);
/* Connections that nobody has used for a minute are closed. */
void stw_pools_tidy(struct stw_pools *p);
/* Pools of targets that are no longer in the list are closed. */
void stw_pools_prune(struct stw_pools *p, const struct stw_targets *targets);

#endif
