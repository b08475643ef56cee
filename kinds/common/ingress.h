/* SPDX-License-Identifier: Apache-2.0
 *
 * An Ingress for the Service of an object: its host, and the object itself. */
#ifndef STW_KINDS_COMMON_INGRESS_H
#define STW_KINDS_COMMON_INGRESS_H

#include "schema/field.h"

#include <jansson.h>

struct stw_ingress {
    const char *host;                    /* NULL: no Ingress is wanted */
    const char *path;                    /* of the requests, and of all below it */
    const char *class_name, *tls_secret; /* may be NULL */
};

/* A DNS name whose first part may be "*"; for `check` and `cel` of a field table row. */
const char *stw_ingress_check_host(const char *host);
extern const struct stw_cel stw_ingress_cel_host[];

/* Rows of a field table for the member `ingress` (struct stw_ingress) of `type`. */
#define STW_INGRESS_HOST(type_)                                                                    \
    {                                                                                              \
        .name = "host", STW_FIELD(STW_T_STRING, type_, ingress.host),                              \
        .help = "Host name of the requests; its first part may be \"*\".", .required = true,       \
        .check = stw_ingress_check_host, .cel = stw_ingress_cel_host, .cel_max = 255,              \
    }
#define STW_INGRESS_CLASS(type_)                                                                   \
    {                                                                                              \
        .name = "className", STW_FIELD(STW_T_STRING, type_, ingress.class_name),                   \
        .help = "IngressClass; when absent, the default of the cluster.", STW_CHECK_SUBDOMAIN,     \
    }
#define STW_INGRESS_TLS_SECRET(type_)                                                              \
    {                                                                                              \
        .name = "secretName", STW_FIELD(STW_T_STRING, type_, ingress.tls_secret),                  \
        .help = "Secret in the same namespace with tls.crt and tls.key for the host.",             \
        .required = true, STW_CHECK_SUBDOMAIN,                                                     \
    }

/* Takes `metadata`.  The Service's port is called "http".  NULL if out of memory. */
json_t *stw_ingress_build(const struct stw_ingress *i, const char *service, json_t *metadata);

#endif
