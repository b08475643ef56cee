/* SPDX-License-Identifier: Apache-2.0
 *
 * For a process that serves: stw_log copies its line into a bounded buffer, and a thread of its own
 * writes them.  No other thread ever waits for the reader of the log.  The descriptor stays as it
 * is: other processes may share it, so it is not made non-blocking.  Commands that print and end do
 * not use this: their lines are written at once. */
#ifndef STW_BASE_LOG_WRITER_H
#define STW_BASE_LOG_WRITER_H

#include "base/error.h"
#include "base/util.h"

#include <stdint.h>

/* From now on lines are buffered: at most 512 KiB, and as much that is being written.  When that is
 * full, lines are dropped until the reader goes on; then a line says how many were.  On SIGABRT,
 * SIGSEGV, SIGBUS, SIGFPE and SIGILL, what is buffered is written first, as far as that does not
 * block for over a second. */
void stw_log_writer_prepare(void);
/* Starts the thread, after the process has confined itself. */
int stw_log_writer_start(struct stw_error *err) STW_MUST_CHECK;
/* Waits up to `timeout_ms` until everything is written.  From then on lines are written at once; if
 * the reader is still stuck, they are lost.  Safe without prepare or start. */
void stw_log_writer_stop(uint32_t timeout_ms);
/* How many lines were dropped, or could not be written, since the start. */
uint64_t stw_log_dropped(void);

#endif
