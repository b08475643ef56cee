/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of whole answers of the API server: their text, and the values that are read from it, which
 * may take 14 times as much.  It is counted against STW_SHARE_ANSWERS; that of small ones is a part
 * of the base.  Of most threads, an answer is counted until it is complete: they read it at once, and
 * there is one of each.  A reconcile keeps answers while it waits for others, and many run at the same
 * time: what it is given is counted until its end, and all of them may keep half of the share, so that
 * lists and watches go on.  What does not fit is read again with the thread's spare memory. */
#ifndef STW_KUBE_ANSWERS_H
#define STW_KUBE_ANSWERS_H

#include <stddef.h>

/* Answers to this thread are counted until stw_answers_end. */
void stw_answers_begin(void);
/* This thread has reserved memory elsewhere: an answer that needs no more than that is not counted. */
void stw_answers_reserve(size_t bytes);
size_t stw_answers_reserved(void);
void stw_answers_end(void);

#endif
