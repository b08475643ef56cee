/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading and changing JSON trees: paths, patches, selectors. */
#ifndef STW_TESTING_TREE_PRIV_H
#define STW_TESTING_TREE_PRIV_H

#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>

/* "metadata.name"; borrowed, NULL: there is none. */
json_t *stw_test_path(const json_t *object, const char *path);
/* The text of a member; "": there is none. */
const char *stw_test_text_of(const json_t *object, const char *member);
const char *stw_test_text_at(const json_t *object, const char *path);
/* A member that is an object, made if there is none; borrowed. */
json_t *stw_test_member(json_t *object, const char *member);

/* JSON merge patch (RFC 7386): the patched copy. */
json_t *stw_test_merge_patch(const json_t *object, const json_t *patch);
/* JSON patch (RFC 6902): the patched copy; NULL: an operation failed. */
json_t *stw_test_json_patch(const json_t *object, const json_t *operations);

/* "a=b,c!=d,e,!f,g in (x,y)" against labels; NULL and "" select all. */
bool stw_test_labels_fit(const json_t *object, const char *selector);
/* "metadata.name=x,status.phase!=y" against members. */
bool stw_test_fields_fit(const json_t *object, const char *selector);

#endif
