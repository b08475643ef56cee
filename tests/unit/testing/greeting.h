/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator with one kind: a message, which becomes a ConfigMap, and a finalizer. */
#ifndef TEST_GREETING_H
#define TEST_GREETING_H

#include "base/operator.h"
#include "kube/resource.h"

#include <jansson.h>
#include <stdatomic.h>

extern const struct stw_operator greeter;
extern const struct stw_resource *const greeting;

extern _Atomic unsigned greeting_looks; /* how often any was reconciled */

/* {apiVersion, kind, metadata: {name, namespace "default"}, spec: {message}} */
json_t *greeting_of(const char *name, const char *message);

#endif
