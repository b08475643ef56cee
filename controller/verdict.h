/* SPDX-License-Identifier: Apache-2.0
 *
 * The result of a run.  Each thing that was checked is an aspect: its condition and its level.  The
 * worst aspect is the verdict.  It sets Ready, Reconciling and Stalled and decides when the key is
 * run again.  No I/O. */
#ifndef STW_CONTROLLER_VERDICT_H
#define STW_CONTROLLER_VERDICT_H

#include "base/util.h"
#include "controller/child.h"
#include "controller/condition.h"

#include <stdio.h>

/* Worst first. */
enum stw_level {
    STW_LEVEL_STALLED,     /* only a change by the user can fix it; checked again after again_ms */
    STW_LEVEL_RETRYING,    /* a transient error, reported in status.retry */
    STW_LEVEL_WAITING,     /* for something else; checked again after again_ms */
    STW_LEVEL_PROGRESSING, /* a watch will report the change */
    STW_LEVEL_FINE
};

#define STW_STALLED_AGAIN_MS (10u * 60000)
#define STW_TERMINATING_AGAIN_MS 5000
#define STW_FOREIGN_AGAIN_MS 60000 /* most objects of other owners are not watched */
#define STW_REFUSED_AGAIN_MS 60000 /* nor are quotas, roles and policies */

/* Reasons that several kinds use. */
#define STW_REASON_SYNCED "Synced"
#define STW_REASON_APPLY_FAILED "ApplyFailed"
#define STW_REASON_TERMINATING "Terminating"
#define STW_REASON_AVAILABLE "MinimumReplicasAvailable"

struct stw_aspect {
    const char *type; /* of its condition; NULL: it has none */
    enum stw_level level;
    enum stw_truth truth;
    const char *reason;
    char message[STW_CONDITION_MESSAGE_MAX];
    uint64_t again_ms;           /* WAITING, STALLED; FINE: 0, or when to check again anyway */
    const struct stw_error *err; /* RETRYING */
};

/* Formats the message of an aspect. */
#define STW_ASPECT_SAY(a, ...) stw_format((a)->message, sizeof((a)->message), __VA_ARGS__)

/* Appends ": TEXT" to the message of an aspect, of which at most 400 bytes stay. */
void stw_aspect_append(struct stw_aspect *a, const char *text);

/* Whether a child was brought to the wanted state; the kind itself checks the live state.  Sets
 * everything except `type`. */
void stw_aspect_child(struct stw_aspect *a, const struct stw_child *c);
/* A Deployment's rollout to `wanted` replicas. */
void stw_aspect_rollout(struct stw_aspect *a, const struct stw_rollout *r, int64_t wanted);
/* An error of the API server or of the connection to it: STALLED when only the user can fix it. */
void stw_aspect_error(struct stw_aspect *a, const struct stw_error *err);

struct stw_verdict {
    enum stw_level level;
    const char *reason; /* of Ready */
    char message[STW_CONDITION_MESSAGE_MAX];
    uint64_t again_ms;           /* WAITING, STALLED; FINE: 0, or when to check again anyway */
    const struct stw_error *err; /* RETRYING */
    bool exact; /* the next action relies on this status: it is written under exactly the version
                   that was read, without a limit on the number of writes */
};

/* The verdict of the worst aspect (the first of equals), with the soonest again_ms of all; of a STALLED
 * verdict that of the STALLED aspects, and of RETRYING its own.  If the level is FINE, the caller may set
 * reason and message; their initial value is that of the first aspect. */
void stw_verdict_of(const struct stw_aspect *all, size_t count, struct stw_verdict *v);

/* Ready, then Reconciling or Stalled (kstatus reads them in this order; never both). */
void stw_verdict_conditions(const struct stw_verdict *v, struct stw_conditions *c);
/* A condition for each aspect that has a type. */
void stw_aspect_conditions(const struct stw_aspect *all, size_t count, struct stw_conditions *c);

#endif
