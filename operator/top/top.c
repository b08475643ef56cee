/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/top/top.h"

#include "base/clock.h"
#include "base/util.h"
#include "base/visible.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/main/names.h"
#include "operator/main/program.h"

#include <stdio.h>
#include <strings.h>

#define PAGE_MAX ((size_t)4 << 20)

static const char usage[] =
    "Usage: {operator} top [OPTIONS]\n\n"
    "Shows what the replicas do now: rates, objects that are not ready, queues and caches, from\n"
    "their /debug/state and /metrics.  Keys: q ends it, space asks at once, the arrows (or j and\n"
    "k), PgUp, PgDn, Home and End scroll.\n\n"
    "The replicas are reached through the API server, with the rights of the kubeconfig to list\n"
    "pods, to get pods/proxy, and to create a token of the ServiceAccount {operator}-on-call, "
    "which\n"
    "is all that the replicas see (kubectl apply -k config/on-call).  With --url one replica is\n"
    "asked directly, for example after `kubectl port-forward`.\n\n"
    "Exit status: 0; with --once also 1 a replica could not be read; 2 called wrongly, no API\n"
    "server, a missing right or no replica.\n";

#define AT(member) .offset = offsetof(struct stw_top_options, member)

static const struct stw_flag flags[] = {
    {.name = "once",
     .type = STW_FLAG_BOOL,
     .def = "false",
     AT(once),
     .help = "print one page, with average rates since each replica has started, and end; so too\n"
             "when standard output is not a terminal"},
    {.name = "interval",
     .type = STW_FLAG_DURATION,
     .arg = "DURATION",
     .def = "2s",
     .min = 500,
     .max = 3600000,
     AT(interval_ms),
     .help = "how often the replicas are asked"},
    STW_FLAG_INSTALLED_IN(struct stw_top_options),
    STW_REMOTE_FLAGS(struct stw_top_options),
    {.name = "service-account",
     .arg = "NAME",
     .def = STW_ON_CALL,
     AT(account),
     .help = "ServiceAccount in that namespace that may get /debug/state; the replicas get tokens\n"
             "of it that are valid for ten minutes"},
    {.name = "token-file",
     .arg = "FILE",
     AT(token_file),
     .help = "instead of such a token, the one in this file"},
    {.name = "url",
     .arg = "URL",
     AT(url),
     .help = "ask one replica at this https address and not through the API server; needs\n"
             "--token-file"},
    {.name = "ca-file",
     .arg = "FILE",
     AT(ca_file),
     .help =
         "of --url: CA of its certificate, ca.crt in the Secret {operator}-webhook-server-cert\n"
         "(default: those of the system)"},
    {.name = "tls-server-name",
     .arg = "NAME",
     AT(server_name),
     .help = "of --url: name in its certificate, such as {operator}-metrics-service.NAMESPACE.svc"},
    {0},
};

static int check_options(const struct stw_top_options *o)
{
    bool direct = o->url && *o->url;
    if (direct && strncasecmp(o->url, "https://", 8) != 0)
        return stw_usage_error("top", "--url: \"%s\" does not begin with https://", o->url);
    if (direct && !(o->token_file && *o->token_file))
        return stw_usage_error("top", "--url needs --token-file");
    if (!direct && ((o->ca_file && *o->ca_file) || (o->server_name && *o->server_name)))
        return stw_usage_error("top", "--ca-file and --tls-server-name are for --url");
    return 0;
}

static int print_error(const struct stw_error *err)
{
    stw_print_line(stderr, "%s top: %s", stw_program_name(), err->text);
    return STW_EXIT_USAGE;
}

static int print_once(struct stw_top_source *source)
{
    struct stw_top_look look = {0};
    struct stw_error err = {0};
    stw_autobuf struct stw_buf page = STW_BUF_INIT(PAGE_MAX);
    int status = STW_EXIT_OK;
    if (stw_top_look(source, &look, &err) != 0) {
        stw_top_look_done(&look);
        return print_error(&err);
    }
    for (uint32_t i = 0; i < look.count; i++)
        if (!stw_json_there(look.replicas[i].state.root))
            status = STW_EXIT_REFUSED;
    stw_top_page(NULL, &look, &page);
    fputs(stw_buf_str(&page) + (page.len > 0), stdout); /* without the blank line at its start */
    stw_top_look_done(&look);
    return fflush(stdout) == 0 ? status : STW_EXIT_REFUSED;
}

static void make_head(const struct stw_top_source *source, bool fresh, struct stw_buf *out)
{
    char now[STW_TIME_LEN], every[16];
    const struct stw_top_options *o = source->options;
    stw_buf_clear(out);
    stw_time_format(stw_wall_us(&stw_clock_system), now);
    stw_top_duration((double)o->interval_ms / 1000, every);
    stw_buf_addf(out, "%s top  %s  every %s  rates: %s  (q: quit)", source->op->name, now, every,
                 fresh ? "since the start of a replica" : "between two looks");
}

/* Looks again and again; errors are shown in place of the page, because they may pass. */
static void watch(struct stw_top_source *source)
{
    struct stw_top_look looks[2] = {0};
    struct stw_error err = {0};
    stw_autobuf struct stw_buf page = STW_BUF_INIT(PAGE_MAX), head = STW_BUF_INIT(512);
    unsigned at = 0, from = 0;
    for (enum stw_top_event event = STW_TOP_NOW; event != STW_TOP_QUIT;) {
        if (event != STW_TOP_RESIZED) {
            struct stw_top_look *before = &looks[at], *now = &looks[1 - at];
            stw_buf_clear(&page);
            make_head(source, before->count == 0, &head);
            err = (struct stw_error){0};
            if (stw_top_look(source, now, &err) == 0) {
                stw_top_page(before, now, &page);
                at = 1 - at;
            } else {
                stw_buf_adds(&page, "\n");
                stw_visible_add_line(&page, err.text, strlen(err.text));
                stw_buf_adds(&page, "\n");
            }
        }
        if (stw_top_screen_show(stw_buf_str(&head), stw_buf_str(&page), &from) != 0)
            break;
        event = stw_top_screen_wait((uint64_t)source->options->interval_ms, &from);
    }
    stw_top_look_done(&looks[0]);
    stw_top_look_done(&looks[1]);
}

static int show(const struct stw_call *call, const struct stw_top_options *o)
{
    struct stw_top_source source = {0};
    struct stw_error err = {0};
    int status = STW_EXIT_OK;
    if (stw_top_open(&source, call->op, o, &err) != 0)
        status = print_error(&err);
    else if (o->once || !isatty(STDOUT_FILENO))
        status = print_once(&source);
    else {
        stw_top_screen_enter();
        watch(&source);
        stw_top_screen_leave();
    }
    stw_top_close(&source);
    return status;
}

static int run_top(const struct stw_call *call, void *settings, int count, char **operands)
{
    (void)operands;
    if (count)
        return stw_usage_error("top", "it takes options only");
    int status = check_options(settings);
    return status ? status : show(call, settings);
}

static int start_top(const struct stw_call *call)
{
    struct stw_top_options options = {0};
    return stw_flags_run(call, &options, run_top);
}

const struct stw_command stw_command_top = {
    .name = "top",
    .summary = "show what the replicas do now: rates, queues, objects that are not ready",
    .usage = usage,
    .flags = flags,
    .run = start_top,
};
