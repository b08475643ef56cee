/* SPDX-License-Identifier: Apache-2.0
 *
 * What the caches of all informers use, in all and for each namespace, counted against the share of the
 * caches (base/process/memory_budget.h).  Any thread. */
#ifndef STW_KUBE_CACHE_USAGE_H
#define STW_KUBE_CACHE_USAGE_H

#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>

/* A namespace gets this part of the share. */
#define STW_CACHE_NAMESPACE_PART 4

/* What an index key of this length takes for each object that has it: the key, an entry in it, and
 * what malloc and the table need. */
static inline size_t stw_index_key_bytes(size_t len)
{
    return len + 1 + 48;
}

/* The entry of an object ("namespace/name") had `before` bytes and has `after`. */
void stw_cache_usage_change(const char *key, size_t before, size_t after);
/* Whether the namespace, or all together, use up what they may. */
bool stw_cache_usage_is_full(const char *ns);
size_t stw_cache_usage_of(const char *ns); /* bytes */

#endif
