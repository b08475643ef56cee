/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts an object between the versions of its kind, without loss: from the kind's own version to
 * another one (struct stw_kind_version) and back gives the same object.  Between two other versions
 * it goes through the kind's own.
 *
 * Text that no table mentions is copied byte for byte.  A field that is moved away leaves no empty
 * object; so an empty object whose fields have all been moved returns as an absent one.
 *
 * Conversion by tables succeeds for every object and annotation that a tenant can write: one object
 * that fails makes the whole list unreadable.  The exception is an object whose annotations
 * become larger than the API server allows; admission refuses it first. */
#ifndef STW_SCHEMA_CONVERSION_H
#define STW_SCHEMA_CONVERSION_H

#include "schema/kind.h"

/* Of all annotations of an object, as in the API server. */
#define STW_ANNOTATIONS_MAX_BYTES ((size_t)256 * 1024)

/* Appends the object in `version` ("v1") of its kind.  The version of the object is that of its
 * apiVersion.  -1: the error begins with the path of the field. */
int stw_convert(const struct stw_operator *op, const struct stw_kind *k, struct stw_json object,
                const char *version, struct stw_buf *out, struct stw_error *err) STW_MUST_CHECK;

/* The served version of this name ("v1alpha1") beside the kind's own, or NULL. */
const struct stw_kind_version *stw_kind_other_version(const struct stw_kind *k, const char *name);
/* Whether an apiVersion ("example.org/v1") is of the kind; the version goes to `ret`, if any. */
bool stw_kind_serves(const struct stw_kind *k, struct stw_json api_version, const char **ret);
/* "example.org/v1, example.org/v1alpha1" */
void stw_kind_versions_text(const struct stw_kind *k, struct stw_buf *out);

/* -1: a table of a version is wrong, such as a move from a field that does not exist. */
int stw_kind_versions_check(const struct stw_kind *k, struct stw_error *err) STW_MUST_CHECK;

/* For struct stw_kind_version.convert: gives the field at a path of the target version a value
 * (JSON text, copied).  Fields in lists have no path: set the list. */
void stw_conversion_set(struct stw_conversion *c, const char *path, const char *json, size_t len);
/* The field at a path of the source version is done; it is not copied. */
void stw_conversion_drop(struct stw_conversion *c, const char *path);

#endif
