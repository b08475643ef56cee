/* SPDX-License-Identifier: Apache-2.0
 *
 * The controller of MyWebs: a ConfigMap with the page, a Deployment that serves it, and a Service
 * with a node port, all with the name of the MyWeb. */
#ifndef STW_KINDS_MYWEB_RECONCILE_H
#define STW_KINDS_MYWEB_RECONCILE_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_myweb;

#endif
