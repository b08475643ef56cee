/* SPDX-License-Identifier: Apache-2.0
 *
 * traceparent headers: what is accepted is the same when it is written and read again. */
#include "base/telemetry/trace.h"
#include "base/util.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stw_trace_context c, again;
    char out[STW_TRACEPARENT_LEN];
    stw_autofree char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    if (stw_traceparent_parse(text, &c) != 0) {
        assert(!stw_trace_context_is_set(&c));
        return 0;
    }
    assert(stw_trace_context_is_set(&c));
    stw_traceparent_format(&c, out);
    assert(stw_traceparent_parse(out, &again) == 0);
    assert(memcmp(c.trace_id, again.trace_id, sizeof(c.trace_id)) == 0);
    assert(memcmp(c.span_id, again.span_id, sizeof(c.span_id)) == 0);
    assert(c.sampled == again.sampled);
    return 0;
}
