/* SPDX-License-Identifier: Apache-2.0
 *
 * The names of a resource of the Kubernetes API. */
#ifndef STW_BASE_RESOURCE_H
#define STW_BASE_RESOURCE_H

#include <stdbool.h>

#define STW_RESOURCE_MEMBERS                                                                       \
    const char *group;   /* "" for the core group */                                               \
    const char *version; /* "v1" */                                                                \
    const char *kind;    /* "ConfigMap" */                                                         \
    const char *plural;  /* "configmaps" */                                                        \
    bool namespaced

/* All instances are static: callers keep pointers to them. */
struct stw_resource {
    STW_RESOURCE_MEMBERS;
};

#endif
