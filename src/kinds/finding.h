/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with an object: (field path, code, value, message), in the words that the API
 * server itself uses.  Collected, never just the first.  Warnings stop nobody. */
#ifndef STW_KINDS_FINDING_H
#define STW_KINDS_FINDING_H

#include "base/buf.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>

enum stw_finding_code {
    STW_REQUIRED,      /* "Required value" */
    STW_INVALID,       /* "Invalid value: <v>" */
    STW_NOT_SUPPORTED, /* "Unsupported value: <v>" */
    STW_FORBIDDEN,     /* "Forbidden" */
    STW_DUPLICATE,     /* "Duplicate value: <v>" */
};

struct stw_finding {
    enum stw_finding_code code;
    char *path;    /* "spec.ports[0].port" */
    char *value;   /* JSON text of the bad value, cut to about 80 bytes; NULL: none is shown */
    char *message; /* "must be 0 or between 30000 and 32767"; may be "" with STW_REQUIRED */
};

/* Zero-initialised is empty.  Caps: 100 errors, 50 warnings (then one that says how many more). */
struct stw_findings {
    struct stw_finding *errors;
    size_t error_count;
    char **warnings;
    size_t warning_count;
    size_t errors_left_out, warnings_left_out;
    bool failed; /* out of memory: the verdict must be an error, not "accepted" */
    bool strict; /* members that no table has are errors, not warnings */

    /* What judging may cost.  `oversize`: a list, map or object has more in it than its table
     * allows, so that no rule walks it.  `spent`: the CPU time of this thread has passed
     * `cpu_end_ns` (0: no limit), so that the walks ended early and the verdict is a denial. */
    bool oversize, spent;
    uint32_t steps;
    uint64_t cpu_end_ns;
};

/* Gives what follows this much CPU time of the calling thread. */
void stw_findings_limit(struct stw_findings *f, uint32_t cpu_ms);
/* True once that is used up; to be asked in each loop over what an object holds. */
bool stw_findings_spent(struct stw_findings *f);
/* True, and one more error counted, when no further error is kept: its text need not be made. */
bool stw_findings_full(struct stw_findings *f);
/* One error in place of all: the object takes too long to judge. */
void stw_findings_too_complex(struct stw_findings *f);

void stw_findings_done(struct stw_findings *f);
#define stw_autofindings __attribute__((cleanup(stw_findings_done)))

/* `value` is JSON text or NULL; all are copied.  A value is shown without blanks between its parts,
 * with printable characters unescaped, and cut at a character's border with "...". */
void stw_findings_add(struct stw_findings *f, const char *path, enum stw_finding_code code,
                      const char *value, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void stw_findings_at(struct stw_findings *f, const char *path, enum stw_finding_code code,
                     struct stw_json value, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void stw_findings_warn(struct stw_findings *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* "Invalid value: 80: must be ..." - the part behind the path, as in details.causes[].message. */
void stw_finding_detail(const struct stw_finding *e, struct stw_buf *out);
/* "spec.nodePortNumber: Invalid value: 80: must be ..." */
void stw_finding_text(const struct stw_finding *e, struct stw_buf *out);
/* metav1.CauseType: "FieldValueInvalid", ... */
const char *stw_finding_cause(enum stw_finding_code code);

#endif
