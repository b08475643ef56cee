/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates of an EtcdCluster: Secrets that people made, looked at; and the way to the members
 * that steward's own one gives. */
#include "base/base64.h"
#include "base/util.h"
#include "controller/etcdcluster_priv.h"

#include <stdio.h>

static int use(struct ec *e, struct ec_kept *kept, const struct stw_etcd_tls *tls)
{
    struct stw_etcd_config config = {.timeout_ms = 4000};
    if (tls)
        config.tls = *tls;
    return ec_keeper_use(e->keeper, kept, &config, &e->tls.err);
}

static int fail(struct ec *e)
{
    e->tls.state = EC_TLS_FAILED;
    (void)snprintf(e->tls.text, sizeof(e->tls.text), "%.250s", e->tls.err.text);
    return -1;
}

int ec_tls_prepare(struct ec *e)
{
    struct ec_kept *kept = ec_keeper_get(e->keeper, e->run);
    if (!kept) {
        (void)stw_fail(&e->tls.err, STW_ERR_INTERNAL, "out of memory");
        return fail(e);
    }
    if (!kept->etcd && use(e, kept, NULL) != 0)
        return fail(e);
    e->etcd = kept->etcd;
    return 0;
}
