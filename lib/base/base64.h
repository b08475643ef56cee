/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 (RFC 4648 section 4), for kubeconfigs and the data of Secrets. */
#ifndef STW_BASE_BASE64_H
#define STW_BASE_BASE64_H

#include "base/buf.h"
#include "base/json.h"

#include <stddef.h>

void stw_base64_encode(const void *data, size_t len, struct stw_buf *out);
/* Appends the decoded bytes; line breaks in `text` are skipped.  Returns 0, or -1 when `text` is
 * not base64 (`out` then holds a part of the result) or `out` failed. */
int stw_base64_decode(const char *text, size_t len, struct stw_buf *out);
/* The same of a JSON string; also -1 when it is not a string. */
int stw_base64_json(struct stw_json string, struct stw_buf *out);
/* The decoded bytes and a NUL, to be freed with stw_wipe_free; NULL: not base64, empty, or larger
 * than `max`. */
char *stw_base64_json_take(struct stw_json string, size_t max);

#endif
