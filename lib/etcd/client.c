/* SPDX-License-Identifier: Apache-2.0
 *
 * The handle: the configuration of its calls, and the lanes that calls of several threads borrow.
 */
#include "base/process/memory_budget.h"
#include "base/thread.h"
#include "base/util.h"
#include "etcd/etcd_priv.h"

#include <assert.h>

#define TIMEOUT_DEFAULT_MS 5000

static int copy_optional_text(const char *text, char **ret)
{
    if (!text)
        return 0;
    *ret = strdup(text);
    return *ret ? 0 : -1;
}

static int copy_config(const struct stw_etcd_config *config, struct stw_etcd *e)
{
    return copy_optional_text(config->tls.ca, &e->ca) |
           copy_optional_text(config->tls.cert, &e->cert) |
           copy_optional_text(config->tls.key, &e->key) |
           copy_optional_text(config->user, &e->user) |
           copy_optional_text(config->password ? config->password
                              : config->user   ? ""
                                               : NULL,
                              &e->password);
}

int stw_etcd_create(const struct stw_etcd_config *config, struct stw_etcd **ret,
                    struct stw_error *err)
{
    assert(ret);
    if (!config->tls.cert != !config->tls.key)
        return stw_fail(err, STW_ERR_INVALID, "a client certificate and its key go together");
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    struct stw_etcd *e = calloc(1, sizeof(*e));
    if (!e)
        return stw_fail_memory(err);
    (void)pthread_mutex_init(&e->lock, NULL);
    e->timeout_ms = config->timeout_ms ? config->timeout_ms : TIMEOUT_DEFAULT_MS;
    e->reach = config->reach;
    if (config->op)
        stw_operator_agent(config->op, e->user_agent);
    e->stall_ms = STW_ETCD_STALL_MS;
    if (copy_config(config, e) != 0) {
        stw_etcd_destroy(e);
        return stw_fail_memory(err);
    }
    *ret = e;
    return 0;
}

size_t stw_etcd_client_bytes(void)
{
    return sizeof(struct stw_etcd);
}

void stw_etcd_cancel(struct stw_etcd *e)
{
    atomic_store(&e->cancelled, true);
    STW_LOCKED(&e->lock);
    for (struct stw_etcd_lane *lane = e->lanes; lane; lane = lane->next)
        (void)curl_multi_wakeup(lane->multi);
}

/* --- the connections that all clients keep */

static atomic_size_t kept;

static bool may_keep(size_t count)
{
    size_t most = stw_share_limit(STW_SHARE_BASE) / 4 / STW_ETCD_CONNECTION_BYTES;
    if (atomic_fetch_add(&kept, count) + count <= most)
        return true;
    atomic_fetch_sub(&kept, count);
    return false;
}

/* Closes its connections. */
static void lane_destroy(struct stw_etcd_lane *lane)
{
    (void)curl_multi_cleanup(lane->multi);
    atomic_fetch_sub(&kept, lane->kept);
    free(lane);
}

void stw_etcd_destroy(struct stw_etcd *e)
{
    if (!e)
        return;
    while (e->lanes) {
        struct stw_etcd_lane *lane = e->lanes;
        e->lanes = lane->next;
        lane_destroy(lane);
    }
    stw_wipe_free(e->ca);
    stw_wipe_free(e->cert);
    stw_wipe_free(e->key);
    stw_wipe_free(e->user);
    stw_wipe_free(e->password);
    stw_wipe(e->token, sizeof(e->token));
    (void)pthread_mutex_destroy(&e->lock);
    free(e);
}

static struct stw_etcd_lane *lane_create(void)
{
    struct stw_etcd_lane *lane = calloc(1, sizeof(*lane));
    if (!lane)
        return NULL;
    lane->multi = curl_multi_init();
    if (!lane->multi) {
        free(lane);
        return NULL;
    }
    (void)curl_multi_setopt(lane->multi, CURLMOPT_MAXCONNECTS, STW_ETCD_CONNECTIONS);
    (void)curl_multi_setopt(lane->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, STW_ETCD_CONNECTIONS);
    return lane;
}

struct stw_etcd_lane *stw_etcd_lane_take(struct stw_etcd *e)
{
    STW_LOCKED(&e->lock);
    struct stw_etcd_lane *lane = e->lanes;
    while (lane && lane->busy)
        lane = lane->next;
    if (!lane && (lane = lane_create()) != NULL) {
        lane->next = e->lanes;
        e->lanes = lane;
    }
    if (lane)
        lane->busy = true;
    return lane;
}

static void take_out_lane(struct stw_etcd *e, const struct stw_etcd_lane *lane)
{
    struct stw_etcd_lane **at = &e->lanes;
    STW_ASSERT_LOCKED(&e->lock);
    while (*at != lane)
        at = &(*at)->next;
    *at = lane->next;
}

/* The next calls may be to other members: it keeps as many as it ever had at a time. */
static bool keeps_connections(struct stw_etcd_lane *lane, size_t count)
{
    size_t most = STW_MIN(count, (size_t)STW_ETCD_CONNECTIONS);
    if (most <= lane->kept)
        return true;
    if (!may_keep(most - lane->kept))
        return false;
    lane->kept = (uint32_t)most;
    (void)curl_multi_setopt(lane->multi, CURLMOPT_MAXCONNECTS, (long)most);
    return true;
}

void stw_etcd_lane_give(struct stw_etcd *e, struct stw_etcd_lane *lane, size_t count)
{
    assert(lane->busy);
    bool keeps = keeps_connections(lane, count);
    pthread_mutex_lock(&e->lock);
    lane->busy = false;
    if (!keeps)
        take_out_lane(e, lane);
    pthread_mutex_unlock(&e->lock);
    if (!keeps)
        lane_destroy(lane);
}
