/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/target/ping.h"

#include "base/backoff.h"
#include "base/log.h"
#include "base/util.h"
#include "kinds/common/product.h"
#include "kinds/databaseuser/run_priv.h"
#include "sql/core/server.h"

#include <stdatomic.h>
#include <stdio.h>

#define KEY_NS "ping:" /* no namespace has a colon in its name */
#define SOON_MS 1000
#define FULL_MS 5000
#define LATER_MS ((uint64_t)5000) /* at the latest: a visit that ends wakes the key */
/* A restart of a server is over by then, and no condition has changed. */
#define TELL_AFTER_MS 10000
#define TELL_AT_ONCE 5

struct dbu_pings {
    unsigned most;
    atomic_uint running;
};

struct dbu_pings *dbu_pings_create(uint32_t workers)
{
    struct dbu_pings *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->most = STW_MAX(workers / 4, 1U);
    atomic_init(&p->running, 0);
    return p;
}

void dbu_pings_destroy(struct dbu_pings *p)
{
    free(p);
}

void dbu_target_wake(struct stw_manager *m, const char *ns, const char *target)
{
    char key[STW_KEY_LEN], name[DBU_NAME_MAX];
    stw_lower(target, name, sizeof(name));
    stw_key_make(ns, name, key);
    stw_manager_enqueue(m, stw_kind_databaseuser.kind, key);
}

void dbu_ping_wake(struct stw_manager *m, const char *target)
{
    dbu_target_wake(m, KEY_NS, target);
}

void dbu_target_users(const struct stw_run *run, struct stw_buf *out)
{
    stw_autobuf struct stw_buf key = STW_BUF_INIT(STW_KEY_LEN + 16);
    stw_index_add(&key, "target", run->name);
    if (key.len == 0 || key.failed)
        return;
    key.data[--key.len] = '\0';
    stw_informer_keys(stw_run_cache(run, run->controller->own), key.data, out);
}

static bool is_used(const struct stw_run *run)
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(STW_KEY_LEN);
    dbu_target_users(run, &keys);
    return keys.len > 0 || keys.failed;
}

/* False: all have been.  What is created or deleted meanwhile shifts the others: one that is left out finds out
 * at its next check. */
static bool tell_some(const struct stw_run *run)
{
    const struct dbu_state *state = run->state;
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(DBU_TARGET_USERS_MAX_BYTES);
    uint32_t first = dbu_pools_tell(state->pools, run->name, TELL_AT_ONCE), n = 0;
    size_t at = 0;
    dbu_target_users(run, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at)) && n < first + TELL_AT_ONCE; n++)
        if (n >= first)
            stw_manager_enqueue(run->manager, stw_kind_databaseuser.kind, key);
    return n == first + TELL_AT_ONCE;
}

static uint64_t find_next_ms(const struct stw_run *run, uint64_t every_ms, uint64_t retry_ms)
{
    const struct dbu_state *state = run->state;
    uint64_t down_ms = dbu_pools_down_ms(state->pools, run->name);
    if (down_ms == 0)
        return every_ms - stw_random() % (every_ms / 5);
    if (down_ms > TELL_AFTER_MS && tell_some(run))
        return SOON_MS;
    if (retry_ms == 0)
        retry_ms = FULL_MS; /* it answers, and has no connection to spare */
    return STW_MIN(STW_MAX(retry_ms, (uint64_t)SOON_MS), every_ms);
}

static void ping_target(struct stw_run *run, struct stw_targets *targets,
                        const struct stw_target *t, struct stw_result *result)
{
    const struct dbu_state *state = run->state;
    struct dbu_visit at;
    struct stw_error err = {0};
    enum stw_sql_trouble trouble;
    enum dbu_pools_answer answer = dbu_pools_enter(state->pools, targets, t, run->key, &at, &err);
    if (answer == DBU_POOLS_LATER)
        result->after_ms = STW_MIN(STW_MIN(result->after_ms, LATER_MS), at.again_ms);
    if (answer != DBU_POOLS_IN)
        return;
    bool was_down = dbu_pools_down_ms(state->pools, t->name) > 0;
    int rc = stw_server_ping(at.pool, &trouble, &err);
    uint64_t retry_ms = stw_pool_retry_ms(at.pool);
    dbu_pools_leave(state->pools, &at, trouble);
    if (rc != 0 && !was_down && dbu_pools_down_ms(state->pools, t->name) > 0)
        stw_log(STW_LOG_WARN, "a database server cannot be used", STW_STR("target", t->name),
                STW_STR("why", err.text));
    result->after_ms = find_next_ms(run, result->after_ms, retry_ms);
}

void dbu_ping(struct stw_run *run, struct stw_result *result)
{
    const struct dbu_state *state = run->state;
    if (!stw_streq(run->ns, KEY_NS) || !state->sweeps_targets)
        return;
    struct stw_targets *targets = stw_product_targets(run->env);
    const struct stw_target *t = stw_targets_find(targets, run->name);
    if (t && t->ping_seconds > 0) {
        result->outcome = STW_RUN_AFTER;
        result->after_ms = (uint64_t)t->ping_seconds * 1000;
        unsigned running = atomic_fetch_add(&state->pings->running, 1);
        if (running >= state->pings->most)
            result->after_ms = SOON_MS;
        else if (is_used(run))
            ping_target(run, targets, t, result);
        (void)atomic_fetch_sub(&state->pings->running, 1);
    }
    stw_targets_unref(targets);
}
