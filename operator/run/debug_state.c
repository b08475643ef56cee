/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/run/debug_state.h"

#include "base/clock.h"
#include "base/util.h"
#include "operator/extension.h"

#include <inttypes.h>

static void add_member(struct stw_buf *out, const char *name, const char *value)
{
    stw_buf_addf(out, "\"%s\":", name);
    stw_buf_json_strz(out, value);
    stw_buf_addc(out, ',');
}

static void add_build(const struct stw_operator *op, struct stw_buf *out)
{
    const struct stw_extension *x = op->extension;
    stw_buf_adds(out, "\"build\":{");
    add_member(out, "program", op->name);
    add_member(out, "commit", x && x->commit ? x->commit : "");
    stw_buf_adds(out, "\"version\":");
    stw_buf_json_strz(out, op->version);
    stw_buf_adds(out, "},");
}

static void add_times(const struct stw_debug_state *s, struct stw_buf *out)
{
    char text[STW_TIME_LEN];
    int64_t now_us = stw_wall_us(&stw_clock_system);
    stw_time_format(now_us, text);
    add_member(out, "time", text);
    stw_time_format(s->started_us, text);
    add_member(out, "started", text);
    stw_buf_addf(out, "\"uptimeSeconds\":%" PRId64 ",",
                 STW_MAX(now_us - s->started_us, 0) / 1000000);
}

static void add_checks(const struct stw_debug_state *s, struct stw_buf *out)
{
    const struct stw_probe *ready = s->ready;
    stw_buf_adds(out, "\"checks\":[");
    for (const struct stw_probe *p = ready; atomic_load(&s->complete) && p->name; p++) {
        char why[512] = "";
        bool ok = p->ok(p->ctx, why, sizeof(why));
        stw_buf_adds(out, p == ready ? "{" : ",{");
        add_member(out, "name", p->name);
        add_member(out, "problem", ok ? "" : why);
        stw_buf_addf(out, "\"ok\":%s}", ok ? "true" : "false");
    }
    stw_buf_adds(out, "],");
}

void stw_debug_state_write(void *ctx, struct stw_buf *out)
{
    const struct stw_debug_state *s = ctx;
    stw_buf_addc(out, '{');
    add_build(s->op, out);
    add_times(s, out);
    add_checks(s, out);
    stw_manager_facts(s->manager, out);
    stw_buf_adds(out, "}\n");
}
