/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain-text responses of probes and metrics. */
#ifndef STW_WEBHOOK_PLAIN_PRIV_H
#define STW_WEBHOOK_PLAIN_PRIV_H

#include "base/buf.h"

#include <microhttpd.h>

#define STW_PLAIN_TEXT "text/plain; charset=utf-8"
#define STW_PLAIN_JSON "application/json"
#define STW_PLAIN_METRICS "text/plain; version=0.0.4; charset=utf-8"

/* Takes ownership of the text. `headers`: name and value pairs, ended by NULL; or NULL. */
enum MHD_Result stw_plain_answer(struct MHD_Connection *mhd, int code, const char *type,
                                 const char *const *headers, struct stw_buf *text);

#endif
