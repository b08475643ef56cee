/* SPDX-License-Identifier: Apache-2.0
 *
 * The image of this pod. Pods that steward creates to run itself (EtcdBackup to a volume,
 * EtcdRestore) use it, so that manifests name it only once. */
#ifndef STW_CMD_OWN_IMAGE_H
#define STW_CMD_OWN_IMAGE_H

#include "base/error.h"
#include "base/util.h"
#include "kube/client.h"

#include <stdint.h>

/* The image of container "manager" of pod `pod` in `ns`, or of its first container. Retries for up
 * to `patience_ms` while the API server is unavailable. The caller frees *ret. */
int stw_own_image(struct stw_client *client, const char *ns, const char *pod, uint32_t patience_ms,
                  char **ret, struct stw_error *err) STW_MUST_CHECK;

#endif
