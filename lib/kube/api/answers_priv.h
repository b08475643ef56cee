/* SPDX-License-Identifier: Apache-2.0
 *
 * How the client counts the memory of one answer. */
#ifndef STW_KUBE_ANSWERS_PRIV_H
#define STW_KUBE_ANSWERS_PRIV_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

#define STW_ANSWER_FREE_BYTES ((size_t)128 << 10) /* not counted: a part of the base */

/* What the text takes, and its values when it is read as JSON. */
size_t stw_answer_memory(const struct stw_buf *body);
/* Raises what is counted to `bytes`.  False: there is not as much. */
bool stw_answer_hold(size_t *held, size_t bytes) STW_MUST_CHECK;
/* The most that one may take on this thread. */
size_t stw_answer_most(void);
/* This thread reconciles: many do so at the same time. */
bool stw_answers_are_kept(void);
void stw_answer_let_go(size_t *held);
/* The caller gets the answer: in a reconcile, it counts until its end. */
void stw_answer_keep(size_t *held);

#endif
