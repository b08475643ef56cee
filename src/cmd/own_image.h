/* SPDX-License-Identifier: Apache-2.0
 *
 * The image that this very pod runs, for pods that steward makes of itself (EtcdBackup onto a
 * volume, EtcdRestore), so that no manifest has to name it twice. */
#ifndef STW_CMD_OWN_IMAGE_H
#define STW_CMD_OWN_IMAGE_H

#include "base/error.h"
#include "kube/client.h"

#include <stdint.h>

/* What it needs, beyond what controllers have where steward looks after all namespaces; ended by a
 * NULL resource. */
extern const struct stw_rule stw_own_image_rules[];

/* Of the container "manager" of the pod `pod` in `ns`, or of its first one.  While the API server
 * does not answer it is asked again, for `patience_ms`.  The caller frees *ret. */
int stw_own_image(struct stw_client *client, const char *ns, const char *pod, uint32_t patience_ms,
                  char **ret, struct stw_error *err);

#endif
