/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward uninstall`: removes what would hang or block without a running steward, in the only
 * order that works, and prints what is left for kubectl. */
#include "operator/uninstall/uninstall.h"

#include "base/clock.h"
#include "base/util.h"
#include "base/visible.h"
#include "certs/certs.h"
#include "controller/manager.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/installed/installed.h"
#include "operator/installed/kind_choice.h"
#include "operator/main/names.h"
#include "operator/main/program.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>

#define POLL_US 500000
#define TEXT_MAX 8192

static const char usage[] =
    "Usage: {operator} uninstall [--finalizers=wait|release] [--yes] [OPTIONS]\n\n"
    "Prepares a cluster for the removal of {operator}: deletes its webhook configurations first, "
    "so "
    "that\n"
    "no request waits for it, and then handles the finalizers on objects of its kinds, which "
    "would\n"
    "block the deletion of these objects and their namespaces.  Prints what is left, and the "
    "commands\n"
    "for that.  Without --yes nothing is done, only printed.\n\n"
    "Exit status: 0 done or printed, 1 something could not be done, 2 called wrongly or no "
    "answer.\n";

struct uninstall_options {
    char *kubeconfig, *context, *ns, *finalizers, *kinds;
    bool yes;
    int64_t timeout_ms;
};

#define AT(member) .offset = offsetof(struct uninstall_options, member)

static const struct stw_flag flags[] = {
    {.name = "yes", .type = STW_FLAG_BOOL, .def = "false", AT(yes), .help = "do it"},
    {.name = "finalizers",
     .arg = "wait|release",
     AT(finalizers),
     .help = "what happens to objects that have one of {operator}'s:\n"
             "wait: they are deleted, and the {operator} that runs cleans up after each, as its\n"
             "deletionPolicy says;\n"
             "release: {operator} is stopped and the finalizer removed; the objects stay, and so\n"
             "does what was made for them outside of the cluster"},
    {.name = "timeout",
     .type = STW_FLAG_DURATION,
     .arg = "DURATION",
     .def = "2m",
     .min = 1000,
     .max = 3600000,
     AT(timeout_ms),
     .help = "how long to wait for objects, or for {operator}, to go"},
    STW_FLAG_INSTALLED_IN(struct uninstall_options),
    STW_FLAGS_KINDS(
        struct uninstall_options,
        "stop managing these only: their webhooks and finalizers go, and {operator} goes "
        "on\nwith the others"),
    STW_REMOTE_FLAGS(struct uninstall_options),
    {0},
};

struct uninstall_job {
    const struct stw_operator *op, *program; /* with the kinds to uninstall; with all */
    const struct uninstall_options *options;
    struct stw_remote remote;
    struct stw_held held[STW_KINDS_MAX]; /* by index of op->kinds */
    uint64_t held_all;
    bool release;
    uint64_t deadline_ms;
};

/* Prints with the operator's own names. */
static void __attribute__((format(printf, 2, 3)))
say(const struct uninstall_job *job, const char *fmt, ...)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX), own = text;
    va_list ap;
    va_start(ap, fmt);
    stw_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    stw_operator_expand(job->op, stw_buf_str(&text), &own);
    stw_program_print(job->op, stw_buf_str(&own), stdout);
}

static const char *show_server(const struct uninstall_job *job, struct stw_buf *out)
{
    const char *server = job->remote.kubeconfig->server;
    stw_visible_add(out, server, strlen(server));
    return stw_buf_str(out);
}

static bool in_time(const struct uninstall_job *job)
{
    return stw_now_ms(&stw_clock_system) < job->deadline_ms;
}

/* --- current state */

static int count_held(struct uninstall_job *job, struct stw_error *err)
{
    job->held_all = 0;
    for (size_t i = 0; job->op->kinds[i]; i++) {
        if (stw_held_count(&job->remote, job->op->kinds[i], &job->held[i], err) != 0)
            return -1;
        job->held_all += job->held[i].held;
    }
    return 0;
}

static void tell_held(const struct uninstall_job *job)
{
    for (size_t i = 0; job->op->kinds[i]; i++)
        if (job->held[i].held)
            stw_print_line(stdout,
                           "   %" PRIu64 " of %" PRIu64 " %s %s the finalizer %s, such as %s",
                           job->held[i].held, job->held[i].all,
                           stw_held_noun(&job->held[i], job->op->kinds[i]),
                           job->held[i].held == 1 ? "has" : "have", job->op->kinds[i]->finalizer,
                           job->held[i].first);
}

static void tell_plan_of_some(const struct uninstall_job *job)
{
    stw_autobuf struct stw_buf kinds = STW_BUF_INIT(8192), server = STW_BUF_INIT(TEXT_MAX);
    stw_kinds_names(job->op->kinds, &kinds);
    say(job,
        "What `{operator} uninstall --kinds=%s` does on %s:\n"
        "1. It removes the webhooks of these kinds.  Their objects are then stored unchecked.\n",
        stw_buf_str(&kinds), show_server(job, &server));
    if (!job->held_all) {
        say(job, "2. No object of these has a finalizer of {operator}'s.\n");
        return;
    }
    if (!job->options->finalizers || job->release)
        printf(
            "2. With --finalizers=release, the finalizers are removed.  The objects stay, and so\n"
            "   does what was made for them elsewhere.  The Deployment must already run without "
            "these\n"
            "   kinds.\n");
    if (!job->options->finalizers || !job->release)
        say(job, "2. With --finalizers=wait, objects that have a finalizer are deleted, and the "
                 "{operator} that\n"
                 "   runs, still with these kinds, cleans up after each.\n");
    tell_held(job);
}

static void tell_plan(const struct uninstall_job *job)
{
    const struct stw_operator *op = job->op;
    const char *ns = job->options->ns;
    if (stw_kinds_are_some(op)) {
        tell_plan_of_some(job);
        return;
    }
    char mutating[STW_OWN_NAME_LEN], validating[STW_OWN_NAME_LEN], deployment[STW_OWN_NAME_LEN];
    stw_autobuf struct stw_buf server = STW_BUF_INIT(TEXT_MAX);
    stw_operator_text(op, STW_CERTS_MUTATING, mutating);
    stw_operator_text(op, STW_CERTS_VALIDATING, validating);
    stw_operator_text(op, STW_DEPLOYMENT, deployment);
    say(job,
        "What `{operator} uninstall` does on %s:\n"
        "1. It deletes the webhook configurations %s\n   and %s.\n"
        "   From then on objects are stored unchecked.\n",
        show_server(job, &server), mutating, validating);
    if (!job->held_all) {
        say(job, "2. No object has a finalizer of {operator}'s.\n");
        return;
    }
    if (!job->options->finalizers || job->release)
        say(job,
            "2. With --finalizers=release, Deployment %s/%s goes to 0 replicas, and the "
            "finalizers\n"
            "   are removed.  The objects stay, and so does what was made for them elsewhere.\n",
            ns, deployment);
    if (!job->options->finalizers || !job->release)
        say(job, "2. With --finalizers=wait, objects that have a finalizer are deleted, and the "
                 "{operator} that\n"
                 "   runs cleans up after each, as its deletionPolicy says.\n");
    tell_held(job);
}

static void tell_operator(const struct uninstall_job *job)
{
    say(job,
        "   {operator} itself, its rights and settings:\n"
        "      kubectl delete namespace %s\n"
        "      kubectl delete clusterrole,clusterrolebinding,priorityclass,flowschema,"
        "prioritylevelconfiguration -l app.kubernetes.io/name={operator}\n",
        job->options->ns);
}

static void tell_others(const struct uninstall_job *job)
{
    stw_autobuf struct stw_buf kinds = STW_BUF_INIT(8192);
    stw_kinds_names(job->op->others, &kinds);
    say(job,
        "   the rights on these kinds; {operator} goes on with the others:\n"
        "      {operator} print rbac --namespace %s --kinds=%s | kubectl apply -f -\n",
        job->options->ns, stw_buf_str(&kinds));
}

static void tell_rest(const struct uninstall_job *job)
{
    bool some = stw_kinds_are_some(job->op);
    stw_autobuf struct stw_buf names = STW_BUF_INIT(TEXT_MAX);
    printf("What stays, and how to remove it:\n");
    for (size_t i = 0; job->op->kinds[i]; i++)
        if (job->held[i].all)
            stw_print_line(stdout, "   %" PRIu64 " %s", job->held[i].all,
                           stw_held_noun(&job->held[i], job->op->kinds[i]));
    if (some)
        tell_others(job);
    else
        tell_operator(job);
    for (size_t i = 0; job->op->kinds[i]; i++)
        stw_buf_addf(&names, " %s.%s", job->op->kinds[i]->plural, job->op->kinds[i]->group);
    printf("   the kinds; with them every object of theirs, and all that belongs to those:\n");
    stw_print_line(stdout, "      kubectl delete crd%s", stw_buf_str(&names));
    if (!some)
        stw_print_line(stdout,
                       "   or all of it at once, as it was installed: kubectl delete -k %s "
                       "--ignore-not-found",
                       stw_manifests_folder(job->op));
}

/* --- the steps */

static int delete_hook(struct uninstall_job *job, const struct stw_resource *r, const char *text,
                       struct stw_error *err)
{
    struct stw_error e = {0};
    char name[STW_OWN_NAME_LEN];
    stw_operator_text(job->op, text, name);
    if (stw_kinds_are_some(job->op))
        return stw_hooks_remove(&job->remote, r, name, err);
    if (stw_kube_delete(job->remote.client, r, NULL, name, NULL, NULL, &e) == 0) {
        stw_print_line(stdout, "deleted %s %s", r->kind, name);
        return 0;
    }
    if (e.code == STW_ERR_NOT_FOUND)
        return 0;
    *err = e;
    return stw_error_wrap(err, "%s %s", r->kind, name);
}

/* Delete the validating one first: it fails closed. */
static int delete_hooks(struct uninstall_job *job, struct stw_error *err)
{
    if (delete_hook(job, &stw_res_validating, STW_CERTS_VALIDATING, err) != 0)
        return -1;
    return delete_hook(job, &stw_res_mutating, STW_CERTS_MUTATING, err);
}

static int scale_down(struct uninstall_job *job, struct stw_error *err)
{
    struct stw_error e = {0};
    json_auto_t *patch = json_pack("{s:{s:i}}", "spec", "replicas", 0);
    char deployment[STW_OWN_NAME_LEN], manager[STW_OWN_NAME_LEN];
    stw_operator_text(job->op, STW_DEPLOYMENT, deployment);
    stw_operator_text(job->op, STW_UNINSTALL_MANAGER, manager);
    if (!patch)
        return stw_fail_memory(err);
    if (stw_kube_merge_patch(job->remote.client,
                             STW_PLACE(&stw_res_deployment, job->options->ns, deployment), patch,
                             manager, NULL, &e) == 0) {
        stw_print_line(stdout, "scaled Deployment %s/%s to 0", job->options->ns, deployment);
        return 0;
    }
    if (e.code == STW_ERR_NOT_FOUND)
        return 0;
    *err = e;
    return stw_error_wrap(err, "Deployment %s/%s", job->options->ns, deployment);
}

/* Waits until the Lease is released, or has not been renewed for its duration: a steward that still
 * runs would add the finalizers again. Detects changes of renewTime instead of comparing the clocks
 * of two machines. */
static int wait_for_leader(struct uninstall_job *job, struct stw_error *err)
{
    struct stw_leader now = {0};
    int64_t renewed = 0;
    uint64_t since = 0;
    for (;;) {
        if (stw_installed_leader(&job->remote, job->options->ns, &now, err) != 0)
            return -1;
        if (!now.there || !*now.holder)
            return 0;
        uint64_t ms = stw_now_ms(&stw_clock_system);
        if (since == 0 || now.renewed_us != renewed)
            since = ms;
        renewed = now.renewed_us;
        if ((int64_t)(ms - since) * 1000 > now.duration_us)
            return 0;
        if (!in_time(job))
            return stw_fail(err, STW_ERR_TIMEOUT,
                            "%s still leads and would put finalizers back: stop it, and run this "
                            "again",
                            now.holder);
        (void)usleep(POLL_US);
    }
}

static int each_held(struct uninstall_job *job,
                     int (*fn)(const struct stw_remote *, const struct stw_kind *,
                               struct stw_error *),
                     struct stw_error *err)
{
    for (size_t i = 0; job->op->kinds[i]; i++)
        if (job->held[i].held && fn(&job->remote, job->op->kinds[i], err) != 0)
            return -1;
    return count_held(job, err);
}

/* No one may be left who would add the finalizers again. */
static int stop_managing(struct uninstall_job *job, struct stw_error *err)
{
    if (stw_kinds_are_some(job->op))
        return stw_kinds_are_out(&job->remote, job->program, job->options->ns, err);
    return scale_down(job, err) == 0 ? wait_for_leader(job, err) : -1;
}

static int release_held(struct uninstall_job *job, struct stw_error *err)
{
    uint64_t were = job->held_all;
    if (stop_managing(job, err) != 0 || count_held(job, err) != 0 ||
        each_held(job, stw_held_release, err) != 0)
        return -1;
    if (job->held_all)
        return stw_fail(err, STW_ERR_CONFLICT,
                        "%" PRIu64 " objects have finalizers again: does another replica run?",
                        job->held_all);
    stw_print_line(stdout, "removed the finalizer from %" PRIu64 " object%s", were,
                   were == 1 ? "" : "s");
    return 0;
}

static int delete_and_wait(struct uninstall_job *job, struct stw_error *err)
{
    uint64_t were = job->held_all;
    if (each_held(job, stw_held_delete, err) != 0)
        return -1;
    while (job->held_all && in_time(job)) {
        (void)usleep(POLL_US);
        if (count_held(job, err) != 0)
            return -1;
    }
    if (job->held_all) {
        tell_held(job);
        return stw_fail(err, STW_ERR_TIMEOUT,
                        "%" PRIu64 " objects are not cleaned up yet: `kubectl describe` tells what "
                        "each waits for; run this again, with a longer --timeout, or with "
                        "--finalizers=release",
                        job->held_all);
    }
    say(job, "deleted %" PRIu64 " object%s, and {operator} has cleaned up\n", were,
        were == 1 ? "" : "s");
    return 0;
}

static int carry_out(struct uninstall_job *job, struct stw_error *err)
{
    job->deadline_ms = stw_now_ms(&stw_clock_system) + (uint64_t)job->options->timeout_ms;
    if (stw_kinds_are_some(job->op) && job->release && stop_managing(job, err) != 0)
        return -1; /* before anything is changed */
    if (delete_hooks(job, err) != 0)
        return -1;
    if (!job->held_all)
        return 0;
    return (job->release ? release_held : delete_and_wait)(job, err);
}

/* --- main */

static int print_failure(int status, const struct stw_error *err)
{
    (void)fflush(stdout);
    stw_print_line(stderr, "%s uninstall: %s", stw_program_name(), err->text);
    return status;
}

static int uninstall_steward(struct uninstall_job *job)
{
    const struct uninstall_options *o = job->options;
    struct stw_error err = {0};
    job->remote.op = job->op;
    if (stw_remote_open(&job->remote, o->kubeconfig, o->context, &err) != 0 ||
        count_held(job, &err) != 0)
        return print_failure(STW_EXIT_USAGE, &err);
    bool chosen = o->finalizers || !job->held_all;
    if (!o->yes || !chosen)
        tell_plan(job);
    if (o->yes && !chosen)
        return stw_usage_error("uninstall", "--finalizers must say what happens to these objects");
    if (o->yes && carry_out(job, &err) != 0)
        return print_failure(STW_EXIT_REFUSED, &err);
    tell_rest(job);
    if (!o->yes)
        say(job, "Nothing was done; `{operator} uninstall%s%s%s --yes` does it.\n",
            o->kinds && *o->kinds ? " --kinds=" : "", o->kinds ? o->kinds : "",
            !chosen          ? " --finalizers=wait|release"
            : !job->held_all ? ""
            : job->release   ? " --finalizers=release"
                             : " --finalizers=wait");
    return fflush(stdout) == 0 ? STW_EXIT_OK : STW_EXIT_REFUSED;
}

static int run_uninstall(const struct stw_call *call, void *settings, int operand_count,
                         char **operands)
{
    struct uninstall_options *o = settings;
    struct uninstall_job job = {.op = call->op, .program = call->program, .options = o};
    (void)operands;
    if (operand_count)
        return stw_usage_error("uninstall", "it takes options only");
    if (o->finalizers && !*o->finalizers) {
        free(o->finalizers);
        o->finalizers = NULL;
    }
    job.release = o->finalizers && stw_streq(o->finalizers, "release");
    if (o->finalizers && !job.release && !stw_streq(o->finalizers, "wait"))
        return stw_usage_error("uninstall", "--finalizers is wait or release");
    int status = uninstall_steward(&job);
    stw_remote_done(&job.remote);
    return status;
}

static int start_uninstall(const struct stw_call *call)
{
    struct uninstall_options options = {0};
    return stw_flags_run(call, &options, run_uninstall);
}

const struct stw_command stw_command_uninstall = {
    .name = "uninstall",
    .summary = "remove webhooks and finalizers, which would block changes without {operator}",
    .usage = usage,
    .flags = flags,
    .run = start_uninstall,
};
