/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/checks_priv.h"

#include "base/log.h"
#include "base/util.h"

#include <stdio.h>

#define WHY_SIZE 512U

static bool is_excluded(const struct stw_check_query *q, const char *name)
{
    for (size_t i = 0; q->exclude && q->exclude[i]; i++) {
        if (stw_streq(q->exclude[i], name))
            return true;
    }
    return false;
}

static bool is_ping_ok(void *ctx, char *why, size_t why_size)
{
    (void)ctx, (void)why, (void)why_size;
    return true;
}

static bool is_not_shutting_down(void *ctx, char *why, size_t why_size)
{
    const bool *stopping = ctx;
    if (*stopping)
        stw_format(why, why_size, "shutting down");
    return !*stopping;
}

static bool run_check(const struct stw_probe *p, char why[WHY_SIZE])
{
    why[0] = '\0';
    bool ok = p->ok(p->ctx, why, WHY_SIZE);
    for (char *c = why; *c; c++)
        *c = (unsigned char)*c < ' ' ? ' ' : *c;
    return ok;
}

static void add_line(struct stw_buf *out, bool ok, const char *name, const char *why)
{
    if (ok)
        stw_buf_addf(out, "[+]%s ok\n", name);
    else
        stw_buf_addf(out, "[-]%s failed: %s\n", name, why[0] ? why : "no reason was given");
}

struct check_round {
    const struct stw_check_query *q;
    struct stw_buf *out;
    unsigned failed, found;
};

static void add_probe_result(struct check_round *r, const struct stw_probe *p)
{
    char why[WHY_SIZE];
    if (r->q->only && !stw_streq(r->q->only, p->name))
        return;
    r->found++;
    if (!r->q->only && is_excluded(r->q, p->name)) {
        stw_buf_addf(r->out, "[+]%s excluded: ok\n", p->name);
        return;
    }
    bool ok = run_check(p, why);
    r->failed += !ok;
    if (!r->q->only)
        add_line(r->out, ok, p->name, why);
    else if (!ok)
        stw_buf_addf(r->out, "internal server error: %s\n", why);
}

static void warn_of_excludes(const struct stw_check_query *q, const struct stw_probe *const *lists,
                             struct stw_buf *out)
{
    for (size_t i = 0; q->exclude && q->exclude[i]; i++) {
        bool known = false;
        for (size_t l = 0; lists[l] && !known; l++) {
            for (const struct stw_probe *p = lists[l]; p->name; p++)
                known |= stw_streq(p->name, q->exclude[i]);
        }
        if (!known)
            stw_buf_addf(out,
                         "warn: some health checks cannot be excluded: no matches for \"%s\"\n",
                         q->exclude[i]);
    }
}

static int write_checks_result(struct check_round *r)
{
    if (r->found == 0) {
        stw_buf_clear(r->out);
        stw_buf_addf(r->out, "there is no check \"%s\" on /%s\n", r->q->only, r->q->endpoint);
        return 404;
    }
    if (r->failed == 0 && (!r->q->verbose || r->q->only)) {
        stw_buf_clear(r->out);
        stw_buf_adds(r->out, "ok");
        return 200;
    }
    if (!r->q->only)
        stw_buf_addf(r->out, "%s check %s\n", r->q->endpoint, r->failed ? "failed" : "passed");
    return r->failed ? 500 : 200;
}

static bool has_ping(const struct stw_probe *probes)
{
    while (probes->name && !stw_streq(probes->name, "ping"))
        probes++;
    return probes->name != NULL;
}

int stw_checks_run(const struct stw_check_query *q, const struct stw_probe *probes, bool stopping,
                   struct stw_buf *out)
{
    static const struct stw_probe none[] = {{0}};
    const struct stw_probe first[] = {{.name = "ping", .ok = is_ping_ok}, {0}};
    const struct stw_probe last[] = {
        {.name = "shutdown", .ok = is_not_shutting_down, .ctx = &stopping}, {0}};
    const struct stw_probe *own = probes ? probes : none;
    const struct stw_probe *const lists[] = {has_ping(own) ? none : first, own,
                                             stw_streq(q->endpoint, "readyz") ? last : none, NULL};
    struct check_round r = {.q = q, .out = out};
    for (size_t l = 0; lists[l]; l++) {
        for (const struct stw_probe *p = lists[l]; p->name; p++)
            add_probe_result(&r, p);
    }
    warn_of_excludes(q, lists, out);
    return write_checks_result(&r);
}
