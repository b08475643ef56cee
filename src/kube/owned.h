/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a live object is ours.  The API server writes down in metadata.managedFields which fields
 * a server-side apply of ours owns; the digest over those fields' values stands for all of them in
 * the cache, so that drift is seen without keeping the object.  A field that somebody else changes
 * leaves our set, so its digest differs from that of what we want.
 *
 * A digest is a sum over leaves of hash(path, value): the order of members does not matter;
 * elements of associative lists are told apart by their keys. Identity fields (apiVersion, kind,
 * metadata.name, metadata.namespace) are left out.
 *
 * In some maps one more key changes the meaning of those that are there: a Service with another
 * label in its selector selects nothing.  Such a map is ours as a whole as soon as we own one key
 * of it (`stw_owned_whole`): what others added to it counts. */
#ifndef STW_KUBE_OWNED_H
#define STW_KUBE_OWNED_H

#include "base/buf.h"
#include "base/json.h"
#include "base/util.h"

#include <stdbool.h>

/* The paths of the maps that are ours as a whole, from 0 on; NULL behind the last.  `all_data`:
 * with `data`, for ConfigMaps that are read with envFrom, where a key is a variable. */
const char *stw_owned_whole(unsigned index, bool all_data);

/* Of a live object with its managedFields, for the Apply entry (no subresource) of `manager`. Zero
 * when there is none. */
struct stw_hash stw_owned_live(struct stw_json object, const char *manager, bool all_data);
/* Whether that entry has a field, such as "spec.replicas". */
bool stw_owned_has(struct stw_json object, const char *manager, const char *field);
/* Of what we are about to apply.  It is to be written as the server writes it (quantities in their
 * canonical form, protocol with every port), without maps that are empty but for emptyDir. */
struct stw_hash stw_owned_desired(struct stw_json desired);

/* Members of spec that an apply of `desired` would take only our part out of: the rest, which the
 * server had filled in and which is nobody's, would stay behind and make no sense by itself (a
 * probe without a port).  Writes JSON patch operations that remove them whole, joined by ',';
 * returns how many. */
unsigned stw_owned_leftovers(struct stw_json desired, struct stw_json live, const char *manager,
                             struct stw_buf *out);

/* Names the fields of `desired` that `live` lacks or has otherwise, as paths joined by ", " (at
 * most `max` of them, then "and N more").  Returns how many differ. */
unsigned stw_owned_diff(struct stw_json desired, struct stw_json live, unsigned max,
                        struct stw_buf *out);

/* The controller of an object by its ownerReferences: 0 and kind, name, uid (may be NULL; sizes 64,
 * 254, 64), or -1 when it has none. */
int stw_owner_controller(struct stw_json object, char *ret_kind, char *ret_name, char *ret_uid);

#endif
