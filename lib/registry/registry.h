/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks registries of images which digest a tag has now (OCI distribution specification): HEAD of the
 * manifest, and a token where the registry wants one.
 *
 * Only registries that the administrator has listed are asked.  No name of an image
 * and no answer of a registry leads to another host: redirects are not followed, and a token
 * comes from the registry itself or from a server that is listed, too.  Requests are anonymous.
 *
 * The list has entries separated by commas:
 *     registry.example.com[:PORT]           images with this domain, by HTTPS
 *     http://registry.example.com[:PORT]    without TLS
 *     NAME=[http://]HOST[:PORT]             images with the domain NAME are asked for at HOST
 *     default=[http://]HOST[:PORT]          images without a domain
 * A port is part of the domain.  There are no wildcards. */
#ifndef STW_REGISTRY_REGISTRY_H
#define STW_REGISTRY_REGISTRY_H

#include "base/error.h"
#include "base/util.h"
#include "registry/reference.h"

#include <stdint.h>

/* For any thread; to each registry requests are made one at a time. */
struct stw_registries;
struct stw_registry;

/* `list` NULL or "": no image is listed. */
int stw_registries_create(const char *list, struct stw_registries **ret,
                          struct stw_error *err) STW_MUST_CHECK;
void stw_registries_destroy(struct stw_registries *r); /* NULL is allowed */

/* A tag of a registry in the list. */
struct stw_image_tag {
    struct stw_registry *registry; /* borrowed from the list */
    char path[STW_IMAGE_PATH_LEN], tag[STW_IMAGE_TAG_LEN];
};

/* False: nothing is asked about this image: it has a digest, its registry is not in the list, or it is
 * not a reference.  With `r` NULL always. */
bool stw_registries_find(struct stw_registries *r, const char *image, struct stw_image_tag *ret);

/* Writes the digest of the tag.  Blocks until `deadline_ms` (system monotonic) at most.
 *
 * Within a minute, a repeated question with the same `round` is answered from memory, and so is that of
 * a registry that could not be reached.  Another round asks again.
 *
 * STW_ERR_CANCELLED: this process no longer leads, or is stopping.  Any other error: the digest is not
 * known; the text names the registry and has nothing that it answered. */
int stw_registries_digest(struct stw_registries *r, const struct stw_image_tag *tag, int64_t round,
                          uint64_t deadline_ms, char out[STW_DIGEST_LEN],
                          struct stw_error *err) STW_MUST_CHECK;

#endif
