/* SPDX-License-Identifier: Apache-2.0
 *
 * How a new password replaces the old one. */
#ifndef STW_KINDS_DATABASEUSER_STRATEGY_H
#define STW_KINDS_DATABASEUSER_STRATEGY_H

#include "kinds/databaseuser/plan/plan.h"

#include <stdbool.h>

struct dbu;

bool dbu_rotation_wanted(const struct dbu *d);
/* As the spec has it, resolved for the engine of the target. */
enum dbu_strategy dbu_rotation_strategy(const struct dbu *d);
/* It is TwinAccounts. */
bool dbu_twins_wanted(const struct dbu *d);
/* InPlace was asked for, as for a password that others know: sessions end with it. */
bool dbu_rotation_cuts(const struct dbu *d);

#endif
