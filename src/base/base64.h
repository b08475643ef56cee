/* SPDX-License-Identifier: Apache-2.0
 *
 * Base64 as RFC 4648 section 4 has it, for kubeconfigs and the data of Secrets. */
#ifndef STW_BASE_BASE64_H
#define STW_BASE_BASE64_H

#include "base/buf.h"

#include <stddef.h>

void stw_base64_encode(const void *data, size_t len, struct stw_buf *out);
/* Appends the decoded bytes; line breaks within `text` are passed over.  Returns 0, or -1 when it
 * is not base64 (`out` then holds a part) or `out` failed. */
int stw_base64_decode(const char *text, size_t len, struct stw_buf *out);

#endif
