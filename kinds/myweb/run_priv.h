/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations shared by the files of the MyWeb controller: the desired children
 * (children.c), the status (status.c) and the run itself (myweb.c). */
#ifndef STW_KINDS_MYWEB_RUN_PRIV_H
#define STW_KINDS_MYWEB_RUN_PRIV_H

#include "controller/child.h"
#include "controller/object.h"
#include "controller/verdict.h"
#include "kinds/myweb/spec.h"

enum { MYWEB_CONFIGMAP, MYWEB_DEPLOYMENT, MYWEB_SERVICE, MYWEB_CHILDREN };

enum myweb_port {
    MYWEB_PORT_FREE,      /* no problem */
    MYWEB_PORT_TAKEN,     /* `holder` has it */
    MYWEB_PORT_NONE_LEFT, /* the API server has no free port */
    MYWEB_PORT_IMPOSSIBLE /* outside of the API server's range */
};

#define MYWEB_HOLDER_UNSEEN "another Service" /* the cache has no Service with this port */

struct myweb {
    struct stw_run *run;
    struct stw_object object;
    struct stw_owner owner;
    struct stw_arena *arena;
    struct stw_myweb spec;
    char content_hash[33];
    struct stw_child children[MYWEB_CHILDREN];
    int64_t service_port; /* nodePort to apply; 0: any, or the one that it has */
    enum myweb_port port;
    char holder[560]; /* "Service ns/name", "MyWeb ns/name" or MYWEB_HOLDER_UNSEEN */
};

/* --- children; each function returns a new tree, or NULL if out of memory */
void myweb_hash_content(struct myweb *w);
json_t *myweb_configmap(const struct myweb *w);
json_t *myweb_deployment(const struct myweb *w);
json_t *myweb_service(const struct myweb *w);

/* --- status */

/* Computes the verdict and the whole new status from the states of the children.  The caller owns
 * *ret_status; it is NULL if out of memory, and the verdict may then be unset. */
void myweb_judge(struct myweb *w, struct stw_verdict *verdict, json_t **ret_status);
json_t *myweb_status_invalid(struct myweb *w, const char *findings);
/* Whether, by the old status, this child was once as this generation wants it. */
bool myweb_was_applied(const struct myweb *w, int child);

#endif
