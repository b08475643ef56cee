/* SPDX-License-Identifier: Apache-2.0
 *
 * The container of an App. */
#ifndef STW_KINDS_APP_CONTAINER_H
#define STW_KINDS_APP_CONTAINER_H

#include <jansson.h>

struct app;

/* A new tree, or NULL if out of memory. */
json_t *app_container(const struct app *a);
/* The options of the profile, and over them those of `given` (may be NULL; borrowed). */
json_t *app_security_context(const struct app *a, json_t *given);
/* Sets what the server would default in an entry of `env`. */
void app_own_defaults(json_t *entry);

#endif
