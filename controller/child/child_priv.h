/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of child.c and its parts. */
#ifndef STW_CONTROLLER_CHILD_PRIV_H
#define STW_CONTROLLER_CHILD_PRIV_H

#include "controller/cache/memo.h"
#include "controller/child.h"

/* --- adopted.c */
/* Whether the reference has a version of the kind: the garbage collector knows no other. */
bool stw_reference_is_served(const struct stw_kind *k, struct stw_json reference);
/* The owner that the annotation of an adopted object names: 0 and kind, name, uid (may be NULL; sizes
 * 64, 254, 64), or -1: it has none. */
int stw_adopted_by(const struct stw_operator *op, struct stw_json object, char *ret_kind,
                   char *ret_name, char *ret_uid);
/* The desired object with that annotation instead of the owner reference.  NULL: no memory. */
json_t *stw_adopted_tree(const struct stw_operator *op, const json_t *desired);

/* Whether the labels have all members of the tree, a selector. */
bool stw_labels_have(struct stw_json labels, const json_t *selector);
/* The labels by which a Deployment selects its pods, if another owner can use them: no expressions, and
 * not our label for the cache.  STW_JSON_NONE: it cannot. */
struct stw_json stw_adopted_selector(struct stw_json deployment);

/* --- adopt.c: children that were there before their owner */
/* The labels by which the Deployment of this owner's name selects its pods, if it is ours, or is there and may
 * be adopted.  They cannot be changed, so that no child may be made with others.  *ret: NULL for the usual
 * ones, also if there is no such Deployment; the caller owns it.  -1 with an error: that is unknown.  Sends
 * nothing if the cache has the Deployment, nor for a new object that does not adopt. */
int stw_find_selector(struct stw_run *run, const struct stw_owner *owner, bool is_new, json_t **ret,
                      struct stw_error *err) STW_MUST_CHECK;
/* The same from the cache, where an empty object stands for a selector that others cannot use.  -1: it has no
 * Deployment of this owner. */
int stw_cached_selector(struct stw_run *run, const struct stw_owner *owner, json_t **ret);
/* Whether the controller of this live object, or without one its mark, is the owner. */
bool stw_deployment_is_ours(const struct stw_operator *op, struct stw_json live,
                            const struct stw_owner *owner);

/* Operations that make `manager` the one manager of those fields of the live object which an apply of
 * ours replaces as a whole: then one apply removes what others had set there.  False: none needed. */
bool stw_adoption_transfer(const struct stw_resource *r, struct stw_json live, const char *manager,
                           struct stw_buf *patch);
/* Whether the adoption of this child waits for `adoption.until`, or for the pods of the Deployment. */
bool stw_adoption_waits(const struct stw_child *child);

/* --- refused.c */
/* Asks once a minute, and when the user asks for something else, that refused pods of a Deployment
 * are created again.  Sets live.rollout.retry_ms.  Other children are left alone.  At most one write. */
void stw_child_retry_pods(struct stw_run *run, const struct stw_owner *owner,
                          struct stw_child *child);

/* --- desired.c */
/* What is to be applied.  NULL: no memory, or the manifest lacks a value. */
const json_t *stw_child_desired(struct stw_child *child);
/* There is none: the error says what the manifest lacks.  Always returns -1. */
int stw_child_fail_desired(const struct stw_resource *r, struct stw_error *err);
/* In a build for tests: as another version of this program would make it. */
void stw_child_mark_template(const json_t *desired);
/* A tree as text and tokens.  -1: NULL, or no memory. */
int stw_child_scan(const json_t *tree, struct stw_buf *text, struct stw_json_doc *doc);
int stw_child_digest_parts(const json_t *desired, struct stw_digests *ret);

#endif
