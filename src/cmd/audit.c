/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward audit`: checks stored objects against the current rules. */
#include "controller/audit.h"

#include "base/tzfile.h"
#include "base/util.h"
#include "cmd/audit_report.h"
#include "cmd/cmd.h"
#include "cmd/flags.h"
#include "cmd/installed.h"
#include "cmd/names.h"
#include "cmd/remote.h"
#include "cmd/settings.h"
#include "controller/lookup_lists.h"
#include "kinds/common/product.h"
#include "kinds/databaseuser/targets.h"
#include "kinds/kinds.h"
#include "schema/zones.h"

#include <strings.h>

static const char usage[] =
    "Usage: steward audit [OPTIONS] [KIND]\n\n"
    "Reads the objects of steward's kinds that are stored in a cluster and gives each the verdict\n"
    "that the admission webhook would give it today, if it were a new object: rules become\n"
    "stricter, and the webhook may have been away.  Nothing is written.  Rules that look at other\n"
    "objects (node ports, accounts, Secrets) apply as in admission; of two objects that claim\n"
    "one thing, both are reported.\n\n"
    "It needs the rights to list those kinds, Services and Deployments, and to get the Secrets "
    "that\n"
    "DatabaseUsers name: an administrator's, or those of steward's own account.\n\n"
    "Exit status: 0 all would be accepted, 1 something would be refused, 2 something could not be\n"
    "read.  Warnings are shown and change nothing.\n";

struct audit_options {
    char *kubeconfig, *context, *ns, *namespaces, *output, *node_port_range, *config;
    bool quiet;
};

#define AT(member) .offset = offsetof(struct audit_options, member)

static const struct stw_flag flags[] = {
    STW_REMOTE_FLAGS(struct audit_options),
    {.name = "namespace",
     .letter = 'n',
     .arg = "A,B",
     AT(namespaces),
     .help = "objects of these namespaces only; without it all"},
    STW_FLAGS_OUTPUT(struct audit_options),
    {.name = "quiet",
     .letter = 'q',
     .type = STW_FLAG_BOOL,
     .def = "false",
     AT(quiet),
     .help = "count warnings, and do not show them"},
    {.name = "node-port-range",
     .arg = "MIN-MAX",
     .def = "30000-32767",
     AT(node_port_range),
     .help = "as the API server's --service-node-port-range"},
    {.name = "config",
     .arg = "FILE",
     AT(config),
     .help = "configuration file of `steward run`; of it, the database `targets` are read.\n"
             "Without it they come from the ConfigMap " STW_CONFIG_MAP " of the installation"},
    {.name = "steward-namespace",
     .arg = "NAME",
     .def = STW_DEFAULT_NAMESPACE,
     AT(ns),
     .help = "where steward is installed"},
    {0},
};

struct audit_job {
    const struct audit_options *options;
    struct stw_remote remote;
    struct stw_audit_report report;
    struct stw_target_file targets;
    char **namespaces;
    struct stw_product product;
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

/* --- the database targets */

static int read_targets(struct audit_job *job, struct stw_error *err)
{
    const struct audit_options *o = job->options;
    if (o->config && *o->config)
        return stw_target_file_read(o->config, &job->targets, err);
    int rc = stw_installed_targets(&job->remote, o->ns, &job->targets, err);
    if (rc == 0 || job->targets.error_count)
        return rc;
    fprintf(
        stderr,
        "steward audit: DatabaseUsers are not compared with the database targets (--config): %s\n",
        err->text);
    return 0;
}

/* --- main */

static const struct stw_kind *find_kind(const char *word)
{
    for (size_t i = 0; stw_kinds[i]; i++) {
        const struct stw_kind *k = stw_kinds[i];
        if (strcasecmp(k->kind, word) == 0 || strcasecmp(k->plural, word) == 0)
            return k;
    }
    return NULL;
}

static int audit_objects(struct audit_job *job, const struct stw_kind *only)
{
    struct stw_lookup_lists_config lists = {.controllers = stw_controllers,
                                            .client = job->remote.client,
                                            .namespaces = (const char *const *)job->namespaces,
                                            .trouble = no_lookup,
                                            .ctx = job};
    struct stw_lookup_lists *lookup = stw_lookup_lists_create(&lists);
    if (!lookup)
        return stw_usage_error("audit", "out of memory");
    job->env.lookup = stw_lookup_lists_get(lookup);
    struct stw_audit_config config = {.controllers = stw_controllers,
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

static int connect_and_look(struct audit_job *job, const struct stw_kind *only)
{
    struct stw_error err = {0};
    const struct audit_options *o = job->options;
    if (stw_remote_open(&job->remote, o->kubeconfig, o->context, &err) < 0 ||
        read_targets(job, &err) < 0) {
        fprintf(stderr, "steward audit: %s\n", err.text);
        return STW_EXIT_USAGE;
    }
    job->product.zones = stw_zones_create(stw_tz_read);
    job->product.targets = job->targets.targets ? stw_targets_now : NULL;
    job->product.targets_ctx = job->targets.targets;
    int status = audit_objects(job, only);
    stw_zones_destroy(job->product.zones);
    return status;
}

static int run_audit(void *settings, int count, char **operands)
{
    const struct audit_options *o = settings;
    struct stw_error err = {0};
    struct audit_job job = {.options = o};
    job.env.product = &job.product;
    job.report = (struct stw_audit_report){.out = stdout, .quiet = o->quiet};
    const struct stw_kind *only = count == 1 ? find_kind(operands[0]) : NULL;
    if (stw_flags_output("audit", o->output, &job.report.json) != 0)
        return STW_EXIT_USAGE;
    if (count > 1 || (count == 1 && !only))
        return stw_usage_error("audit", "\"%s\" is not one of steward's kinds",
                               operands[count - 1]);
    if (stw_node_port_range_parse(o->node_port_range, &job.product.node_port_min,
                                  &job.product.node_port_max, &err) < 0)
        return stw_usage_error("audit", "%s", err.text);
    job.namespaces = stw_list_split(o->namespaces);
    int status = connect_and_look(&job, only);
    stw_list_free(job.namespaces);
    stw_target_file_done(&job.targets);
    stw_remote_done(&job.remote);
    return status;
}

static int start_audit(int argc, char **argv)
{
    struct audit_options options = {0};
    return stw_flags_run(flags, usage, &options, argc, argv, run_audit);
}

const struct stw_command stw_command_audit = {
    .name = "audit",
    .summary = "check stored objects with the webhook's present rules",
    .usage = usage,
    .operands = "KIND",
    .flags = flags,
    .run = start_audit,
};
