/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller of Apps: a ConfigMap with the configuration, a Deployment, a Service, and
 * optionally a PodDisruptionBudget and a HorizontalPodAutoscaler. */
#ifndef STW_CONTROLLER_APP_H
#define STW_CONTROLLER_APP_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_app;

#endif
