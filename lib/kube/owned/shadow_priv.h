/* SPDX-License-Identifier: Apache-2.0
 *
 * The client's part of shadow.h. */
#ifndef STW_KUBE_SHADOW_PRIV_H
#define STW_KUBE_SHADOW_PRIV_H

#include "base/buf.h"
#include "kube/client.h"
#include "kube/owned/shadow.h"

#include <jansson.h>

/* Instead of sending it.  As stw_client_do. */
int stw_shadow_answer(struct stw_shadow *s, struct stw_client *c, const struct stw_request *req,
                      struct stw_buf *ret, struct stw_error *err) STW_MUST_CHECK;

/* --- shadow_diff.c: without I/O */

/* Appends the paths that an apply of `desired` by `manager` would change in `live`: fields with other
 * values, and owned fields that `desired` no longer has. */
void stw_shadow_fields(const struct stw_buf *desired, const struct stw_buf *live,
                       const char *manager, struct stw_buf *out);
/* Whether one of these paths is in the pod template. */
bool stw_shadow_restarts(const char *fields);

#endif
