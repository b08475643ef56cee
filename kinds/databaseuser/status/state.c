/* SPDX-License-Identifier: Apache-2.0
 *
 * State that the DatabaseUser controller keeps between runs: a pool for each target, and the key of
 * the fingerprints. */
#include "kinds/databaseuser/status/state.h"

#include "base/util.h"
#include "kinds/common/product.h"
#include "kinds/databaseuser/end/sweep.h"
#include "kinds/databaseuser/plan/rotation_clock.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/secret/secret.h"
#include "kinds/databaseuser/target/ping.h"
#include "kinds/databaseuser/target/targets.h"

#define PASSWORD_FILE_MAX_BYTES 4096

/* --- the admin's password, read at each login */

static int read_password_file(const struct stw_target *t, struct stw_buf *ret,
                              struct stw_error *err)
{
    char *text;
    size_t len, bare;
    if (stw_read_file(t->password_file, PASSWORD_FILE_MAX_BYTES, &text, &len, err) != 0)
        return stw_error_wrap(err, "the admin's password of target \"%s\"", t->name);
    bare = stw_bare_len(text, len);
    stw_buf_add(ret, text, bare);
    stw_wipe(text, len);
    free(text);
    return bare > 0 ? 0
                    : stw_fail(err, STW_ERR_INVALID,
                               "target \"%s\": the file %s with the admin's password is empty",
                               t->name, t->password_file);
}

int dbu_target_password(struct stw_client *client, const char *ns, const struct stw_target *t,
                        struct stw_buf *ret, struct stw_error *err)
{
    if (t->password_file)
        return read_password_file(t, ret, err);
    if (dbu_secret_text(client, ns, t->secret_name, t->secret_key, ret, err) != 0)
        return stw_error_wrap(err, "target \"%s\"", t->name);
    return 0;
}

static int admin_password(void *ctx, const struct stw_target *t, struct stw_buf *ret,
                          struct stw_error *err)
{
    const struct dbu_state *s = ctx;
    return dbu_target_password(s->client, s->ns, t, ret, err);
}

/* --- waking */

static void wake_one(void *ctx, const char *key)
{
    const struct dbu_state *s = ctx;
    stw_manager_enqueue(s->manager, stw_kind_databaseuser.kind, key);
}

/* `target` is the name in the configuration, in any case. */
static void wake_target(void *ctx, const char *target)
{
    const struct dbu_state *s = ctx;
    char name[DBU_NAME_MAX];
    stw_lower(target, name, sizeof(name));
    stw_manager_wake(s->manager, "target", name);
}

void dbu_state_secret_changed(void *state, const char *key)
{
    struct dbu_state *s = state;
    char admin[STW_KEY_LEN];
    struct stw_targets *targets = s->store ? dbu_target_store_get(s->store) : NULL;
    for (size_t i = 0; targets && i < stw_targets_count(targets); i++) {
        const struct stw_target *t = stw_targets_at(targets, i);
        if (!t->secret_name)
            continue;
        stw_key_make(s->ns, t->secret_name, admin);
        if (!stw_streq(admin, key) || !dbu_pools_troubled(s->pools, t->name))
            continue;
        dbu_pools_poke(s->pools, t->name);
        wake_target(s, t->name);
    }
    stw_targets_unref(targets);
}

static const char *find_cluster(void *ctx)
{
    const struct dbu_state *s = ctx;
    return dbu_cluster_id_known(s->cluster);
}

static void sweep_and_ping(const struct dbu_state *s, const struct stw_targets *targets)
{
    for (size_t i = 0; i < stw_targets_count(targets) && s->sweeps_targets; i++) {
        dbu_sweep_wake(s->manager, stw_targets_at(targets, i)->name);
        dbu_ping_wake(s->manager, stw_targets_at(targets, i)->name);
    }
}

/* The list was replaced: wakes all objects on a target of the old or the new list. */
static void targets_changed(void *ctx, struct stw_targets *now)
{
    struct dbu_state *s = ctx;
    struct stw_targets *const lists[] = {s->known, now};
    dbu_pools_prune(s->pools, now);
    for (size_t l = 0; l < STW_COUNT(lists); l++) {
        for (size_t i = 0; i < stw_targets_count(lists[l]); i++) {
            const char *name = stw_targets_at(lists[l], i)->name;
            dbu_pools_poke(s->pools, name);
            if (l == 0 || !stw_targets_find(s->known, name))
                wake_target(s, name);
        }
    }
    wake_target(s, DBU_NO_TARGET); /* there may be another default */
    for (size_t l = 0; l < STW_COUNT(lists); l++)
        sweep_and_ping(s, lists[l]);
    stw_targets_unref(s->known);
    s->known = stw_targets_ref(now);
}

/* --- open and close */

static int subscribe_to_targets(struct dbu_state *s, struct dbu_target_store *store)
{
    if (!store)
        return 0;
    s->known = dbu_target_store_get(store);
    if (dbu_target_store_on_change(store, targets_changed, s) != 0)
        return -1;
    s->store = store;
    return 0;
}

int dbu_state_open(struct stw_manager *m, const struct stw_manager_config *config, void **ret,
                   struct stw_error *err)
{
    struct dbu_state *s = calloc(1, sizeof(*s));
    if (!s)
        return stw_fail_memory(err);
    *s = (struct dbu_state){.manager = m, .client = config->client, .ns = config->lease_ns};
    struct dbu_pools_config pools = {.clock = config->clock,
                                     .metrics = config->metrics,
                                     .workers = config->workers * DBU_WORKER_FACTOR,
                                     .password = admin_password,
                                     .wake = wake_one,
                                     .recovered = wake_target,
                                     .cluster = find_cluster,
                                     .ctx = s};
    s->pools = dbu_pools_create(&pools);
    s->fingerprints = dbu_fingerprints_create(config->lease_ns);
    s->cluster = dbu_cluster_id_create();
    s->sweeps = dbu_sweeps_create(config->metrics, config->namespaces);
    s->pings = dbu_pings_create(pools.workers);
    s->sweeps_targets = !config->shadow;
    s->compared = dbu_compared_create();
    s->ends = dbu_ends_create();
    if (!s->pools || !s->fingerprints || !s->cluster || !s->sweeps || !s->pings || !s->compared ||
        !s->ends ||
        subscribe_to_targets(s, config->product ? config->product->target_store : NULL) != 0) {
        dbu_state_close(s);
        return stw_fail_memory(err);
    }
    sweep_and_ping(s, s->known);
    *ret = s;
    return 0;
}

void dbu_state_cancel(void *state)
{
    struct dbu_state *s = state;
    dbu_pools_cancel(s->pools);
}

void dbu_state_pause(void *state)
{
    struct dbu_state *s = state;
    dbu_pools_pause(s->pools);
    dbu_sweeps_pause(s->sweeps);
}

void dbu_state_tidy(void *state)
{
    struct dbu_state *s = state;
    dbu_pools_tidy(s->pools);
}

void dbu_state_close(void *state)
{
    struct dbu_state *s = state;
    if (s->store)
        dbu_target_store_forget(s->store, targets_changed, s);
    stw_targets_unref(s->known);
    dbu_pools_destroy(s->pools);
    dbu_fingerprints_destroy(s->fingerprints);
    dbu_cluster_id_destroy(s->cluster);
    dbu_sweeps_destroy(s->sweeps);
    dbu_pings_destroy(s->pings);
    dbu_compared_destroy(s->compared);
    dbu_ends_destroy(s->ends);
    free(s);
}
