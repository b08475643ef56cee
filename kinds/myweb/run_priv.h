/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files of the MyWeb controller: the desired children
 * (children.c), the status (status.c) and the run itself (reconcile.c). */
#ifndef STW_KINDS_MYWEB_RUN_PRIV_H
#define STW_KINDS_MYWEB_RUN_PRIV_H

#include "base/hex.h"
#include "controller/reconcile.h"
#include "kinds/common/pod_trouble.h"
#include "kinds/myweb/spec.h"

enum { MYWEB_CONFIGMAP, MYWEB_DEPLOYMENT, MYWEB_SERVICE, MYWEB_INGRESS, MYWEB_CHILDREN };

enum myweb_port {
    MYWEB_PORT_FREE,      /* no problem */
    MYWEB_PORT_TAKEN,     /* `holder` has it */
    MYWEB_PORT_NONE_LEFT, /* the API server has no free port */
    MYWEB_PORT_IMPOSSIBLE /* outside of the API server's range */
};

#define MYWEB_HOLDER_UNSEEN "another Service" /* the cache has no Service with this port */

struct myweb {
    STW_SUBJECT;
    struct myweb_spec spec;
    char content_hash[STW_HASH_LEN];
    int64_t service_port; /* nodePort to apply; 0: any, or the one that it has */
    enum myweb_port port;
    char holder[560];               /* "Service ns/name", "MyWeb ns/name" or MYWEB_HOLDER_UNSEEN */
    struct stw_pod_trouble trouble; /* of the pod with the worst problem */
};

/* --- children; each function returns a new tree, or NULL if out of memory */
void myweb_hash_content(struct myweb *w);
json_t *myweb_configmap(const void *subject);
json_t *myweb_deployment(const void *subject);
json_t *myweb_service(const void *subject);
json_t *myweb_ingress(const void *subject); /* only with a host */

/* --- status; see struct stw_controller */
#define MYWEB_PORT_CONDITION "NodePortAllocated"
#define MYWEB_PODS_CONDITION "DeploymentAvailable"
extern const char *const myweb_port_reasons[]; /* the Service was not applied */
void myweb_find(const struct stw_subject *subject, struct stw_aspect *all);
void myweb_summarize(const struct stw_subject *subject, struct stw_verdict *v);
void myweb_report(const struct stw_subject *subject, const struct stw_verdict *v, json_t *status);

#endif
