/* SPDX-License-Identifier: Apache-2.0
 *
 * MyWeb: an image, a page of HTML and a node port, or an Ingress. */
#ifndef STW_KINDS_MYWEB_SPEC_H
#define STW_KINDS_MYWEB_SPEC_H

#include "kinds/common/ingress.h"
#include "kinds/myweb/schema.h"
#include "schema/kind.h"

struct myweb_spec {
    const char *image;
    int64_t node_port;        /* 0: the API server chooses */
    const char *service_type; /* "NodePort", "ClusterIP" */
    struct stw_ingress ingress;
    struct stw_json page;    /* text; absent: "" */
    struct stw_json files;   /* map from name to text: what is served beside the page */
    const char *pull_policy; /* NULL: as the API server chooses by the tag */
    int64_t replicas;
    int64_t container_port;
    const char *mount_path;
    const char *content_update; /* "Roll", "Live" */
    struct stw_json resources;  /* core/v1 ResourceRequirements; absent: steward's defaults */
    struct stw_json image_pull_secrets; /* list of {name} */
    struct stw_json security_context;   /* core/v1 SecurityContext of the container */
};

/* The Service has no node port. */
bool myweb_is_inside(const struct myweb_spec *web);

/* The default of resources, as JSON. */
#define MYWEB_RESOURCES "{\"requests\":{\"cpu\":\"10m\",\"memory\":\"16Mi\"}}"

#endif
