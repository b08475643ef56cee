/* SPDX-License-Identifier: Apache-2.0
 *
 * Shared by `run` and `webhook`: the admission server with its certificate, probes and metrics, and
 * an orderly shutdown. */
#ifndef STW_OPERATOR_SERVE_H
#define STW_OPERATOR_SERVE_H

#include "base/error.h"
#include "base/metrics.h"
#include "base/util.h"
#include "certs/certs.h"
#include "operator/extension.h"
#include "operator/main/settings.h"
#include "otlp/otlp.h"
#include "webhook/client_auth.h"
#include "webhook/metrics_server.h"
#include "webhook/probes.h"
#include "webhook/server.h"

#include <signal.h>

#define STW_PROBES_MAX 8
#define STW_SERVE_STOP_MS 20000 /* for reconciles to end */

struct stw_serve {
    const struct stw_settings *settings;
    struct stw_metrics *metrics;
    struct stw_host host; /* closed by the caller, after done() */
    struct stw_env env;
    struct stw_client *client; /* for access reviews of metrics clients; NULL: plain HTTP metrics */
    struct stw_client_auth *client_auth;
    char **caller_names;
    struct stw_server *server;
    struct stw_metrics_server *metrics_server;
    struct stw_metrics_page page; /* served beside secure metrics; set it before the webhook */
    struct stw_certs *certs, *metrics_certs;
    struct stw_probes *probes;
    struct stw_otlp_config traces;
    struct stw_otlp *exporter;
    struct stw_probe ready[STW_PROBES_MAX + 1], live[STW_PROBES_MAX + 1];
    sigset_t signals;
};

/* Call before creating threads: blocks signals, raises the file limit, disables core dumps, buffers
 * the lines of the log. */
void stw_serve_prepare(struct stw_serve *s, const struct stw_call *call,
                       struct stw_settings *settings);
/* Writes the last lines of the log: call when nothing else will be logged. */
void stw_serve_end_log(void);
/* Starts the exporter of traces, if an endpoint is configured.  It creates a thread. */
int stw_serve_traces(struct stw_serve *s, struct stw_error *err) STW_MUST_CHECK;
/* Exports the last spans.  After everything that records them has ended, before the metrics go. */
void stw_serve_end_traces(struct stw_serve *s);
/* Listens for admission, if this process serves it, and for metrics if they are secure. `certs` is
 * the source of the certificate (its use and ctx are filled in). */
int stw_serve_webhook(struct stw_serve *s, struct stw_certs_config *certs,
                      struct stw_error *err) STW_MUST_CHECK;
void stw_serve_add_ready(struct stw_serve *s, const struct stw_probe *probe);
void stw_serve_add_live(struct stw_serve *s, const struct stw_probe *probe);
/* Starts the probe server: call after all probes were added. */
int stw_serve_probes(struct stw_serve *s, struct stw_error *err) STW_MUST_CHECK;
/* Waits for SIGTERM or SIGINT. A second signal ends the process at once. */
void stw_serve_wait(struct stw_serve *s);
/* Drains and stops the servers. Safe after any of the steps above. The metrics are still used by
 * other modules: the caller destroys them last. */
void stw_serve_done(struct stw_serve *s);

#endif
