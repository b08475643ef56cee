/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates of an EtcdCluster. */
#ifndef STW_KINDS_ETCDCLUSTER_TLS_H
#define STW_KINDS_ETCDCLUSTER_TLS_H

struct ec;

/* Reads the Secrets, or creates them, and sets e->tls and e->etcd.  -1: members can neither be
 * created nor queried; e->tls has the reason. */
int ec_tls_prepare(struct ec *e);
/* Call after ec_judge_member: checks that members that answer serve the right certificate. */
void ec_tls_prove(struct ec *e);

#endif
