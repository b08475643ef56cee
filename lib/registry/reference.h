/* SPDX-License-Identifier: Apache-2.0
 *
 * References of images, as container runtimes read them: [DOMAIN/]PATH[:TAG][@DIGEST].  The first part
 * is a domain if it contains "." or ":" or an upper-case letter, or is "localhost". */
#ifndef STW_REGISTRY_REFERENCE_H
#define STW_REGISTRY_REFERENCE_H

#include "base/util.h"

#include <stdbool.h>

#define STW_IMAGE_DOMAIN_LEN 262 /* a host name of 255 bytes and a port */
#define STW_IMAGE_PATH_LEN 256
#define STW_IMAGE_TAG_LEN 129

struct stw_image {
    char domain[STW_IMAGE_DOMAIN_LEN]; /* "": the registry that the nodes use by default */
    char path[STW_IMAGE_PATH_LEN];
    char tag[STW_IMAGE_TAG_LEN]; /* "latest" if there is none */
    bool pinned;                 /* it has a digest, which decides; the tag says nothing */
};

/* Returns 0, or -1 when `text` is not a reference (stw_is_image): no node can pull it. */
int stw_image_parse(const char *text, struct stw_image *ret) STW_MUST_CHECK;

/* Whether `text` is HOST or HOST:PORT, the length of a domain at most. */
bool stw_image_is_domain(const char *text);

#define STW_DIGEST_LEN 72 /* "sha256:", 64 digits and a NUL */
/* Whether the `len` bytes are "sha256:" and 64 lower-case hexadecimal digits. */
bool stw_image_is_digest(const char *text, size_t len);

#endif
