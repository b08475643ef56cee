/* SPDX-License-Identifier: Apache-2.0
 *
 * What a kind is: its fields, defaults, rules and names. */
#ifndef STEWARD_KIND_H
#define STEWARD_KIND_H

#include "schema/calendar.h"
#include "schema/conversion.h"
#include "schema/core.h"
#include "schema/cron.h"
#include "schema/field.h"
#include "schema/finding.h"
#include "schema/kind.h"
#include "schema/names.h"
#include "schema/rows.h"
#include "schema/zone.h"
#include "schema/zones.h"

#endif
