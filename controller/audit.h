/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that are stored already, held against the rules of now, as if each were created anew:
 * rules become stricter, and the webhook may have been away.  Pages of lists, so that memory does
 * not grow with the number of objects. */
#ifndef STW_CONTROLLER_AUDIT_H
#define STW_CONTROLLER_AUDIT_H

#include "kinds/kind.h"
#include "kube/client.h"

struct stw_audit_config {
    const struct stw_controller *const *controllers; /* ended by NULL */
    struct stw_client *client;
    const char *const *namespaces; /* ended by NULL; NULL: all */
    const struct stw_env *env;     /* its lookup may list others: lookup_lists.h */
    /* Called for each object that stays: one that is being deleted may be as it likes. */
    void (*verdict)(void *ctx, const struct stw_kind *kind, const char *ns, const char *name,
                    const struct stw_findings *findings);
    /* Objects of a kind cannot be read; `ns` is NULL for all namespaces. */
    void (*trouble)(void *ctx, const struct stw_kind *kind, const char *ns,
                    const struct stw_error *err);
    void *ctx;
};

/* All kinds, or just one. */
void stw_audit(const struct stw_audit_config *config, const struct stw_kind *only);

#endif
