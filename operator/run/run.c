/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward run`: starts all modules, and stops them in the order that does not disrupt clients. */
#include "base/backoff.h"
#include "base/log.h"
#include "base/process/footprint.h"
#include "base/telemetry/log_writer.h"
#include "base/util.h"
#include "controller/controller.h"
#include "kube/client.h"
#include "kube/client/pulse.h"
#include "kube/kubeconfig.h"
#include "operator/command.h"
#include "operator/installed/kind_choice.h"
#include "operator/main/confine.h"
#include "operator/main/names.h"
#include "operator/print/print.h"
#include "operator/run/debug_state.h"
#include "operator/run/serve.h"
#include "operator/run/shadow.h"

#include <curl/curl.h>

#define CLIENT_STUCK_MS 180000U /* a credential plugin may run for a minute, and twice */

static const char usage[] =
    "Usage: {operator} run [OPTIONS]\n\n"
    "Serves admission for {operator}'s kinds and reconciles their objects, in a cluster or beside "
    "it.\n"
    "`{operator} print crds`, `print rbac` and `print webhooks` write what the cluster needs "
    "first.\n";

struct run {
    struct stw_settings *settings;
    struct stw_serve serve;
    struct stw_kubeconfig *kubeconfig;
    struct stw_client *client;
    struct stw_manager *manager;
    char **namespaces, **hosts;
    char ns[STW_OWN_NAME_LEN];
    struct stw_buf grant_command;
    struct stw_debug_state debug_state;
    struct stw_shadow *shadow; /* of --shadow */
    char identity[320];
    struct stw_buf dns[6];
    char metrics_service[STW_OWN_NAME_LEN];
    const char *dns_names[6 + 32 + 1], *ip_addresses[32 + 1];
    char crd_names[STW_CERTS_CRDS_MAX + 1][STW_OWN_NAME_LEN];
    const char *crds[STW_CERTS_CRDS_MAX + 2];
};

/* steward's own namespace: from the option, the pod's, or the default. */
static void choose_namespace(struct run *r)
{
    bool in_pod = stw_streq(r->kubeconfig->source, "in-cluster");
    char own[STW_OWN_NAME_LEN];
    stw_operator_text(r->serve.host.op, STW_DEFAULT_NAMESPACE, own);
    const char *ns = r->settings->ns && *r->settings->ns ? r->settings->ns
                     : in_pod && r->kubeconfig->ns       ? r->kubeconfig->ns
                                                         : own;
    stw_format(r->ns, sizeof(r->ns), "%s", ns);
}

/* As in client-go: host name, "_", random digits, so that a restarted process is a new
 * candidate. */
static void choose_identity(struct run *r)
{
    char host[256];
    stw_format(host, sizeof(host), "%s", r->serve.host.op->name);
    (void)gethostname(host, sizeof(host) - 1);
    stw_format(r->identity, sizeof(r->identity), "%s_%016llx", host,
               (unsigned long long)stw_random());
}

static bool is_address(const char *host)
{
    return strchr(host, ':') || host[strspn(host, "0123456789.")] == '\0';
}

/* The names in the serving certificate: three for the webhook Service and three for the metrics
 * Service, plus --webhook-hosts. */
static int choose_names(struct run *r, struct stw_error *err)
{
    static const char *const suffixes[] = {".svc", ".svc.cluster.local", ""};
    size_t dns = 0, ip = 0;
    stw_operator_text(r->serve.host.op, STW_METRICS_SERVICE, r->metrics_service);
    for (size_t i = 0; i < STW_COUNT(r->dns); i++) {
        const char *service =
            i < STW_COUNT(suffixes) ? r->settings->webhook_service : r->metrics_service;
        r->dns[i] = STW_BUF_INIT(600);
        stw_buf_addf(&r->dns[i], "%s.%s%s", service, r->ns, suffixes[i % STW_COUNT(suffixes)]);
        if (r->dns[i].failed)
            return stw_fail_memory(err);
        r->dns_names[dns++] = stw_buf_str(&r->dns[i]);
    }
    if (stw_list_split(r->settings->webhook_hosts, &r->hosts, err) != 0)
        return stw_error_wrap(err, "--webhook-hosts");
    for (char **h = r->hosts; h && *h; h++) {
        if (is_address(*h) && ip < STW_COUNT(r->ip_addresses) - 1)
            r->ip_addresses[ip++] = *h;
        else if (!is_address(*h) && dns < STW_COUNT(r->dns_names) - 1)
            r->dns_names[dns++] = *h;
    }
    return 0;
}

static int connect_api(struct run *r, struct stw_error *err)
{
    const struct stw_settings *s = r->settings;
    if (stw_kubeconfig_load(s->kubeconfig, s->context, &r->kubeconfig, err) != 0)
        return -1;
    choose_namespace(r);
    choose_identity(r);
    if (choose_names(r, err) != 0)
        return -1;
    r->serve.host.kubeconfig = r->kubeconfig;
    r->serve.host.ns = r->ns;
    stw_confine(s, &r->serve.host); /* before the first thread */
    if (stw_log_writer_start(err) != 0 || stw_serve_traces(&r->serve, err) != 0)
        return -1;
    stw_log(STW_LOG_INFO, "using cluster", STW_STR("server", r->kubeconfig->server),
            STW_STR("source", r->kubeconfig->source), STW_STR("namespace", r->ns));
    if (stw_client_create(r->serve.host.op, r->kubeconfig, &stw_clock_system, r->serve.metrics,
                          &r->client, err) != 0)
        return -1;
    if (s->shadow) {
        r->shadow = stw_shadow_create();
        if (!r->shadow)
            return stw_fail_memory(err);
        stw_client_set_shadow(r->client, r->shadow);
    }
    r->serve.client = r->client;
    r->serve.host.client = r->client;
    return stw_host_connect(&r->serve.host, err);
}

static int create_manager(struct run *r, struct stw_error *err)
{
    const struct stw_settings *s = r->settings;
    if (stw_list_split(s->namespaces, &r->namespaces, err) != 0)
        return stw_error_wrap(err, "--namespaces");
    r->grant_command = STW_BUF_INIT(16384);
    stw_print_rbac_command(r->serve.host.op, r->ns, s->namespaces, &r->grant_command);
    struct stw_manager_config config = {
        .op = r->serve.host.op,
        .client = r->client,
        .clock = &stw_clock_system,
        .metrics = r->serve.metrics,
        .namespaces = (const char *const *)r->namespaces,
        .workers = (uint32_t)s->workers,
        .update_templates = stw_streq(s->template_updates, "immediately"),
        .leader_elect = s->leader_elect,
        .webhook_only = !s->reconcile,
        .lease_ns = r->ns,
        .identity = r->identity,
        .product = r->serve.host.product,
        .shadow = s->shadow,
        .grant_command = stw_buf_str(&r->grant_command),
    };
    if (stw_manager_create(&config, &r->manager, err) != 0)
        return -1;
    r->serve.env.lookup = stw_manager_lookup(r->manager);
    r->debug_state.op = r->serve.host.op;
    r->debug_state.manager = r->manager;
    r->debug_state.ready = r->serve.ready;
    r->debug_state.started_us = stw_wall_us(&stw_clock_system);
    r->serve.page = (struct stw_metrics_page){
        .path = STW_DEBUG_STATE_PATH, .write = stw_debug_state_write, .ctx = &r->debug_state};
    return 0;
}

/* One more than can be converted is listed: it is refused with words. */
static void list_converted_crds(struct run *r)
{
    size_t count = 0;
    for (const struct stw_kind *const *k = r->serve.host.op->kinds; *k; k++) {
        if (!(*k)->versions || !(*k)->versions->name || count >= STW_COUNT(r->crd_names))
            continue;
        stw_format(r->crd_names[count], sizeof(r->crd_names[0]), "%s.%s", (*k)->plural,
                   (*k)->group);
        r->crds[count] = r->crd_names[count];
        count++;
    }
}

static int open_webhook(struct run *r, struct stw_error *err)
{
    const struct stw_operator *op = r->serve.host.op;
    char secret[STW_OWN_NAME_LEN], mutating[STW_OWN_NAME_LEN], validating[STW_OWN_NAME_LEN];
    stw_operator_text(op, STW_CERTS_SECRET, secret);
    stw_operator_text(op, STW_CERTS_MUTATING, mutating);
    stw_operator_text(op, STW_CERTS_VALIDATING, validating);
    struct stw_certs_config certs = {
        .op = op,
        .client = r->client,
        .ns = r->ns,
        .secret = secret,
        .dns_names = r->dns_names,
        .ip_addresses = r->ip_addresses,
        .mutating = mutating,
        .validating = validating,
        .crds = r->crds,
    };
    list_converted_crds(r);
    if (r->settings->webhook_cert_path && *r->settings->webhook_cert_path)
        certs = (struct stw_certs_config){.folder = r->settings->webhook_cert_path};
    return stw_serve_webhook(&r->serve, &certs, err);
}

static bool caches_ok(void *ctx, char *why, size_t why_size)
{
    return stw_manager_synced(ctx, why, why_size);
}

static bool workers_ok(void *ctx, char *why, size_t why_size)
{
    return stw_manager_alive(ctx, why, why_size);
}

/* Reads the API for the caches: without it, reconciles see old objects. */
static bool client_ok(void *ctx, char *why, size_t why_size)
{
    uint64_t silent = stw_client_silent_ms(ctx);
    if (silent > CLIENT_STUCK_MS)
        stw_format(why, why_size, "the thread of the API client is stuck for %llu s",
                   (unsigned long long)silent / 1000);
    return silent <= CLIENT_STUCK_MS;
}

static int start_modules(struct run *r, struct stw_error *err)
{
    bool serves = !r->settings->shadow;
    if (stw_host_open(&r->serve.host, err) != 0 || connect_api(r, err) != 0 ||
        create_manager(r, err) != 0 || (serves && open_webhook(r, err) != 0))
        return -1;
    stw_serve_add_ready(&r->serve, &(struct stw_probe){"caches", caches_ok, r->manager});
    stw_serve_add_live(&r->serve, &(struct stw_probe){"workers", workers_ok, r->manager});
    stw_serve_add_live(&r->serve, &(struct stw_probe){"client", client_ok, r->client});
    atomic_store(&r->debug_state.complete, true);
    if (serves && stw_serve_probes(&r->serve, err) != 0)
        return -1;
    if (stw_host_start(&r->serve.host, err) != 0)
        return -1;
    stw_footprint_shrink(); /* the startup code is not needed while lists are read */
    return stw_manager_start(r->manager, err);
}

/* Release the lease first, so that another replica takes over while this one still serves admission
 * until the Service's endpoints are updated. */
static void stop_controllers(struct run *r)
{
    uint64_t begin = stw_now_ms(&stw_clock_system);
    stw_host_stop(&r->serve.host);
    stw_manager_stop(r->manager, STW_SERVE_STOP_MS);
    uint64_t gone = stw_now_ms(&stw_clock_system) - begin;
    uint64_t delay = (uint64_t)r->settings->shutdown_delay_ms;
    if (gone < delay)
        (void)usleep((useconds_t)((delay - gone) * 1000));
}

static void free_modules(struct run *r)
{
    stw_host_stop(&r->serve.host);
    stw_serve_done(&r->serve); /* uses the manager's caches until then */
    stw_manager_destroy(r->manager);
    stw_host_close(&r->serve.host);
    stw_client_destroy(r->client);
    stw_shadow_destroy(r->shadow);
    stw_serve_end_traces(&r->serve);
    stw_metrics_destroy(r->serve.metrics);
    stw_kubeconfig_destroy(r->kubeconfig);
    stw_buf_done(&r->grant_command);
    stw_list_free(r->namespaces);
    stw_list_free(r->hosts);
    for (size_t i = 0; i < STW_COUNT(r->dns); i++)
        stw_buf_done(&r->dns[i]);
}

static int report_shadow(struct run *r)
{
    const struct stw_shadow_job job = {
        .op = r->serve.host.op,
        .manager = r->manager,
        .shadow = r->shadow,
        .signals = &r->serve.signals,
        .timeout_ms = r->settings->shadow_timeout_ms,
        .json = stw_streq(r->settings->shadow_output, "json"),
        .out = stdout,
    };
    bool settled = stw_shadow_wait(&job);
    stop_controllers(r);
    return stw_shadow_report(&job, settled);
}

/* -1, or the exit status. */
static int run_operator(const struct stw_call *call, struct stw_settings *settings,
                        struct stw_error *err)
{
    struct run r = {.settings = settings};
    stw_serve_prepare(&r.serve, call, settings);
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
    int status = start_modules(&r, err);
    if (status == 0 && settings->shadow) {
        status = report_shadow(&r);
    } else if (status == 0) {
        stw_serve_wait(&r.serve);
        stop_controllers(&r);
    }
    free_modules(&r);
    return status;
}

static int start_run(const struct stw_call *call)
{
    struct stw_settings settings = {0};
    struct stw_kind_choice choice;
    struct stw_error err = {0};
    int status = stw_settings_load(call, &settings);
    if (status < 0 && stw_kinds_choose(call->op, settings.kinds, &choice, &err) != 0)
        status = stw_usage_error(call->argv[0], "%s", err.text);
    if (status < 0) {
        struct stw_call chosen = *call;
        chosen.op = &choice.op;
        status = run_operator(&chosen, &settings, &err);
        if (status < 0) {
            stw_log(STW_LOG_ERROR, "cannot run", STW_STR("error", err.text));
            status = settings.shadow ? STW_EXIT_USAGE : STW_EXIT_REFUSED;
        }
        stw_serve_end_log();
    }
    stw_settings_done(call, &settings);
    return status;
}

const struct stw_command stw_command_run = {
    .name = "run",
    .summary = "admission webhook and controllers, in or beside a cluster",
    .usage = usage,
    .make_flags = stw_settings_run_flags,
    .run = start_run,
};
