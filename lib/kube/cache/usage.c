/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cache/usage.h"

#include "base/process/memory_budget.h"
#include "base/table.h"
#include "base/thread.h"
#include "kube/resource.h"

#include <assert.h>
#include <pthread.h>

struct namespace
{
    size_t bytes;
    char name[];
};

static const char *namespace_name(const void *entry)
{
    return ((const struct namespace *)entry)->name;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stw_table namespaces = {.key_of = namespace_name};

static struct namespace *find_or_add(const char *name)
{
    struct namespace *n = stw_table_get(&namespaces, name);
    size_t size = strlen(name) + 1;
    void *old = NULL;
    if (n || !(n = calloc(1, sizeof(*n) + size)))
        return n;
    memcpy(n->name, name, size);
    if (stw_table_put(&namespaces, n, &old) != 0) {
        free(n);
        return NULL;
    }
    assert(!old);
    return n;
}

/* When out of memory, the namespace has less counted than it uses. */
void stw_cache_usage_change(const char *key, size_t before, size_t after)
{
    char ns[STW_KEY_LEN], name[STW_KEY_LEN];
    if (before == after)
        return;
    stw_key_split(key, ns, name);
    STW_LOCKED(&lock);
    struct namespace *n = find_or_add(ns);
    if (n) {
        n->bytes = n->bytes + after > before ? n->bytes + after - before : 0;
        if (n->bytes == 0)
            free(stw_table_remove(&namespaces, ns));
    }
    if (stw_table_size(&namespaces) == 0)
        stw_table_done(&namespaces);
    if (after > before)
        stw_share_add(STW_SHARE_CACHES, after - before);
    else
        stw_share_give_back(STW_SHARE_CACHES, before - after);
}

size_t stw_cache_usage_of(const char *ns)
{
    STW_LOCKED(&lock);
    const struct namespace *n = stw_table_get(&namespaces, ns);
    return n ? n->bytes : 0;
}

bool stw_cache_usage_is_full(const char *ns)
{
    struct stw_share_facts all = stw_share_facts(STW_SHARE_CACHES);
    return all.used >= all.limit || stw_cache_usage_of(ns) >= all.limit / STW_CACHE_NAMESPACE_PART;
}
