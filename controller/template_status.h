/* SPDX-License-Identifier: Apache-2.0
 *
 * What the status of an object remembers of the pod templates of its children, and how it reports one
 * that waits (template.h). */
#ifndef STW_CONTROLLER_TEMPLATE_STATUS_H
#define STW_CONTROLLER_TEMPLATE_STATUS_H

#include "controller/child.h"
#include "controller/object.h"
#include "controller/status.h"

/* Reads what the status remembers of the pod template of a child.  Without this call no template
 * waits. */
void stw_child_know_template(struct stw_child *child, const struct stw_run *run,
                             const struct stw_object *o);
/* Consent to the pod template that waits.  Call it after stw_child_know_template(). */
void stw_child_consent(struct stw_child *child);

/* Sets the condition TemplateOutdated: the object `kind` "name" keeps its pod template, `wanted` waits.
 * `differs` names where they differ; or "". */
void stw_conditions_set_outdated(struct stw_conditions *c, const struct stw_run *run,
                                 const char *kind, const char *name, struct stw_hash wanted,
                                 const char *differs);

/* Updates status.podTemplates, and sets the condition TemplateOutdated while a pod template waits.  Does
 * nothing for kinds without the row STW_ROW_TEMPLATES. */
void stw_status_add_templates(struct stw_status *s, const struct stw_run *run,
                              const struct stw_child *children, size_t count);

#endif
