/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of members: their hosts, URLs and labels. */
#include "kinds/etcdcluster/names.h"

#include "base/util.h"
#include "kinds/etcdcluster/labels.h"
#include "kinds/etcdcluster/run.h"

void ec_host(const struct ec *e, const char *member, char out[STW_ETCD_URL_MAX])
{
    const char *domain = e->spec.pod.cluster_domain;
    stw_format(out, STW_ETCD_URL_MAX, "%s.%s.%s.svc%s%s", member, e->owner.name, e->owner.ns,
               domain ? "." : "", domain ? domain : "");
}

void ec_peer_url(const struct ec *e, const char *member, char out[STW_ETCD_URL_MAX])
{
    char host[STW_ETCD_URL_MAX];
    ec_host(e, member, host);
    stw_format(out, STW_ETCD_URL_MAX, "%s://%.480s:%d", e->tls.peer ? "https" : "http", host,
               EC_PEER_PORT);
}

void ec_client_url(const struct ec *e, const char *member, char out[STW_ETCD_URL_MAX])
{
    char host[STW_ETCD_URL_MAX];
    ec_host(e, member, host);
    stw_format(out, STW_ETCD_URL_MAX, "%s://%.480s:%d", e->tls.client ? "https" : "http", host,
               EC_CLIENT_PORT);
}

/* --- labels */

json_t *ec_selector(const struct ec *e)
{
    return stw_manifest_selector(&e->naming, &e->owner);
}

/* Ours, and those of the original etcd-operator API. */
json_t *ec_labels(const struct ec *e, const char *member)
{
    json_t *all = stw_manifest_labels(e->run, &e->owner, &e->naming);
    (void)json_object_set_new(all, "app", json_string("etcd"));
    (void)json_object_set_new(all, EC_CLUSTER, json_string(e->owner.name));
    (void)json_object_set_new(all, "etcd_node", json_string(member));
    (void)json_object_del(all, "app.kubernetes.io/version"); /* not part of the template hash */
    return all;
}
