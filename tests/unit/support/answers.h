/* SPDX-License-Identifier: Apache-2.0
 *
 * Lookups for random objects.  The answers depend on the key alone, so that an object gets the same
 * verdict twice; some names are taken, and Secrets differ. */
#ifndef STW_TESTS_UNIT_SUPPORT_ANSWERS_H
#define STW_TESTS_UNIT_SUPPORT_ANSWERS_H

#include "schema/kind.h"

#include <stdio.h>
#include <string.h>

static inline bool stw_test_find(void *ctx, const char *index, const char *key, const char *self,
                                 char *ret_holder)
{
    (void)ctx, (void)index, (void)self;
    if (strlen(key) % 17)
        return false;
    (void)snprintf(ret_holder, 512, "other/one");
    return true;
}

static inline int stw_test_has(void *ctx, const char *plural, const char *key)
{
    (void)ctx, (void)plural;
    return (int)(strlen(key) % 3) - 1;
}

static inline int stw_test_secret(void *ctx, const char *ns, const char *name, const char *key,
                                  struct stw_secret_facts *ret)
{
    size_t n = strlen(name) + strlen(key);
    (void)ctx, (void)ns;
    *ret = (struct stw_secret_facts){.secret_there = n % 2,
                                     .key_there = n % 3,
                                     .is_text = n % 5,
                                     .ends_in_newline = n % 4,
                                     .len = (uint32_t)(n % 20),
                                     .bare_len = (uint32_t)(n % 20 / 2)};
    return n % 11 ? 0 : -1;
}

static const struct stw_lookup stw_test_lookup = {
    .find = stw_test_find, .has = stw_test_has, .secret = stw_test_secret};

#endif
