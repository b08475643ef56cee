/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects of `validate --old`, found by kind, namespace and name. */
#ifndef STW_OPERATOR_OLD_OBJECTS_H
#define STW_OPERATOR_OLD_OBJECTS_H

#include "base/error.h"
#include "base/json.h"
#include "base/util.h"
#include "operator/installed/manifests.h"

struct stw_old_objects;

/* `path` as for stw_files_each; `ns`, of objects that name no namespace, is borrowed.  NULL with `err`: it cannot be read, has an object twice, or is too
 * large. */
struct stw_old_objects *stw_old_objects_read(const char *path, const char *ns,
                                             struct stw_error *err) STW_MUST_CHECK;
void stw_old_objects_destroy(struct stw_old_objects *o);
/* The old state of an object, or STW_JSON_NONE. */
struct stw_json stw_old_objects_find(const struct stw_old_objects *o, const struct stw_manifest *m);

#endif
