/* SPDX-License-Identifier: Apache-2.0
 *
 * Pod Security: what a namespace enforces, and what of a pod is beyond the Baseline standard.
 * steward creates pods with its own rights, so it must not create one for a user that the user
 * could not create. */
#ifndef STW_KINDS_COMMON_POD_SECURITY_H
#define STW_KINDS_COMMON_POD_SECURITY_H

#include "controller/controller.h"

#define STW_POD_SECURITY_LABEL "pod-security.kubernetes.io/enforce"

enum stw_pod_level {
    STW_POD_LEVEL_UNKNOWN, /* the namespace cannot be read here */
    STW_POD_LEVEL_NONE,    /* it has no label, or steward may not read it */
    STW_POD_LEVEL_PRIVILEGED,
    STW_POD_LEVEL_BASELINE,
    STW_POD_LEVEL_RESTRICTED
};

/* Namespaces with that label; others are not cached.  A change wakes the objects that their kind
 * indexes under "namespace". */
extern const struct stw_watch stw_watch_namespaces;
/* The right to read them: a cluster-wide one, which an installation for some namespaces lacks. */
#define STW_RULE_NAMESPACES                                                                        \
    {                                                                                              \
        .resource = &stw_res_namespace, .verbs = "list,watch"                                      \
    }

enum stw_pod_level stw_pod_level_of(const struct stw_env *env, const char *ns);

/* Adds a finding for each field of a container's securityContext that Baseline forbids.  `path` is
 * its path. */
void stw_pod_check_context(struct stw_json context, const char *path, struct stw_findings *f);
/* The same for a whole PodSpec. */
void stw_pod_check_spec(struct stw_json pod, const char *path, struct stw_findings *f);

#endif
