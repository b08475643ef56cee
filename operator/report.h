/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of `steward validate`: compiler-style text, or one JSON document. */
#ifndef STW_OPERATOR_REPORT_H
#define STW_OPERATOR_REPORT_H

#include "base/yaml.h"
#include "schema/finding.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* The object of a finding. */
struct stw_subject {
    const char *file;                   /* NULL: the text contains it already */
    const struct stw_yaml_marks *marks; /* or NULL: then `line`, if not 0 */
    const char *at;                     /* prefix of field paths in the document, "items[2]." */
    size_t line;
    bool prefixed; /* the text starts with file, line and column */
    char kind[128], api_version[256], ns[254], name[254];
};

struct stw_report {
    bool json, quiet;
    unsigned accepted, refused, passed_over, unreadable;
    json_t *objects;
};

void stw_report_init(struct stw_report *r, bool json, bool quiet);
void stw_report_verdict(struct stw_report *r, const struct stw_subject *s,
                        const struct stw_findings *f);
void stw_report_passed_over(struct stw_report *r, const struct stw_subject *s);
void stw_report_unreadable(struct stw_report *r, const struct stw_subject *s, const char *why);
/* Prints the summary, frees, and returns the exit status. */
int stw_report_finish(struct stw_report *r);

#endif
