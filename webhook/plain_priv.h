/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers of the probes and of the metrics: text for people and scrapers. */
#ifndef STW_WEBHOOK_PLAIN_PRIV_H
#define STW_WEBHOOK_PLAIN_PRIV_H

#include "base/buf.h"

#include <microhttpd.h>

#define STW_PLAIN_TEXT "text/plain; charset=utf-8"
#define STW_PLAIN_METRICS "text/plain; version=0.0.4; charset=utf-8"

/* Takes the text.  `headers`: pairs of name and value, ended by NULL; or NULL. */
enum MHD_Result stw_plain_answer(struct MHD_Connection *mhd, int code, const char *type,
                                 const char *const *headers, struct stw_buf *text);

#endif
