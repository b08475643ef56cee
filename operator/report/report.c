/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/report/report.h"

#include "base/buf.h"
#include "base/hex.h"
#include "base/util.h"
#include "base/visible.h"
#include "operator/command.h"

#include <stdio.h>

#define TEXT_MAX ((size_t)1 << 20)
#define PLACE_MAX ((size_t)64 << 10)
/* What cannot be read can be two bytes each: more of them are only counted. */
#define UNREADABLE_MAX 1000U
#define UNREADABLE_MORE "more could not be read, which is only counted"

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
    *r = (struct stw_report){
        .op = op, .form = form, .quiet = quiet, .objects = STW_BUF_INIT(SIZE_MAX / 8)};
}

/* Takes the reference. */
static void add_object(struct stw_report *r, json_t *object)
{
    stw_autofree char *text = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    r->count++;
    if (text)
        stw_buf_add(&r->objects, text, strlen(text) + 1);
    r->objects.failed |= !text;
}

/* The position of a field in the file; for "" that of the object. */
static void find_place(const struct stw_report_object *s, const char *path, size_t *line,
                       size_t *column)
{
    stw_autobuf struct stw_buf full = STW_BUF_INIT(TEXT_MAX);
    *line = s->line ? s->line : 1;
    *column = s->column ? s->column : 1;
    if (!s->marks)
        return;
    stw_buf_addf(&full, "%s%s", s->at ? s->at : "", path);
    size_t len = full.len;
    if (len && full.data[len - 1] == '.')
        full.data[len - 1] = '\0';
    (void)stw_yaml_marks_find(s->marks, stw_buf_str(&full), line, column);
}

/* "file:3:7: ", "file: " or "". */
static void add_place(const struct stw_report_object *s, const char *path, struct stw_buf *out)
{
    size_t line, column;
    if (!s->file)
        return;
    stw_report_file(s->file, out);
    if (s->marks || s->line) {
        find_place(s, path, &line, &column);
        stw_buf_addf(out, ":%zu:%zu", line, column);
    }
    stw_buf_adds(out, ": ");
}

static void print_at(FILE *out, const struct stw_report_object *s, const char *path,
                     const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void print_at(FILE *out, const struct stw_report_object *s, const char *path,
                     const char *fmt, ...)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    va_list ap;
    add_place(s, path, &text);
    va_start(ap, fmt);
    stw_buf_vaddf(&text, fmt, ap);
    va_end(ap);
    stw_print_line(out, "%s", stw_buf_str(&text));
}

/* "MyWeb team/web" */
static void print_object(const struct stw_report_object *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void print_object(const struct stw_report_object *s, const char *fmt, ...)
{
    char what[1024];
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(what, sizeof(what), fmt, ap);
    va_end(ap);
    print_at(stdout, s, "", "%s %s%s%s %s", s->kind, s->ns, *s->ns ? "/" : "",
             *s->name ? s->name : "(no name)", what);
}

static void print_verdict(const struct stw_report *r, const struct stw_report_object *s,
                          const struct stw_findings *f)
{
    for (size_t i = 0; i < f->error_count; i++) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
        stw_finding_text(&f->errors[i], &text);
        print_at(stdout, s, f->errors[i].path, "error: %s", stw_buf_str(&text));
    }
    for (size_t i = 0; i < f->warning_count; i++)
        print_at(stdout, s, "", "warning: %s", f->warnings[i]);
    if (r->quiet && f->error_count == 0)
        return;
    print_object(s, *s->source ? "%s (%s)" : "%s", f->error_count ? "refused" : "accepted",
                 s->source);
}

static json_t *build_subject_json(const struct stw_report *r, const struct stw_report_object *s,
                                  const char *verdict)
{
    stw_autobuf struct stw_buf uri = STW_BUF_INIT(SIZE_MAX);
    size_t line, column;
    find_place(s, "", &line, &column);
    json_t *json = json_pack("{s:o, s:I, s:o, s:o, s:o, s:o, s:s}", "file",
                             s->file ? stw_report_text(s->file) : json_null(), "line",
                             (json_int_t)line, "apiVersion", stw_report_text(s->api_version),
                             "kind", stw_report_text(s->kind), "namespace", stw_report_text(s->ns),
                             "name", stw_report_text(s->name), "verdict", verdict);
    if (*s->source)
        json_object_set_new(json, "source", stw_report_text(s->source));
    if (r->form == STW_REPORT_SARIF && s->file) {
        stw_url_escape_path(s->file, &uri);
        json_object_set_new(json, "uri", json_string(stw_buf_str(&uri)));
    }
    return json;
}

static json_t *finding_json(const struct stw_report_object *s, const struct stw_finding *e)
{
    size_t line, column;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    stw_finding_detail(e, &text);
    find_place(s, e->path, &line, &column);
    return json_pack("{s:o, s:s, s:o, s:I, s:I}", "field", stw_report_text(e->path), "reason",
                     stw_finding_cause(e->code), "message", stw_report_text(stw_buf_str(&text)),
                     "line", (json_int_t)line, "column", (json_int_t)column);
}

static void add_verdict(struct stw_report *r, const struct stw_report_object *s,
                        const struct stw_findings *f)
{
    json_t *object = build_subject_json(r, s, f->error_count ? "refused" : "accepted");
    json_t *errors = json_array(), *warnings = json_array();
    for (size_t i = 0; i < f->error_count; i++)
        r->objects.failed |= json_array_append_new(errors, finding_json(s, &f->errors[i])) != 0;
    for (size_t i = 0; i < f->warning_count; i++)
        r->objects.failed |= json_array_append_new(warnings, stw_report_text(f->warnings[i])) != 0;
    r->objects.failed |= json_object_set_new(object, "errors", errors) != 0 ||
                         json_object_set_new(object, "warnings", warnings) != 0;
    add_object(r, object);
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
    if (r->form != STW_REPORT_TEXT)
        add_object(r, build_subject_json(r, s, "passedOver"));
    else if (!r->quiet)
        print_object(s, "skipped: %s is not a kind of %s's", s->api_version, r->op->name);
}

void stw_report_unreadable(struct stw_report *r, const struct stw_report_object *s, const char *why)
{
    if (r->unreadable++ > UNREADABLE_MAX)
        return;
    if (r->unreadable > UNREADABLE_MAX)
        why = UNREADABLE_MORE;
    if (r->form == STW_REPORT_TEXT) {
        (void)fflush(stdout); /* keeps both streams in order on a terminal */
        print_at(stderr, s, "", "%s", why);
        return;
    }
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
    if (s->column)
        add_place(s, "", &text);
    stw_buf_adds(&text, why);
    json_t *object = build_subject_json(r, s, "unreadable");
    json_object_set_new(object, "error", stw_report_text(stw_buf_str(&text)));
    add_object(r, object);
    r->shown_unreadable++;
}

static void print_end(const struct stw_report *r)
{
    unsigned all = r->accepted + r->refused + r->passed_over;
    if (r->quiet && !r->refused && !r->unreadable)
        return;
    stw_print_line(stdout, "%u object%s: %u accepted, %u refused, %u skipped", all,
                   all == 1 ? "" : "s", r->accepted, r->refused, r->passed_over);
    if (r->unreadable)
        stw_print_line(stdout, "%u could not be read", r->unreadable);
}

static void print_json_object(void *ctx, const json_t *object)
{
    unsigned *shown = ctx;
    fputs((*shown)++ ? ",\n    " : "\n    ", stdout);
    stw_report_print(object, 4, stdout);
}

static void print_json(struct stw_report *r)
{
    unsigned shown = 0;
    json_auto_t *summary =
        json_pack("{s:I, s:I, s:I, s:I}", "accepted", (json_int_t)r->accepted, "refused",
                  (json_int_t)r->refused, "passedOver", (json_int_t)r->passed_over, "unreadable",
                  (json_int_t)r->unreadable);
    fputs("{\n  \"objects\": [", stdout);
    stw_report_each(r, print_json_object, &shown);
    fputs(shown ? "\n  ],\n  \"summary\": " : "],\n  \"summary\": ", stdout);
    stw_report_print(summary, 2, stdout);
    fputs("\n}\n", stdout);
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
        stw_report_junit(r, stdout);
        break;
    case STW_REPORT_SARIF:
        stw_report_sarif(r, stdout);
        break;
    }
    bool complete = !r->objects.failed;
    stw_buf_done(&r->objects);
    if (!complete)
        stw_print_line(stderr, "there is no memory for the report");
    if (fflush(stdout) != 0 || !complete)
        return STW_EXIT_USAGE;
    return r->unreadable ? STW_EXIT_USAGE : r->refused ? STW_EXIT_REFUSED : STW_EXIT_OK;
}
