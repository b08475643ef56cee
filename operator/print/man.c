/* SPDX-License-Identifier: Apache-2.0
 *
 * `steward print man`. */
#include "base/util.h"
#include "operator/command.h"
#include "operator/flags.h"
#include "operator/main/program.h"
#include "operator/print/print.h"

#include <ctype.h>

#define TEXT_MAX (64u << 10)

/* troff prints "-" as a hyphen, and some quotes as typographic ones: what a reader copies from the
 * page must be what the shell needs. */
static const char *const escapes[128] = {
    ['\\'] = "\\e",  ['-'] = "\\-",   ['\''] = "\\(aq", ['`'] = "\\(ga",
    ['^'] = "\\(ha", ['~'] = "\\(ti", ['"'] = "\\(dq",
};

static void add_char(char c, struct stw_buf *out)
{
    const char *escaped = c > 0 ? escapes[(unsigned char)c] : NULL;
    if (escaped)
        stw_buf_adds(out, escaped);
    else
        stw_buf_addc(out, c);
}

/* A "." that begins a line would begin a request. */
static void add_roff(const char *text, size_t len, struct stw_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '.' && (i == 0 || text[i - 1] == '\n'))
            stw_buf_adds(out, "\\&");
        add_char(text[i], out);
    }
}

/* With the operator's own names. */
static void add_string(const struct stw_operator *op, const char *text, struct stw_buf *out)
{
    stw_autobuf struct stw_buf own = STW_BUF_INIT(TEXT_MAX);
    stw_operator_expand(op, text, &own);
    out->failed |= own.failed;
    add_roff(stw_buf_str(&own), own.len, out);
}

enum usage_line { LINE_EMPTY, LINE_TEXT, LINE_LITERAL };

static enum usage_line classify_line(const char *line, size_t len)
{
    if (len == 0)
        return LINE_EMPTY;
    return line[0] == ' ' || strncmp(line, "Usage: ", 7) == 0 ? LINE_LITERAL : LINE_TEXT;
}

/* Lines of examples and tables stay as they are, text is filled. */
static void add_usage(const char *usage, struct stw_buf *out)
{
    enum usage_line before = LINE_TEXT;
    bool paragraph = false; /* .PP is due: it must not be the last request of a section */
    for (const char *p = usage; *p;) {
        size_t len = strcspn(p, "\n");
        enum usage_line now = classify_line(p, len);
        if (before == LINE_LITERAL && now != LINE_LITERAL)
            stw_buf_adds(out, ".fi\n");
        if (now == LINE_EMPTY || (p > usage && now != before))
            paragraph = true;
        if (now != LINE_EMPTY && paragraph) {
            stw_buf_adds(out, ".PP\n");
            paragraph = false;
        }
        if (now == LINE_LITERAL && before != LINE_LITERAL)
            stw_buf_adds(out, ".nf\n");
        if (now != LINE_EMPTY) {
            add_roff(p, len, out);
            stw_buf_addc(out, '\n');
        }
        before = now;
        p += len + (p[len] == '\n');
    }
    if (before == LINE_LITERAL)
        stw_buf_adds(out, ".fi\n");
}

static void add_flag(const struct stw_operator *op, const struct stw_flag *f, struct stw_buf *out)
{
    stw_buf_adds(out, ".TP\n");
    if (f->letter)
        stw_buf_addf(out, "\\fB\\-%c\\fR, ", f->letter);
    stw_buf_adds(out, "\\fB\\-\\-");
    add_string(op, f->name, out);
    stw_buf_adds(out, f->type == STW_FLAG_BOOL ? "\\fR[=\\fI" : "\\fR=\\fI");
    add_string(op, f->type == STW_FLAG_BOOL ? "true|false" : f->arg, out);
    stw_buf_adds(out, f->type == STW_FLAG_BOOL ? "\\fR]\n" : "\\fR\n");
    add_string(op, f->help, out);
    if (f->def) {
        stw_buf_adds(out, " (default ");
        add_string(op, *f->def ? f->def : "empty", out);
        stw_buf_addc(out, ')');
    }
    stw_buf_addc(out, '\n');
}

static void add_summary(const struct stw_operator *op, const struct stw_command *c,
                        struct stw_buf *out)
{
    stw_buf_addf(out, ".TP\n.B %s\n", c->name);
    add_string(op, c->summary, out);
    stw_buf_addc(out, '\n');
}

static void add_command(const struct stw_operator *op, const struct stw_command *c,
                        struct stw_buf *out)
{
    struct stw_flag table[STW_FLAGS_MAX];
    stw_command_flags(op, c, table);
    stw_autobuf struct stw_buf own = STW_BUF_INIT(TEXT_MAX);
    stw_operator_expand(op, stw_command_usage(op, c), &own);
    out->failed |= own.failed;
    stw_buf_adds(out, ".SS ");
    add_string(op, "{operator} ", out);
    stw_buf_addf(out, "%s\n", c->name);
    add_usage(stw_buf_str(&own), out);
    for (const struct stw_flag *f = table; f->name; f++)
        add_flag(op, f, out);
}

static void add_head(const struct stw_operator *op, struct stw_buf *out)
{
    stw_autobuf struct stw_buf name = STW_BUF_INIT(4 * STW_OPERATOR_NAME_MAX);
    add_string(op, op->name, &name);
    out->failed |= name.failed;
    const char *own = stw_buf_str(&name);
    stw_buf_addf(out, ".\\\" Written by \"%s print man\".\n.TH ", op->name);
    for (const char *c = own; *c; c++)
        stw_buf_addc(out, (char)toupper((unsigned char)*c));
    stw_buf_addf(out, " 1 \"\" \"%s ", own);
    add_string(op, op->version, out);
    stw_buf_addf(out,
                 "\" \"User Commands\"\n"
                 ".\\\" No hyphenation and no justification: options stay whole.\n.nh\n.ad l\n"
                 ".SH NAME\n%s \\- admission webhook and controllers for Kubernetes\n"
                 ".SH SYNOPSIS\n.B %s\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.br\n"
                 ".B kubectl %s\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.br\n"
                 ".B %s\n\\fB\\-\\-help\\fR | \\fB\\-\\-version\\fR\n"
                 ".SH DESCRIPTION\n",
                 own, own, own, own);
    add_string(op, op->about, out);
}

static void add_tail(struct stw_buf *out)
{
    static const struct {
        int status;
        const char *meaning;
    } statuses[] = {
        {STW_EXIT_OK, "Success."},
        {STW_EXIT_REFUSED, "It failed; validate and audit: an object is refused."},
        {STW_EXIT_USAGE, "Wrong usage, or input that cannot be read."},
    };
    stw_buf_adds(out, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < STW_COUNT(statuses); i++)
        stw_buf_addf(out, ".TP\n.B %d\n%s\n", statuses[i].status, statuses[i].meaning);
    stw_buf_adds(out, ".SH SEE ALSO\n.BR kubectl (1)\n");
}

void stw_print_man(const struct stw_operator *op, struct stw_buf *out)
{
    const struct stw_command *const *all = stw_program_commands();
    add_head(op, out);
    for (const struct stw_command *const *c = all; *c; c++)
        add_summary(op, *c, out);
    stw_buf_adds(out,
                 ".SH COMMANDS\nEach command has the option \\fB\\-h\\fR, \\fB\\-\\-help\\fR.\n");
    for (const struct stw_command *const *c = all; *c; c++)
        add_command(op, *c, out);
    add_tail(out);
}
