/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors, buffers, JSON, log, metrics and clock. */
#ifndef STEWARD_BASE_H
#define STEWARD_BASE_H

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/fence.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/tzfile.h"
#include "base/util.h"

#endif
