/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a Secret of the API server.  The caches hold no Secrets: one is read when its values are
 * needed, and wiped after use. */
#ifndef STW_KUBE_SECRET_H
#define STW_KUBE_SECRET_H

#include "base/base64.h"
#include "kube/client.h"

#define STW_SECRET_DATA_MAX (4u << 20) /* 1 MiB of data in base64, and metadata */

/* A Secret that was read; its values are wiped by stw_secret_done. */
struct stw_secret {
    struct stw_buf text;
    struct stw_json_doc doc;
};

/* Call done in any case. */
int stw_secret_get(struct stw_client *c, const char *ns, const char *name, struct stw_secret *ret,
                   struct stw_error *err);
void stw_secret_done(struct stw_secret *s); /* wipes */
#define stw_autosecret __attribute__((cleanup(stw_secret_done)))

/* The encoded value of a key. */
static inline struct stw_json stw_secret_entry(struct stw_json secret, const char *key)
{
    return stw_json_get(stw_json_get(secret, "data"), key);
}

/* The decoded value of a key and a NUL, to be freed with stw_wipe_free; NULL: absent or invalid. */
char *stw_secret_value(const struct stw_secret *s, const char *key);
/* Whether the value has a NUL, after which the one above is cut. */
bool stw_secret_has_nul(const struct stw_secret *s, const char *key);

#endif
