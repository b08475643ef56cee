/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/main/settings.h"

#include "base/json.h"
#include "base/log.h"
#include "base/util.h"
#include "base/yaml/yaml.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/installed/kind_choice.h"
#include "operator/installed/remote.h"
#include "operator/main/names.h"

#include <assert.h>
#include <stdio.h>

#define LOG_LEVEL "info"
#define LEVEL_MAX 16

#define OFFSET(member) .offset = offsetof(struct stw_settings, member)

static const struct stw_flag options[] = {
    {.name = "config",
     .arg = "FILE",
     .no_file = true,
     OFFSET(config),
     .help = "YAML file with any of these options in camelCase (metricsBindAddress: \":8080\");\n"
             "what is given on the command line wins"},
    STW_REMOTE_FLAGS(struct stw_settings),
    {.name = "namespace",
     .arg = "NAME",
     OFFSET(ns),
     .help = "where {operator}'s own Lease and certificate Secret live (default: the pod's\n"
             "namespace, else {operator}-system)"},
    {.name = "namespaces",
     .arg = "A,B",
     OFFSET(namespaces),
     .help = "manage these namespaces only (default all)"},
    STW_FLAGS_KINDS(struct stw_settings,
                    "manage these kinds only, with the rights of `print rbac --kinds` "
                    "(default all)"),
    {.name = "role",
     .arg = "all|webhook|controller",
     .def = "all",
     OFFSET(role),
     .help = "webhook: serve admission, and reconcile nothing; controller: reconcile, and listen\n"
             "for no admission; for Deployments of their own"},
    {.name = "leader-elect",
     .type = STW_FLAG_BOOL,
     .def = "false",
     OFFSET(leader_elect),
     .help = "with several replicas: one, elected by a Lease, reconciles; all serve admission"},
    {.name = "shadow",
     .type = STW_FLAG_BOOL,
     .def = "false",
     .no_file = true,
     OFFSET(shadow),
     .help =
         "reconcile every object once, write nothing, and report what would be written and which\n"
         "pods would be restarted; with the rights of `print rbac --shadow`, beside the "
         "{operator}\n"
         "that runs.  Exit status: 0 nothing would be written, except statuses; 1 something\n"
         "would; 2 not everything could be reconciled"},
    {.name = "shadow-timeout",
     .type = STW_FLAG_DURATION,
     .arg = "DURATION",
     .def = "5m",
     .min = 1000,
     .max = 86400000,
     .no_file = true,
     OFFSET(shadow_timeout_ms),
     .help = "for all of --shadow"},
    {.name = "output",
     .letter = 'o',
     .arg = "text|json",
     .def = "text",
     .no_file = true,
     OFFSET(shadow_output),
     .help = "form of the report of --shadow"},
    {.name = "workers",
     .type = STW_FLAG_INT,
     .arg = "N",
     .def = "4",
     .min = 1,
     .max = 64,
     OFFSET(workers),
     .help = "reconciles at the same time, for each kind"},
    {.name = "template-updates",
     .arg = "on-next-rollout|immediately",
     .def = "on-next-rollout",
     OFFSET(template_updates),
     .help =
         "when a new version of {operator} changes the pod templates that it makes:\n"
         "on-next-rollout: each object gets its new one with the next change that restarts its\n"
         "pods, or by its annotation {domain}/update-template; immediately: all get them when\n"
         "the new version starts, which restarts their pods"},
    {.name = "webhook-bind-address",
     .arg = "ADDRESS",
     .def = ":9443",
     OFFSET(webhook_bind),
     .help = "where admission is served over HTTPS; port 0 picks a free one"},
    {.name = "webhook-cert-path",
     .arg = "FOLDER",
     OFFSET(webhook_cert_path),
     .help = "folder with tls.crt and tls.key, read again when they change.  `webhook` needs it.\n"
             "Default of `run`: it keeps its own CA in a Secret and writes it into the webhook\n"
             "configurations"},
    {.name = "webhook-service",
     .arg = "NAME",
     .def = STW_WEBHOOK_SERVICE,
     OFFSET(webhook_service),
     .help = "the Service that {operator}'s own certificate is for"},
    {.name = "webhook-hosts",
     .arg = "HOST,IP",
     OFFSET(webhook_hosts),
     .help =
         "more names and addresses for {operator}'s own certificate, when the API server reaches\n"
         "it by URL"},
    {.name = "webhook-max-connections",
     .type = STW_FLAG_INT,
     .arg = "N",
     .def = "1024",
     .min = 16,
     .max = 65536,
     OFFSET(max_connections),
     .help =
         "open connections for admission, at most three quarters of the file descriptors that the\n"
         "process may have, and as many as their share of the memory is for; beyond it the\n"
         "address with the most connections loses one"},
    {.name = "memory-limit",
     .type = STW_FLAG_INT,
     .arg = "MIB",
     .def = "0",
     .max = 1048576,
     OFFSET(memory_limit_mib),
     .help = "memory that the process may use; caches, admission, reconciles of large objects and\n"
             "large answers have fixed shares of it.  0: the control group's limit, else 256"},
    {.name = "webhook-memory",
     .type = STW_FLAG_INT,
     .arg = "MIB",
     .def = "0",
     .max = 65536,
     OFFSET(webhook_memory_mib),
     .help =
         "memory for all that clients of any port can make it keep: connections, bodies, replies;\n"
         "beyond it they get 503.  0: three eighths of --memory-limit, 256 at most"},
    {.name = "webhook-request-timeout",
     .type = STW_FLAG_DURATION,
     .arg = "DURATION",
     .def = "10s",
     .min = 1000,
     .max = 60000,
     OFFSET(request_timeout_ms),
     .help = "TLS handshake, head and body must be in by then, else the connection is cut"},
    {.name = "webhook-idle-timeout",
     .type = STW_FLAG_DURATION,
     .arg = "DURATION",
     .def = "120s",
     .min = 1000,
     .max = 3600000,
     OFFSET(idle_timeout_ms),
     .help = "how long a kept connection may be without a request"},
    {.name = "webhook-client-ca-file",
     .arg = "FILE",
     OFFSET(webhook_client_ca),
     .help =
         "admission only for callers with a client certificate of a CA in this PEM file, which\n"
         "is read again when it changes; the API server must be given one"},
    {.name = "webhook-client-names",
     .arg = "A,B",
     OFFSET(webhook_client_names),
     .help = "and only when one of these is its common name or an alternative DNS name"},
    {.name = "metrics-bind-address",
     .arg = "ADDRESS",
     .def = ":8443",
     OFFSET(metrics_bind),
     .help = "where /metrics is served; 0 turns it off"},
    {.name = "metrics-secure",
     .type = STW_FLAG_BOOL,
     .def = "true",
     OFFSET(metrics_secure),
     .help = "metrics over HTTPS, for tokens whose user the API server lets get /metrics\n"
             "(ClusterRole {operator}-metrics-reader); false: plain HTTP for any client"},
    {.name = "metrics-cert-path",
     .arg = "FOLDER",
     OFFSET(metrics_cert_path),
     .help = "folder with tls.crt and tls.key for metrics (default: the webhook's pair)"},
    {.name = "health-probe-bind-address",
     .arg = "ADDRESS",
     .def = ":8081",
     OFFSET(health_bind),
     .help = "where /healthz and /readyz are served; 0 turns them off"},
    {.name = "traces-endpoint",
     .arg = "URL",
     OFFSET(traces_endpoint),
     .help = "where spans are sent by OTLP/HTTP, http://collector:4318 (default: what\n"
             "OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT says, else none)"},
    {.name = "shutdown-delay",
     .type = STW_FLAG_DURATION,
     .arg = "DURATION",
     .def = "0",
     .max = 600000,
     OFFSET(shutdown_delay_ms),
     .help = "how long admission continues after SIGTERM, while the Service's endpoints move;\n"
             "5s suits a cluster"},
    {.name = "sandbox",
     .arg = "auto|off",
     .def = "auto",
     OFFSET(sandbox),
     .help = "auto: once started, no files but those that it needs, no programs, no processes, as\n"
             "far as the kernel can (Landlock, seccomp)"},
    {.name = "log-format",
     .arg = "json|text",
     .def = "json",
     OFFSET(log_format),
     .help = "form of the log lines on standard error"},
    {.name = "log-level",
     .arg = "debug|info|warn|error",
     .def = LOG_LEVEL,
     OFFSET(log_level),
     .help = "lowest level that is logged"},
    {0},
};

/* Options that apply without a cluster. */
static const char *const admission_options[] = {
    "config",
    "kinds",
    "webhook-bind-address",
    "webhook-cert-path",
    "memory-limit",
    "webhook-max-connections",
    "webhook-memory",
    "webhook-request-timeout",
    "webhook-idle-timeout",
    "webhook-client-ca-file",
    "webhook-client-names",
    "metrics-bind-address",
    "health-probe-bind-address",
    "traces-endpoint",
    "shutdown-delay",
    "sandbox",
    "log-format",
    "log-level",
};

static void select_admission(struct stw_flag *table)
{
    for (const struct stw_flag *f = options; f->name; f++)
        for (size_t i = 0; i < STW_COUNT(admission_options); i++)
            if (stw_streq(f->name, admission_options[i]))
                *table++ = *f;
    *table = (struct stw_flag){0};
}

/* Without an API server there are no access reviews for metrics. */
static void make_metrics_plain(struct stw_flag *table)
{
    for (; table->name; table++)
        if (stw_streq(table->name, "metrics-bind-address")) {
            table->def = ":8080";
            table->help = "where /metrics is served over plain HTTP; 0 turns it off";
        }
}

int stw_list_split(const char *text, char ***ret, struct stw_error *err)
{
    size_t count = 1;
    *ret = NULL;
    if (!text || !*text)
        return 0;
    for (const char *p = text; *p; p++)
        count += *p == ',';
    char **list = calloc(count + 1, sizeof(*list));
    for (size_t i = 0; list && i < count; i++) {
        size_t len = strcspn(text, ",");
        list[i] = strndup(text, len);
        if (!list[i]) { /* a shorter list would be another setting */
            stw_list_free(list);
            return stw_fail_memory(err);
        }
        text += len + 1;
    }
    *ret = list;
    return list ? 0 : stw_fail_memory(err);
}

void stw_list_free(char **list)
{
    for (char **p = list; p && *p; p++)
        free(*p);
    free(list);
}

/* Checks option values that are used only later, to name the option in the error. */
static int check_settings(const struct stw_call *call, struct stw_settings *s,
                          struct stw_error *err)
{
    enum stw_log_format format;
    enum stw_log_level level;
    if (stw_log_format_parse(s->log_format, &format) != 0)
        return stw_fail(err, STW_ERR_INVALID, "--log-format: \"%s\" is not json or text",
                        s->log_format);
    if (stw_log_level_parse(s->log_level, &level) != 0)
        return stw_fail(err, STW_ERR_INVALID,
                        "--log-level: \"%s\" is not debug, info, warn or error", s->log_level);
    s->webhook = !s->role || !stw_streq(s->role, "controller");
    s->reconcile = !s->role || !stw_streq(s->role, "webhook");
    if (s->webhook && s->reconcile && s->role && !stw_streq(s->role, "all"))
        return stw_fail(err, STW_ERR_INVALID, "--role: \"%s\" is not all, webhook or controller",
                        s->role);
    if (!stw_streq(s->sandbox, "auto") && !stw_streq(s->sandbox, "off"))
        return stw_fail(err, STW_ERR_INVALID, "--sandbox: \"%s\" is not auto or off", s->sandbox);
    if (s->template_updates && !stw_streq(s->template_updates, "on-next-rollout") &&
        !stw_streq(s->template_updates, "immediately"))
        return stw_fail(err, STW_ERR_INVALID,
                        "--template-updates: \"%s\" is not on-next-rollout or immediately",
                        s->template_updates);
    if (s->shadow && !s->reconcile)
        return stw_fail(err, STW_ERR_INVALID,
                        "--shadow reconciles: it does not go with --role=webhook");
    if (s->shadow)
        s->webhook = s->leader_elect = false;
    const struct stw_host host = {
        .op = call->op, .command = call->command, .options = s->extra, .config = s->config};
    if (stw_host_check(&host, err) != 0)
        return -1;
    stw_log_setup(format, level, STDERR_FILENO);
    return 0;
}

/* --- at run time */

static int find_level(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    char *level = ctx; /* LEVEL_MAX bytes */
    stw_autojson struct stw_json_doc doc = {0};
    (void)index;
    (void)line;
    if (stw_json_scan(&doc, stw_buf_str(json), json->len, NULL) != 0)
        return 0;
    struct stw_json value = stw_json_get(stw_json_root(&doc), "logLevel");
    if (stw_json_there(value) && stw_json_strcpy(value, level, LEVEL_MAX) != 0)
        stw_format(level, LEVEL_MAX, "?");
    return 0;
}

/* A file that is not valid YAML is reported by the reader of its targets. */
void stw_settings_reread(void *settings, const char *text, size_t len)
{
    const struct stw_settings *s = settings;
    enum stw_log_level level;
    char name[LEVEL_MAX] = LOG_LEVEL;
    if (s->log_level_given || stw_yaml_each(s->config, text, len, find_level, name, NULL) < 0)
        return;
    if (stw_log_level_parse(name, &level) != 0)
        stw_log(STW_LOG_ERROR, "log level refused, the old one stays", STW_STR("file", s->config),
                STW_STR("detail", "logLevel is not debug, info, warn or error"));
    else if (stw_log_set_level(level) != level)
        stw_log_write(STW_LOG_INFO, "log level changed",
                      (const struct stw_log_field[]){STW_STR("logLevel", name), {0}});
}

void stw_settings_run_flags(struct stw_flag *ret)
{
    static_assert(STW_COUNT(options) < STW_FLAGS_MAX, "too many options");
    memcpy(ret, options, sizeof(options));
}

void stw_settings_webhook_flags(struct stw_flag *ret)
{
    select_admission(ret);
    make_metrics_plain(ret);
}

int stw_settings_load(const struct stw_call *call, struct stw_settings *s)
{
    const struct stw_extension *x = call->op->extension;
    struct stw_flag table[STW_FLAGS_MAX];
    struct stw_error err = {0};
    int argc = call->argc, operands = argc;
    char **argv = call->argv;
    stw_command_flags(call->op, call->command, table);
    if (stw_flags_begin_extra(call, table, s) != 0)
        return stw_usage_error(argv[0], "out of memory");
    int status = stw_flags_start(call->op, table, stw_command_usage(call->op, call->command), s,
                                 argc, argv, &operands);
    if (status >= 0)
        return status;
    int r = 0;
    if (operands < argc)
        r = stw_fail(&err, STW_ERR_INVALID, "unexpected argument \"%s\"", argv[operands]);
    if (r == 0 && s->config)
        r = stw_flags_file(table, s, s->config, x ? x->file_keys : NULL, argc, argv, &err);
    s->log_level_given = stw_flags_given(table, argc, argv, "log-level");
    if (r == 0)
        r = check_settings(call, s, &err);
    return r == 0 ? -1 : stw_usage_error(argv[0], "%s", err.text);
}

void stw_settings_done(const struct stw_call *call, struct stw_settings *s)
{
    struct stw_flag table[STW_FLAGS_MAX];
    stw_command_flags(call->op, call->command, table);
    stw_flags_done(table, s);
    stw_flags_end_extra(table, s);
}
