/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads with all signals blocked: signals are for the thread that waits for them.  Those of a crash
 * are not: the thread that crashed runs their handler.  A lock guard. */
#ifndef STW_BASE_THREAD_H
#define STW_BASE_THREAD_H

#include "base/error.h"
#include "base/util.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* `name` (at most 15 bytes) is what ps and gdb show.  `stack_bytes` 0: the system's default.
 * Returns 0, or -1 with a text that names the thread. */
int stw_thread_start(pthread_t *ret, const char *name, size_t stack_bytes, void *(*run)(void *),
                     void *ctx, struct stw_error *err) STW_MUST_CHECK;

/* Blocks these signals on the caller's thread, and so on those that it starts, until it sets
 * `ret_before` again. */
void stw_thread_block_signals(sigset_t *ret_before);

static inline pthread_mutex_t *stw_lock(pthread_mutex_t *mutex)
{
    (void)pthread_mutex_lock(mutex); /* fails only for a mutex that checks errors */
    return mutex;
}

static inline void stw_unlockp(pthread_mutex_t **mutex)
{
    (void)pthread_mutex_unlock(*mutex);
}

/* Holds the lock from here to the end of the block, whichever way it is left.  For a lock that is
 * released early or waited on, call pthread_mutex_lock. */
/* NOLINTBEGIN(bugprone-macro-parentheses): it is a declaration */
#define STW_LOCKED(mutex)                                                                          \
    __attribute__((cleanup(stw_unlockp), unused)) pthread_mutex_t *stw_locked_ = stw_lock(mutex)
/* NOLINTEND(bugprone-macro-parentheses) */

/* For functions that are called with the lock held. */
#define STW_ASSERT_LOCKED(mutex) assert(pthread_mutex_trylock(mutex) == EBUSY)

#endif
