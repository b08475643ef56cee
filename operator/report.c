/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/report.h"

#include "base/buf.h"
#include "base/util.h"
#include "operator/command.h"

#include <stdio.h>

#define TEXT_MAX 8192

int stw_report_form(const char *name, enum stw_report_form *ret)
{
    static const char *const names[] = {"text", "json", "junit", "sarif"};
    for (size_t i = 0; i < STW_COUNT(names); i++) {
        if (stw_streq(name, names[i])) {
            *ret = (enum stw_report_form)i;
            return 0;
        }
    }
    return -1;
}

void stw_report_init(struct stw_report *r, const struct stw_operator *op, enum stw_report_form form,
                     bool quiet)
{
    *r = (struct stw_report){.op = op, .form = form, .quiet = quiet};
    if (form != STW_REPORT_TEXT)
        r->objects = json_array();
}

/* The position of a field in the file; for "" that of the object. */
static void find_place(const struct stw_report_object *s, const char *path, size_t *line,
                       size_t *column)
{
    stw_autobuf struct stw_buf full = STW_BUF_INIT(TEXT_MAX);
    *line = s->line ? s->line : 1;
    *column = 1;
    if (!s->marks)
        return;
    stw_buf_addf(&full, "%s%s", s->at ? s->at : "", path);
    size_t len = full.len;
    if (len && full.data[len - 1] == '.')
        full.data[len - 1] = '\0';
    (void)stw_yaml_marks_find(s->marks, stw_buf_str(&full), line, column);
}

static void print_place(const struct stw_report_object *s, const char *path)
{
    size_t line, column;
    if (!s->file)
        return;
    if (!s->marks && !s->line) {
        printf("%s: ", s->file);
        return;
    }
    find_place(s, path, &line, &column);
    printf("%s:%zu:%zu: ", s->file, line, column);
}

static void print_name(const struct stw_report_object *s)
{
    if (*s->ns)
        printf("%s %s/%s", s->kind, s->ns, *s->name ? s->name : "(no name)");
    else
        printf("%s %s", s->kind, *s->name ? s->name : "(no name)");
}

static void print_verdict(const struct stw_report *r, const struct stw_report_object *s,
                          const struct stw_findings *f)
{
    for (size_t i = 0; i < f->error_count; i++) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
        stw_finding_text(&f->errors[i], &text);
        print_place(s, f->errors[i].path);
        printf("error: %s\n", stw_buf_str(&text));
    }
    for (size_t i = 0; i < f->warning_count; i++) {
        print_place(s, "");
        printf("warning: %s\n", f->warnings[i]);
    }
    if (r->quiet && f->error_count == 0)
        return;
    print_place(s, "");
    print_name(s);
    printf(f->error_count ? " refused" : " accepted");
    printf(*s->source ? " (%s)\n" : "\n", s->source);
}

static json_t *build_subject_json(const struct stw_report_object *s, const char *verdict)
{
    size_t line, column;
    find_place(s, "", &line, &column);
    json_t *json = json_pack("{s:s?, s:I, s:s, s:s, s:s, s:s, s:s}", "file", s->file, "line",
                             (json_int_t)line, "apiVersion", s->api_version, "kind", s->kind,
                             "namespace", s->ns, "name", s->name, "verdict", verdict);
    if (*s->source)
        json_object_set_new(json, "source", json_string(s->source));
    return json;
}

static json_t *finding_json(const struct stw_report_object *s, const struct stw_finding *e)
{
    size_t line, column;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_finding_detail(e, &text);
    find_place(s, e->path, &line, &column);
    return json_pack("{s:s, s:s, s:s, s:I, s:I}", "field", e->path, "reason",
                     stw_finding_cause(e->code), "message", stw_buf_str(&text), "line",
                     (json_int_t)line, "column", (json_int_t)column);
}

static void add_verdict(struct stw_report *r, const struct stw_report_object *s,
                        const struct stw_findings *f)
{
    json_t *object = build_subject_json(s, f->error_count ? "refused" : "accepted");
    json_t *errors = json_array(), *warnings = json_array();
    for (size_t i = 0; i < f->error_count; i++)
        json_array_append_new(errors, finding_json(s, &f->errors[i]));
    for (size_t i = 0; i < f->warning_count; i++)
        json_array_append_new(warnings, json_string(f->warnings[i]));
    json_object_set_new(object, "errors", errors);
    json_object_set_new(object, "warnings", warnings);
    json_array_append_new(r->objects, object);
}

void stw_report_verdict(struct stw_report *r, const struct stw_report_object *s,
                        const struct stw_findings *f)
{
    if (f->failed) {
        stw_report_unreadable(r, s, "out of memory");
        return;
    }
    if (f->error_count)
        r->refused++;
    else
        r->accepted++;
    if (r->form != STW_REPORT_TEXT)
        add_verdict(r, s, f);
    else
        print_verdict(r, s, f);
}

void stw_report_skipped(struct stw_report *r, const struct stw_report_object *s)
{
    r->passed_over++;
    if (r->form != STW_REPORT_TEXT) {
        json_array_append_new(r->objects, build_subject_json(s, "passedOver"));
    } else if (!r->quiet) {
        print_place(s, "");
        print_name(s);
        printf(" skipped: %s is not a kind of %s's\n", s->api_version, r->op->name);
    }
}

void stw_report_unreadable(struct stw_report *r, const struct stw_report_object *s, const char *why)
{
    r->unreadable++;
    if (r->form != STW_REPORT_TEXT) {
        json_t *object = build_subject_json(s, "unreadable");
        json_object_set_new(object, "error", json_string(why));
        json_array_append_new(r->objects, object);
        return;
    }
    (void)fflush(stdout); /* keeps both streams in order on a terminal */
    if (s->file && !s->prefixed) {
        size_t line, column;
        find_place(s, "", &line, &column);
        if (s->marks || s->line)
            fprintf(stderr, "%s:%zu:%zu: ", s->file, line, column);
        else
            fprintf(stderr, "%s: ", s->file);
    }
    fprintf(stderr, "%s\n", why);
}

static void print_end(const struct stw_report *r)
{
    unsigned all = r->accepted + r->refused + r->passed_over;
    if (r->quiet && !r->refused && !r->unreadable)
        return;
    printf("%u object%s: %u accepted, %u refused, %u skipped\n", all, all == 1 ? "" : "s",
           r->accepted, r->refused, r->passed_over);
    if (r->unreadable)
        printf("%u could not be read\n", r->unreadable);
}

static void print_json(const struct stw_report *r)
{
    json_auto_t *all =
        json_pack("{s:O, s:{s:I, s:I, s:I, s:I}}", "objects", r->objects, "summary", "accepted",
                  (json_int_t)r->accepted, "refused", (json_int_t)r->refused, "passedOver",
                  (json_int_t)r->passed_over, "unreadable", (json_int_t)r->unreadable);
    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
}

int stw_report_finish(struct stw_report *r)
{
    switch (r->form) {
    case STW_REPORT_TEXT:
        print_end(r);
        break;
    case STW_REPORT_JSON:
        print_json(r);
        break;
    case STW_REPORT_JUNIT:
        stw_report_junit(r->op, r->objects, stdout);
        break;
    case STW_REPORT_SARIF:
        stw_report_sarif(r->op, r->objects, stdout);
        break;
    }
    json_decref(r->objects);
    r->objects = NULL;
    if (fflush(stdout) != 0)
        return STW_EXIT_USAGE;
    return r->unreadable ? STW_EXIT_USAGE : r->refused ? STW_EXIT_REFUSED : STW_EXIT_OK;
}
