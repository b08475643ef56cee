/* SPDX-License-Identifier: Apache-2.0
 *
 * metav1.Condition lists: in the order in which they are set.  lastTransitionTime changes only with
 * the status, and messages are cut to what the schema allows. */
#ifndef STW_CONTROLLER_CONDITION_H
#define STW_CONTROLLER_CONDITION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a message with its NUL. */
#define STW_CONDITION_MESSAGE_MAX 1024

/* Condition types that every kind has. */
#define STW_READY "Ready"
#define STW_RECONCILING "Reconciling"
#define STW_STALLED "Stalled"

/* Reasons that every kind uses. */
#define STW_REASON_PROGRESSING "Progressing"
#define STW_REASON_RETRY "ProgressingWithRetry"
#define STW_REASON_DEPENDENCY "DependencyNotReady"
#define STW_REASON_PAUSED "Paused"
#define STW_REASON_INVALID_SPEC "InvalidSpec"
#define STW_REASON_NAME_CONFLICT "NameConflict"
#define STW_REASON_NOT_ADOPTED "AdoptionRefused"
#define STW_REASON_ADOPTION_WAITS "AdoptionWaits"
#define STW_REASON_FORBIDDEN "Forbidden"
#define STW_REASON_NOT_INSTALLED "NotInstalled"
#define STW_REASON_QUOTA "QuotaExceeded"
#define STW_REASON_HOT_LOOP "HotLoop"
#define STW_REASON_UNREADABLE "ChildUnreadable"

/* The status of a condition. */
enum stw_truth { STW_TRUE, STW_FALSE, STW_UNKNOWN };

struct stw_conditions {
    const json_t *old;  /* the list in the current status; borrowed; may be NULL */
    json_t *list;       /* the new list; NULL before the first, or if out of memory */
    int64_t generation; /* observedGeneration of all conditions that are set */
    const char *now;    /* metav1.Time of changes */
    bool failed;        /* out of memory */
};

/* Appends a condition.  Each type may be set once. */
void stw_condition_set(struct stw_conditions *c, const char *type, enum stw_truth truth,
                       const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* Copies a condition unchanged from the old list, if it is there. */
void stw_condition_keep(struct stw_conditions *c, const char *type);

const json_t *stw_condition_find(const json_t *list, const char *type); /* or NULL; borrowed */
bool stw_condition_is(const json_t *condition, enum stw_truth truth);   /* false for NULL */
const char *stw_condition_reason(const json_t *condition);              /* "" for NULL */
const char *stw_truth_name(enum stw_truth truth);                       /* "True" */

/* Cuts a text to at most `max` bytes and replaces bytes that are not UTF-8 with '?'.  Texts that
 * were cut to fit a buffer may end within a character, which JSON does not allow. */
void stw_message_clean(char *text, size_t max);

#endif
