/* SPDX-License-Identifier: Apache-2.0
 *
 * What a run may ask of its manager. */
#include "base/log.h"
#include "base/process/memory_budget.h"
#include "base/util.h"
#include "controller/manager/manager_priv.h"
#include "kube/secret.h"

#include <stdlib.h>

bool stw_controller_has_watch(const struct stw_controller *c, const struct stw_watch *w)
{
    const struct stw_watch *one = c->own;
    for (size_t i = 0; one && one != w; one = stw_controller_watch(c, i++))
        continue;
    return one != NULL;
}

/* A bug of the kind, found by its first run.  An empty cache would be worse: all would be made again. */
static void die_of_unknown_watch(const struct stw_watch *w)
{
    stw_log(STW_LOG_ERROR, "the watch is not in .watches of the controller",
            STW_STR("resource", w->resource->plural));
    abort();
}

struct stw_informer *stw_run_cache(const struct stw_run *run, const struct stw_watch *w)
{
    struct stw_watch_cache *cache = stw_manager_cache(run->manager, w);
    if (!cache && run->manager && !stw_controller_has_watch(run->controller, w))
        die_of_unknown_watch(w);
    return cache ? cache->informer : NULL;
}

struct stw_informer *stw_run_other_cache(const struct stw_run *run,
                                         const struct stw_controller *other)
{
    struct stw_watch_cache *cache = stw_manager_cache(run->manager, other->own);
    return cache ? cache->informer : NULL;
}

/* One over this size, and what a run then needs: up to ten copies of 1 MiB, among them the answer and
 * its tokens, the value, a verifier, and the Secret and request made of it. */
#define SMALL_SECRET_BYTES (64u << 10)
#define LARGE_SECRET_NEED ((size_t)12 << 20)

static int get_secret(const struct stw_run *run, const char *name, const char *version, size_t max,
                      struct stw_secret *ret, struct stw_error *err)
{
    stw_secret_done(ret);
    *ret = (struct stw_secret){.text = {.max = max, .secret = true}};
    int rc = version ? stw_kube_get_since(run->client, &stw_res_secret, run->ns, name, version,
                                          &ret->text, err)
                     : stw_kube_get(run->client, &stw_res_secret, run->ns, name, &ret->text, err);
    return rc == 0 ? stw_json_scan(&ret->doc, stw_buf_str(&ret->text), ret->text.len, err) : -1;
}

static int reserve_for_secret(const struct stw_run *run, const char *name, struct stw_error *err)
{
    /* The run is the worker's own; only its outcome changes. */
    struct stw_run *own = (struct stw_run *)(uintptr_t)run;
    size_t need = STW_MIN(LARGE_SECRET_NEED, stw_share_limit(STW_SHARE_RECONCILES));
    return stw_run_reserve(own, need) == STW_RESERVED
               ? 0
               : stw_fail(err, STW_ERR_UNAVAILABLE,
                          "Secret \"%s\" has more than %u bytes as JSON, and waits for %zu MiB of "
                          "memory",
                          name, SMALL_SECRET_BYTES, need >> 20);
}

int stw_run_get_secret(const struct stw_run *run, const char *name, const char *version,
                       struct stw_secret *ret, struct stw_error *err)
{
    struct stw_error first = {0};
    *ret = (struct stw_secret){0};
    if (get_secret(run, name, version, SMALL_SECRET_BYTES, ret, &first) == 0)
        return 0;
    if (first.code == STW_ERR_TOO_LARGE) {
        if (reserve_for_secret(run, name, err) != 0)
            return -1;
        first = (struct stw_error){0};
        if (get_secret(run, name, version, STW_SECRET_DATA_MAX, ret, &first) == 0)
            return 0;
        if (first.code == STW_ERR_TOO_LARGE)
            (void)stw_error_wrap(&first,
                                 "Secret \"%s\" is too large: at most %u bytes of JSON are read",
                                 name, STW_SECRET_DATA_MAX);
    }
    if (err)
        *err = first;
    return -1;
}

bool stw_run_may_write(const struct stw_run *run)
{
    (void)run;
    return stw_fence_may_write();
}

int stw_run_check_write(const struct stw_run *run, struct stw_error *err)
{
    if (stw_run_may_write(run))
        return 0;
    return stw_fail(err, STW_ERR_CANCELLED, "this process no longer leads");
}

bool stw_run_updates_templates(const struct stw_run *run)
{
    return run->manager && run->manager->config.update_templates;
}

bool stw_run_in_shadow(const struct stw_run *run)
{
    return run->manager && run->manager->config.shadow;
}

struct stw_guard *stw_run_guard(const struct stw_run *run)
{
    return run->manager->guard;
}

struct stw_memo *stw_run_memo(const struct stw_run *run)
{
    return run->manager->memo;
}

void stw_run_count_hot_loop(const struct stw_run *run)
{
    struct stw_manager *m = run->manager;
    for (uint32_t i = 0; i < m->pool_count; i++)
        if (m->pools[i].controller == run->controller)
            stw_series_add(m->pools[i].hot_loops, 1);
}
