/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/util.h"
#include "cmd/cmd.h"
#include "cmd/confine.h"
#include "cmd/flags.h"
#include "cmd/serve.h"
#include "kinds/common/product.h"
#include "kinds/databaseuser/targets.h"
#include "schema/zones.h"

static const char usage[] =
    "Usage: steward webhook --webhook-cert-path=FOLDER [OPTIONS]\n\n"
    "Serves admission alone, with the certificate in a folder, and needs no cluster.  Rules that\n"
    "look at other objects (is this node port taken?) are skipped.\n";

struct webhook {
    struct stw_settings *settings;
    struct stw_serve serve;
    struct stw_target_store *targets;
};

/* The configuration file is the only source for lookups. */
static int read_targets(struct webhook *d, struct stw_error *err)
{
    const struct stw_settings *settings = d->serve.settings;
    struct stw_target_store_config config = {.path = settings->config,
                                             .metrics = d->serve.metrics,
                                             .text = stw_settings_reread,
                                             .text_ctx = d->settings};
    if (!settings->config || !*settings->config)
        return 0;
    if (stw_target_store_create(&config, &d->targets, err) != 0)
        return -1;
    d->serve.product.targets = stw_target_store_get;
    d->serve.product.targets_ctx = d->targets;
    return 0;
}

static void wait_shutdown_delay(const struct stw_settings *settings)
{
    if (settings->shutdown_delay_ms)
        (void)usleep((useconds_t)(settings->shutdown_delay_ms * 1000));
}

static int serve_admission(struct stw_settings *settings, struct stw_error *err)
{
    struct webhook d = {.settings = settings};
    struct stw_certs_config certs = {.folder = settings->webhook_cert_path};
    stw_serve_prepare(&d.serve, settings);
    int r = read_targets(&d, err);
    stw_confine(settings, NULL, d.targets); /* before the first thread */
    if (r == 0 && d.targets)
        r = stw_target_store_start(d.targets, err);
    if (r == 0)
        r = stw_serve_webhook(&d.serve, &certs, err);
    if (r == 0)
        r = stw_serve_probes(&d.serve, err);
    if (r == 0) {
        stw_serve_wait(&d.serve);
        wait_shutdown_delay(settings);
    }
    stw_serve_done(&d.serve);
    stw_target_store_destroy(d.targets);
    stw_zones_destroy(d.serve.product.zones);
    stw_metrics_destroy(d.serve.metrics);
    return r;
}

static int start_webhook(int argc, char **argv)
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
        if (serve_admission(&settings, &err) != 0) {
            stw_log(STW_LOG_ERROR, "cannot serve", STW_STR("error", err.text));
            status = STW_EXIT_REFUSED;
        }
    }
    stw_settings_done(&settings);
    return status;
}

static const struct stw_flag *list_flags(void)
{
    return stw_settings_flags(false);
}

const struct stw_command stw_command_webhook = {
    .name = "webhook",
    .summary = "admission alone, from a certificate folder; needs no cluster",
    .usage = usage,
    .make_flags = list_flags,
    .run = start_webhook,
};
