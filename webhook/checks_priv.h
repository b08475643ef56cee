/* SPDX-License-Identifier: Apache-2.0
 *
 * Health checks in the format of the Kubernetes components (k8s.io/apiserver/pkg/server/healthz),
 * so that /readyz?verbose reads as usual. */
#ifndef STW_WEBHOOK_CHECKS_PRIV_H
#define STW_WEBHOOK_CHECKS_PRIV_H

#include "webhook/probes.h"

#include "base/buf.h"

struct stw_check_query {
    const char *endpoint; /* "healthz", "livez", "readyz" */
    const char *only;     /* the check of /readyz/<check>; NULL: all */
    bool verbose;
    const char *const *exclude; /* ended by NULL */
};

/* Runs `probes` (ended by a NULL name, or NULL) after the built-in "ping". With `stopping`, a check
 * named "shutdown" fails on /readyz. Writes the body and returns the HTTP status: 200, 404 or
 * 500. */
int stw_checks_run(const struct stw_check_query *q, const struct stw_probe *probes, bool stopping,
                   struct stw_buf *out);

#endif
