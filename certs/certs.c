/* SPDX-License-Identifier: Apache-2.0
 *
 * The certificate thread: waits for a report or for a minute to pass, then runs a step of its mode. */
#include "certs_priv.h"

#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "certs/issue.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>

#define STACK_BYTES ((size_t)512 * 1024)
#define CA_DAYS 3650
#define LEAF_DAYS 90
#define SETTLE_S 10
#define OVERLAP_S 3600

/* --- the configuration, copied */

static int copy_string(const char **field, struct stw_error *err)
{
    if (!*field)
        return 0;
    *field = strdup(*field);
    return *field ? 0 : stw_fail_memory(err);
}

static void free_list(const char *const *list)
{
    for (const char *const *p = list; p && *p; p++)
        free((void *)(uintptr_t)*p);
    free((void *)(uintptr_t)list);
}

static int copy_list(const char *const **field, struct stw_error *err)
{
    size_t n = 0;
    while (*field && (*field)[n])
        n++;
    const char **list = calloc(n + 1, sizeof(*list));
    for (size_t i = 0; list && i < n; i++) {
        list[i] = strdup((*field)[i]);
        if (!list[i]) {
            free_list(list);
            list = NULL;
        }
    }
    *field = list;
    return list ? 0 : stw_fail_memory(err);
}

/* Every field is copied or NULL afterwards, even when a copy has failed. */
static int copy_config(struct stw_certs_config *c, struct stw_error *err)
{
    const char **const strings[] = {&c->folder, &c->ns, &c->secret, &c->mutating, &c->validating};
    int rc = 0;
    for (size_t i = 0; i < STW_COUNT(strings); i++)
        rc |= copy_string(strings[i], err);
    rc |= copy_list(&c->dns_names, err);
    rc |= copy_list(&c->ip_addresses, err);
    rc |= copy_list(&c->crds, err);
    return rc;
}

static void free_config(struct stw_certs_config *c)
{
    const char *const strings[] = {c->folder, c->ns, c->secret, c->mutating, c->validating};
    for (size_t i = 0; i < STW_COUNT(strings); i++)
        free((void *)(uintptr_t)strings[i]);
    free_list(c->dns_names);
    free_list(c->ip_addresses);
    free_list(c->crds);
}

static size_t count_list(const char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

static bool empty_list(const char *const *list)
{
    return !list || !*list;
}

static int check_config(const struct stw_certs_config *c, struct stw_error *err)
{
    if (!c->folder == !c->client)
        return stw_fail(
            err, STW_ERR_INVALID,
            "certificates come either from a folder or from a Secret: name one of them");
    if (c->folder)
        return 0;
    if (!c->op)
        return stw_fail(err, STW_ERR_INVALID, "the Secret for certificates needs an operator");
    if (stw_operator_check(c->op, err) != 0)
        return -1;
    if (!c->ns || !*c->ns || !c->secret || !*c->secret)
        return stw_fail(err, STW_ERR_INVALID,
                        "the Secret for certificates needs a namespace and a name");
    if (empty_list(c->dns_names) && empty_list(c->ip_addresses))
        return stw_fail(err, STW_ERR_INVALID,
                        "a serving certificate needs at least one DNS name or IP address");
    if (count_list(c->crds) > STW_CERTS_CRDS_MAX)
        return stw_fail(err, STW_ERR_INVALID,
                        "%zu kinds have several versions; at most %d can be converted",
                        count_list(c->crds), STW_CERTS_CRDS_MAX);
    if (c->leaf_days > c->ca_days)
        return stw_fail(err, STW_ERR_INVALID,
                        "a serving certificate of %u days would outlive its CA of %u days",
                        c->leaf_days, c->ca_days);
    return 0;
}

static void set_defaults(struct stw_certs_config *c)
{
    struct {
        uint32_t *field, value;
    } const defaults[] = {{&c->ca_days, CA_DAYS},
                          {&c->leaf_days, STW_MIN(LEAF_DAYS, c->ca_days ? c->ca_days : CA_DAYS)},
                          {&c->settle_seconds, SETTLE_S},
                          {&c->overlap_seconds, OVERLAP_S}};
    for (size_t i = 0; i < STW_COUNT(defaults); i++)
        if (*defaults[i].field == 0)
            *defaults[i].field = defaults[i].value;
}

/* --- create and destroy */

static void register_cert_metrics(struct stw_certs *c)
{
    static const char *const labels[] = {"cert", NULL};
    struct stw_family *end;
    if (!c->metrics)
        return;
    end = stw_metrics_family(c->metrics, STW_GAUGE, "_certificate_not_after_seconds",
                             "When the certificate expires, in seconds since the epoch.", labels,
                             NULL);
    c->serving_end = STW_SERIES(end, c->config.label ? c->config.label : "serving");
    c->ca_end = c->config.label ? NULL : STW_SERIES(end, "ca");
    c->reads = STW_SERIES0(stw_metrics_family(c->metrics, STW_COUNTER,
                                              "certwatcher_read_certificate_total",
                                              "Total number of certificate reads", NULL, NULL));
    c->errors = STW_SERIES0(
        stw_metrics_family(c->metrics, STW_COUNTER, "certwatcher_read_certificate_errors_total",
                           "Total number of certificate read errors", NULL, NULL));
}

int stw_certs_create(const struct stw_certs_config *config, const struct stw_clock *clock,
                     struct stw_metrics *metrics, struct stw_certs **ret, struct stw_error *err)
{
    struct stw_certs *c = calloc(1, sizeof(*c));
    if (!c)
        return stw_fail_memory(err);
    c->config = *config;
    c->clock = clock;
    c->metrics = metrics;
    c->folder.notify = STW_NOTIFY_INIT;
    c->mode = config->folder ? &stw_certs_folder_mode : &stw_certs_secret_mode;
    (void)pthread_mutex_init(&c->lock, NULL);
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    set_defaults(&c->config);
    int rc = copy_config(&c->config, err);
    if (c->wake < 0)
        rc = stw_fail(err, STW_ERR_INTERNAL, "cannot make an eventfd: %s", strerrordesc_np(errno));
    if (rc < 0 || check_config(&c->config, err) != 0) {
        stw_certs_destroy(c);
        return -1;
    }
    register_cert_metrics(c);
    *ret = c;
    return 0;
}

void stw_certs_destroy(struct stw_certs *c)
{
    if (!c)
        return;
    atomic_store(&c->stop, true);
    if (c->running) {
        stw_certs_poke(c);
        (void)pthread_join(c->thread, NULL);
    }
    c->mode->close(c);
    if (c->wake >= 0)
        (void)close(c->wake);
    free_config(&c->config);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

/* --- the thread */

static void watch_expiry(struct stw_certs *c)
{
    pthread_mutex_lock(&c->lock);
    int64_t end_us = c->not_after_us;
    pthread_mutex_unlock(&c->lock);
    if (end_us == 0 || end_us > stw_wall_us(c->clock) || c->expired_said)
        return;
    char end[STW_TIME_LEN];
    stw_time_format(end_us, end);
    stw_log(STW_LOG_ERROR, "the serving certificate has expired", STW_STR("notAfter", end));
    c->expired_said = true;
}

/* True when something was reported, false on a timeout. */
static bool wait_for_change(struct stw_certs *c, uint64_t ms)
{
    struct pollfd fds[] = {{.fd = c->wake, .events = POLLIN},
                           {.fd = c->mode->fd(c), .events = POLLIN}};
    uint64_t count;
    int n = poll(fds, STW_COUNT(fds), (int)STW_MIN(ms, (uint64_t)STW_CERTS_TICK_MS));
    while (read(c->wake, &count, sizeof(count)) > 0)
        ;
    return n > 0;
}

static void *certs_thread(void *arg)
{
    struct stw_certs *c = arg;
    bool woken = true;
    while (!atomic_load(&c->stop)) {
        uint64_t wait_ms = c->mode->step(c, woken);
        watch_expiry(c);
        woken = wait_for_change(c, wait_ms);
    }
    return NULL;
}

int stw_certs_start(struct stw_certs *c, struct stw_error *err)
{
    assert(c->mode);
    if (c->mode->open(c, err) != 0 ||
        stw_thread_start(&c->thread, "certs", STACK_BYTES, certs_thread, c, err) != 0)
        return -1;
    c->running = true;
    return 0;
}
