/* SPDX-License-Identifier: Apache-2.0
 *
 * Validates stored objects against the current rules, as if each were created now: rules may have
 * become stricter, and the webhook may have been down.  Lists are read in pages, so that memory
 * does not grow with the number of objects. */
#ifndef STW_CONTROLLER_AUDIT_H
#define STW_CONTROLLER_AUDIT_H

#include "kube/client.h"
#include "schema/kind.h"

struct stw_audit_config {
    const struct stw_controller *const *controllers; /* ended by NULL */
    struct stw_client *client;
    const char *const *namespaces; /* ended by NULL; NULL: all */
    const struct stw_env *env; /* its lookup may list other objects: controller/lookup_lists.h */
    /* Called for each object, except those that are being deleted: they need not be valid. */
    void (*verdict)(void *ctx, const struct stw_kind *kind, const char *ns, const char *name,
                    const struct stw_findings *findings);
    /* Called when objects of a kind cannot be read; `ns` is NULL for all namespaces. */
    void (*trouble)(void *ctx, const struct stw_kind *kind, const char *ns,
                    const struct stw_error *err);
    void *ctx;
};

/* Audits one kind; NULL: all. */
void stw_audit(const struct stw_audit_config *config, const struct stw_kind *only);

#endif
