/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether the end of a request is beyond doubt (RFC 9112, 3.2 and 6.3). A proxy in front may read
 * an unclear one differently, and then take the rest for the next request. */
#ifndef STW_WEBHOOK_FRAMING_PRIV_H
#define STW_WEBHOOK_FRAMING_PRIV_H

#include <microhttpd.h>
#include <stdbool.h>

#define STW_FRAMING_MESSAGE                                                                        \
    "a request must come with one Host, and its body with one Content-Length or one "              \
    "Transfer-Encoding: chunked, not both"

/* Of the head of a request; `version` as in "HTTP/1.1". */
bool stw_framing_is_clear(struct MHD_Connection *mhd, const char *version);
/* A 400 that closes the connection. Before the body is read, or what follows would be a request. */
enum MHD_Result stw_framing_refuse_plain(struct MHD_Connection *mhd);

#endif
