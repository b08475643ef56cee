/* SPDX-License-Identifier: Apache-2.0
 *
 * What is around the objects: database targets, time zones, other objects that rules look up. */
#ifndef STW_TESTS_HOSTILE_SURROUNDINGS_H
#define STW_TESTS_HOSTILE_SURROUNDINGS_H

#include "kinds/common/product.h"
#include "schema/kind.h"

void hostile_open(void);
void hostile_close(void);
const struct stw_env *hostile_env(void);
const struct stw_product *hostile_product(void);
/* The configuration file with the same targets, as JSON. */
extern const char hostile_config[];

#endif
