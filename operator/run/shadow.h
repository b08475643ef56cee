/* SPDX-License-Identifier: Apache-2.0
 *
 * `run --shadow`: waits until the controllers have reconciled every object with a client that writes
 * nothing, and reports what they would have written. */
#ifndef STW_OPERATOR_SHADOW_H
#define STW_OPERATOR_SHADOW_H

#include "base/operator.h"
#include "controller/manager.h"
#include "kube/owned/shadow.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct stw_shadow_job {
    const struct stw_operator *op;
    struct stw_manager *manager; /* started, with `shadow` */
    struct stw_shadow *shadow;
    const sigset_t *signals; /* blocked; one of them ends the wait */
    int64_t timeout_ms;
    bool json;
    FILE *out;
};

/* True: everything was reconciled; then or at the latest after the timeout or a signal it returns. */
bool stw_shadow_wait(const struct stw_shadow_job *job);
/* Call it when the manager has stopped.  `settled` is what stw_shadow_wait returned.  Returns the exit
 * status: 0 nothing would be written, 1 something would, 2 not everything was reconciled. */
int stw_shadow_report(const struct stw_shadow_job *job, bool settled);

#endif
