/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/util.h"
#include "cmd/cmd.h"
#include "cmd/flags.h"
#include "cmd/serve.h"

static const char usage[] =
    "Usage: steward webhook --webhook-cert-path=FOLDER [OPTIONS]\n\n"
    "Serves admission alone, with the certificate in a folder, and needs no cluster.  Rules that\n"
    "look at other objects (is this node port taken?) are passed over.\n";

static void linger(const struct stw_settings *settings)
{
    if (settings->shutdown_delay_ms)
        (void)usleep((useconds_t)(settings->shutdown_delay_ms * 1000));
}

static int serve(const struct stw_settings *settings, struct stw_error *err)
{
    struct stw_serve s;
    struct stw_certs_config certs = {.folder = settings->webhook_cert_path};
    stw_serve_prepare(&s, settings);
    int r = stw_serve_door(&s, &certs, err);
    if (r == 0)
        r = stw_serve_probes(&s, err);
    if (r == 0) {
        stw_serve_wait(&s);
        linger(settings);
    }
    stw_serve_done(&s);
    stw_metrics_destroy(s.metrics);
    return r;
}

int stw_cmd_webhook(int argc, char **argv)
{
    struct stw_settings settings = {0};
    struct stw_error err = {0};
    int status = stw_settings_load(false, usage, argc, argv, &settings);
    if (status < 0 && (!settings.webhook_cert_path || !*settings.webhook_cert_path)) {
        status = stw_usage_error(
            argv[0], "--webhook-cert-path is needed: a folder with tls.crt and tls.key");
    }
    if (status < 0) {
        status = STW_EXIT_OK;
        if (serve(&settings, &err) < 0) {
            stw_log(STW_LOG_ERROR, "cannot serve", STW_STR("error", err.text));
            status = STW_EXIT_REFUSED;
        }
    }
    stw_settings_done(&settings);
    return status;
}
