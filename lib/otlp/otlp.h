/* SPDX-License-Identifier: Apache-2.0
 *
 * Exports spans (base/telemetry/trace.h) to an OpenTelemetry collector by OTLP/HTTP in its JSON encoding, on a
 * thread of its own.  Nothing waits for it: when the collector is slow or away, the queue fills and
 * further spans are dropped and counted. */
#ifndef STW_OTLP_OTLP_H
#define STW_OTLP_OTLP_H

#include "base/buf.h"
#include "base/error.h"
#include "base/metrics.h"
#include "base/telemetry/trace.h"
#include "base/util.h"

#include <stdint.h>

#define STW_OTLP_TIMEOUT_MS 10000 /* of one request, unless OTEL_EXPORTER_OTLP_TIMEOUT is set */
#define STW_OTLP_BATCH_MS 60000   /* a batch is given up after that long */
#define STW_OTLP_DELAY_MS 5000    /* until a batch that is not full is sent */
#define STW_OTLP_FLUSH_MS 3000    /* for what is queued when the process ends */

/* From an option and the environment variables of OpenTelemetry. */
struct stw_otlp_config {
    char *endpoint;          /* the URL to post to; NULL: no traces */
    char *name;              /* its scheme, host and port, for the log */
    char *ca_file;           /* the only CAs to trust; NULL: the system's */
    char **headers;          /* "Name: value", ended by NULL; secret; or NULL */
    struct stw_buf resource; /* its attributes, as JSON objects with commas */
    struct stw_sampler sampler;
    uint32_t timeout_ms, delay_ms, batch_ms;
    char scope[64], version[32]; /* the program */
};

/* `endpoint`: the value of --traces-endpoint, which overrides those of the environment; may be NULL
 * or empty.  `service` and `version`: the program.  Succeeds with ret->endpoint NULL when none is
 * set, or OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER turn tracing off.  Fails when an endpoint, a
 * header or a CA file is not valid.  Free it with stw_otlp_config_done() in any case. */
int stw_otlp_config_read(const char *endpoint, const char *service, const char *version,
                         struct stw_otlp_config *ret, struct stw_error *err) STW_MUST_CHECK;
void stw_otlp_config_done(struct stw_otlp_config *c);

struct stw_otlp;

/* Creates and installs the tracer, and starts the exporter's thread.  `config` is borrowed. */
int stw_otlp_start(const struct stw_otlp_config *config, struct stw_metrics *metrics,
                   struct stw_otlp **ret, struct stw_error *err) STW_MUST_CHECK;
/* Exports what is queued, for at most `flush_ms`, and destroys the tracer.  When all other threads
 * that record spans have ended.  NULL is allowed. */
void stw_otlp_stop(struct stw_otlp *x, uint32_t flush_ms);

/* The body of an export request. */
void stw_otlp_encode(const struct stw_otlp_config *config, const struct stw_span_record *list,
                     struct stw_buf *out);
/* One attribute of a resource or a span with a text: {"key":...,"value":{"stringValue":...}}. */
void stw_otlp_encode_text(const char *key, const char *value, struct stw_buf *out);

#endif
