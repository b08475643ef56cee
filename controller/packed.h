/* SPDX-License-Identifier: Apache-2.0
 *
 * Compression of cached texts.  Most of a custom object's text is the same in every object of its
 * kind, so deflate with a dictionary of the common parts leaves about a fifth.  A packed text is
 * itself JSON, ["<base64>"], and equal texts pack to equal bytes.  No state; any thread. */
#ifndef STW_CONTROLLER_PACKED_H
#define STW_CONTROLLER_PACKED_H

#include "base/buf.h"
#include "base/json.h"

/* Appends `text` packed, or unchanged if it cannot be packed. */
void stw_pack(const char *text, size_t len, struct stw_buf *out);

/* Scans a text that may be packed.  `unpacked` then holds the unpacked text and must outlive
 * `doc`. */
int stw_unpack_scan(const char *text, size_t len, struct stw_buf *unpacked,
                    struct stw_json_doc *doc);
/* The same for a text that is already scanned: the root of the unpacked text, or `root` itself. */
struct stw_json stw_unpack_root(struct stw_json root, struct stw_buf *unpacked,
                                struct stw_json_doc *doc);

#endif
