/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads with all signals blocked: signals are for the thread that waits for them. */
#ifndef STW_BASE_THREAD_H
#define STW_BASE_THREAD_H

#include "base/error.h"

#include <pthread.h>
#include <stddef.h>

/* `name` (at most 15 bytes) is what ps and gdb show.  `stack_bytes` 0: the system's default.
 * Returns 0, or -1 with a text that names the thread. */
int stw_thread_start(pthread_t *ret, const char *name, size_t stack_bytes, void *(*run)(void *),
                     void *ctx, struct stw_error *err);

#endif
