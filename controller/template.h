/* SPDX-License-Identifier: Apache-2.0
 *
 * When a pod template that differs only because this program is another version than the one that
 * wrote it may be applied: that restarts all pods.  It waits for the next change that restarts them
 * anyway, or for consent.
 *
 * What was last applied is remembered in the status of the owner (template_status.h), which clients
 * that may write only the child cannot change.  No I/O. */
#ifndef STW_CONTROLLER_TEMPLATE_H
#define STW_CONTROLLER_TEMPLATE_H

#include "base/json.h"
#include "base/util.h"
#include "schema/kind.h"

#include <jansson.h>

#define STW_TEMPLATE_OUTDATED "TemplateOutdated"  /* a condition */
#define STW_TEMPLATES_MEMBER "podTemplates"       /* of the status */
#define STW_CONSENT_LEN (STW_TEMPLATE_ID_LEN + 1) /* bytes; "always" is shorter */

/* What the status of the owner remembers of the pod template of a child. */
struct stw_template {
    struct stw_hash built;         /* the last one that was applied; zero: unknown */
    struct stw_hash stored;        /* the same, as the server stores it */
    struct stw_hash waiting;       /* the one that a new version of the program wants; zero: none */
    struct stw_hash inputs;        /* of what `built` was made from; zero: unknown */
    struct stw_hash inputs_now;    /* the same of the present object; zero: unknown */
    bool reported;                 /* the condition reports that it waits */
    char consent[STW_CONSENT_LEN]; /* to this one; or STW_UPDATE_ALWAYS, or "" */
};

/* Whether the kind has the status row STW_ROW_TEMPLATES.  Only then templates wait. */
bool stw_templates_tracked(const struct stw_kind *k);

/* The hash of what a pod template is made from: the members of `spec` except `others` (ended by NULL),
 * which do not change it, and `more`.  It does not depend on the version of the program. */
struct stw_hash stw_template_inputs(struct stw_json spec, const char *const *others,
                                    const char *more);
/* Whether the template with the digest `wanted` (zero: there is none) must wait.  `applied_before`:
 * the object is not changed since the last one was applied. */
bool stw_template_waits(const struct stw_template *t, struct stw_hash wanted, bool applied_before);
/* Whether the annotation's value `consent` is consent to it. */
bool stw_template_has_consent(const char *consent, struct stw_hash wanted);
/* Its name, by which consent is given. */
void stw_template_id(struct stw_hash wanted, char out[STW_TEMPLATE_ID_LEN + 1]);
/* `whole`, with another template in it. */
struct stw_hash stw_template_exchange(struct stw_hash whole, struct stw_hash from,
                                      struct stw_hash to);
/* The desired object, with what `manager` owns of the live template as its template.  NULL: it owns
 * nothing, or no memory. */
json_t *stw_template_keep(const json_t *desired, struct stw_json live, const char *manager);
/* Names what `wanted` would change of the template of `live`, of which `kept` has our part. */
void stw_template_name(const json_t *wanted, const json_t *kept, struct stw_json live, char *out,
                       size_t size);

#endif
