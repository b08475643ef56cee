/* SPDX-License-Identifier: Apache-2.0
 *
 * The Secrets and ConfigMaps that the pods of an App read, and the restart after they change.
 *
 * Only versions are compared: no value is read or kept.  What was seen is in the status; the pod
 * template gets an annotation with the digest of the versions at each restart, and none before the
 * first.  So nothing is restarted when an App is adopted or steward is upgraded.
 *
 * A restart is in the status before it is in the pod template: the annotation of a restart that no
 * status has would be removed by the next run, which would restart the pods again.  If the windows
 * end before the pod template has it, it is taken back, and decided again in the next one. */
#ifndef STW_KINDS_APP_INPUTS_H
#define STW_KINDS_APP_INPUTS_H

#include "base/hex.h"
#include "base/json.h"
#include "controller/controller.h"
#include "kinds/app/spec.h"
#include "kinds/common/inputs.h"

#include <jansson.h>

#define APP_INPUTS_ANNOTATION "mycompany.com/inputs-hash"
#define APP_INPUTS_NEVER INT64_MIN
#define APP_INPUTS_UNKNOWN "unknown" /* a digest that no versions have */
#define APP_INPUTS_MOST_S 86400      /* longest time between two restarts */
#define APP_INPUTS_RECHECK_S 60      /* while a restart waits for a window */

/* Adds what the pods of an App read. */
void app_names_read(struct stw_json spec, struct stw_inputs *n);

/* State that the status keeps; "" for what is not set. */
struct app_inputs {
    char digest[STW_HASH_LEN]; /* of the versions that the pods have */
    char names[STW_HASH_LEN];
    char applied[STW_HASH_LEN]; /* the value of the annotation */
    int64_t restarted;          /* seconds since the epoch, or APP_INPUTS_NEVER */
    int64_t interval_s;         /* from that restart to the next, at least */
    bool pending;               /* they have changed, and the restart is not allowed yet */
    bool restarting;            /* decided, and not known to be in the Deployment */
};

void app_inputs_read(const json_t *status, struct app_inputs *ret);
void app_inputs_write(const struct app_inputs *i, json_t *status);

/* The objects as they are now. */
struct app_seen {
    char digest[STW_HASH_LEN], names[STW_HASH_LEN];
    bool missing; /* one that is not optional does not exist */
};

/* Updates the state, with `restarting` when the pods must be restarted now.  No I/O. */
void app_inputs_decide(const struct app_spec *spec, const struct stw_zone *zone,
                       const struct app_seen *seen, int64_t now, struct app_inputs *state);
/* A restart was decided, the Deployment may not have it yet, and the windows have ended. */
bool app_inputs_is_late(const struct app_spec *spec, const struct stw_zone *zone, int64_t now,
                        const struct app_inputs *state);
/* Takes the restart back, unless the pod template has it: `annotation` is the one that it has, or
 * "". */
void app_inputs_take_back(struct app_inputs *state, const char *annotation);
/* Whether the App has windows, and this is one of them: then a pod template that waits (controller/template.h) may
 * be applied. */
bool app_inputs_in_window(const struct app_spec *spec, const struct stw_zone *zone, int64_t now);
/* Whether it has windows. */
bool app_inputs_has_windows(const struct app_spec *spec);
/* Milliseconds until a pending restart may be allowed; 0: none is pending. */
uint64_t app_inputs_wait_ms(const struct app_inputs *state, int64_t now);

#endif
