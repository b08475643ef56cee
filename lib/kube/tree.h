/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes jansson trees as compact JSON text, the same as json_dumps(tree, JSON_COMPACT) does, with
 * a quarter of the instructions: a reconcile writes each of its manifests. */
#ifndef STW_KUBE_TREE_H
#define STW_KUBE_TREE_H

#include "base/buf.h"

#include <jansson.h>

/* Appends the text.  Returns 0, or -1: out of memory, `out` is full, or nested too deeply. */
int stw_tree_write(const json_t *tree, struct stw_buf *out) __attribute__((warn_unused_result));

#endif
