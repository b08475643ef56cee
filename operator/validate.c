/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward validate`: applies the webhook's rules to YAML files, for users and CI pipelines. */
#include "base/util.h"
#include "base/yaml.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/files.h"
#include "operator/main.h"
#include "operator/report.h"
#include "schema/kind.h"

static const char usage[] =
    "Usage: steward validate [OPTIONS] FILE|FOLDER|-...\n\n"
    "Gives each object in YAML or JSON files the verdict of the admission webhook, without a\n"
    "cluster.  Folders are searched for *.yaml, *.yml and *.json; - is standard input.  Kinds that "
    "are\n"
    "not steward's are skipped with a note.  Rules that look at other objects of the cluster are "
    "not\n"
    "applied.\n\n"
    "Exit status: 0 all accepted, 1 something was refused, 2 something could not be read.\n";

struct validate_options {
    void *extra; /* options of the extension */
    char *output;
    bool quiet;
};

static const struct stw_flag flags[] = {
    STW_FLAGS_OUTPUT(struct validate_options),
    {.name = "quiet",
     .letter = 'q',
     .type = STW_FLAG_BOOL,
     .def = "false",
     .offset = offsetof(struct validate_options, quiet),
     .help = "say nothing of what was accepted or skipped"},
    {0},
};

struct validate_job {
    struct stw_host host;
    struct stw_report *report;
    bool json;
    struct stw_env env;
    struct stw_yaml_marks *marks;
    const char *file;
    struct stw_error *err;
};

static void split_api_version(struct stw_json object, char *group, char *version, size_t size)
{
    char text[512];
    group[0] = version[0] = '\0';
    if (stw_json_strcpy(stw_json_get(object, "apiVersion"), text, sizeof(text)) != 0)
        return;
    char *slash = strchr(text, '/');
    if (slash)
        *slash = '\0';
    stw_format(group, size, "%s", slash ? text : "");
    stw_format(version, size, "%s", slash ? slash + 1 : text);
}

static void fill_subject(const struct validate_job *job, struct stw_json object, const char *at,
                         struct stw_subject *s)
{
    struct stw_json meta = stw_json_get(object, "metadata");
    *s = (struct stw_subject){.file = job->file, .marks = job->marks, .at = at};
    (void)stw_json_strcpy(stw_json_get(object, "kind"), s->kind, sizeof(s->kind));
    (void)stw_json_strcpy(stw_json_get(object, "apiVersion"), s->api_version,
                          sizeof(s->api_version));
    (void)stw_json_strcpy(stw_json_get(meta, "namespace"), s->ns, sizeof(s->ns));
    if (stw_json_strcpy(stw_json_get(meta, "name"), s->name, sizeof(s->name)) != 0)
        (void)stw_json_strcpy(stw_json_get(meta, "generateName"), s->name, sizeof(s->name));
}

#define LINES_MAX (64u << 10)
#define NOT_AN_OBJECT "not a Kubernetes object: apiVersion and kind must be set"

static void validate_object(struct validate_job *job, struct stw_json object, const char *at)
{
    char group[512], version[512];
    struct stw_subject subject;
    stw_autofindings struct stw_findings findings = {0};
    split_api_version(object, group, version, sizeof(group));
    fill_subject(job, object, at, &subject);
    if (!*subject.kind || !*subject.api_version) {
        stw_report_unreadable(job->report, &subject, NOT_AN_OBJECT);
        return;
    }
    const struct stw_kind *kind = stw_operator_kind(job->host.op, group, version, subject.kind);
    if (!kind) {
        stw_report_passed_over(job->report, &subject);
        return;
    }
    struct stw_admission question = {
        .kind = kind,
        .operation = STW_CREATE,
        .ns = *subject.ns ? subject.ns : "default",
        .name = subject.name,
        .object = object,
        .old_object = STW_JSON_NONE,
        .env = &job->env,
    };
    stw_kind_validate(&question, &findings);
    stw_report_verdict(job->report, &subject, &findings);
}

/* A document is an object, or a List of objects. */
static int validate_document(void *ctx, unsigned index, size_t line, const struct stw_buf *json)
{
    (void)index;
    struct validate_job *job = ctx;
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_subject subject = {.file = job->file, .line = line};
    if (json->len && json->data[0] != '{') {
        stw_report_unreadable(job->report, &subject, NOT_AN_OBJECT);
        return 0;
    }
    if (stw_json_scan(&doc, json->data, json->len, job->err) != 0) {
        stw_report_unreadable(job->report, &subject, job->err->text);
        return 0;
    }
    struct stw_json root = stw_json_root(&doc), items = stw_json_get(root, "items");
    bool list = stw_json_is(stw_json_get(root, "apiVersion"), "v1") &&
                stw_json_is(stw_json_get(root, "kind"), "List");
    if (!list || stw_json_type(items) != STW_JSON_ARRAY) {
        validate_object(job, root, "");
        return 0;
    }
    for (uint32_t i = 0; i < stw_json_size(items); i++) {
        char at[32];
        stw_format(at, sizeof(at), "items[%u].", i);
        validate_object(job, stw_json_at(items, i), at);
    }
    return 0;
}

static void read_one(void *ctx, const char *name, const char *text, size_t len)
{
    struct validate_job *job = ctx;
    struct stw_error err = {0};
    job->file = name;
    job->err = &err;
    job->marks = stw_yaml_marks_create();
    if (stw_yaml_each_marked(name, text, len, validate_document, job, job->marks, &err) < 0)
        stw_report_unreadable(job->report, &(struct stw_subject){.prefixed = true}, err.text);
    stw_yaml_marks_destroy(job->marks);
    job->marks = NULL;
}

static void report_unreadable(void *ctx, const char *name, const char *why)
{
    struct validate_job *job = ctx;
    stw_report_unreadable(job->report, &(struct stw_subject){.file = name}, why);
}

static int judge_all(struct validate_job *job, const struct validate_options *o, char **operands)
{
    stw_report_init(job->report, job->json, o->quiet);
    for (; *operands; operands++)
        stw_files_each(*operands, read_one, report_unreadable, job);
    return stw_report_finish(job->report);
}

static int judge_with_host(struct validate_job *job, const struct validate_options *o,
                           char **operands)
{
    struct stw_error err = {0};
    if (stw_host_open(&job->host, &err) != 0) {
        fprintf(stderr, "steward validate: %s\n",
                job->host.lines.len ? stw_buf_str(&job->host.lines) : err.text);
        return STW_EXIT_USAGE;
    }
    job->env.op = job->host.op;
    job->env.product = job->host.product;
    return judge_all(job, o, operands);
}

static int run_validate(const struct stw_call *call, void *settings, int count, char **operands)
{
    const struct validate_options *o = settings;
    struct stw_error err = {0};
    struct stw_report report;
    struct validate_job job = {.report = &report};
    job.host = (struct stw_host){.op = call->op,
                                 .command = call->command,
                                 .options = o->extra,
                                 .lines = STW_BUF_INIT(LINES_MAX)};
    if (stw_flags_output("validate", o->output, &job.json) != 0)
        return STW_EXIT_USAGE;
    if (!count)
        return stw_usage_error("validate",
                               "which files? Name some, a folder, or - for standard input");
    if (stw_host_check(&job.host, &err) != 0)
        return stw_usage_error("validate", "%s", err.text);
    int status = judge_with_host(&job, o, operands);
    stw_host_close(&job.host);
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
