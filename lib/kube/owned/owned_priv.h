/* SPDX-License-Identifier: Apache-2.0
 *
 * How both sides of a comparison (the desired object, our fields of the live object) name the
 * elements of lists, and what they leave out. */
#ifndef STW_KUBE_OWNED_PRIV_H
#define STW_KUBE_OWNED_PRIV_H

#include "kube/owned.h"

#include <stdint.h>

#define STW_OWNED_DEPTH_MAX 64
#define STW_OWNED_WHOLE_MAX 4
/* Of names and members that are compared in one object, all its lists together.  A pod template of the
 * most values that a spec may have needs fewer. */
#define STW_OWNED_PAIRS_MAX (1u << 21)

/* Writes the identity of `element` in the list `name`: "[name=web]" in an associative list or a
 * set, "[3]" in any other. */
void stw_owned_element(const char *name, struct stw_json element, uint32_t index,
                       struct stw_buf *out);

/* Whether a top-level or metadata member never counts; `depth` is 0 for members of the object, 1
 * for those of `parent`. */
bool stw_owned_left_out(unsigned depth, const char *parent, struct stw_json key);

/* Fields of an element of which only the existence is owned: it counts as a whole. */
bool stw_owned_only_dot(struct stw_json fields);

/* fieldsV1 of the Apply entry of `manager`. */
struct stw_json stw_owned_fields(struct stw_json object, const char *manager);
/* The element of `list` that has all of `keys` ({"name":"web"}), and its index. */
struct stw_json stw_owned_find(struct stw_json list, const char *keys, uint32_t *ret_index);
/* The same for an element of a set, by its JSON text. */
struct stw_json stw_owned_find_value(struct stw_json list, const char *value, uint32_t *ret_index);

/* Each of `fields` is searched in `live`.  Another client can write very many of them with our field
 * manager.  True: more than the object may cost in all; else they are added to `pairs`. */
bool stw_owned_costs_too_much(uint64_t *pairs, struct stw_json fields, struct stw_json live);

/* {}, and [] of an associative list: fieldsV1 does not represent them ({}: in Kubernetes before
 * 1.21), so they count on neither side. */
bool stw_owned_nothing(const char *name, struct stw_json v);

/* "", 0, false, {}, [] and null: values that the server may drop when it writes an object, and
 * which therefore equal an absent one. */
bool stw_owned_empty(struct stw_json v);

#endif
