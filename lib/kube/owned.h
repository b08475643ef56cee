/* SPDX-License-Identifier: Apache-2.0
 *
 * The fields of a live object that we own.  The API server records in metadata.managedFields which
 * fields our server-side apply owns.  The cache keeps a digest over the values of those fields, so
 * that drift is detected without keeping the object.  A field that another client changes leaves
 * our set, so the digest differs from the desired one.
 *
 * A digest is a sum over leaves of hash(path, value): the order of members does not matter;
 * elements of associative lists are identified by their keys.  Identity fields (apiVersion, kind,
 * metadata.name, metadata.namespace) are left out.
 *
 * In some maps an additional key changes the meaning of the others: a Service with another label in
 * its selector selects nothing.  We own such a map as a whole as soon as we own one key of it
 * (`stw_owned_whole`): keys that others have added count, too. */
#ifndef STW_KUBE_OWNED_H
#define STW_KUBE_OWNED_H

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"

#include <stdbool.h>

/* The paths of the maps that we own as a whole, from index 0; NULL after the last.  `all_data` adds
 * `data`, for ConfigMaps that are read with envFrom, where a key is a variable. */
const char *stw_owned_whole(unsigned index, bool all_data);

/* The digest of a live object with its managedFields, for the Apply entry (no subresource) of
 * `manager`.  Zero when there is none. */
struct stw_hash stw_owned_live(struct stw_json object, const char *manager, bool all_data);
/* The same, and the part of it that is from spec.template (zero: we own nothing there).  A digest is
 * a sum: whole - template is that of the rest. */
struct stw_hash stw_owned_live_parts(struct stw_json object, const char *manager, bool all_data,
                                     struct stw_hash *ret_template);
/* Whether that entry has a field, such as "spec.replicas". */
bool stw_owned_has(struct stw_json object, const char *manager, const char *field);
/* The digest of an object that we are about to apply.  It must be written as the server writes it
 * (quantities in their canonical form, protocol with every port), without empty maps except
 * emptyDir. */
struct stw_hash stw_owned_desired(struct stw_json desired);
/* The same, and the part of it that is from spec.template (zero: there is no template). */
struct stw_hash stw_owned_desired_parts(struct stw_json desired, struct stw_hash *ret_template);
/* Appends what `manager` owns of spec.template in a live object, as JSON: what it last applied there,
 * if no other client has changed it since.  Without fields that the server dropped because their
 * values are empty.  -1: nothing, or `out` is full. */
int stw_owned_template(struct stw_json object, const char *manager, struct stw_buf *out);

/* Members of spec from which an apply of `desired` would remove only our fields.  The rest, which
 * the server has filled in and no manager owns, would remain and be invalid by itself (a probe
 * without a port).  Writes JSON patch operations that remove these members as a whole, joined by
 * ','; returns their number. */
unsigned stw_owned_leftovers(struct stw_json desired, struct stw_json live, const char *manager,
                             struct stw_buf *out);

/* Names the fields of `desired` that `live` lacks or has with another value, as paths with ", "
 * between (at most `max`, then "and N more").  Returns how many differ. */
unsigned stw_owned_diff(struct stw_json desired, struct stw_json live, unsigned max,
                        struct stw_buf *out);

/* The reference to the controller of an object, or STW_JSON_NONE: it has none. */
struct stw_json stw_owner_find(struct stw_json object);
/* Whether a reference (apiVersion, kind) is to this kind of this group ("" is the core), in any version. */
bool stw_reference_is_of(struct stw_json reference, const char *group, const char *kind);
/* The controller of an object by its ownerReferences: 0 and kind, name, uid (may be NULL; sizes 64,
 * 254, 64), or -1 when it has none. */
int stw_owner_controller(struct stw_json object, char *ret_kind, char *ret_name, char *ret_uid);

#endif
