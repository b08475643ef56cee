/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of the objects that an operator creates, in the form in which the API server returns them: any
 * difference would look like drift.  Each function returns a new tree, or NULL if out of memory.  Pack them
 * with stw_tree_pack(): a value that is NULL is then named in the status. */
#ifndef STW_CONTROLLER_MANIFEST_H
#define STW_CONTROLLER_MANIFEST_H

#include "controller/child.h"
#include "kube/tree.h"

/* Values for the labels of an object's children. */
struct stw_naming {
    const char *app, *component; /* "myweb", "web" */
    const char *image;           /* its tag is the version */
};

/* {app.kubernetes.io/name, app.kubernetes.io/instance}: the selector, unique to this object; or that
 * of the Deployment that it adopted (owner->selector), which the labels below then have, too. */
json_t *stw_manifest_selector(const struct stw_naming *n, const struct stw_owner *owner);
/* The selector plus component, part-of, managed-by and version. */
json_t *stw_manifest_labels(const struct stw_run *run, const struct stw_owner *owner,
                            const struct stw_naming *n);
/* name, namespace, labels and ownerReferences of a child with this name.  All parameters are
 * borrowed; the caller owns the result, which json_pack takes with "o".  NULL: out of memory, so that
 * json_pack fails too.  No I/O; on any thread. */
json_t *stw_manifest_metadata(const struct stw_run *run, const struct stw_owner *owner,
                              const struct stw_naming *n, const char *name);

/* A part of a spec, copied unchanged except for members that are null; NULL when it is absent, or
 * cannot be read: see stw_tree_whole(). */
json_t *stw_manifest_tree(struct stw_json value);
/* The same for ResourceRequirements. */
json_t *stw_manifest_resources(struct stw_json resources);
/* Converts the quantities of ResourceRequirements to the form in which the server stores them. */
void stw_manifest_canonical_resources(json_t *resources);
/* The same for a member of `object` that is a quantity, if there is one. */
void stw_manifest_canonical_member(json_t *object, const char *key);

#endif
