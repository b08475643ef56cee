/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/run/serve.h"

#include "base/log.h"
#include "base/process/cgroup.h"
#include "base/process/footprint.h"
#include "base/process/memory_budget.h"
#include "base/process/sandbox.h"
#include "base/telemetry/log_writer.h"
#include "base/thread.h"
#include "base/util.h"
#include "operator/command.h"
#include "operator/installed/kind_choice.h"
#include "schema/kind.h"
#include "webhook/shares.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define MALLOC_KEEP_BYTES (256 * 1024)
#define DRAIN_MS 10000
#define STOP_SPARE_MS 5000
#define STOP_STACK_BYTES ((size_t)128 << 10)
#define LAST_LINES_MS 2000
/* The process is idle if it used less than 1 % of a core in this interval. */
#define SETTLED_EVERY_S 10
#define SETTLED_CPU_S 0.1
#define WORKED_CPU_S 0.3 /* minimum CPU use since the last shrink */

/* Raises the soft limit of descriptors to the hard limit. */
static void raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void set_log_metric(void *ctx)
{
    stw_series_set(ctx, (double)stw_log_dropped());
}

static void add_log_metric(struct stw_metrics *m)
{
    struct stw_family *dropped = stw_metrics_family(
        m, STW_COUNTER, "_log_lines_dropped_total",
        "Log lines that were lost because nothing read them in time, or their write failed.", NULL,
        NULL);
    (void)stw_metrics_on_collect(m, set_log_metric, STW_SERIES0(dropped));
}

/* Which kinds are managed; those that are not are also logged: nothing else here reports them. */
static void report_kinds(struct stw_serve *s, const struct stw_operator *op)
{
    stw_autobuf struct stw_buf others = STW_BUF_INIT(8192);
    struct stw_family *managed =
        stw_metrics_family(s->metrics, STW_GAUGE, "_kind_managed",
                           "1: the kind is managed; 0: it was left out with --kinds.",
                           (const char *const[]){"kind", NULL}, NULL);
    for (size_t i = 0; op->kinds[i]; i++)
        stw_series_set(STW_SERIES(managed, op->kinds[i]->kind), 1);
    for (size_t i = 0; op->others && op->others[i]; i++)
        stw_series_set(STW_SERIES(managed, op->others[i]->kind), 0);
    stw_kinds_names(op->others, &others);
    if (others.len)
        stw_log(STW_LOG_INFO,
                "kinds are left out: their objects are neither checked nor reconciled",
                STW_STR("kinds", stw_buf_str(&others)));
}

/* 0: unknown. */
static uint64_t memory_limit(const struct stw_settings *settings)
{
    uint64_t mib = (uint64_t)settings->memory_limit_mib;
    return mib > 0 ? mib << 20 : stw_cgroup_memory_limit();
}

/* The rest of the limit is for the program, its caches and memory that the allocator cannot
 * release. */
static size_t memory_for_clients(const struct stw_settings *settings)
{
    uint64_t mib = (uint64_t)settings->webhook_memory_mib, limit = memory_limit(settings);
    if (mib == 0 && limit > 0)
        mib = STW_MIN(limit / 8 * 3 >> 20, UINT64_C(256));
    return mib == 0 ? STW_CLIENT_MEMORY_DEFAULT : (size_t)STW_MAX(mib, UINT64_C(16)) << 20;
}

void stw_serve_prepare(struct stw_serve *s, const struct stw_call *call,
                       struct stw_settings *settings)
{
    const struct stw_extension *x = call->op->extension;
    *s = (struct stw_serve){.settings = settings};
    s->host = (struct stw_host){.op = call->op,
                                .command = call->command,
                                .options = settings->extra,
                                .config = settings->config,
                                .reconcile = settings->reconcile,
                                .reread = stw_settings_reread,
                                .reread_ctx = settings};
    stw_log_writer_prepare();
    sigemptyset(&s->signals);
    sigaddset(&s->signals, SIGTERM);
    sigaddset(&s->signals, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, &s->signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    raise_file_limit();
    stw_sandbox_no_dumps(); /* a core dump would contain secrets */
    /* With an arena per thread, each would keep the memory of its peak. */
    (void)mallopt(M_ARENA_MAX, 2);
    /* Set explicitly: otherwise glibc raises both when a large buffer is freed (a page of a list
     * has some megabytes), and then keeps that much for ever. */
    (void)mallopt(M_MMAP_THRESHOLD, MALLOC_KEEP_BYTES);
    (void)mallopt(M_TRIM_THRESHOLD, MALLOC_KEEP_BYTES);
    s->metrics = stw_metrics_create(call->op->metric_prefix);
    s->host.metrics = s->metrics;
    stw_metrics_add_process(s->metrics);
    add_log_metric(s->metrics);
    stw_memory_budget_set(memory_limit(settings));
    stw_memory_budget_set_share(STW_SHARE_ADMISSION, memory_for_clients(settings));
    stw_memory_budget_add_metrics(s->metrics);
    struct stw_family *build =
        stw_metrics_family(s->metrics, STW_GAUGE, "_build_info", "Which program this is.",
                           (const char *const[]){"version", "commit", NULL}, NULL);
    stw_series_set(STW_SERIES(build, call->op->version, x && x->commit ? x->commit : ""), 1);
    report_kinds(s, call->op);
    stw_tracer_make_metrics(s->metrics);
}

int stw_serve_traces(struct stw_serve *s, struct stw_error *err)
{
    const struct stw_operator *op = s->host.op;
    if (stw_otlp_config_read(s->settings->traces_endpoint, op->name, op->version, &s->traces,
                             err) != 0)
        return stw_error_wrap(err, "traces");
    if (!s->traces.endpoint)
        return 0;
    if (stw_otlp_start(&s->traces, s->metrics, &s->exporter, err) != 0)
        return stw_error_wrap(err, "traces");
    stw_log(STW_LOG_INFO, "exporting traces", STW_STR("endpoint", s->traces.name));
    return 0;
}

void stw_serve_end_traces(struct stw_serve *s)
{
    stw_otlp_stop(s->exporter, STW_OTLP_FLUSH_MS);
    s->exporter = NULL;
    stw_otlp_config_done(&s->traces);
}

static int use_certificate(void *ctx, const char *cert_pem, const char *key_pem,
                           struct stw_error *err)
{
    struct stw_serve *s = ctx;
    if (s->server && stw_server_set_certificate(s->server, cert_pem, key_pem, err) < 0)
        return -1;
    if (s->metrics_server && !s->metrics_certs)
        return stw_metrics_server_set_certificate(s->metrics_server, cert_pem, key_pem, err);
    return 0;
}

static int use_metrics_certificate(void *ctx, const char *cert_pem, const char *key_pem,
                                   struct stw_error *err)
{
    struct stw_serve *s = ctx;
    return stw_metrics_server_set_certificate(s->metrics_server, cert_pem, key_pem, err);
}

static bool certificate_ok(void *ctx, char *why, size_t why_size)
{
    struct stw_serve *s = ctx;
    return stw_certs_ready(s->certs, why, why_size);
}

static bool is_webhook_listening(void *ctx, char *why, size_t why_size)
{
    struct stw_serve *s = ctx;
    bool ok = stw_server_listening(s->server);
    if (!ok)
        stw_format(why, why_size, "the webhook takes no connections");
    return ok;
}

static bool is_webhook_alive(void *ctx, char *why, size_t why_size)
{
    struct stw_serve *s = ctx;
    return stw_server_alive(s->server, why, why_size);
}

static void add_probe(struct stw_probe *list, const struct stw_probe *probe)
{
    size_t n = 0;
    while (list[n].name)
        n++;
    if (n < STW_PROBES_MAX)
        list[n] = *probe;
}

void stw_serve_add_ready(struct stw_serve *s, const struct stw_probe *probe)
{
    add_probe(s->ready, probe);
}

void stw_serve_add_live(struct stw_serve *s, const struct stw_probe *probe)
{
    add_probe(s->live, probe);
}

static bool secure_metrics(const struct stw_serve *s)
{
    return s->client && s->settings->metrics_secure && *s->settings->metrics_bind &&
           !stw_streq(s->settings->metrics_bind, "0");
}

static int start_certs(struct stw_serve *s, const struct stw_certs_config *config,
                       struct stw_certs **ret, struct stw_error *err)
{
    if (stw_certs_create(config, &stw_clock_system, s->metrics, ret, err) < 0)
        return -1;
    return stw_certs_start(*ret, err);
}

/* Called before its certificate is available. */
static int open_metrics(struct stw_serve *s, struct stw_error *err)
{
    const char *folder = s->settings->metrics_cert_path;
    struct stw_access_config access = {.ask = stw_access_ask_client,
                                       .ctx = s->client,
                                       .clock = &stw_clock_system,
                                       .op = s->host.op};
    struct stw_metrics_server_config config = {.address = s->settings->metrics_bind,
                                               .clock = &stw_clock_system,
                                               .metrics = s->metrics,
                                               .memory_bytes = memory_for_clients(s->settings),
                                               .page = s->page};
    if (!secure_metrics(s))
        return 0;
    if (stw_access_create(&access, &config.access, err) < 0 ||
        stw_metrics_server_create(&config, &s->metrics_server, err) < 0)
        return -1;
    if (!folder || !*folder)
        return 0;
    struct stw_certs_config certs = {
        .folder = folder, .label = "metrics", .use = use_metrics_certificate, .ctx = s};
    return start_certs(s, &certs, &s->metrics_certs, err);
}

static int read_client_names(struct stw_serve *s, struct stw_error *err)
{
    const char *file = s->settings->webhook_client_ca, *names = s->settings->webhook_client_names;
    if (!file || !*file)
        return names && *names
                   ? stw_fail(
                         err, STW_ERR_INVALID,
                         "--webhook-client-names has no effect without --webhook-client-ca-file")
                   : 0;
    if (stw_list_split(names, &s->caller_names, err) != 0)
        return -1;
    struct stw_client_auth_config config = {
        .ca_file = file, .names = (const char *const *)s->caller_names, .clock = &stw_clock_system};
    return stw_client_auth_create(&config, &s->client_auth, err);
}

static int open_webhook(struct stw_serve *s, struct stw_error *err)
{
    s->env.op = s->host.op;
    s->env.product = s->host.product;
    if (read_client_names(s, err) < 0)
        return stw_error_wrap(err, "clients of the webhook");
    struct stw_server_config config = {
        .bind_address = s->settings->webhook_bind,
        .kinds = s->host.op->kinds,
        .env = &s->env,
        .clock = &stw_clock_system,
        .metrics = s->metrics,
        .memory_bytes = memory_for_clients(s->settings),
        .connection_limit = (uint32_t)s->settings->max_connections,
        .request_timeout_ms = (uint32_t)s->settings->request_timeout_ms,
        .idle_timeout_ms = (uint32_t)s->settings->idle_timeout_ms,
        .client_auth = s->client_auth,
    };
    if (stw_server_create(&config, &s->server, err) < 0)
        return stw_error_wrap(err, "webhook on %s", s->settings->webhook_bind);
    stw_serve_add_ready(s, &(struct stw_probe){"webhook", is_webhook_listening, s});
    stw_serve_add_live(s, &(struct stw_probe){"webhook", is_webhook_alive, s});
    stw_log(STW_LOG_INFO, "serving admission", STW_STR("address", s->settings->webhook_bind),
            STW_INT("port", stw_server_port(s->server)));
    return 0;
}

int stw_serve_webhook(struct stw_serve *s, struct stw_certs_config *certs, struct stw_error *err)
{
    if (open_metrics(s, err) < 0 || (s->settings->webhook && open_webhook(s, err) < 0))
        return -1;
    if (!s->server && (!s->metrics_server || s->metrics_certs))
        return 0; /* no server would use it */
    certs->use = use_certificate;
    certs->ctx = s;
    stw_serve_add_ready(s, &(struct stw_probe){"certificate", certificate_ok, s});
    return start_certs(s, certs, &s->certs, err);
}

int stw_serve_probes(struct stw_serve *s, struct stw_error *err)
{
    struct stw_probes_config config = {
        .health_address = s->settings->health_bind,
        .metrics_address = s->metrics_server ? "0" : s->settings->metrics_bind,
        .live = s->live,
        .ready = s->ready,
        .metrics = s->metrics,
        .memory_bytes = memory_for_clients(s->settings),
    };
    if (stw_probes_create(&config, &s->probes, err) < 0)
        return -1;
    stw_log(STW_LOG_INFO, "serving probes and metrics",
            STW_INT("healthPort", stw_probes_health_port(s->probes)),
            STW_INT("metricsPort", s->metrics_server ? stw_metrics_server_port(s->metrics_server)
                                                     : stw_probes_metrics_port(s->probes)),
            STW_BOOL("metricsSecure", s->metrics_server != NULL));
    return 0;
}

static void second_signal(int number)
{
    _exit(128 + number);
}

/* Ends the process if the stop takes longer than all of its deadlines together: a thread is stuck. */
static void *limit_stop(void *arg)
{
    const struct timespec longest = {.tv_sec = (time_t)(uintptr_t)arg};
    (void)nanosleep(&longest, NULL);
    stw_log(STW_LOG_ERROR, "the stop took too long, ending at once",
            STW_INT("seconds", longest.tv_sec));
    stw_log_writer_stop(LAST_LINES_MS);
    _exit(STW_EXIT_REFUSED);
}

static void start_stop_limit(const struct stw_serve *s)
{
    uint64_t reconciles = s->client ? STW_SERVE_STOP_MS : 0;
    uint64_t most = STW_MAX(reconciles, (uint64_t)s->settings->shutdown_delay_ms);
    uintptr_t seconds = (uintptr_t)((most + DRAIN_MS + STOP_SPARE_MS) / 1000);
    struct stw_error err = {0};
    pthread_t thread;
    if (stw_thread_start(&thread, "stop", STOP_STACK_BYTES, limit_stop, (void *)seconds, &err) == 0)
        (void)pthread_detach(thread);
    else
        stw_log(STW_LOG_WARN, "the stop has no limit", STW_STR("error", err.text));
}

static bool all_ready(const struct stw_serve *s)
{
    char why[512];
    for (const struct stw_probe *p = s->ready; p->name; p++)
        if (!p->ok(p->ctx, why, sizeof(why)))
            return false;
    return true;
}

static double cpu_s(void)
{
    struct timespec t = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Waits for a signal. When the process becomes idle after work, releases the memory that the work
 * needed, including pages of code. */
static int shrink_after_work(struct stw_serve *s)
{
    int number = -1;
    double last = cpu_s(), shrunk = last;
    while (number < 0) {
        number = sigtimedwait(&s->signals, NULL, &(struct timespec){.tv_sec = SETTLED_EVERY_S});
        double now = cpu_s();
        if (number < 0 && now - last < SETTLED_CPU_S && now - shrunk > WORKED_CPU_S) {
            stw_footprint_shrink();
            shrunk = now;
        }
        last = now;
    }
    return number;
}

/* Startup ends when all probes are ready, plus one wait interval. Then releases the code pages that
 * only startup needed. */
static int wait_for_signal(struct stw_serve *s)
{
    int number = -1;
    for (bool ready = false; number < 0 && !ready;) {
        ready = all_ready(s);
        number = sigtimedwait(&s->signals, NULL, &(struct timespec){.tv_sec = 1});
    }
    if (number < 0)
        stw_footprint_shrink();
    return number < 0 ? shrink_after_work(s) : number;
}

void stw_serve_wait(struct stw_serve *s)
{
    int number = wait_for_signal(s);
    if (s->probes)
        stw_probes_stopping(s->probes);
    if (s->server)
        stw_server_retire(
            s->server); /* the next connection of each client goes to another replica */
    stw_log(STW_LOG_INFO, "stopping", STW_STR("signal", strsignal(number)));
    (void)signal(SIGTERM, second_signal);
    (void)signal(SIGINT, second_signal);
    (void)pthread_sigmask(SIG_UNBLOCK, &s->signals, NULL);
    start_stop_limit(s);
}

void stw_serve_end_log(void)
{
    stw_log_writer_stop(LAST_LINES_MS);
}

void stw_serve_done(struct stw_serve *s)
{
    if (s->server)
        stw_server_drain(s->server, DRAIN_MS,
                         (uint32_t)STW_MIN(2 * s->settings->shutdown_delay_ms, DRAIN_MS));
    stw_probes_destroy(s->probes); /* before what the checks use */
    stw_certs_destroy(s->certs);   /* before the servers that it passes pairs to */
    stw_certs_destroy(s->metrics_certs);
    stw_metrics_server_destroy(s->metrics_server);
    stw_server_destroy(s->server);
    stw_client_auth_destroy(s->client_auth);
    stw_list_free(s->caller_names);
}
