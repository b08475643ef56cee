/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STW_KINDS_ERU_RECONCILE_H
#define STW_KINDS_ERU_RECONCILE_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_eru;

#endif
