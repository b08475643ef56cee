/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over a MyWeb, between the three files that share it: what its children should be
 * (myweb_children.c), what its status says (myweb_status.c), and the run itself (myweb.c). */
#ifndef STW_CONTROLLER_MYWEB_PRIV_H
#define STW_CONTROLLER_MYWEB_PRIV_H

#include "controller/child.h"
#include "controller/object.h"
#include "controller/verdict.h"
#include "kinds/myweb.h"

enum { MYWEB_CONFIGMAP, MYWEB_DEPLOYMENT, MYWEB_SERVICE, MYWEB_CHILDREN };

enum myweb_port {
    MYWEB_PORT_FREE,      /* no trouble with it */
    MYWEB_PORT_TAKEN,     /* `holder` has it */
    MYWEB_PORT_NONE_LEFT, /* the API server has none to give */
    MYWEB_PORT_IMPOSSIBLE /* the API server's range does not have it */
};

#define MYWEB_HOLDER_UNSEEN "another Service" /* the cache has none with this port */

struct myweb {
    struct stw_run *run;
    struct stw_object object;
    struct stw_owner owner;
    struct stw_arena *arena;
    struct stw_myweb spec;
    char content_hash[33];
    struct stw_child children[MYWEB_CHILDREN];
    int64_t service_port; /* what the Service is to ask for; 0: any, or what it has */
    enum myweb_port port;
    char holder[560]; /* "Service ns/name", "MyWeb ns/name" or MYWEB_HOLDER_UNSEEN */
};

/* --- children; each gives a new tree, or NULL without memory */
void myweb_hash_content(struct myweb *w);
json_t *myweb_configmap(const struct myweb *w);
json_t *myweb_deployment(const struct myweb *w);
json_t *myweb_service(const struct myweb *w);

/* --- status */

/* Works out from the children's states what is the matter, and the whole new status (*ret_status,
 * the caller's; NULL without memory: then the verdict may be unset). */
void myweb_judge(struct myweb *w, struct stw_verdict *verdict, json_t **ret_status);
json_t *myweb_status_invalid(struct myweb *w, const char *findings);
/* Whether the status told that this child was once as this generation wants it. */
bool myweb_was_applied(const struct myweb *w, int child);

#endif
