/* SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses users of the cluster may make steward connect to: the endpoints of stores and the
 * etcdEndpoints in objects.  The check applies to the address that a socket is about to connect to,
 * after name resolution and for each connection: a name can resolve to a different address each
 * time.
 *
 * An object that names one of these addresses does not make it reachable: unspecified, loopback,
 * link-local, multicast and reserved ones, the metadata services of clouds, and what the list
 * excludes (the API server).  An IPv4 address inside an IPv6 one (mapped, compatible, NAT64, 6to4,
 * Teredo, ISATAP) counts as that IPv4 address.
 *
 * The operator sets the list (--store-endpoints); entries are separated by commas:
 *     *                   every address that is not of these classes
 *     10.1.0.0/16, ::1    these addresses, of any class
 *     s3.example.com      this host in a URL, resolving to any address
 *     *.example.com       the hosts below it
 *     !10.96.0.1          never this address (or CIDR), unless an entry is just this address or the
 *                         URL's host is listed */
#ifndef STW_BASE_REACH_H
#define STW_BASE_REACH_H

#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>

struct sockaddr; /* <sys/socket.h> */

enum stw_address_class {
    STW_ADDRESS_ORDINARY, /* public and private ones */
    STW_ADDRESS_UNSPECIFIED,
    STW_ADDRESS_LOOPBACK,
    STW_ADDRESS_LINK_LOCAL,
    STW_ADDRESS_MULTICAST,
    STW_ADDRESS_METADATA, /* of a cloud, where it is not link-local */
    STW_ADDRESS_RESERVED, /* and families other than IP */
    STW_ADDRESS_CLASSES,
};
enum stw_address_class stw_address_classify(const struct sockaddr *a);
const char *stw_address_class_name(enum stw_address_class c);

struct stw_reach; /* immutable */

int stw_reach_parse(const char *text, struct stw_reach **ret, struct stw_error *err) STW_MUST_CHECK;
void stw_reach_destroy(struct stw_reach *r);           /* NULL is allowed */
const char *stw_reach_text(const struct stw_reach *r); /* as it was parsed; NULL for NULL */

/* With `r` NULL everything is allowed (used by the command line). */
bool stw_reach_host(const struct stw_reach *r, const char *url); /* the list names the URL's host */
bool stw_reach_any(const struct stw_reach *r);                   /* the list has "*" */
bool stw_reach_address(const struct stw_reach *r, const struct sockaddr *a);

#endif
