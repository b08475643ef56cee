/* SPDX-License-Identifier: Apache-2.0
 *
 * How long upkeep of a database may take. */
#include "kinds/etcdcluster/plan/maintenance_limits.h"
#include "base/util.h"
#include "kinds/etcdcluster/run.h"
#include "schema/names.h"

#define NANO 1000000000
#define MIB (1 << 20)
#define LIMIT_MIN_S 60            /* of the defragmentation of one member, and for each ... */
#define LIMIT_BYTES (16 * MIB)    /* ... of its database one second more */
#define COMPACT_MIN_S 300         /* of a compaction, and for each ... */
#define COMPACT_BYTES (4LL * MIB) /* ... of the largest database one second more */
#define COMPACT_MAX_S 3600

int64_t ec_quota(const struct ec *e)
{
    stw_quantity quota = 0;
    if (stw_quantity_of(e->spec.options.quota_backend_bytes, &quota) != 0 || quota <= 0)
        return 2048LL * MIB;
    return (int64_t)STW_MIN(quota / NANO, (stw_quantity)INT64_MAX);
}

int64_t ec_defragment_limit(int64_t bytes)
{
    return STW_MIN(LIMIT_MIN_S + bytes / LIMIT_BYTES, EC_DEFRAGMENT_MAX_S);
}

int64_t ec_largest_database(const struct ec *e)
{
    int64_t size = 0;
    for (size_t i = 0; i < e->view.count; i++)
        if (e->view.members[i].listed)
            size = STW_MAX(size, e->details[i].health.db_size);
    return size;
}

int64_t ec_upkeep_limit(const struct ec *e)
{
    const struct ec_pass *p = &e->state.pass;
    int64_t size = 0;
    if (e->state.action.kind == EC_COMPACT)
        return STW_MIN(COMPACT_MIN_S + ec_largest_database(e) / COMPACT_BYTES, COMPACT_MAX_S);
    for (size_t i = 0; i < p->count; i++)
        if (stw_streq(p->members[i].name, e->state.action.member))
            size = p->members[i].before;
    return ec_defragment_limit(size);
}

int64_t ec_action_limit(const struct ec *e)
{
    enum ec_kind kind = e->state.action.kind;
    return kind == EC_DEFRAGMENT || kind == EC_COMPACT ? ec_upkeep_limit(e)
                                                       : e->spec.progress_deadline_s;
}
