/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 (RFC 4648 section 4), for kubeconfigs and the data of Secrets. */
#ifndef STW_BASE_BASE64_H
#define STW_BASE_BASE64_H

#include "base/buf.h"

#include <stddef.h>

void stw_base64_encode(const void *data, size_t len, struct stw_buf *out);
/* Appends the decoded bytes; line breaks in `text` are skipped.  Returns 0, or -1 when `text` is
 * not base64 (`out` then holds a part of the result) or `out` failed. */
int stw_base64_decode(const char *text, size_t len, struct stw_buf *out);

#endif
