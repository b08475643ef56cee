/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys that other clients added to maps that we own as a whole (stw_owned_whole).  An apply leaves
 * them, so a patch removes them. */
#ifndef STW_CONTROLLER_CHILD_EXTRAS_PRIV_H
#define STW_CONTROLLER_CHILD_EXTRAS_PRIV_H

#include "base/buf.h"
#include "base/json.h"

#include <jansson.h>
#include <stdbool.h>

#define STW_CHILD_EXTRAS_MAX 200U

/* Begins a JSON patch of a live object with the tests that must still hold. */
void stw_child_begin_patch(struct stw_buf *patch, struct stw_json live, const char *uid);
/* Appends JSON patch operations, each after a ',', for at most STW_CHILD_EXTRAS_MAX keys.  Returns
 * their number. */
unsigned stw_child_remove_extras(const json_t *desired, struct stw_json live, bool all_data,
                                 struct stw_buf *patch);
/* Appends the paths of some keys, joined by ", ", then "and N more".  Returns the number of all. */
unsigned stw_child_name_extras(const json_t *desired, struct stw_json live, bool all_data,
                               struct stw_buf *out);

#endif
