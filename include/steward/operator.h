/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator: its struct, its main function, and what it may add to the commands. */
#ifndef STEWARD_OPERATOR_H
#define STEWARD_OPERATOR_H

#include "base/operator.h"
#include "operator/command.h"
#include "operator/extension.h"
#include "operator/flags.h"
#include "operator/main.h"

#endif
