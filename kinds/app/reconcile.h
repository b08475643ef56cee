/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller of Apps: a ConfigMap with the configuration, a Deployment, a Service, and
 * optionally a PodDisruptionBudget and a HorizontalPodAutoscaler. */
#ifndef STW_KINDS_APP_RECONCILE_H
#define STW_KINDS_APP_RECONCILE_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_app;

#endif
