/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/run/shadow.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/util.h"
#include "base/visible.h"
#include "controller/queue/failures.h"
#include "operator/command.h"
#include "operator/main/program.h"
#include "schema/kind.h"

#include <inttypes.h>
#include <time.h>

#define POLL_MS 100
#define QUIET_MS 1500 /* so that the event of a change, if there is one, has come in */
#define FIELDS_SHOWN 300
#define LINE_MAX (1u << 20)

bool stw_shadow_wait(const struct stw_shadow_job *job)
{
    const struct timespec pause = {.tv_nsec = POLL_MS * 1000000L};
    uint64_t begin = stw_now_ms(&stw_clock_system), quiet = begin, now = begin;
    while (now - begin < (uint64_t)job->timeout_ms) {
        if (sigtimedwait(job->signals, NULL, &pause) > 0)
            return false;
        now = stw_now_ms(&stw_clock_system);
        if (!stw_manager_settled(job->manager))
            quiet = now;
        if (now - quiet >= QUIET_MS)
            return true;
    }
    char why[512] = "";
    if (!stw_manager_synced(job->manager, why, sizeof(why)))
        stw_print_line(stderr, "%s run --shadow: %s", stw_program_name(), why);
    return false;
}

/* --- the report */

struct report {
    const struct stw_shadow_job *job;
    uint64_t writes, restarts, statuses, unfollowed, shown;
};

static void begin_item(struct report *r)
{
    fputs(r->shown++ ? ",\n  " : "\n  ", r->job->out);
}

static void add_member(struct stw_buf *out, const char *name, const char *value)
{
    stw_buf_addf(out, "%s\"%s\": ", out->len > 1 ? ", " : "", name);
    stw_buf_json_strz(out, value);
}

static void print_json(struct report *r, const struct stw_shadow_write *w)
{
    stw_autobuf struct stw_buf line = STW_BUF_INIT(LINE_MAX);
    stw_buf_addc(&line, '{');
    add_member(&line, "verb", w->verb);
    add_member(&line, "group", w->group);
    add_member(&line, "resource", w->resource);
    add_member(&line, "namespace", w->ns);
    add_member(&line, "name", w->name);
    add_member(&line, "subresource", w->sub);
    add_member(&line, "fields", w->fields);
    stw_buf_addf(&line, ", \"restartsPods\": %s", w->restarts ? "true" : "false");
    if (w->restarts)
        stw_buf_addf(&line, ", \"pods\": %" PRId64, w->pods);
    stw_buf_addc(&line, '}');
    begin_item(r);
    stw_print_json(r->job->out, stw_buf_str(&line), line.len);
}

static void print_text(const struct report *r, const struct stw_shadow_write *w)
{
    size_t len = strlen(w->fields);
    char pods[64] = "";
    if (w->restarts)
        stw_format(pods, sizeof(pods), "  (pods restarted: %" PRId64 ")", w->pods);
    stw_print_line(r->job->out, "%-7s %s%s%s %s%s%s%s%s%s", w->verb, w->resource,
                   *w->group ? "." : "", w->group, w->ns, *w->ns ? "/" : "", w->name,
                   *w->sub ? " " : "", w->sub, pods);
    if (len)
        stw_print_line(r->job->out, "        %.*s%s", FIELDS_SHOWN, w->fields,
                       len > FIELDS_SHOWN ? "..." : "");
}

static void take_write(void *ctx, const struct stw_shadow_write *w)
{
    struct report *r = ctx;
    bool status = stw_streq(w->sub, "status");
    r->writes += !status;
    r->statuses += status;
    r->restarts += w->restarts;
    if (r->job->json)
        print_json(r, w);
    else
        print_text(r, w);
}

static void take_failure(void *ctx, const struct stw_kind *kind, const struct stw_failure *one)
{
    struct report *r = ctx;
    stw_autobuf struct stw_buf line = STW_BUF_INIT(LINE_MAX);
    r->unfollowed++;
    if (!r->job->json) {
        stw_print_line(r->job->out, "unknown %s %s", kind->kind, one->key);
        stw_print_line(r->job->out, "        %s", one->text);
        return;
    }
    stw_buf_addc(&line, '{');
    add_member(&line, "kind", kind->kind);
    add_member(&line, "key", one->key);
    add_member(&line, "why", one->text);
    stw_buf_addc(&line, '}');
    begin_item(r);
    stw_print_json(r->job->out, stw_buf_str(&line), line.len);
}

static void end_text(const struct report *r, bool complete, uint64_t dropped)
{
    FILE *out = r->job->out;
    fprintf(out,
            "%" PRIu64 " writes, of which %" PRIu64 " restart pods; %" PRIu64 " statuses; %" PRIu64
            " objects are followed only in part\n",
            r->writes, r->restarts, r->statuses, r->unfollowed);
    if (dropped)
        fprintf(out, "%" PRIu64 " more are not shown\n", dropped);
    if (!complete)
        fputs("Not everything was reconciled: the report is incomplete.\n", out);
}

static void end_json(const struct report *r, bool complete, uint64_t dropped)
{
    fprintf(r->job->out,
            "],\n\"summary\": {\"writes\": %" PRIu64 ", \"restarts\": %" PRIu64
            ", \"statuses\": %" PRIu64 ", \"unknown\": %" PRIu64 ", \"notShown\": %" PRIu64
            ", \"complete\": %s}}\n",
            r->writes, r->restarts, r->statuses, r->unfollowed, dropped,
            complete ? "true" : "false");
}

int stw_shadow_report(const struct stw_shadow_job *job, bool settled)
{
    struct report r = {.job = job};
    fputs(job->json ? "{\"writes\": [" : "", job->out);
    uint64_t dropped = stw_shadow_each(job->shadow, take_write, &r);
    bool complete = settled && dropped == 0;
    r.shown = 0;
    fputs(job->json ? "],\n\"unknown\": [" : "", job->out);
    uint64_t more = stw_manager_each_failure(job->manager, take_failure, &r);
    r.unfollowed += more;
    (job->json ? end_json : end_text)(&r, complete, dropped + more);
    if (fflush(job->out) != 0 || !complete)
        return STW_EXIT_USAGE;
    return r.writes ? STW_EXIT_REFUSED : STW_EXIT_OK;
}
