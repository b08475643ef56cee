/* SPDX-License-Identifier: Apache-2.0
 *
 * The small grammars of Kubernetes: names, image references, quantities. */
#ifndef STW_SCHEMA_NAMES_H
#define STW_SCHEMA_NAMES_H

#include "base/buf.h"
#include "base/json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool stw_is_dns1035_label(const char *s);     /* <= 63 */
bool stw_is_dns1123_label(const char *s);     /* <= 63 */
bool stw_is_dns1123_subdomain(const char *s); /* <= 253 */

/* A key of labels and annotations: [subdomain/]name. */
bool stw_is_qualified_name(const char *s);
/* The value of a label: empty, or as a name in such a key. */
bool stw_is_label_value(const char *s);

/* A distribution reference: [host[:port]/]path[:tag][@sha256:...], <= 1024 bytes. */
bool stw_is_image(const char *s);
/* True without tag and digest, or with ":latest". */
bool stw_image_floats(const char *s);
/* The tag, or "" (a digest is not a tag); at most out_size - 1 bytes. */
void stw_image_tag(const char *s, char *out, size_t out_size);

/* What is wrong with a name, and with an image. */
#define STW_SUBDOMAIN_TEXT                                                                         \
    "must consist of lower case alphanumeric characters, '-' or '.', and must start and end with " \
    "an alphanumeric character"
#define STW_IMAGE_TEXT "not a valid image reference"

/* The same for field table rows: NULL, or what is wrong (or worth a warning) as a constant. */
const char *stw_check_dns1123_subdomain(const char *s);
const char *stw_check_image(const char *s);
const char *stw_warn_image(const char *s);

/* A percentage such as "25%", at most 999999.  0, or -1 when it is none. */
int stw_percent_parse(const char *s, int64_t *ret);

/* resource.Quantity.  Parses into nano-units as a 128-bit integer.  0, or -1 when it is not a
 * quantity. */
typedef __int128 stw_quantity;
int stw_quantity_parse(const char *s, stw_quantity *ret);
int stw_quantity_of(struct stw_json v, stw_quantity *ret); /* of a JSON string or number */
/* The form that the API server writes back ("1000m" -> "1", "1024Mi" -> "1Gi").  "010m" and "1.500"
 * stay unchanged, as in the API server.  Exact up to 2^63-1; in resources of containers the API
 * server also rounds up to 1m.  -1: not a quantity. */
int stw_quantity_canonical(const char *s, struct stw_buf *out);

#endif
