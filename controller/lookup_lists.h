/* SPDX-License-Identifier: Apache-2.0
 *
 * Look-ups for admission rules in a program without caches: each resource is listed once, on its
 * first look-up, and only the keys of its objects are kept. */
#ifndef STW_CONTROLLER_LOOKUP_LISTS_H
#define STW_CONTROLLER_LOOKUP_LISTS_H

#include "base/operator.h"
#include "base/util.h"
#include "kube/client.h"
#include "schema/kind.h"

struct stw_lookup_lists;

struct stw_lookup_lists_config {
    const struct stw_operator *op; /* the watches of its controllers are listed */
    struct stw_client *client;
    const char *const *namespaces; /* used if not all may be listed; NULL: all or nothing */
    /* A resource cannot be listed; reported once for each.  Rules that depend on it are skipped. */
    void (*trouble)(void *ctx, const char *plural, const struct stw_error *err);
    void *ctx;
};

/* NULL: out of memory.  Borrows all of `config`.  One thread. */
struct stw_lookup_lists *
stw_lookup_lists_create(const struct stw_lookup_lists_config *config) STW_MUST_CHECK;
const struct stw_lookup *stw_lookup_lists_get(struct stw_lookup_lists *l);
void stw_lookup_lists_destroy(struct stw_lookup_lists *l);

/* Reads a Secret from the API server, describes one of its values and wipes the Secret.  0, or -1:
 * the Secret could not be read. */
int stw_secret_look(struct stw_client *client, const char *ns, const char *name, const char *key,
                    struct stw_secret_facts *ret);

#endif
