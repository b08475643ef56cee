/* SPDX-License-Identifier: Apache-2.0
 *
 * Spans of distributed traces, in the terms of OpenTelemetry: recorded here, exported by otlp/otlp.h.
 * Like the log, tracing is a setting of the whole process: while no tracer is installed, each call
 * below costs one branch.
 *
 * A span lives on the stack of the thread that begins it.  Until it is ended it is the thread's
 * current span, and the parent of spans that the thread begins meanwhile.  A span that is sampled is
 * copied into a queue when it ends.  The queue is bounded, and nothing here waits for the exporter:
 * a span that does not fit is dropped and counted.
 *
 * Never pass a secret, the content of an object, or the value of a header: spans leave the cluster. */
#ifndef STW_BASE_TRACE_H
#define STW_BASE_TRACE_H

#include "base/metrics.h"
#include "base/util.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define STW_TRACE_ID_LEN 33    /* hexadecimal digits, and a NUL */
#define STW_TRACEPARENT_LEN 56 /* likewise */
#define STW_SPAN_ATTRIBUTES_MAX 12
#define STW_SPAN_TEXT_MAX 1024 /* bytes of all texts of a span */
#define STW_SPAN_VALUE_MAX 256 /* bytes of one text; longer ones are cut */
#define STW_TRACE_QUEUE_SPANS 2048
#define STW_TRACE_BATCH_SPANS 512

/* --- the context of a trace, as W3C Trace Context has it */

struct stw_trace_context {
    uint8_t trace_id[16], span_id[8]; /* all zero: none */
    bool sampled;
};

/* Whether it has a trace. */
bool stw_trace_context_is_set(const struct stw_trace_context *c);
/* Reads the value of a traceparent header from any client.  Returns 0, or -1 with an empty context
 * when it is NULL or not valid: then a trace of its own begins. */
int stw_traceparent_parse(const char *text, struct stw_trace_context *ret);
void stw_traceparent_format(const struct stw_trace_context *c, char out[STW_TRACEPARENT_LEN]);

/* --- which traces are recorded: the names of OTEL_TRACES_SAMPLER */

enum stw_sampler_root { STW_SAMPLE_ALL, STW_SAMPLE_NONE, STW_SAMPLE_RATIO };
struct stw_sampler {
    enum stw_sampler_root root; /* for a span without a parent */
    bool parent_based;          /* with a parent: as the parent; else as `root` */
    double ratio;               /* 0 to 1, of STW_SAMPLE_RATIO */
};

/* `name` "parentbased_traceidratio", `arg` "0.1"; both may be NULL or empty.  Returns 0, or -1 when
 * one of them is not valid: `ret` is then what the specification asks for, without it. */
int stw_sampler_parse(const char *name, const char *arg, struct stw_sampler *ret);
/* `parent` may be NULL.  Two programs with the same ratio decide the same for a trace. */
bool stw_sampler_decides(const struct stw_sampler *s, const uint8_t trace_id[16],
                         const struct stw_trace_context *parent);

/* --- spans */

enum stw_span_kind { STW_SPAN_INTERNAL = 1, STW_SPAN_SERVER, STW_SPAN_CLIENT }; /* as in OTLP */

struct stw_span_attribute {
    const char *key; /* a static */
    enum { STW_ATTRIBUTE_STR, STW_ATTRIBUTE_INT, STW_ATTRIBUTE_BOOL } type;
    int64_t num; /* of STR: where it is in `text` */
};

/* What is queued; its text has the length `used`. */
struct stw_span_record {
    struct stw_span_record *next;
    struct stw_trace_context context;
    uint8_t parent_id[8]; /* zero: none */
    bool remote;          /* the parent is in another process */
    bool failed;          /* status ERROR */
    uint8_t kind;
    uint8_t attribute_count;
    int64_t start_ns, end_ns; /* since the epoch */
    uint32_t name, message;   /* in `text`; the message of a failure, "" for none */
    uint32_t used;            /* bytes of `text` */
    struct stw_span_attribute attributes[STW_SPAN_ATTRIBUTES_MAX];
    char text[STW_SPAN_TEXT_MAX];
};

struct stw_span {
    bool active;    /* has a context: it is propagated */
    bool recording; /* and is sampled: what is set is kept */
    struct stw_span *outer;
    uint64_t started_ns; /* CLOCK_MONOTONIC */
    struct stw_span_record record;
};

struct stw_tracer;
extern _Atomic(struct stw_tracer *) stw_tracer_installed;

/* Whether spans are recorded at all. */
static inline bool stw_trace_on(void)
{
    return atomic_load_explicit(&stw_tracer_installed, memory_order_relaxed) != NULL;
}

/* Begins a span on this thread.  `remote`: the parent, from the request of another process; NULL or
 * empty: the current span of the thread, or none.  `age_ns`: how long ago it began.  Each begin
 * needs an end on the same thread, the last one first. */
void stw_span_begin(struct stw_span *s, enum stw_span_kind kind, const char *name,
                    const struct stw_trace_context *remote, uint64_t age_ns);
/* The same, but only when the thread has a current span. */
void stw_span_begin_child(struct stw_span *s, enum stw_span_kind kind, const char *name);
/* Another name, once more is known. */
void stw_span_name(struct stw_span *s, const char *name);
/* `key` is a static.  Texts are copied; NULL is left out.  Nothing happens unless it is recording. */
void stw_span_str(struct stw_span *s, const char *key, const char *value);
void stw_span_int(struct stw_span *s, const char *key, int64_t value);
void stw_span_bool(struct stw_span *s, const char *key, bool value);
/* The span's status is an error.  `message`: only a text that the log has too, or NULL. */
void stw_span_fail(struct stw_span *s, const char *message);
void stw_span_end(struct stw_span *s);
/* The trace of the thread's current span for the log, or NULL when there is none or it is not
 * sampled; `out` has STW_TRACE_ID_LEN bytes. */
const char *stw_span_trace_id(char out[STW_TRACE_ID_LEN]);

/* --- the tracer, for the exporter */

/* `metrics` may be NULL.  NULL: out of memory. */
struct stw_tracer *stw_tracer_create(const struct stw_sampler *sampler, uint32_t queue_max,
                                     struct stw_metrics *metrics) STW_MUST_CHECK;
/* Removes it if it is installed.  No thread may be between a begin and an end, or in take(). */
void stw_tracer_destroy(struct stw_tracer *t);
/* Makes it the tracer of the process; NULL: none. */
void stw_tracer_install(struct stw_tracer *t);
/* Waits until there are `most` spans, or the first one is `delay_ms` old, or the tracer was closed.
 * Returns up to `most` in a list, which the caller frees; NULL: closed, and the queue is empty. */
struct stw_span_record *stw_tracer_take(struct stw_tracer *t, uint32_t most, uint64_t delay_ms);
void stw_tracer_free(struct stw_span_record *list);
/* From now on take() does not wait.  Spans that end later are dropped. */
void stw_tracer_close(struct stw_tracer *t);
bool stw_tracer_closed(struct stw_tracer *t);
/* Waits until `until_ms` of the system's monotonic clock, or until the tracer is closed. */
void stw_tracer_pause(struct stw_tracer *t, uint64_t until_ms);

/* Where spans end: exported, or dropped with a reason. */
enum stw_trace_fate {
    STW_TRACE_EXPORTED,
    STW_TRACE_QUEUE_FULL,
    STW_TRACE_REJECTED,    /* by the collector */
    STW_TRACE_UNREACHABLE, /* no answer, or not now, until the deadline */
    STW_TRACE_FATES
};
void stw_tracer_count(struct stw_tracer *t, enum stw_trace_fate fate, uint64_t spans);
uint64_t stw_tracer_counted(struct stw_tracer *t, enum stw_trace_fate fate);
/* Registers the counters of both, so that they exist while tracing is off. */
void stw_tracer_make_metrics(struct stw_metrics *m);

#endif
