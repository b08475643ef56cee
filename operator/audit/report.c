/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/audit/report.h"

#include "base/buf.h"
#include "base/util.h"
#include "base/visible.h"
#include "operator/command.h"
#include "operator/main/program.h"

#include <inttypes.h>

#define TEXT_MAX_BYTES 16384

void stw_audit_report_begin(struct stw_audit_report *r)
{
    if (r->json)
        fputs("{\"findings\": [", r->out);
}

static void add_report_member(struct stw_buf *out, const char *name, const char *value)
{
    stw_buf_addf(out, "%s\"%s\": ", out->len > 1 ? ", " : "", name);
    stw_buf_json_strz(out, value);
}

/* A finding of an object: `e` for an error, otherwise `warning`. */
struct audit_found {
    const struct stw_kind *kind;
    const char *ns, *name;
    const struct stw_finding *e;
    const char *warning;
};

static void show_json(struct stw_audit_report *r, const struct audit_found *f)
{
    stw_autobuf struct stw_buf line = STW_BUF_INIT(TEXT_MAX_BYTES);
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX_BYTES);
    char version[256];
    stw_format(version, sizeof(version), "%s/%s", f->kind->group, f->kind->version);
    stw_buf_addc(&line, '{');
    add_report_member(&line, "severity", f->e ? "error" : "warning");
    add_report_member(&line, "apiVersion", version);
    add_report_member(&line, "kind", f->kind->kind);
    add_report_member(&line, "namespace", f->ns);
    add_report_member(&line, "name", f->name);
    if (f->e) {
        stw_finding_detail(f->e, &text);
        add_report_member(&line, "field", f->e->path);
        add_report_member(&line, "reason", stw_finding_cause(f->e->code));
    }
    add_report_member(&line, "message", f->e ? stw_buf_str(&text) : f->warning);
    stw_buf_addc(&line, '}');
    fputs(r->shown ? ",\n  " : "\n  ", r->out);
    stw_print_json(r->out, stw_buf_str(&line), line.len);
}

static void show_text(struct stw_audit_report *r, const struct audit_found *f)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX_BYTES);
    if (f->e)
        stw_finding_text(f->e, &text);
    stw_print_line(r->out, "%s %s/%s: %s: %s", f->kind->kind, f->ns, f->name,
                   f->e ? "error" : "warning", f->e ? stw_buf_str(&text) : f->warning);
}

static void print_finding(struct stw_audit_report *r, const struct audit_found *f)
{
    (r->json ? show_json : show_text)(r, f);
    r->shown++;
}

void stw_audit_report_verdict(struct stw_audit_report *r, const struct stw_kind *kind,
                              const char *ns, const char *name, const struct stw_findings *f)
{
    struct audit_found found = {.kind = kind, .ns = ns, .name = name};
    if (f->failed) {
        stw_audit_report_trouble(r, name, "out of memory");
        return;
    }
    *(f->error_count ? &r->refused : f->warning_count ? &r->warned : &r->fine) += 1;
    for (size_t i = 0; i < f->error_count; i++) {
        found.e = &f->errors[i];
        print_finding(r, &found);
    }
    found.e = NULL;
    for (size_t i = 0; i < f->warning_count && !r->quiet; i++) {
        found.warning = f->warnings[i];
        print_finding(r, &found);
    }
}

void stw_audit_report_trouble(struct stw_audit_report *r, const char *what, const char *why)
{
    r->unreadable++;
    (void)fflush(r->out); /* keeps both streams in order on a terminal */
    stw_print_line(stderr, "%s audit: %s: %s", stw_program_name(), what, why);
}

static void end_json(const struct stw_audit_report *r, uint64_t all)
{
    fprintf(r->out,
            "%s], \"summary\": {\"objects\": %" PRIu64 ", \"refused\": %" PRIu64
            ", \"warned\": %" PRIu64 ", \"fine\": %" PRIu64 ", \"unreadable\": %" PRIu64 "}}\n",
            r->shown ? "\n" : "", all, r->refused, r->warned, r->fine, r->unreadable);
}

int stw_audit_report_end(struct stw_audit_report *r)
{
    uint64_t all = r->fine + r->refused + r->warned;
    if (r->json)
        end_json(r, all);
    else
        fprintf(r->out,
                "%" PRIu64 " object%s: %" PRIu64 " would be refused today, %" PRIu64
                " with warnings only, %" PRIu64 " fine\n",
                all, all == 1 ? "" : "s", r->refused, r->warned, r->fine);
    if (r->unreadable && !r->json)
        fputs("Not everything could be read; the lines on standard error say what.\n", r->out);
    if (fflush(r->out) != 0 || r->unreadable)
        return STW_EXIT_USAGE;
    return r->refused ? STW_EXIT_REFUSED : STW_EXIT_OK;
}
