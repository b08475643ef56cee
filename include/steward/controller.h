/* SPDX-License-Identifier: Apache-2.0
 *
 * Reconciling: watches, children, status, finalizers. */
#ifndef STEWARD_CONTROLLER_H
#define STEWARD_CONTROLLER_H

#include "controller/child.h"
#include "controller/claim.h"
#include "controller/condition.h"
#include "controller/controller.h"
#include "controller/dependent.h"
#include "controller/finalizer.h"
#include "controller/lookup_lists.h"
#include "controller/manager.h"
#include "controller/manifest.h"
#include "controller/object.h"
#include "controller/outcome.h"
#include "controller/packed.h"
#include "controller/reconcile.h"
#include "controller/secret_watch.h"
#include "controller/status.h"
#include "controller/template.h"
#include "controller/template_status.h"
#include "controller/verdict.h"

#endif
