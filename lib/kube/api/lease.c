/* SPDX-License-Identifier: Apache-2.0
 *
 * Leader election.  One thread does all of it: it acquires, renews, and calls back.  Another
 * holder's clock is never trusted: a lease expires when its record has not changed for its duration
 * by our own clock (as in client-go's tools/leaderelection).  A watch on the Lease wakes a
 * candidate as soon as it is released. */
#include "kube/lease.h"

#include "base/backoff.h"
#include "base/json.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "kube/informer.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>

#define DURATION_MS 15000
#define RENEW_MS 10000
#define RETRY_MS 2000
#define JITTER 1.2 /* a candidate waits retry_ms to 2.2 * retry_ms */
#define NAME_LEN 320
#define DURATION_MAX_S (int64_t)(24 * 3600) /* in another holder's record */

/* The fields of the Lease that the election uses. */
struct lease_record {
    char holder[NAME_LEN];
    char rv[STW_RV_LEN];
    char acquire_time[STW_TIME_LEN];
    int64_t duration_s, transitions;
};

struct stw_lease {
    struct stw_client *client;
    const struct stw_clock *clock;
    struct stw_lease_config config;
    char ns[254], name[254], identity[NAME_LEN], selector[300];
    const char *namespaces[2];
    struct stw_series *master;
    struct stw_informer *watch;
    pthread_t thread;
    bool started;

    pthread_mutex_t lock;
    pthread_cond_t turn;
    bool stopping, released; /* released: the watch saw the Lease without a holder */
    _Atomic bool held;

    /* used by the thread only */
    struct lease_record seen;
    uint64_t seen_ms;    /* when `seen` changed, by our clock (stw_boot_ms) */
    uint64_t renewed_ms; /* when our last successful attempt began */
    int64_t epoch;       /* leaseTransitions of our term */
};

static int copy_names(struct stw_lease *l, const struct stw_lease_config *config,
                      struct stw_error *err)
{
    if (stw_format_whole(l->ns, sizeof(l->ns), "%s", config->ns ? config->ns : "") != 0 ||
        stw_format_whole(l->name, sizeof(l->name), "%s", config->name) != 0 ||
        stw_format_whole(l->identity, sizeof(l->identity), "%s", config->identity) != 0)
        return stw_fail(err, STW_ERR_INVALID, "a name of Lease \"%s\" is too long", config->name);
    return 0;
}

static int parse_record(const struct stw_buf *text, struct lease_record *r)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err;
    if (stw_json_scan(&doc, stw_buf_str(text), text->len, &err) != 0)
        return -1;
    struct stw_json spec = stw_json_get(stw_json_root(&doc), "spec");
    *r = (struct lease_record){.duration_s = DURATION_MS / 1000};
    (void)stw_json_strcpy(stw_json_get(spec, "holderIdentity"), r->holder, sizeof(r->holder));
    (void)stw_json_strcpy(stw_json_get(spec, "acquireTime"), r->acquire_time,
                          sizeof(r->acquire_time));
    (void)stw_json_int(stw_json_get(spec, "leaseDurationSeconds"), &r->duration_s);
    (void)stw_json_int(stw_json_get(spec, "leaseTransitions"), &r->transitions);
    if (r->transitions < 0 || r->transitions >= INT32_MAX)
        r->transitions = 0;
    return stw_json_strcpy(stw_json_path(stw_json_root(&doc), "metadata.resourceVersion"), r->rv,
                           sizeof(r->rv));
}

static void update_seen_record(struct stw_lease *l, const struct lease_record *r)
{
    if (!stw_streq(l->seen.rv, r->rv))
        l->seen_ms = stw_boot_ms(l->clock);
    l->seen = *r;
}

static json_t *lease_object(const struct stw_lease *l, const char *holder, int64_t duration_s,
                            const char *acquire_time, int64_t transitions, const char *rv)
{
    char now[STW_TIME_LEN];
    stw_time_format_micro(stw_wall_us(l->clock), now);
    json_t *meta = json_pack("{s:s, s:s}", "name", l->name, "namespace", l->ns);
    if (rv)
        json_object_set_new(meta, "resourceVersion", json_string(rv));
    return json_pack("{s:s, s:s, s:o, s:{s:s, s:I, s:s, s:s, s:I}}", "apiVersion",
                     "coordination.k8s.io/v1", "kind", "Lease", "metadata", meta, "spec",
                     "holderIdentity", holder, "leaseDurationSeconds", (json_int_t)duration_s,
                     "acquireTime", *acquire_time ? acquire_time : now, "renewTime", now,
                     "leaseTransitions", (json_int_t)transitions);
}

/* The timeout of a request.  Even when the server does not respond, a leader must learn in time
 * that it has lost the lease, and stop before another may begin. */
static uint32_t patience_ms(const struct stw_lease *l)
{
    uint64_t until = l->renewed_ms + l->config.renew_ms, now = stw_boot_ms(l->clock);
    uint32_t most = STW_MAX(l->config.renew_ms / 2, 1U);
    if (!atomic_load(&l->held))
        return most;
    return until > now ? (uint32_t)STW_MIN(until - now, (uint64_t)most) : 1;
}

/* Takes the reference to `object`; NULL: a GET.  A throttled request is not retried: the next
 * attempt follows soon. */
static int send_lease_request(struct stw_lease *l, const char *method, json_t *object,
                              struct stw_buf *ret, struct stw_error *err)
{
    stw_autobuf struct stw_buf path = STW_BUF_INIT(2048);
    stw_autofree char *body = object ? json_dumps(object, JSON_COMPACT) : NULL;
    bool failed = object && !body;
    json_decref(object);
    if (failed)
        return stw_fail_memory(err);
    const char *name = stw_streq(method, "POST") ? NULL : l->name;
    stw_resource_path(&stw_res_lease, l->ns, name, NULL, &path);
    struct stw_request req = {.method = method,
                              .path = stw_buf_str(&path),
                              .body = body,
                              .body_len = body ? strlen(body) : 0,
                              .timeout_ms = patience_ms(l),
                              .no_retry = true};
    return stw_client_do(l->client, &req, ret, err);
}

/* Sends a request and records the Lease that it returns as the current one. */
static int exchange_record(struct stw_lease *l, const char *method, json_t *object,
                           struct stw_error *err)
{
    struct lease_record r;
    stw_autobuf struct stw_buf answer = STW_BUF_INIT(1u << 20);
    if (send_lease_request(l, method, object, &answer, err) != 0)
        return -1;
    if (parse_record(&answer, &r) != 0)
        return stw_fail(err, STW_ERR_INVALID, "Lease %s/%s cannot be read", l->ns, l->name);
    update_seen_record(l, &r);
    return 0;
}

/* In whole seconds, as in the Lease, rounded up. */
static int64_t duration_s(const struct stw_lease *l)
{
    return (l->config.duration_ms + 999) / 1000;
}

static int create_record(struct stw_lease *l, struct stw_error *err)
{
    return exchange_record(l, "POST", lease_object(l, l->identity, duration_s(l), "", 0, NULL),
                           err);
}

static bool is_held_by_us(const struct stw_lease *l)
{
    return stw_streq(l->seen.holder, l->identity);
}

/* Writes us as the holder over the record that was last seen; a conflict when it is not the
 * newest. */
static int write_record(struct stw_lease *l, struct stw_error *err)
{
    bool ours = is_held_by_us(l);
    return exchange_record(l, "PUT",
                           lease_object(l, l->identity, duration_s(l),
                                        ours ? l->seen.acquire_time : "",
                                        l->seen.transitions + (ours ? 0 : 1), l->seen.rv),
                           err);
}

static bool runs_still(const struct stw_lease *l)
{
    int64_t seconds = STW_MAX(STW_MIN(l->seen.duration_s, DURATION_MAX_S), (int64_t)0);
    return *l->seen.holder && !is_held_by_us(l) &&
           stw_boot_ms(l->clock) < l->seen_ms + (uint64_t)seconds * 1000;
}

static int read_record(struct stw_lease *l, struct stw_error *err)
{
    return exchange_record(l, "GET", NULL, err);
}

/* One attempt to acquire or renew the lease.  0: ours; 1: held by another replica; -1: unknown. */
static int acquire_or_renew_lease(struct stw_lease *l, struct stw_error *err)
{
    if (atomic_load(&l->held)) {
        if (write_record(l, err) == 0)
            return 0; /* no other write since our last renewal: one request */
        if (err->code != STW_ERR_CONFLICT && err->code != STW_ERR_NOT_FOUND)
            return -1;
    }
    if (read_record(l, err) != 0)
        return err->code == STW_ERR_NOT_FOUND ? create_record(l, err) : -1;
    if (runs_still(l))
        return 1;
    return write_record(l, err);
}

static void open_fence(struct stw_lease *l)
{
    struct stw_fence_epoch e = {.number = l->seen.transitions};
    l->epoch = l->seen.transitions;
    if (!l->config.fence)
        return;
    stw_format(e.lease, sizeof(e.lease), "%s/%s", l->ns, l->name);
    stw_format(e.holder, sizeof(e.holder), "%s", l->identity);
    stw_fence_open(l->config.fence, l->renewed_ms + l->config.renew_ms, &e);
}

static void set_held(struct stw_lease *l, bool held)
{
    assert(held != atomic_load(&l->held));
    atomic_store(&l->held, held);
    if (held)
        open_fence(l);
    else if (l->config.fence)
        stw_fence_close(l->config.fence);
    stw_series_set(l->master, held);
    if (held)
        l->config.started(l->config.ctx);
    else
        l->config.stopped(l->config.ctx);
}

/* Another replica held the lease in between: the results of our term are stale, and a new term
 * begins. */
static void begin_again(struct stw_lease *l)
{
    stw_log(STW_LOG_WARN, "lost the lease and acquired it again");
    set_held(l, false);
    set_held(l, true);
}

static void handle_renewal(struct stw_lease *l)
{
    if (l->seen.transitions != l->epoch)
        begin_again(l);
    else if (l->config.fence)
        stw_fence_extend(l->config.fence, l->renewed_ms + l->config.renew_ms);
}

/* A leader that cannot renew stops before another may begin: renew_ms is less than duration_ms. */
static void turn_of_leader(struct stw_lease *l, int result, uint64_t began_ms,
                           const struct stw_error *err)
{
    if (result == 0) {
        l->renewed_ms = began_ms;
        handle_renewal(l);
        return;
    }
    if (result < 0 && stw_boot_ms(l->clock) < l->renewed_ms + l->config.renew_ms) {
        stw_log(STW_LOG_DEBUG, "lease not renewed yet", STW_STR("error", err->text));
        return;
    }
    stw_log(STW_LOG_WARN, "lost the lease", STW_STR("holder", l->seen.holder),
            STW_STR("error", result < 0 ? err->text : NULL));
    set_held(l, false);
}

static void turn_of_candidate(struct stw_lease *l, int result, uint64_t began_ms,
                              const struct stw_error *err)
{
    if (result == 0) {
        l->renewed_ms = began_ms;
        set_held(l, true);
    } else if (result < 0 && err->code != STW_ERR_CONFLICT && err->code != STW_ERR_EXISTS) {
        stw_log(STW_LOG_WARN, "cannot acquire the lease", STW_STR("error", err->text));
    }
}

static uint64_t pause_ms(const struct stw_lease *l)
{
    if (atomic_load(&l->held)) {
        uint64_t until = l->renewed_ms + l->config.renew_ms, now = stw_boot_ms(l->clock);
        return until > now ? STW_MIN(until - now, (uint64_t)l->config.retry_ms) : 0;
    }
    return l->config.retry_ms + (uint64_t)(JITTER * l->config.retry_ms *
                                           (double)(uint32_t)stw_random() / (double)UINT32_MAX);
}

/* Sleeps until it is time for the next attempt; true: stop. */
static bool wait_for_next_attempt(struct stw_lease *l)
{
    uint64_t deadline = stw_now_ms(&stw_clock_system) + pause_ms(l);
    (void)pthread_mutex_lock(&l->lock);
    while (!l->stopping && !l->released && stw_now_ms(&stw_clock_system) < deadline)
        stw_cond_wait_until(&l->turn, &l->lock, deadline);
    l->released = false;
    bool stopping = l->stopping;
    (void)pthread_mutex_unlock(&l->lock);
    return stopping;
}

/* Releases the lease, so that the next candidate need not wait. */
static void give_back(struct stw_lease *l)
{
    struct stw_error err = {0};
    json_t *object = lease_object(l, "", 1, "", l->seen.transitions, l->seen.rv);
    set_held(l, false);
    if (send_lease_request(l, "PUT", object, NULL, &err) != 0)
        stw_log(STW_LOG_WARN, "cannot release the lease, it will expire",
                STW_STR("error", err.text));
}

static void *run_election(void *arg)
{
    struct stw_lease *l = arg;
    do {
        struct stw_error err = {0};
        uint64_t began_ms = stw_boot_ms(l->clock);
        int result = acquire_or_renew_lease(l, &err);
        if (atomic_load(&l->held))
            turn_of_leader(l, result, began_ms, &err);
        else
            turn_of_candidate(l, result, began_ms, &err);
    } while (!wait_for_next_attempt(l));
    if (atomic_load(&l->held))
        give_back(l);
    return NULL;
}

/* --- the watch */

/* Keeps the holder only, so that renewals are not changes. */
static void project_lease_holder(void *ctx, struct stw_json object, struct stw_buf *out)
{
    char holder[NAME_LEN] = "";
    (void)ctx;
    (void)stw_json_strcpy(stw_json_path(object, "spec.holderIdentity"), holder, sizeof(holder));
    stw_buf_adds(out, "{\"holder\":");
    stw_buf_json_strz(out, holder);
    stw_buf_addc(out, '}');
}

static void handle_lease_change(void *ctx, const char *key, const char *old_text,
                                const char *new_text)
{
    struct stw_lease *l = ctx;
    (void)key;
    if (!old_text || (new_text && !stw_streq(new_text, "{\"holder\":\"\"}")))
        return;
    STW_LOCKED(&l->lock);
    l->released = true;
    (void)pthread_cond_signal(&l->turn);
}

static int create_watch(struct stw_lease *l, struct stw_metrics *metrics, struct stw_error *err)
{
    l->namespaces[0] = l->ns;
    stw_format(l->selector, sizeof(l->selector), "metadata.name=%s", l->name);
    struct stw_informer_config config = {
        .resource = &stw_res_lease,
        .namespaces = l->namespaces,
        .field_selector = l->selector,
        .project = project_lease_holder,
        .changed = handle_lease_change,
        .ctx = l,
    };
    return stw_informer_create(l->client, &config, l->clock, metrics, &l->watch, err);
}

/* --- lifecycle */

int stw_lease_create(struct stw_client *client, const struct stw_lease_config *config,
                     const struct stw_clock *clock, struct stw_metrics *metrics,
                     struct stw_lease **ret, struct stw_error *err)
{
    struct stw_lease *l = calloc(1, sizeof(*l));
    assert(config->name && config->identity && config->started && config->stopped);
    if (!l)
        return stw_fail_memory(err);
    l->client = client;
    l->clock = clock;
    l->config = *config;
    l->config.duration_ms = config->duration_ms ? config->duration_ms : DURATION_MS;
    l->config.renew_ms = config->renew_ms ? config->renew_ms : RENEW_MS;
    l->config.retry_ms = config->retry_ms ? config->retry_ms : RETRY_MS;
    (void)pthread_mutex_init(&l->lock, NULL);
    (void)stw_cond_init(&l->turn);
    struct stw_family *family =
        stw_metrics_family(metrics, STW_GAUGE, "leader_election_master_status",
                           "1 while this process leads, 0 while it stands by.",
                           (const char *const[]){"name", NULL}, NULL);
    l->master = STW_SERIES(family, l->name);
    if (copy_names(l, config, err) != 0 || create_watch(l, metrics, err) != 0) {
        stw_lease_destroy(l);
        return -1;
    }
    *ret = l;
    return 0;
}

int stw_lease_start(struct stw_lease *l, struct stw_error *err)
{
    if (stw_informer_start(l->watch, err) != 0 ||
        stw_thread_start(&l->thread, "election", 0, run_election, l, err) != 0)
        return -1;
    l->started = true;
    return 0;
}

bool stw_lease_held(const struct stw_lease *l)
{
    return atomic_load(&l->held);
}

void stw_lease_stop(struct stw_lease *l)
{
    (void)pthread_mutex_lock(&l->lock);
    l->stopping = true;
    (void)pthread_cond_signal(&l->turn);
    (void)pthread_mutex_unlock(&l->lock);
    if (l->started)
        (void)pthread_join(l->thread, NULL);
    l->started = false;
}

void stw_lease_destroy(struct stw_lease *l)
{
    if (!l)
        return;
    stw_lease_stop(l);
    stw_informer_destroy(l->watch);
    (void)pthread_cond_destroy(&l->turn);
    (void)pthread_mutex_destroy(&l->lock);
    free(l);
}
