/* SPDX-License-Identifier: Apache-2.0
 *
 * Reading the few XML answers that S3 gives: elements within elements, texts, nothing else.  One
 * pass, no tree, no memory: an answer that needs a DTD, entities of its own or CDATA is none of
 * S3's and is refused, which keeps all that makes XML dangerous out of the process. */
#ifndef STW_CONTROLLER_STORE_XML_H
#define STW_CONTROLLER_STORE_XML_H

#include "base/error.h"

#include <stddef.h>

#define STW_XML_DEPTH_MAX 16
#define STW_XML_NAME_MAX 63   /* without a namespace's prefix */
#define STW_XML_TEXT_MAX 8191 /* a key of 1024 bytes, each written as %XX, and room */

/* An element has ended.  `parent` is "" for the root; `text` is decoded, and NULL for an element
 * that had others within it.  -1 (with `err`) ends the walk.  All is borrowed for the call. */
typedef int stw_xml_fn(void *ctx, const char *parent, const char *name, const char *text,
                       struct stw_error *err);

/* Returns 0, or -1: what `each` said, or STW_ERR_INVALID for a text that is no such XML. */
int stw_xml_walk(const char *text, size_t len, stw_xml_fn *each, void *ctx, struct stw_error *err);

#endif
