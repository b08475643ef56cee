/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the few XML answers of S3 with libexpat: nested elements and texts, in UTF-8.  S3 sends
 * neither a DTD nor CDATA, so both are refused, and with the DTD every declaration of an entity. */
#ifndef STW_STORE_XML_H
#define STW_STORE_XML_H

#include "base/error.h"

#include <stddef.h>

#define STW_XML_BYTES_MAX (8u << 20) /* a page of 1000 keys, each byte written as %XX */
#define STW_XML_DEPTH_MAX 16
#define STW_XML_NAME_MAX 63   /* without a namespace prefix */
#define STW_XML_TEXT_MAX 8191 /* more than a key of 1024 bytes, each written as %XX */

/* Called at the end of each element.  `parent` is "" for the root.  `text` is decoded, and NULL for
 * an element with child elements.  -1 (with `err`) ends the walk.  Arguments are valid only during
 * the call. */
typedef int stw_xml_fn(void *ctx, const char *parent, const char *name, const char *text,
                       struct stw_error *err);

/* Returns 0, or -1 with the error of `each`, or STW_ERR_INVALID for text that is not such XML or
 * that exceeds a limit.  `each` may have been called for the elements before the invalid place. */
int stw_xml_walk(const char *text, size_t len, stw_xml_fn *each, void *ctx, struct stw_error *err);

#endif
