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

/* A DNS name whose first part may be "*"; for `check` of a field. */
const char *stw_ingress_check_host(const char *host);

/* Takes `metadata`.  The Service's port is called "http".  NULL if out of memory. */
json_t *stw_ingress_build(const struct stw_ingress *i, const char *service, json_t *metadata);

#endif
