/* SPDX-License-Identifier: Apache-2.0
 *
 * Annotations by which a user asks for something once: each new value is one request. */
#ifndef STW_KINDS_COMMON_REQUEST_H
#define STW_KINDS_COMMON_REQUEST_H

#include "base/json.h"

#define STW_REQUEST_LEN 64

/* The value as the status shows it: as it is, if that is printable ASCII of at most 63 bytes, otherwise
 * the hash of all of it.  "": there is none. */
void stw_request_read(struct stw_json value, char out[STW_REQUEST_LEN]);

#endif
