/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON encoding of OTLP: that of Protocol Buffers, except that IDs are hexadecimal.  64-bit
 * numbers are strings, enums are numbers. */
#include "base/hex.h"
#include "base/util.h"
#include "otlp/otlp.h"

#include <inttypes.h>

#define STATUS_ERROR 2
/* opentelemetry.proto.trace.v1.SpanFlags; the low byte has the flags of the trace context. */
#define FLAG_SAMPLED 0x1U
#define FLAG_HAS_IS_REMOTE 0x100U
#define FLAG_IS_REMOTE 0x200U

static void add_id(const char *key, const uint8_t *id, size_t len, struct stw_buf *out)
{
    char digits[STW_TRACE_ID_LEN];
    stw_hex_encode(id, len, STW_HEX_LOWER, digits);
    stw_buf_addf(out, "\"%s\":\"%s\",", key, digits);
}

void stw_otlp_encode_text(const char *key, const char *value, struct stw_buf *out)
{
    stw_buf_adds(out, "{\"key\":");
    stw_buf_json_strz(out, key);
    stw_buf_adds(out, ",\"value\":{\"stringValue\":");
    stw_buf_json_strz(out, value);
    stw_buf_adds(out, "}}");
}

static void add_attribute(const struct stw_span_record *r, const struct stw_span_attribute *a,
                          struct stw_buf *out)
{
    if (a->type == STW_ATTRIBUTE_STR) {
        stw_otlp_encode_text(a->key, r->text + a->num, out);
        return;
    }
    stw_buf_adds(out, "{\"key\":");
    stw_buf_json_strz(out, a->key);
    if (a->type == STW_ATTRIBUTE_BOOL)
        stw_buf_addf(out, ",\"value\":{\"boolValue\":%s}}", a->num ? "true" : "false");
    else
        stw_buf_addf(out, ",\"value\":{\"intValue\":\"%" PRId64 "\"}}", a->num);
}

static void add_status(const struct stw_span_record *r, struct stw_buf *out)
{
    stw_buf_addf(out, ",\"status\":{\"code\":%d", STATUS_ERROR);
    if (r->text[r->message]) {
        stw_buf_adds(out, ",\"message\":");
        stw_buf_json_strz(out, r->text + r->message);
    }
    stw_buf_addc(out, '}');
}

static void add_span(const struct stw_span_record *r, struct stw_buf *out)
{
    static const uint8_t none[sizeof(r->parent_id)];
    stw_buf_addc(out, '{');
    add_id("traceId", r->context.trace_id, sizeof(r->context.trace_id), out);
    add_id("spanId", r->context.span_id, sizeof(r->context.span_id), out);
    if (memcmp(r->parent_id, none, sizeof(none)) != 0)
        add_id("parentSpanId", r->parent_id, sizeof(r->parent_id), out);
    stw_buf_addf(out, "\"flags\":%u,\"name\":",
                 FLAG_SAMPLED | FLAG_HAS_IS_REMOTE | (r->remote ? FLAG_IS_REMOTE : 0));
    stw_buf_json_strz(out, r->text + r->name);
    stw_buf_addf(out,
                 ",\"kind\":%u,\"startTimeUnixNano\":\"%" PRId64 "\",\"endTimeUnixNano\":\"%" PRId64
                 "\",\"attributes\":[",
                 (unsigned)r->kind, r->start_ns, r->end_ns);
    for (unsigned i = 0; i < r->attribute_count; i++) {
        stw_buf_adds(out, i > 0 ? "," : "");
        add_attribute(r, &r->attributes[i], out);
    }
    stw_buf_addc(out, ']');
    if (r->failed)
        add_status(r, out);
    stw_buf_addc(out, '}');
}

void stw_otlp_encode(const struct stw_otlp_config *config, const struct stw_span_record *list,
                     struct stw_buf *out)
{
    stw_buf_adds(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    stw_buf_add(out, stw_buf_str(&config->resource), config->resource.len);
    stw_buf_adds(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":");
    stw_buf_json_strz(out, config->scope);
    stw_buf_adds(out, ",\"version\":");
    stw_buf_json_strz(out, config->version);
    stw_buf_adds(out, "},\"spans\":[");
    for (const struct stw_span_record *r = list; r; r = r->next) {
        add_span(r, out);
        stw_buf_adds(out, r->next ? "," : "");
    }
    stw_buf_adds(out, "]}]}]}");
}
