/* SPDX-License-Identifier: Apache-2.0
 *
 * What certificate a member serves. */
#ifndef STW_KINDS_ETCDCLUSTER_PROBE_H
#define STW_KINDS_ETCDCLUSTER_PROBE_H

/* Fingerprint of the certificate that address:port presents.  -1: none. */
int ec_probe(const char *address, int port, const char *host, char ret_fingerprint[65]);

#endif
