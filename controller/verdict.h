/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pass found.  Each thing that was looked at is an aspect: the condition it gives, and how
 * bad it is.  The worst of them is the verdict, which Ready, Reconciling and Stalled tell and which
 * decides when the key comes again.  No I/O. */
#ifndef STW_CONTROLLER_VERDICT_H
#define STW_CONTROLLER_VERDICT_H

#include "controller/child.h"
#include "controller/condition.h"

#include <stdio.h>

/* Worst first. */
enum stw_level {
    STW_LEVEL_STALLED,     /* only a change by a person helps; looked at again now and then */
    STW_LEVEL_RETRYING,    /* a transient error, told by status.retry */
    STW_LEVEL_WAITING,     /* for something else; looked at again after again_ms */
    STW_LEVEL_PROGRESSING, /* a watch will tell */
    STW_LEVEL_FINE
};

#define STW_STALLED_AGAIN_MS (10u * 60000)
#define STW_TERMINATING_AGAIN_MS 5000
#define STW_FOREIGN_AGAIN_MS 60000 /* nothing tells when most objects of others go */

/* Reasons that several kinds give. */
#define STW_REASON_SYNCED "Synced"
#define STW_REASON_APPLY_FAILED "ApplyFailed"
#define STW_REASON_TERMINATING "Terminating"
#define STW_REASON_AVAILABLE "MinimumReplicasAvailable"

struct stw_aspect {
    const char *type; /* of its condition; NULL: it gives none */
    enum stw_level level;
    enum stw_truth truth;
    const char *reason;
    char message[STW_CONDITION_MESSAGE_MAX];
    uint64_t again_ms;           /* WAITING, STALLED */
    const struct stw_error *err; /* RETRYING */
};

#define STW_ASPECT_SAY(a, ...) ((void)snprintf((a)->message, sizeof((a)->message), __VA_ARGS__))

/* Whether a child could be made as it should be; what it is like then is for the kind to look at.
 * Sets all but `type`. */
void stw_aspect_child(struct stw_aspect *a, const struct stw_child *c);
/* A Deployment's rollout to `wanted` replicas. */
void stw_aspect_rollout(struct stw_aspect *a, const struct stw_rollout *r, int64_t wanted);
/* An error of the API server or of the way to it: STALLED when only a person can mend it. */
void stw_aspect_error(struct stw_aspect *a, const struct stw_error *err);

struct stw_verdict {
    enum stw_level level;
    const char *reason; /* of Ready */
    char message[STW_CONDITION_MESSAGE_MAX];
    uint64_t again_ms;           /* WAITING, STALLED; FINE: 0, or when to look again anyway */
    const struct stw_error *err; /* RETRYING */
    bool exact; /* what is done next counts on the status: it is written under exactly the version
                 * that was read, however often that has been done */
};

/* The verdict of the worst aspect (the first of equals).  When all is fine, reason and message are
 * the caller's to set: they begin as those of the first aspect. */
void stw_verdict_of(const struct stw_aspect *all, size_t count, struct stw_verdict *v);

/* Ready, then Reconciling or Stalled (kstatus reads them in this order; never both). */
void stw_verdict_conditions(const struct stw_verdict *v, struct stw_conditions *c);
/* A condition for each aspect that has a type. */
void stw_aspect_conditions(const struct stw_aspect *all, size_t count, struct stw_conditions *c);

#endif
