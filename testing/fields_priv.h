/* SPDX-License-Identifier: Apache-2.0
 *
 * Field ownership, as structured-merge-diff has it: sets of fields, server-side apply, and what an update
 * does to them.  A set is a JSON object whose keys are paths; its values do not count. */
#ifndef STW_TESTING_FIELDS_PRIV_H
#define STW_TESTING_FIELDS_PRIV_H

#include <jansson.h>
#include <stdbool.h>

/* How a write is recorded in metadata.managedFields. */
struct stw_test_writer {
    const char *manager, *api_version, *sub, *now; /* sub "": the object itself */
    bool custom;                                   /* a custom resource: its lists are atomic */
    bool has_status;                               /* a subresource of its own */
    bool force;
};

/* The object after an apply of `wanted` to `live` (NULL: there is none), with its managedFields; owned by
 * the caller.  If others own what it would change and it does not force them, NULL, and `*ret_conflicts`
 * has {"who", "field"} of each conflict. */
json_t *stw_test_apply(const json_t *live, const json_t *wanted, const struct stw_test_writer *w,
                       json_t **ret_conflicts);
/* Records in `object` what it has that `live` (or NULL) has not. */
void stw_test_own_changes(const json_t *live, json_t *object, const struct stw_test_writer *w);

#endif
