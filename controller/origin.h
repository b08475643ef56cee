/* SPDX-License-Identifier: Apache-2.0
 *
 * Names the user's field when the API server refuses a child: its answer has the path in the child. */
#ifndef STW_CONTROLLER_ORIGIN_H
#define STW_CONTROLLER_ORIGIN_H

#include "base/error.h"
#include "base/json.h"

#include <jansson.h>

/* Where a part of a child comes from: its path in the child, and the path in the custom object.  In
 * brackets is the name of an element of a list:
 *
 *     {"spec.template.spec.containers[app].image", "spec.image"},
 *     {"spec.template", "spec.podTemplate"},
 *     {0},
 *
 * `own` has members only. */
struct stw_origin {
    const char *child, *own;
};

/* Replaces each path of the child in the text of a refusal by that of the object, if the object has the
 * field; of a required field that is not there, if it has what would contain it.  Other paths stay as
 * they are.  `sent`: the child as it was sent, in which elements of lists are looked up.  Does nothing
 * if `origins` is NULL. */
void stw_origin_name(const struct stw_origin *origins, const json_t *sent, struct stw_json object,
                     struct stw_error *err);

#endif
