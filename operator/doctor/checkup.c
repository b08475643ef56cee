/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/doctor/checkup.h"

#include "base/buf.h"
#include "base/visible.h"
#include "operator/command.h"

#include <assert.h>
#include <stdarg.h>

#define TEXT_MAX_BYTES 8192

static const char *const words[] = {"ok", "warn", "fail"}, *const heads[] = {"ok  ", "warn",
                                                                             "FAIL"};
static_assert(STW_COUNT(words) == STW_VERDICTS, "one word for each verdict");

void stw_checkup_begin(struct stw_checkup *c)
{
    if (c->json)
        fputs("{\"checks\": [", c->out);
}

static unsigned count_checks(const struct stw_checkup *c)
{
    return c->count[STW_CHECK_OK] + c->count[STW_CHECK_WARN] + c->count[STW_CHECK_FAIL];
}

static void add_json(struct stw_checkup *c, enum stw_check_level verdict, const char *check,
                     const char *advice, const char *seen)
{
    stw_autobuf struct stw_buf line = STW_BUF_INIT(4 * TEXT_MAX_BYTES);
    stw_buf_adds(&line, "{\"check\": ");
    stw_buf_json_strz(&line, check);
    stw_buf_addf(&line, ", \"verdict\": \"%s\", \"seen\": ", words[verdict]);
    stw_buf_json_strz(&line, seen);
    if (advice) {
        stw_buf_adds(&line, ", \"advice\": ");
        stw_buf_json_strz(&line, advice);
    }
    stw_buf_addc(&line, '}');
    fputs(count_checks(c) ? ",\n  " : "\n  ", c->out);
    stw_print_json(c->out, stw_buf_str(&line), line.len);
}

void stw_checkup_add(struct stw_checkup *c, enum stw_check_level verdict, const char *check,
                     const char *advice, const char *fmt, ...)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX_BYTES), seen = text, todo = text;
    assert(verdict < STW_VERDICTS);
    va_list ap;
    va_start(ap, fmt);
    stw_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    stw_operator_expand(c->op, stw_buf_str(&text), &seen);
    if (advice) {
        stw_operator_expand(c->op, advice, &todo);
        advice = stw_buf_str(&todo);
    }
    if (c->json)
        add_json(c, verdict, check, advice, stw_buf_str(&seen));
    else
        stw_print_line(c->out, "%s  %s: %s", heads[verdict], check, stw_buf_str(&seen));
    if (advice && !c->json)
        stw_print_line(c->out, "      -> %s", advice);
    c->count[verdict]++;
    (void)fflush(c->out);
}

int stw_checkup_end(struct stw_checkup *c)
{
    unsigned ok = c->count[STW_CHECK_OK], warn = c->count[STW_CHECK_WARN],
             fail = c->count[STW_CHECK_FAIL];
    fprintf(c->out,
            c->json
                ? "\n], \"summary\": {\"ok\": %u, \"warn\": %u, \"fail\": %u, \"unchecked\": %u}}\n"
                : "%u ok, %u to look at, %u failed, %u not checked\n",
            ok, warn, fail, c->unchecked);
    if (fflush(c->out) != 0)
        return STW_EXIT_USAGE;
    return fail ? STW_EXIT_REFUSED : c->unchecked ? STW_EXIT_USAGE : STW_EXIT_OK;
}
