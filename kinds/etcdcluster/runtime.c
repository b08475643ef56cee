/* SPDX-License-Identifier: Apache-2.0
 *
 * State that the controller keeps in addition to the caches: for each cluster the client for its
 * members, with its certificates, so that a settled cluster causes no API server load. */
#include "kinds/etcdcluster/runtime.h"

#include "base/process/memory_budget.h"
#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "controller/controller.h"
#include "kinds/etcdcluster/act/turn.h"
#include "kube/cache/usage.h"

#include <math.h>
#include <pthread.h>

/* Certificates and a key: a usual client has some KiB. */
#define EC_ETCD_BYTES_SMALL (1u << 10)
#define EC_ETCD_BYTES_LARGE (32u << 10)

struct ec_runtime {
    struct stw_family *margins, *ends, *defragmented, *reclaimed;
    pthread_mutex_t lock; /* guards the table; an entry is used only by the one run of its key */
    struct stw_table kept;
    struct ec_turns *turns;
    size_t etcd_bytes; /* of the clients of all */
    bool cancelled;
};

static const char *key_of(const void *entry)
{
    return ((const struct ec_kept *)entry)->key;
}

static size_t length_of(const char *text)
{
    return text ? strlen(text) : 0;
}

/* In the share of the caches.  Certificates and keys have a limit of their own. */
static void count_kept(struct ec_kept *k, size_t bytes)
{
    if (k->key)
        stw_cache_usage_change(k->key, k->counted_bytes, bytes);
    k->counted_bytes = bytes;
}

static size_t bytes_of(const struct ec_kept *k)
{
    return sizeof(*k) + length_of(k->key) + 1 + (k->etcd ? stw_etcd_client_bytes() : 0);
}

static void free_kept(void *entry)
{
    struct ec_kept *k = entry;
    if (!k)
        return;
    count_kept(k, 0);
    stw_etcd_destroy(k->etcd);
    free(k->key);
    free(k);
}

int ec_runtime_open(struct stw_manager *m, const struct stw_manager_config *config,
                    void **ret_state, struct stw_error *err)
{
    static const char *const labels[] = {"namespace", "cluster", NULL};
    static const char *const result_labels[] = {"namespace", "cluster", "result", NULL};
    struct ec_runtime *k = calloc(1, sizeof(*k));
    (void)m;
    struct ec_turns *turns = ec_turns_create();
    if (!k || !turns) {
        ec_turns_destroy(turns);
        free(k);
        return stw_fail_memory(err);
    }
    k->turns = turns;
    k->kept = STW_TABLE_INIT(key_of);
    (void)pthread_mutex_init(&k->lock, NULL);
    if (config->metrics) {
        k->margins = stw_metrics_family(config->metrics, STW_GAUGE, "_etcd_quorum_margin",
                                        "Voters that may fail before an etcd cluster loses its "
                                        "quorum; negative: how many are missing.",
                                        labels, NULL);
        k->ends = stw_metrics_family(
            config->metrics, STW_GAUGE, "_etcd_certificate_not_after_seconds",
            "When the first certificate of an etcd cluster expires, in seconds since the epoch.",
            labels, NULL);
        k->defragmented = stw_metrics_family(
            config->metrics, STW_COUNTER, "_etcd_defragmentations_total",
            "Members of etcd clusters that were defragmented.", result_labels, NULL);
        k->reclaimed = stw_metrics_family(
            config->metrics, STW_COUNTER, "_etcd_defragmentation_reclaimed_bytes_total",
            "Bytes by which databases of etcd clusters became smaller.", labels, NULL);
    }
    *ret_state = k;
    return 0;
}

void ec_runtime_cancel(void *state)
{
    struct ec_runtime *k = state;
    struct ec_kept *one;
    STW_LOCKED(&k->lock);
    k->cancelled = true;
    for (uint32_t pos = 0; (one = stw_table_next(&k->kept, &pos));)
        if (one->etcd)
            stw_etcd_cancel(one->etcd);
}

void ec_runtime_close(void *state)
{
    struct ec_runtime *k = state;
    stw_table_release(&k->kept, free_kept);
    ec_turns_destroy(k->turns);
    (void)pthread_mutex_destroy(&k->lock);
    free(k);
}

struct ec_turns *ec_runtime_turns(struct ec_runtime *k)
{
    return k->turns;
}

static struct ec_kept *create_kept(struct ec_runtime *k, const struct stw_run *run)
{
    struct ec_kept *one = calloc(1, sizeof(*one));
    void *old;
    STW_ASSERT_LOCKED(&k->lock);
    if (!one)
        return NULL;
    one->key = strdup(run->key);
    if (!one->key || stw_table_put(&k->kept, one, &old) != 0) {
        free_kept(one);
        return NULL;
    }
    count_kept(one, bytes_of(one));
    return one;
}

struct ec_kept *ec_runtime_get(struct ec_runtime *k, const struct stw_run *run)
{
    STW_LOCKED(&k->lock);
    struct ec_kept *one = stw_table_get(&k->kept, run->key);
    if (!one)
        one = create_kept(k, run);
    return one;
}

int ec_runtime_use(struct ec_runtime *k, struct ec_kept *kept, const struct stw_etcd_config *config,
                   struct stw_error *err)
{
    struct stw_etcd *fresh = NULL, *old;
    if (stw_etcd_create(config, &fresh, err) != 0)
        return -1;
    size_t bytes =
        length_of(config->tls.ca) + length_of(config->tls.cert) + length_of(config->tls.key);
    pthread_mutex_lock(&k->lock);
    old = kept->etcd;
    kept->etcd = fresh;
    k->etcd_bytes = k->etcd_bytes - kept->etcd_bytes + bytes;
    kept->etcd_bytes = bytes;
    count_kept(kept, bytes_of(kept));
    if (k->cancelled)
        stw_etcd_cancel(fresh);
    pthread_mutex_unlock(&k->lock);
    stw_etcd_destroy(old);
    return 0;
}

void ec_runtime_rest(struct ec_runtime *k, const char *key)
{
    struct stw_etcd *old = NULL;
    pthread_mutex_lock(&k->lock);
    struct ec_kept *one = stw_table_get(&k->kept, key);
    bool full = k->etcd_bytes > stw_share_limit(STW_SHARE_BASE) / 4;
    if (one && one->etcd_bytes > EC_ETCD_BYTES_SMALL &&
        (full || one->etcd_bytes > EC_ETCD_BYTES_LARGE)) {
        old = stw_take(one->etcd);
        k->etcd_bytes -= one->etcd_bytes;
        one->etcd_bytes = 0;
        count_kept(one, bytes_of(one));
        one->secret_versions[0] = '\0';
    }
    pthread_mutex_unlock(&k->lock);
    stw_etcd_destroy(old);
}

/* --- gauges */

/* The fence is closed before ec_runtime_pause: a run that goes on after it sets none. */
static void set_gauge(struct ec_runtime *k, struct stw_family *family, struct stw_series **gauge,
                      const struct stw_run *run, double value)
{
    STW_LOCKED(&k->lock);
    if (!family || !stw_run_may_write(run))
        return;
    if (!*gauge)
        *gauge = STW_SERIES(family, run->ns, run->name);
    stw_series_set(*gauge, value);
}

static void remove_gauges(struct ec_kept *kept)
{
    stw_series_remove(stw_take(kept->margin));
    stw_series_remove(stw_take(kept->cert_end));
}

void ec_runtime_report_margin(struct ec_runtime *k, const struct stw_run *run, struct ec_kept *kept,
                              int margin)
{
    set_gauge(k, k->margins, &kept->margin, run, margin);
}

void ec_runtime_report_end(struct ec_runtime *k, const struct stw_run *run, struct ec_kept *kept,
                           int64_t not_after)
{
    if (not_after != 0)
        set_gauge(k, k->ends, &kept->cert_end, run, (double)not_after);
}

void ec_runtime_pause(void *state)
{
    struct ec_runtime *k = state;
    struct ec_kept *one;
    STW_LOCKED(&k->lock);
    for (uint32_t pos = 0; (one = stw_table_next(&k->kept, &pos));)
        remove_gauges(one);
}

void ec_runtime_count_defragmented(struct ec_runtime *k, const struct stw_run *run,
                                   enum ec_result result, int64_t reclaimed)
{
    struct ec_kept *kept = k ? ec_runtime_get(k, run) : NULL;
    if (!kept || !k->defragmented)
        return;
    struct stw_series **counted = &kept->defragmented[result];
    if (!*counted)
        *counted = STW_SERIES(k->defragmented, run->ns, run->name,
                              result == EC_RESULT_DONE ? "succeeded" : "failed");
    if (!kept->reclaimed)
        kept->reclaimed = STW_SERIES(k->reclaimed, run->ns, run->name);
    stw_series_add(*counted, 1);
    stw_series_add(kept->reclaimed, (double)reclaimed);
}

void ec_runtime_forget(struct ec_runtime *k, const char *key)
{
    ec_turns_end(k->turns, key);
    pthread_mutex_lock(&k->lock);
    struct ec_kept *one = stw_table_remove(&k->kept, key);
    k->etcd_bytes -= one ? one->etcd_bytes : 0;
    pthread_mutex_unlock(&k->lock);
    if (one) {
        remove_gauges(one);
        stw_series_remove(one->reclaimed);
        for (int i = 0; i < EC_RESULTS; i++)
            stw_series_remove(one->defragmented[i]);
    }
    free_kept(one);
}
