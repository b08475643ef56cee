/* SPDX-License-Identifier: Apache-2.0
 *
 * /debug/state: the state of a process as one JSON object, for the on-call engineer and `top`. */
#ifndef STW_OPERATOR_DEBUG_STATE_H
#define STW_OPERATOR_DEBUG_STATE_H

#include "base/buf.h"
#include "controller/manager.h"
#include "webhook/probes.h"

#include <stdatomic.h>
#include <stdint.h>

struct stw_debug_state {
    const struct stw_operator *op;
    struct stw_manager *manager;
    const struct stw_probe *ready; /* ended by a NULL name */
    int64_t started_us;            /* wall clock */
    atomic_bool complete;          /* `ready` has all its rows */
};

#define STW_DEBUG_STATE_PATH "/debug/state"

/* Any thread.  `ctx` is a struct stw_debug_state. */
void stw_debug_state_write(void *ctx, struct stw_buf *out);

#endif
