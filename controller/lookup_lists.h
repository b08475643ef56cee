/* SPDX-License-Identifier: Apache-2.0
 *
 * What admission rules look up, for a program that keeps no caches: each resource that is asked of
 * is listed once, when it is first asked, and of its objects nothing but keys is kept. */
#ifndef STW_CONTROLLER_LOOKUP_LISTS_H
#define STW_CONTROLLER_LOOKUP_LISTS_H

#include "kinds/kind.h"
#include "kube/client.h"

struct stw_lookup_lists;

struct stw_lookup_lists_config {
    const struct stw_controller *const *controllers; /* whose watches are listed; ended by NULL */
    struct stw_client *client;
    const char *const *namespaces; /* to look at when not all may be listed; NULL: all or nothing */
    /* A resource cannot be listed, told once for each; what depends on it is not judged. */
    void (*trouble)(void *ctx, const char *plural, const struct stw_error *err);
    void *ctx;
};

/* NULL: out of memory.  Borrows all of `config`.  One thread. */
struct stw_lookup_lists *stw_lookup_lists_create(const struct stw_lookup_lists_config *config);
const struct stw_lookup *stw_lookup_lists_get(struct stw_lookup_lists *l);
void stw_lookup_lists_destroy(struct stw_lookup_lists *l);

/* Asks the API server for what can be said of a value in a Secret, and wipes the Secret.  0, or -1:
 * it could not be looked at. */
int stw_secret_look(struct stw_client *client, const char *ns, const char *name, const char *key,
                    struct stw_secret_facts *ret);

#endif
