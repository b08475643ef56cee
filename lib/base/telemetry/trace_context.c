/* SPDX-License-Identifier: Apache-2.0
 *
 * W3C Trace Context and the samplers of OpenTelemetry. */
#include "base/hex.h"
#include "base/telemetry/trace.h"
#include "base/util.h"

#define TRACE_AT 3
#define SPAN_AT 36
#define FLAGS_AT 53
#define FLAG_SAMPLED 1U
#define HEADER_MAX 512 /* of a version that is not known yet */
#define ARGUMENT_MAX 32
#define TWO_TO_63 9223372036854775808.0

static bool is_zero(const uint8_t *bytes, size_t len)
{
    uint8_t all = 0;
    for (size_t i = 0; i < len; i++)
        all |= bytes[i];
    return all == 0;
}

bool stw_trace_context_is_set(const struct stw_trace_context *c)
{
    return c && !is_zero(c->trace_id, sizeof(c->trace_id));
}

/* Lower case only, as the standard requires. */
static int read_hex(const char *text, uint8_t *out, size_t bytes)
{
    for (size_t i = 0; i < 2 * bytes; i++) {
        bool upper = text[i] >= 'A' && text[i] <= 'F';
        int digit = upper ? -1 : stw_hex_digit(text[i]);
        if (digit < 0)
            return -1;
        out[i / 2] = (uint8_t)(i % 2 ? out[i / 2] | digit : digit << 4);
    }
    return 0;
}

/* "00-" 32 digits "-" 16 digits "-" 2 digits.  A later version may continue after a dash; version
 * 255 is forbidden. */
static int parse_header(const char *text, struct stw_trace_context *ret)
{
    uint8_t version, flags;
    size_t len = strnlen(text, HEADER_MAX + 1), whole = STW_TRACEPARENT_LEN - 1;
    if (len < whole || len > HEADER_MAX || text[2] != '-' || text[SPAN_AT - 1] != '-' ||
        text[FLAGS_AT - 1] != '-' || read_hex(text, &version, 1) != 0 ||
        read_hex(text + TRACE_AT, ret->trace_id, sizeof(ret->trace_id)) != 0 ||
        read_hex(text + SPAN_AT, ret->span_id, sizeof(ret->span_id)) != 0 ||
        read_hex(text + FLAGS_AT, &flags, 1) != 0)
        return -1;
    if (version == 0xff || (len > whole && (version == 0 || text[whole] != '-')))
        return -1;
    ret->sampled = flags & FLAG_SAMPLED;
    return is_zero(ret->trace_id, sizeof(ret->trace_id)) ||
                   is_zero(ret->span_id, sizeof(ret->span_id))
               ? -1
               : 0;
}

int stw_traceparent_parse(const char *text, struct stw_trace_context *ret)
{
    *ret = (struct stw_trace_context){0};
    if (text && parse_header(text, ret) == 0)
        return 0;
    *ret = (struct stw_trace_context){0};
    return -1;
}

void stw_traceparent_format(const struct stw_trace_context *c, char out[STW_TRACEPARENT_LEN])
{
    char trace[STW_TRACE_ID_LEN], span[17];
    stw_hex_encode(c->trace_id, sizeof(c->trace_id), STW_HEX_LOWER, trace);
    stw_hex_encode(c->span_id, sizeof(c->span_id), STW_HEX_LOWER, span);
    stw_format(out, STW_TRACEPARENT_LEN, "00-%s-%s-%02x", trace, span, c->sampled ? 1U : 0U);
}

/* --- samplers */

static const struct {
    const char *name;
    struct stw_sampler sampler;
} samplers[] = {
    {"parentbased_always_on", {STW_SAMPLE_ALL, true, 1}}, /* the default */
    {"parentbased_always_off", {STW_SAMPLE_NONE, true, 1}},
    {"parentbased_traceidratio", {STW_SAMPLE_RATIO, true, 1}},
    {"always_on", {STW_SAMPLE_ALL, false, 1}},
    {"always_off", {STW_SAMPLE_NONE, false, 1}},
    {"traceidratio", {STW_SAMPLE_RATIO, false, 1}},
};

/* Digits with a point, "0.25" or "1", in every locale. */
static int parse_ratio(const char *text, double *ret)
{
    double value = 0, place = 1;
    bool digits = false, point = false;
    if (strnlen(text, ARGUMENT_MAX) == ARGUMENT_MAX)
        return -1;
    for (; *text; text++) {
        if (*text == '.' && !point) {
            point = true;
            continue;
        }
        if (*text < '0' || *text > '9')
            return -1;
        digits = true;
        place = point ? place / 10 : place;
        value = point ? value + (*text - '0') * place : value * 10 + (*text - '0');
    }
    if (!digits || value > 1)
        return -1;
    *ret = value;
    return 0;
}

int stw_sampler_parse(const char *name, const char *arg, struct stw_sampler *ret)
{
    *ret = samplers[0].sampler;
    if (!name || !*name)
        return 0;
    for (size_t i = 0; i < STW_COUNT(samplers); i++) {
        if (!stw_streq(name, samplers[i].name))
            continue;
        *ret = samplers[i].sampler;
        bool has_arg = ret->root == STW_SAMPLE_RATIO && arg && *arg;
        return has_arg ? parse_ratio(arg, &ret->ratio) : 0;
    }
    return -1;
}

/* As the SDKs do: the last eight bytes of the ID, as a number of 63 bits. */
static bool is_in_ratio(double ratio, const uint8_t trace_id[16])
{
    uint64_t value = 0;
    for (size_t i = 8; i < 16; i++)
        value = value << 8 | trace_id[i];
    return ratio >= 1 || value >> 1 < (uint64_t)(ratio * TWO_TO_63);
}

bool stw_sampler_decides(const struct stw_sampler *s, const uint8_t trace_id[16],
                         const struct stw_trace_context *parent)
{
    if (s->parent_based && stw_trace_context_is_set(parent))
        return parent->sampled;
    return s->root == STW_SAMPLE_ALL ||
           (s->root == STW_SAMPLE_RATIO && is_in_ratio(s->ratio, trace_id));
}
