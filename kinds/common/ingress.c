/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/common/ingress.h"

#include "kube/tree.h"
#include "schema/names.h"

#include <string.h>

const char *stw_ingress_check_host(const char *host)
{
    return stw_check_dns1123_subdomain(strncmp(host, "*.", 2) == 0 ? host + 2 : host);
}

json_t *stw_ingress_build(const struct stw_ingress *i, const char *service, json_t *metadata)
{
    json_t *spec =
        stw_tree_pack("{s:[{s:s,s:{s:[{s:s,s:s,s:{s:{s:s,s:{s:s}}}}]}}]}", "rules", "host", i->host,
                      "http", "paths", "path", i->path, "pathType", "Prefix", "backend", "service",
                      "name", service, "port", "name", "http");
    if (i->class_name)
        (void)json_object_set_new(spec, "ingressClassName", json_string(i->class_name));
    if (i->tls_secret)
        (void)json_object_set_new(
            spec, "tls",
            stw_tree_pack("[{s:[s],s:s}]", "hosts", i->host, "secretName", i->tls_secret));
    return stw_tree_pack("{s:s,s:s,s:o,s:o}", "apiVersion", "networking.k8s.io/v1", "kind",
                         "Ingress", "metadata", metadata, "spec", spec);
}
