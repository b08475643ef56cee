/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of `steward validate`: compiler-style text, or one document: JSON, JUnit or SARIF. */
#ifndef STW_OPERATOR_REPORT_H
#define STW_OPERATOR_REPORT_H

#include "base/buf.h"
#include "base/operator.h"
#include "base/yaml/yaml.h"
#include "schema/finding.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The object of a finding. */
struct stw_report_object {
    const char *file;             /* its bytes as they are; NULL: none */
    struct stw_yaml_marks *marks; /* or NULL: then `line`, if not 0 */
    const char *at;               /* prefix of field paths in the document, "items[2]." */
    size_t line, column;          /* `column` only of an error of syntax */
    char source[256];             /* the Helm template that it was made from, or "" */
    char kind[128], api_version[256], ns[254], name[254];
};

enum stw_report_form { STW_REPORT_TEXT, STW_REPORT_JSON, STW_REPORT_JUNIT, STW_REPORT_SARIF };
#define STW_REPORT_FORMS "text|json|junit|sarif"
/* 0, or -1: not a form. */
int stw_report_form(const char *name, enum stw_report_form *ret);

struct stw_report {
    const struct stw_operator *op;
    enum stw_report_form form;
    bool quiet;
    unsigned accepted, refused, passed_over, unreadable;
    /* All but text: what the document is made from.  As text, which takes a tenth of the memory of a
     * tree: each object with its NUL. */
    struct stw_buf objects;
    unsigned count, shown_unreadable; /* objects; those that could not be read */
};

void stw_report_init(struct stw_report *r, const struct stw_operator *op, enum stw_report_form form,
                     bool quiet);
void stw_report_verdict(struct stw_report *r, const struct stw_report_object *s,
                        const struct stw_findings *f);
void stw_report_skipped(struct stw_report *r, const struct stw_report_object *s);
void stw_report_unreadable(struct stw_report *r, const struct stw_report_object *s,
                           const char *why);
/* Prints the summary, frees, and returns the exit status. */
int stw_report_finish(struct stw_report *r);

/* What the forms share (shared.c): a file's name at the start of a line, and a text of a document. */
void stw_report_file(const char *file, struct stw_buf *out);
json_t *stw_report_text(const char *text);
/* Prints a value of a document, with that many blanks before each line but the first. */
void stw_report_print(const json_t *value, unsigned blanks, FILE *out);
/* Calls `fn` for each object, as in the JSON form. */
typedef void stw_report_object_fn(void *ctx, const json_t *object);
void stw_report_each(struct stw_report *r, stw_report_object_fn *fn, void *ctx);
/* The report as a JUnit (XML) or SARIF 2.1.0 document. */
void stw_report_junit(struct stw_report *r, FILE *out);
void stw_report_sarif(struct stw_report *r, FILE *out);

#endif
