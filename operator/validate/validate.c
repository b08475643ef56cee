/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward validate`: applies the webhook's rules to YAML files, for users and CI pipelines. */
#include "base/util.h"
#include "base/visible.h"
#include "base/yaml/yaml.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/installed/files.h"
#include "operator/installed/kind_choice.h"
#include "operator/installed/kind_guess.h"
#include "operator/installed/manifests.h"
#include "operator/installed/old_objects.h"
#include "operator/main.h"
#include "operator/main/program.h"
#include "operator/report/report.h"
#include "schema/kind.h"
#include "schema/names.h"

static const char usage[] =
    "Usage: {operator} validate [OPTIONS] FILE|FOLDER|-...\n"
    "       {operator} validate [OPTIONS] [-R] -f FILE|FOLDER|-...\n\n"
    "Gives each object in YAML or JSON files the verdict of the API server and of the admission "
    "webhook,\n"
    "without a cluster.  Folders are searched for *.yaml, *.yml and *.json, those of -f without\n"
    "subfolders unless there is -R, as by kubectl; - is standard input.  Lists are taken apart.  "
    "As "
    "with `kubectl apply`, unknown fields are errors, and so are a kind and "
    "a\n"
    "version that {operator}'s groups do not have.  Kinds of other groups are skipped with a note. "
    " "
    "Rules\n"
    "that look at other objects of the cluster are not applied.  With --old, an object that is "
    "there\n"
    "is checked as the change that it makes.\n\n"
    "  kustomize build overlays/prod | {operator} validate -\n"
    "  helm template mychart | {operator} validate -o junit - > report.xml\n"
    "  kubectl get RESOURCE -A -o yaml > now.yaml; {operator} validate --old now.yaml new/\n\n"
    "Exit status: 0 all accepted, 1 something was refused, 2 something could not be read, there "
    "was "
    "no\n"
    "object at all, or the options are wrong.\n";

struct validate_options {
    void *extra; /* options of the extension */
    char *output, *old, *ns, *kinds, *files;
    bool quiet, lenient, recursive;
};

static const struct stw_flag flags[] = {
    {.name = "filename",
     .letter = 'f',
     .arg = "FILE",
     .list = true,
     .no_file = true,
     .offset = offsetof(struct validate_options, files),
     .help = "a file, a folder or -; may be given several times, or with commas"},
    {.name = "recursive",
     .letter = 'R',
     .type = STW_FLAG_BOOL,
     .def = "false",
     .no_file = true,
     .offset = offsetof(struct validate_options, recursive),
     .help = "folders of --filename with their subfolders, as folders without an option are read"},
    {.name = "output",
     .letter = 'o',
     .arg = STW_REPORT_FORMS,
     .def = "text",
     .offset = offsetof(struct validate_options, output),
     .help = "form of the report"},
    {.name = "lenient",
     .type = STW_FLAG_BOOL,
     .def = "false",
     .offset = offsetof(struct validate_options, lenient),
     .help = "unknown fields are warnings, as with `kubectl apply --validate=warn`; metadata and\n"
             "status are not checked as by the API server"},
    {.name = "old",
     .arg = "FILE",
     .offset = offsetof(struct validate_options, old),
     .help = "what the cluster has, as `kubectl get -o yaml` prints it, or a folder; objects with\n"
             "the same kind, namespace and name are compared with it"},
    {.name = "namespace",
     .letter = 'n',
     .arg = "NAME",
     .def = "default",
     .offset = offsetof(struct validate_options, ns),
     .help = "namespace of objects that name none"},
    STW_FLAGS_KINDS(struct validate_options,
                    "that the cluster has; objects of {operator}'s other kinds are refused"),
    {.name = "quiet",
     .letter = 'q',
     .type = STW_FLAG_BOOL,
     .def = "false",
     .offset = offsetof(struct validate_options, quiet),
     .help = "say nothing of what was accepted or skipped"},
    {0},
};

struct validate_job {
    const struct validate_options *options;
    struct stw_host host;
    struct stw_report *report;
    struct stw_env env;
    struct stw_old_objects *old;
    struct stw_yaml_marks *marks;
    const char *file; /* that is read */
    struct stw_manifest_text text;
    char source[256]; /* of the document */
    struct stw_error *err;
};

static void fill_subject(const struct validate_job *job, const struct stw_manifest *m,
                         struct stw_report_object *s)
{
    struct stw_json meta = stw_json_get(m->object, "metadata");
    *s = (struct stw_report_object){.file = job->file, .marks = job->marks, .at = m->at};
    stw_format(s->kind, sizeof(s->kind), "%s", m->kind);
    stw_format(s->api_version, sizeof(s->api_version), "%s", m->api_version);
    stw_format(s->source, sizeof(s->source), "%s", job->source);
    (void)stw_json_strcpy(stw_json_get(meta, "namespace"), s->ns, sizeof(s->ns));
    if (stw_json_strcpy(stw_json_get(meta, "name"), s->name, sizeof(s->name)) != 0)
        (void)stw_json_strcpy(stw_json_get(meta, "generateName"), s->name, sizeof(s->name));
}

#define LINES_MAX (64u << 10)
#define NOT_AN_OBJECT "not a Kubernetes object: apiVersion and kind must be set"

static void judge_object(struct validate_job *job, const struct stw_manifest *m,
                         const struct stw_kind *kind, const struct stw_report_object *subject,
                         struct stw_findings *findings)
{
    struct stw_json old = stw_old_objects_find(job->old, m);
    const struct stw_admission question = {
        .kind = kind,
        .operation = stw_json_there(old) ? STW_UPDATE : STW_CREATE,
        .ns = *subject->ns ? subject->ns : job->options->ns,
        .name = subject->name,
        .object = m->object,
        .old_object = old,
        .env = &job->env,
    };
    findings->strict = !job->options->lenient;
    stw_kind_validate_served(&question, findings);
    if (job->old && !stw_json_there(old))
        stw_findings_warn(findings, "not in --old: checked as a new object");
}

static void validate_object(void *ctx, const struct stw_manifest *m)
{
    struct validate_job *job = ctx;
    char group[sizeof(m->api_version)], version[sizeof(m->api_version)];
    struct stw_report_object subject;
    stw_autofindings struct stw_findings findings = {0};
    stw_manifest_split(m->api_version, group, version, sizeof(group));
    fill_subject(job, m, &subject);
    if (!*subject.kind || !*subject.api_version) {
        stw_report_unreadable(job->report, &subject, NOT_AN_OBJECT);
        return;
    }
    const struct stw_operator *op = job->host.op;
    const struct stw_kind *kind = stw_operator_kind(op, group, version, subject.kind);
    if (kind)
        judge_object(job, m, kind, &subject, &findings);
    else if (!stw_kind_refuse_other(op->others, m, &findings) &&
             !stw_kind_guess(op->kinds, m, &findings)) {
        stw_report_skipped(job->report, &subject);
        return;
    }
    stw_report_verdict(job->report, &subject, &findings);
}

/* A document is an object, or a list of objects. */
static int validate_document(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    (void)index;
    struct validate_job *job = ctx;
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_report_object subject = {.file = job->file, .line = line};
    if (json->len && json->data[0] != '{') {
        stw_report_unreadable(job->report, &subject, NOT_AN_OBJECT);
        return 0;
    }
    stw_manifest_source(&job->text, line, job->source, sizeof(job->source));
    if (stw_json_scan(&doc, json->data, json->len, job->err) != 0 ||
        stw_manifest_each(stw_json_root(&doc), validate_object, job, job->err) != 0)
        stw_report_unreadable(job->report, &subject, job->err->text);
    return 0;
}

/* `err` starts with ":line:column: ", or ": " where there is no position. */
static void report_syntax(struct validate_job *job, const struct stw_error *err)
{
    struct stw_report_object subject = {.file = job->file};
    char *rest = NULL;
    const char *text = err->text;
    if (text[0] == ':' && text[1] != ' ') {
        subject.line = strtoul(text + 1, &rest, 10);
        if (*rest == ':')
            subject.column = strtoul(rest + 1, &rest, 10);
        text = rest;
    }
    stw_report_unreadable(job->report, &subject, text + 2 * (strncmp(text, ": ", 2) == 0));
}

static void read_one(void *ctx, const char *name, const char *text, size_t len)
{
    struct validate_job *job = ctx;
    struct stw_error err = {0};
    job->file = name;
    job->text = (struct stw_manifest_text){.text = text, .len = len};
    job->err = &err;
    job->marks = stw_yaml_marks_create();
    /* Without the name, which may be longer than a message. */
    if (stw_yaml_each_marked("", text, len, validate_document, job, job->marks, &err) < 0)
        report_syntax(job, &err);
    stw_yaml_marks_destroy(job->marks);
    job->marks = NULL;
}

static void report_unreadable(void *ctx, const char *name, const char *why)
{
    struct validate_job *job = ctx;
    stw_report_unreadable(job->report, &(struct stw_report_object){.file = name}, why);
}

/* No object at all is most often a pipe whose other end has failed; apply refuses it too. */
static int judge_all(struct validate_job *job, char **operands)
{
    const struct stw_report *r = job->report;
    char *files = job->options->files;
    for (char *file; files && *files && (file = strsep(&files, ",")) != NULL;)
        stw_files_each(file, job->options->recursive, read_one, report_unreadable, job);
    for (; *operands; operands++)
        stw_files_each(*operands, true, read_one, report_unreadable, job);
    if (r->accepted + r->refused + r->passed_over + r->unreadable == 0)
        stw_report_unreadable(job->report, &(struct stw_report_object){0}, "there is no object");
    return stw_report_finish(job->report);
}

static void print_host_error(const struct validate_job *job, const struct stw_error *err)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(2 * LINES_MAX);
    stw_buf_addf(&text, "%s validate: ", stw_program_name());
    if (job->host.lines.len == 0) {
        stw_print_line(stderr, "%s%s", stw_buf_str(&text), err->text);
        return;
    }
    stw_buf_adds(&text, stw_buf_str(&job->host.lines));
    stw_print_lines(stderr, stw_buf_str(&text));
}

static int judge_with_host(struct validate_job *job, char **operands)
{
    struct stw_error err = {0};
    if (stw_host_open(&job->host, &err) != 0) {
        print_host_error(job, &err);
        return STW_EXIT_USAGE;
    }
    job->env.op = job->host.op;
    job->env.product = job->host.product;
    return judge_all(job, operands);
}

static int check_options(const struct validate_options *o, struct validate_job *job, int count)
{
    struct stw_error err = {0};
    enum stw_report_form form;
    if (stw_report_form(o->output, &form) != 0)
        return stw_usage_error("validate", "--output is text, json, junit or sarif");
    if (!count && !(o->files && *o->files))
        return stw_usage_error("validate",
                               "which files? Name some, a folder, or - for standard input");
    if (!stw_is_dns1123_label(o->ns))
        return stw_usage_error("validate", "--namespace \"%s\" is not the name of one", o->ns);
    if (stw_host_check(&job->host, &err) != 0)
        return stw_usage_error("validate", "%s", err.text);
    if (o->old && *o->old) {
        job->old = stw_old_objects_read(o->old, o->ns, &err);
        if (!job->old)
            return stw_usage_error("validate", "--old: %s", err.text);
    }
    stw_report_init(job->report, job->host.op, form, o->quiet);
    return 0;
}

static int run_validate(const struct stw_call *call, void *settings, int count, char **operands)
{
    const struct validate_options *o = settings;
    struct stw_report report;
    struct validate_job job = {.options = o, .report = &report};
    job.host = (struct stw_host){.op = call->op,
                                 .command = call->command,
                                 .options = o->extra,
                                 .lines = STW_BUF_INIT(LINES_MAX)};
    int status = check_options(o, &job, count);
    if (status != 0)
        return status;
    status = judge_with_host(&job, operands);
    stw_host_close(&job.host);
    stw_old_objects_destroy(job.old);
    return status;
}

static int start_validate(const struct stw_call *call)
{
    struct validate_options options = {0};
    return stw_flags_run(call, &options, run_validate);
}

const struct stw_command stw_command_validate = {
    .name = "validate",
    .summary = "check manifests with the webhook's rules, without a cluster",
    .usage = usage,
    .operands = "FILE",
    .flags = flags,
    .run = start_validate,
};
