/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/telemetry/log_writer.h"
#include "base/util.h"
#include "operator/command.h"
#include "operator/flags.h"
#include "operator/installed/kind_choice.h"
#include "operator/main/confine.h"
#include "operator/run/serve.h"

static const char usage[] =
    "Usage: {operator} webhook --webhook-cert-path=FOLDER [OPTIONS]\n\n"
    "Serves admission alone, with the certificate in a folder, and needs no cluster.  Rules that\n"
    "look at other objects (is this node port taken?) are skipped.\n";

static void wait_shutdown_delay(const struct stw_settings *settings)
{
    if (settings->shutdown_delay_ms)
        (void)usleep((useconds_t)(settings->shutdown_delay_ms * 1000));
}

static int serve_admission(const struct stw_call *call, struct stw_settings *settings,
                           struct stw_error *err)
{
    struct stw_serve serve;
    struct stw_certs_config certs = {.folder = settings->webhook_cert_path};
    stw_serve_prepare(&serve, call, settings);
    int r = stw_host_open(&serve.host, err);
    stw_confine(settings, &serve.host); /* before the first thread */
    if (r == 0)
        r = stw_log_writer_start(err);
    if (r == 0)
        r = stw_serve_traces(&serve, err);
    if (r == 0)
        r = stw_host_start(&serve.host, err);
    if (r == 0)
        r = stw_serve_webhook(&serve, &certs, err);
    if (r == 0)
        r = stw_serve_probes(&serve, err);
    if (r == 0) {
        stw_serve_wait(&serve);
        wait_shutdown_delay(settings);
    }
    stw_serve_done(&serve);
    stw_host_close(&serve.host);
    stw_serve_end_traces(&serve);
    stw_metrics_destroy(serve.metrics);
    return r;
}

static int start_webhook(const struct stw_call *call)
{
    struct stw_settings settings = {0};
    struct stw_kind_choice choice;
    struct stw_error err = {0};
    int status = stw_settings_load(call, &settings);
    if (status < 0 && (!settings.webhook_cert_path || !*settings.webhook_cert_path)) {
        status = stw_usage_error(
            call->argv[0], "--webhook-cert-path is needed: a folder with tls.crt and tls.key");
    }
    if (status < 0 && stw_kinds_choose(call->op, settings.kinds, &choice, &err) != 0)
        status = stw_usage_error(call->argv[0], "%s", err.text);
    if (status < 0) {
        struct stw_call chosen = *call;
        chosen.op = &choice.op;
        status = STW_EXIT_OK;
        if (serve_admission(&chosen, &settings, &err) != 0) {
            stw_log(STW_LOG_ERROR, "cannot serve", STW_STR("error", err.text));
            status = STW_EXIT_REFUSED;
        }
        stw_serve_end_log();
    }
    stw_settings_done(call, &settings);
    return status;
}

const struct stw_command stw_command_webhook = {
    .name = "webhook",
    .summary = "admission alone, from a certificate folder; needs no cluster",
    .usage = usage,
    .make_flags = stw_settings_webhook_flags,
    .run = start_webhook,
};
