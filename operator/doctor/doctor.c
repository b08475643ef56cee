/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward doctor`: checks an installation from outside. */
#include "operator/doctor/doctor.h"

#include "base/util.h"
#include "base/visible.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/installed/kind_choice.h"
#include "operator/main/names.h"
#include "operator/main/program.h"
#include "operator/main/settings.h"

#define REQUEST_MS 5000
#define LOOK_AGAIN_US 2000000

static const char usage[] =
    "Usage: {operator} doctor [OPTIONS]\n\n"
    "Checks an installation, with the rights of the kubeconfig, from anywhere: API server and\n"
    "clock, CRDs, the Deployment, webhook configurations and their certificate, Service,\n"
    "endpoints and NetworkPolicies, the rights of {operator}'s account, the Lease.  Each line "
    "says\n"
    "what was seen and, below, what to do next.  Nothing is changed, and no secret is shown.\n\n"
    "Before an upgrade, run the new program with --upgrade: a stored object that its rules refuse\n"
    "is a failed check, too.  After an installation, --wait=2m looks again and again until "
    "nothing\n"
    "has failed, and prints the last look.\n\n"
    "Exit status: 0 all was checked and nothing failed, 1 something failed, 2 something could not\n"
    "be checked (the line \"not checked\" names it), called wrongly, or no API server.\n";

struct doctor_options {
    void *extra; /* options of the extension */
    char *kubeconfig, *context, *ns, *namespaces, *output, *kinds;
    int64_t timeout_ms, wait_ms;
    bool upgrade;
};

#define AT(member) .offset = offsetof(struct doctor_options, member)

static const struct stw_flag flags[] = {
    STW_FLAG_INSTALLED_IN(struct doctor_options),
    {.name = "namespaces",
     .arg = "A,B",
     AT(namespaces),
     .help = "that {operator} manages (default: as its Deployment says)"},
    STW_FLAGS_KINDS(struct doctor_options,
                    "that {operator} manages (default: as its Deployment says)"),
    STW_FLAGS_OUTPUT(struct doctor_options),
    {.name = "timeout",
     .type = STW_FLAG_DURATION,
     .arg = "DURATION",
     .def = "30s",
     .min = 1000,
     .max = 600000,
     AT(timeout_ms),
     .help = "for all of it but --upgrade; with --wait for each look"},
    {.name = "wait",
     .type = STW_FLAG_DURATION,
     .arg = "DURATION",
     .def = "0s",
     .min = 0,
     .max = 3600000,
     AT(wait_ms),
     .help = "how long to look again while a check has failed, or the API server does not answer"},
    {.name = "upgrade",
     .type = STW_FLAG_BOOL,
     .def = "false",
     AT(upgrade),
     .help =
         "also read the stored objects, and report those that the rules of this program refuse"},
    STW_REMOTE_FLAGS(struct doctor_options),
    {0},
};

static int check_installation(struct doctor *d, const struct doctor_options *o, bool *ret_faulty)
{
    const struct stw_extension *x = d->op->extension;
    static void (*const checks[])(struct doctor *) = {
        doctor_deployment,     doctor_crds,   doctor_kinds,  doctor_webhooks,   doctor_service,
        doctor_network_policy, doctor_rights, doctor_leader, doctor_unreadable,
    };
    d->remote.timeout_ms = REQUEST_MS;
    d->remote.deadline_ms = stw_now_ms(&stw_clock_system) + (uint64_t)o->timeout_ms;
    stw_checkup_begin(&d->report);
    int reached = doctor_server(d);
    for (size_t i = 0; reached == 0 && i < STW_COUNT(checks); i++)
        checks[i](d);
    for (size_t i = 0; reached == 0 && x && x->checks && x->checks[i]; i++)
        x->checks[i](d);
    if (reached == 0 && o->upgrade)
        doctor_upgrade(d);
    doctor_refused(d);
    int status = stw_checkup_end(&d->report);
    *ret_faulty = reached != 0 || d->report.count[STW_CHECK_FAIL] > 0;
    return reached == 0 ? status : STW_EXIT_USAGE;
}

/* -1: the kubeconfig cannot be used, as was said.  `ret_faulty`: a check failed, or the API server does not
 * answer, which may be over soon. */
static int look(const struct stw_call *call, const struct doctor_options *o, bool json, FILE *out,
                bool *ret_faulty)
{
    struct stw_error err = {0};
    struct doctor d = {.op = call->op,
                       .command = call->command,
                       .extra = o->extra,
                       .ns = o->ns,
                       .remote = {.op = call->op}};
    d.report = (struct stw_checkup){.op = call->op, .out = out, .json = json};
    int status = stw_list_split(o->namespaces, &d.namespaces, &err);
    if (status == 0)
        status = stw_remote_open(&d.remote, o->kubeconfig, o->context, &err);
    if (status == 0)
        status = check_installation(&d, o, ret_faulty);
    else
        stw_print_line(stderr, "%s doctor: %s", stw_program_name(), err.text);
    stw_answer_done(&d.deployment);
    stw_list_free(d.namespaces);
    stw_remote_done(&d.remote);
    return status;
}

/* The first look that shows no fault is printed, or else the last one. */
static int look_until_well(const struct stw_call *call, const struct doctor_options *o, bool json)
{
    uint64_t end = stw_now_ms(&stw_clock_system) + (uint64_t)o->wait_ms;
    for (;;) {
        stw_autofree char *text = NULL;
        size_t len = 0;
        FILE *out = open_memstream(&text, &len);
        bool faulty = false;
        int status = out ? look(call, o, json, out, &faulty) : STW_EXIT_USAGE;
        if (!out || fclose(out) != 0) {
            stw_print_line(stderr, "%s doctor: out of memory", stw_program_name());
            return STW_EXIT_USAGE;
        }
        if (!faulty || stw_now_ms(&stw_clock_system) >= end) {
            (void)fwrite(text, 1, len, stdout);
            return fflush(stdout) == 0 ? status : STW_EXIT_USAGE;
        }
        (void)usleep(LOOK_AGAIN_US);
    }
}

static int run_doctor(const struct stw_call *call, void *settings, int count, char **operands)
{
    const struct doctor_options *o = settings;
    bool json, faulty;
    (void)operands;
    if (count)
        return stw_usage_error("doctor", "it takes options only");
    if (stw_flags_output("doctor", o->output, &json) != 0)
        return STW_EXIT_USAGE;
    int status =
        o->wait_ms > 0 ? look_until_well(call, o, json) : look(call, o, json, stdout, &faulty);
    return status < 0 ? STW_EXIT_USAGE : status;
}

static int start_doctor(const struct stw_call *call)
{
    struct doctor_options options = {0};
    return stw_flags_run(call, &options, run_doctor);
}

const struct stw_command stw_command_doctor = {
    .name = "doctor",
    .summary = "check an installation, and recommend what to do next",
    .usage = usage,
    .flags = flags,
    .run = start_doctor,
};
