/* SPDX-License-Identifier: Apache-2.0
 *
 * What is known of the certificates of a cluster. */
#include "kinds/etcdcluster/tls/tls_state.h"

#include "base/hex.h"
#include "base/util.h"

void ec_tls_set_state(struct ec_tls *t, enum ec_tls_state state, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    stw_vformat(t->text, sizeof(t->text), fmt, ap);
    va_end(ap);
    t->state = state;
}

void ec_tls_trust(struct ec_tls *t, const char *bundle)
{
    char both[sizeof(t->trust_hash) + STW_HASH_LEN], added[STW_HASH_LEN];
    stw_hash_format(stw_hash_bytes(bundle, strlen(bundle)), added);
    stw_format(both, sizeof(both), "%s%s", t->trust_hash, added);
    stw_hash_format(stw_hash_bytes(both, strlen(both)), t->trust_hash);
}
