/* SPDX-License-Identifier: Apache-2.0
 *
 * What is wrong with an object: (field path, code, value, message), worded as the API server does.
 * All errors are collected, not only the first.  Warnings do not cause a denial. */
#ifndef STW_SCHEMA_FINDING_H
#define STW_SCHEMA_FINDING_H

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
    STW_UNKNOWN_FIELD, /* "Forbidden": a member that the kind does not have; only if `strict` */
    STW_FINDING_CODES
};

struct stw_finding {
    enum stw_finding_code code;
    /* As in the object: stw_finding_text() writes what acts on a terminal as escapes. */
    char *path;    /* "spec.ports[0].port" */
    char *value;   /* JSON text of the bad value, cut to about 80 bytes; NULL: none is shown */
    char *message; /* "must be 0 or between 30000 and 32767"; may be "" with STW_REQUIRED */
};

/* Zero-initialised is empty.  Limits: 100 errors, 50 warnings (then one with the number of
 * others). */
struct stw_findings {
    struct stw_finding *errors;
    size_t error_count;
    char **warnings;
    size_t warning_count;
    size_t errors_left_out, warnings_left_out;
    bool failed; /* out of memory: the verdict must be an error, not "accepted" */
    bool strict; /* unknown members are errors, not warnings, also in metadata and status */

    /* Limits on the cost of checking.  `oversize`: a list, map or object has more entries than its
     * table allows, so that no rule walks it.  `spent`: the CPU time of this thread has passed
     * `cpu_end_ns` (0: no limit), so that the walks ended early and the object is denied. */
    bool oversize, spent;
    bool unknown_told; /* unknown members have been reported already: no more warnings of them */
    uint32_t steps;
    uint64_t cpu_end_ns;
};

/* Limits the checks that follow to this much CPU time of the calling thread. */
void stw_findings_limit(struct stw_findings *f, uint32_t cpu_ms);
/* True once that is used up.  Call it in each loop over the contents of an object. */
bool stw_findings_spent(struct stw_findings *f);
/* True when no further error is kept; the error is counted, and its text need not be built. */
bool stw_findings_full(struct stw_findings *f);
/* True when no further unknown member is kept; it is counted. */
bool stw_findings_unheard(struct stw_findings *f);
/* Replaces all errors with one: the object takes too long to check. */
void stw_findings_too_complex(struct stw_findings *f);

/* Frees what was found. */
void stw_findings_done(struct stw_findings *f);
#define stw_autofindings __attribute__((cleanup(stw_findings_done)))

/* Adds an error at `path` ("spec.ports[0].port").  `value` is JSON text or NULL; all are copied.  A
 * value is shown without blanks between its parts, with printable characters unescaped, and cut
 * between characters with "..."; a message is cut at 2048 bytes.  Beyond 100, errors are only
 * counted; without memory it sets f->failed.  A list of findings belongs to one thread. */
void stw_findings_add(struct stw_findings *f, const char *path, enum stw_finding_code code,
                      const char *value, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* The same with a value of the object. */
void stw_findings_at(struct stw_findings *f, const char *path, enum stw_finding_code code,
                     struct stw_json value, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void stw_findings_warn(struct stw_findings *f, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* "Invalid value: 80: must be ..."  - the part after the path, as in details.causes[].message. */
void stw_finding_detail(const struct stw_finding *e, struct stw_buf *out);
/* "spec.nodePortNumber: Invalid value: 80: must be ..." */
void stw_finding_text(const struct stw_finding *e, struct stw_buf *out);
/* All errors, separated by ", ". */
void stw_findings_text(const struct stw_findings *f, struct stw_buf *out);
/* metav1.CauseType: "FieldValueInvalid", ... */
const char *stw_finding_cause(enum stw_finding_code code);

#endif
