/* SPDX-License-Identifier: Apache-2.0
 *
 * The controllers of steward.  The framework does not refer to any of them: it is passed this
 * table. */
#ifndef STW_CONTROLLER_CONTROLLERS_H
#define STW_CONTROLLER_CONTROLLERS_H

#include "controller/controller.h"

extern const struct stw_controller *const stw_controllers[]; /* ended by NULL */

#endif
