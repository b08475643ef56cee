/* SPDX-License-Identifier: Apache-2.0
 *
 * The API server: requests, caches, events and leases. */
#ifndef STEWARD_CLIENT_H
#define STEWARD_CLIENT_H

#include "base/resource.h"
#include "kube/client.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "kube/kubeconfig.h"
#include "kube/lease.h"
#include "kube/owned.h"
#include "kube/pages.h"
#include "kube/resource.h"
#include "kube/secret.h"
#include "kube/tree.h"

#endif
