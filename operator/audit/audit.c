/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward audit`: checks stored objects against the current rules. */
#include "controller/manager/audit.h"

#include "base/util.h"
#include "base/visible.h"
#include "controller/lookup_lists.h"
#include "operator/audit/report.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/installed/kind_choice.h"
#include "operator/installed/remote.h"
#include "operator/main/names.h"
#include "operator/main/program.h"
#include "operator/main/settings.h"

static const char usage[] =
    "Usage: {operator} audit [OPTIONS] [KIND]\n\n"
    "Reads the objects of {operator}'s kinds that are stored in a cluster and gives each the "
    "verdict\n"
    "that the admission webhook would give it today, if it were a new object: rules become\n"
    "stricter, and the webhook may have been away.  Nothing is written.  Rules that look at other\n"
    "objects apply as in admission; of two objects that claim one thing, both are reported.\n\n"
    "It needs the rights to list those kinds and what their rules look at: an administrator's, or\n"
    "those of {operator}'s own account.\n\n"
    "Exit status: 0 all would be accepted, 1 something would be refused, 2 something could not be\n"
    "read.  Warnings are shown and change nothing.\n";

struct audit_options {
    void *extra; /* options of the extension */
    char *kubeconfig, *context, *ns, *namespaces, *output, *kinds;
    bool quiet;
};

#define AT(member) .offset = offsetof(struct audit_options, member)

static const struct stw_flag flags[] = {
    STW_REMOTE_FLAGS(struct audit_options),
    {.name = "namespace",
     .letter = 'n',
     .arg = "A,B",
     AT(namespaces),
     .help = "objects of these namespaces only (default all)"},
    STW_FLAGS_KINDS(struct audit_options, "objects of these kinds only (default all)"),
    STW_FLAGS_OUTPUT(struct audit_options),
    {.name = "quiet",
     .letter = 'q',
     .type = STW_FLAG_BOOL,
     .def = "false",
     AT(quiet),
     .help = "count warnings, and do not show them"},
    {.name = "operator-namespace",
     .arg = "NAME",
     .def = STW_DEFAULT_NAMESPACE,
     AT(ns),
     .help = "where {operator} is installed"},
    {0},
};

struct audit_job {
    const struct stw_operator *op;
    struct stw_host host;
    const struct audit_options *options;
    struct stw_remote remote;
    struct stw_audit_report report;
    char **namespaces;
    struct stw_env env;
};

/* --- results */

static void report_verdict(void *ctx, const struct stw_kind *kind, const char *ns, const char *name,
                           const struct stw_findings *findings)
{
    struct audit_job *job = ctx;
    stw_audit_report_verdict(&job->report, kind, ns, name, findings);
}

static void report_trouble(void *ctx, const struct stw_kind *kind, const char *ns,
                           const struct stw_error *err)
{
    struct audit_job *job = ctx;
    char what[400];
    stw_format(what, sizeof(what), "cannot read %s%s%s", kind->plural, ns ? " in " : "",
               ns ? ns : "");
    stw_audit_report_trouble(&job->report, what, err->text);
}

static void no_lookup(void *ctx, const char *plural, const struct stw_error *err)
{
    struct audit_job *job = ctx;
    char what[400];
    stw_format(what, sizeof(what), "rules that look at %s are not applied", plural);
    stw_audit_report_trouble(&job->report, what, err->text);
}

/* --- main */

static int audit_objects(struct audit_job *job, const struct stw_kind *only)
{
    struct stw_lookup_lists_config lists = {.op = job->op,
                                            .client = job->remote.client,
                                            .namespaces = (const char *const *)job->namespaces,
                                            .trouble = no_lookup,
                                            .ctx = job};
    struct stw_lookup_lists *lookup = stw_lookup_lists_create(&lists);
    if (!lookup)
        return stw_usage_error("audit", "out of memory");
    job->env.lookup = stw_lookup_lists_get(lookup);
    struct stw_audit_config config = {.controllers = job->op->controllers,
                                      .client = job->remote.client,
                                      .namespaces = lists.namespaces,
                                      .env = &job->env,
                                      .verdict = report_verdict,
                                      .trouble = report_trouble,
                                      .ctx = job};
    stw_audit_report_begin(&job->report);
    stw_audit(&config, only);
    stw_lookup_lists_destroy(lookup);
    return stw_audit_report_end(&job->report);
}

static int connect_host(struct audit_job *job, struct stw_error *err)
{
    job->host.client = job->remote.client;
    job->host.remote = &job->remote;
    return stw_host_open(&job->host, err) == 0 ? stw_host_connect(&job->host, err) : -1;
}

static int connect_and_look(struct audit_job *job, const struct stw_kind *only)
{
    struct stw_error err = {0};
    const struct audit_options *o = job->options;
    job->remote.op = job->op;
    if (stw_remote_open(&job->remote, o->kubeconfig, o->context, &err) < 0 ||
        connect_host(job, &err) != 0) {
        stw_print_line(stderr, "%s audit: %s", stw_program_name(), err.text);
        return STW_EXIT_USAGE;
    }
    job->env.op = job->host.op;
    job->env.product = job->host.product;
    return audit_objects(job, only);
}

static int run_audit(const struct stw_call *call, void *settings, int count, char **operands)
{
    const struct audit_options *o = settings;
    struct stw_error err = {0};
    struct audit_job job = {.op = call->op, .options = o};
    job.host = (struct stw_host){
        .op = call->op, .command = call->command, .options = o->extra, .ns = o->ns};
    job.report = (struct stw_audit_report){.out = stdout, .quiet = o->quiet};
    const struct stw_kind *only = count == 1 ? stw_kind_named(call->op, operands[0]) : NULL;
    if (stw_flags_output("audit", o->output, &job.report.json) != 0)
        return STW_EXIT_USAGE;
    if (count > 1 || (count == 1 && !only))
        return stw_usage_error("audit", "\"%s\" is not one of its kinds", operands[count - 1]);
    if (stw_host_check(&job.host, &err) != 0)
        return stw_usage_error("audit", "%s", err.text);
    if (stw_list_split(o->namespaces, &job.namespaces, &err) != 0)
        return stw_usage_error("audit", "--namespaces: %s", err.text);
    int status = connect_and_look(&job, only);
    stw_list_free(job.namespaces);
    stw_host_close(&job.host);
    stw_remote_done(&job.remote);
    return status;
}

static int start_audit(const struct stw_call *call)
{
    struct audit_options options = {0};
    return stw_flags_run(call, &options, run_audit);
}

const struct stw_command stw_command_audit = {
    .name = "audit",
    .summary = "check stored objects with the webhook's present rules",
    .usage = usage,
    .operands = "KIND",
    .flags = flags,
    .run = start_audit,
};
