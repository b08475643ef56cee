/* SPDX-License-Identifier: Apache-2.0
 *
 * The report of `steward audit`, printed as objects are checked: a line per finding, or one JSON
 * document. Only counts are kept. */
#ifndef STW_OPERATOR_AUDIT_REPORT_H
#define STW_OPERATOR_AUDIT_REPORT_H

#include "base/error.h"
#include "schema/kind.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct stw_audit_report {
    FILE *out;
    bool json, quiet; /* quiet: warnings are counted, not shown */
    uint64_t fine, refused, warned, unreadable, shown;
};

void stw_audit_report_begin(struct stw_audit_report *r);
void stw_audit_report_verdict(struct stw_audit_report *r, const struct stw_kind *kind,
                              const char *ns, const char *name, const struct stw_findings *f);
/* Something could not be read, so the audit is incomplete: "mywebs", ... */
void stw_audit_report_trouble(struct stw_audit_report *r, const char *what, const char *why);
/* Prints the summary; returns the exit status. */
int stw_audit_report_end(struct stw_audit_report *r);

#endif
