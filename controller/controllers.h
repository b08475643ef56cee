/* SPDX-License-Identifier: Apache-2.0
 *
 * The controllers of the product.  The framework knows none of them: it is passed the table. */
#ifndef STW_CONTROLLER_CONTROLLERS_H
#define STW_CONTROLLER_CONTROLLERS_H

#include "controller/controller.h"

extern const struct stw_controller *const stw_controllers[]; /* ended by NULL */

#endif
