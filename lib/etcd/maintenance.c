/* SPDX-License-Identifier: Apache-2.0
 *
 * Upkeep of the database: removal of old revisions, and of the free pages that they leave. */
#include "base/util.h"
#include "etcd/etcd_priv.h"

static int end_call(struct stw_etcd_exchange *x, int r, enum stw_etcd_trouble *trouble,
                    struct stw_error *err)
{
    *trouble = x->trouble;
    if (r != 0 && err)
        *err = x->err;
    stw_etcd_exchange_done(x);
    return r;
}

int stw_etcd_defragment(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                        enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    struct stw_etcd_exchange x = {.change = true};
    return end_call(&x, stw_etcd_ask(e, &x, at, "/v3/maintenance/defragment", "{}"), trouble, err);
}

int stw_etcd_compact(struct stw_etcd *e, const struct stw_etcd_endpoint *at, uint64_t revision,
                     enum stw_etcd_trouble *trouble, struct stw_error *err)
{
    struct stw_etcd_exchange x = {.change = true};
    char body[64];
    stw_format(body, sizeof(body), "{\"revision\":\"%llu\",\"physical\":true}",
               (unsigned long long)revision);
    return end_call(&x, stw_etcd_ask(e, &x, at, "/v3/kv/compaction", body), trouble, err);
}
