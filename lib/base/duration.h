/* SPDX-License-Identifier: Apache-2.0
 *
 * Durations as Go's time.ParseDuration reads them: "500ms", "10s", "1h5m", "1.5s". */
#ifndef STW_BASE_DURATION_H
#define STW_BASE_DURATION_H

#include "base/util.h"

#include <stdint.h>

/* Milliseconds; units ns us µs ms s m h; not negative, at most 10 years.  0 or -1.  Each number is
 * rounded down to nanoseconds, as in Go, and their sum to milliseconds.  A fraction is exact where
 * Go's floating point is up to a nanosecond off. */
int stw_duration_parse(const char *text, int64_t *ret_ms) STW_MUST_CHECK;

#endif
