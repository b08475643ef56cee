/* SPDX-License-Identifier: Apache-2.0
 *
 * What others added to the maps that are ours as a whole (stw_owned_whole): an apply leaves it
 * where it is, so that it is removed by a patch. */
#ifndef STW_CONTROLLER_CHILD_EXTRAS_PRIV_H
#define STW_CONTROLLER_CHILD_EXTRAS_PRIV_H

#include "base/buf.h"
#include "base/json.h"

#include <jansson.h>
#include <stdbool.h>

#define STW_CHILD_EXTRAS_MAX 200U

/* Appends JSON patch operations, each behind a ',', for at most STW_CHILD_EXTRAS_MAX keys.  Returns
 * how many. */
unsigned stw_child_remove_extras(const json_t *desired, struct stw_json live, bool all_data,
                                 struct stw_buf *patch);
/* Appends the paths of some, joined by ", ", then "and N more".  Returns how many there are. */
unsigned stw_child_name_extras(const json_t *desired, struct stw_json live, bool all_data,
                               struct stw_buf *out);

#endif
