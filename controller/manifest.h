/* SPDX-License-Identifier: Apache-2.0
 *
 * Pieces of the objects that steward makes, in the form in which the API server gives them back:
 * what differs from that would look like drift.  Each gives a new tree, or NULL without memory. */
#ifndef STW_CONTROLLER_MANIFEST_H
#define STW_CONTROLLER_MANIFEST_H

#include "controller/child.h"

/* What the labels of an object's children say of it. */
struct stw_naming {
    const char *app, *component; /* "myweb", "web" */
    const char *image;           /* its tag is the version */
};

/* {app.kubernetes.io/name, app.kubernetes.io/instance}: the selector, unique to this object. */
json_t *stw_manifest_selector(const struct stw_naming *n, const struct stw_owner *owner);
/* The same with component, part-of, managed-by and version. */
json_t *stw_manifest_labels(const struct stw_naming *n, const struct stw_owner *owner);
/* name, namespace, labels, ownerReferences of a child of this name. */
json_t *stw_manifest_metadata(const struct stw_run *run, const struct stw_owner *owner,
                              const struct stw_naming *n, const char *name);

/* A part of a spec that is passed on as it stands, without members that are null; NULL when it is
 * absent. */
json_t *stw_manifest_tree(struct stw_json value);
/* The same of ResourceRequirements. */
json_t *stw_manifest_resources(struct stw_json resources);
/* Writes quantities of ResourceRequirements as the server stores them. */
void stw_manifest_canonical_resources(json_t *resources);

#endif
