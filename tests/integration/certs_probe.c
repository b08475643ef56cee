/* SPDX-License-Identifier: Apache-2.0
 *
 * The certificates of Secret mode against a real API server, for test_certs.py: one replica, whose
 * wall clock can be set ahead.  Reads commands from standard input, one per line, and answers each
 * with one line of JSON.
 *
 *     status         {"ready": ..., "why": ..., "uses": N, "cert": PEM, "metrics": TEXT}
 *     shift SECONDS  sets the wall clock ahead by this much more
 *     quit
 *
 * Arguments: NAMESPACE SECRET MUTATING VALIDATING NAME... (DNS names and IP addresses, and crd=NAME of
 * a CRD whose conversion webhook it serves). */
#include "base/log.h"
#include "base/util.h"
#include "certs/certs.h"
#include "schema/kind.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static const struct stw_kind own_kinds[] = {{.group = "example.com", .singular = "one"},
                                            {.group = "example.com", .singular = "two"},
                                            {.group = "example.com", .singular = "three"}};
static const struct stw_kind *const kinds[] = {&own_kinds[0], &own_kinds[1], &own_kinds[2], NULL};
static const struct stw_operator probe_operator = {.name = "steward",
                                                   .domain = "steward.dev",
                                                   .metric_prefix = "steward",
                                                   .version = "1.2.3",
                                                   .kinds = kinds};

#define NAMES_MAX 8
#define SETTLE_S 1
#define OVERLAP_S 3600

struct probe {
    struct stw_client *client;
    struct stw_metrics *metrics;
    struct stw_certs *certs;
    const char *dns[NAMES_MAX + 1], *ips[NAMES_MAX + 1];
    const char *crds[2];

    pthread_mutex_t lock;
    char *cert;    /* guarded by lock: in service */
    unsigned uses; /* guarded by lock */
};

static atomic_llong ahead_us;

static uint64_t monotonic(void *ctx)
{
    (void)ctx;
    return stw_now_ms(&stw_clock_system);
}
static int64_t wall(void *ctx)
{
    (void)ctx;
    return stw_wall_us(&stw_clock_system) + atomic_load(&ahead_us);
}
static const struct stw_clock shifted = {.monotonic_ms = monotonic, .wall_us = wall};

static int use(void *ctx, const char *cert_pem, const char *key_pem, struct stw_error *err)
{
    struct probe *p = ctx;
    (void)key_pem, (void)err;
    pthread_mutex_lock(&p->lock);
    free(p->cert);
    p->cert = strdup(cert_pem);
    p->uses++;
    pthread_mutex_unlock(&p->lock);
    return 0;
}

static void answer_status(struct probe *p)
{
    char why[600];
    struct stw_buf stw_autobuf out = STW_BUF_INIT(1 << 20);
    struct stw_buf stw_autobuf metrics = STW_BUF_INIT(1 << 20);
    bool ready = stw_certs_ready(p->certs, why, sizeof(why));
    stw_metrics_render(p->metrics, &metrics);
    stw_buf_addf(&out, "{\"ready\":%s,\"why\":", ready ? "true" : "false");
    stw_buf_json_strz(&out, why);
    pthread_mutex_lock(&p->lock);
    stw_buf_addf(&out, ",\"uses\":%u,\"cert\":", p->uses);
    stw_buf_json_strz(&out, p->cert ? p->cert : "");
    pthread_mutex_unlock(&p->lock);
    stw_buf_adds(&out, ",\"metrics\":");
    stw_buf_json_strz(&out, stw_buf_str(&metrics));
    (void)printf("%s}\n", stw_buf_str(&out));
}

/* False ends the program. */
static bool obey(struct probe *p, char *line)
{
    int64_t seconds;
    line[strcspn(line, "\n")] = '\0';
    if (stw_streq(line, "quit"))
        return false;
    if (stw_streq(line, "status")) {
        answer_status(p);
    } else if (strncmp(line, "shift ", 6) == 0 &&
               stw_parse_int(line + 6, 0, INT32_MAX, &seconds) == 0) {
        (void)atomic_fetch_add(&ahead_us, seconds * 1000000);
        stw_certs_poke(p->certs);
        (void)printf("{}\n");
    } else {
        (void)printf("{\"error\":\"no such command\"}\n");
    }
    (void)fflush(stdout);
    return true;
}

static void add_names(struct probe *p, char **names)
{
    size_t dns = 0, ips = 0;
    for (; *names && dns < NAMES_MAX && ips < NAMES_MAX; names++) {
        bool ip = (*names)[strspn(*names, "0123456789.:")] == '\0';
        if (strncmp(*names, "crd=", 4) == 0)
            p->crds[0] = *names + 4;
        else if (ip)
            p->ips[ips++] = *names;
        else
            p->dns[dns++] = *names;
    }
}

static int start(struct probe *p, char **argv, struct stw_error *err)
{
    struct stw_kubeconfig *kubeconfig = NULL;
    if (stw_kubeconfig_load(NULL, NULL, &kubeconfig, err) < 0)
        return -1;
    int rc =
        stw_client_create(&probe_operator, kubeconfig, &stw_clock_system, NULL, &p->client, err);
    stw_kubeconfig_destroy(kubeconfig);
    if (rc < 0)
        return -1;
    add_names(p, argv + 5);
    const struct stw_certs_config config = {.op = &probe_operator,
                                            .client = p->client,
                                            .ns = argv[1],
                                            .secret = argv[2],
                                            .mutating = argv[3],
                                            .validating = argv[4],
                                            .crds = p->crds,
                                            .dns_names = p->dns,
                                            .ip_addresses = p->ips,
                                            .settle_seconds = SETTLE_S,
                                            .overlap_seconds = OVERLAP_S,
                                            .use = use,
                                            .ctx = p};
    return stw_certs_create(&config, &shifted, p->metrics, &p->certs, err) < 0
               ? -1
               : stw_certs_start(p->certs, err);
}

int main(int argc, char **argv)
{
    struct probe p = {.metrics = stw_metrics_create("steward")};
    struct stw_error err = {0};
    char line[256];
    if (argc < 6) {
        (void)fprintf(stderr, "usage: %s NAMESPACE SECRET MUTATING VALIDATING NAME...\n", argv[0]);
        return 2;
    }
    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, 2);
    (void)pthread_mutex_init(&p.lock, NULL);
    int rc = start(&p, argv, &err);
    if (rc < 0)
        (void)fprintf(stderr, "%s\n", err.text);
    while (rc == 0 && fgets(line, sizeof(line), stdin) && obey(&p, line))
        ;
    if (p.client)
        stw_client_cancel(p.client);
    stw_certs_destroy(p.certs);
    stw_client_destroy(p.client);
    stw_metrics_destroy(p.metrics);
    free(p.cert);
    return rc < 0 ? 1 : 0;
}
