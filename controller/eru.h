/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STW_CONTROLLER_ERU_H
#define STW_CONTROLLER_ERU_H

#include "controller/controller.h"

extern const struct stw_controller stw_controller_eru;

#endif
