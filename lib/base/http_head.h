/* SPDX-License-Identifier: Apache-2.0
 *
 * A limit on what a server sends besides the body of an answer.  libcurl keeps each line of heads, of
 * interim responses and of trailers in memory until the next request.  It limits the bytes of heads,
 * but not the memory of short lines, and trailers not at all. */
#ifndef STW_BASE_HTTP_HEAD_H
#define STW_BASE_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#define STW_HTTP_HEAD_MAX ((size_t)64 << 10)
#define STW_HTTP_HEAD_LINE_COST ((size_t)128) /* what libcurl keeps besides its text */
#define STW_HTTP_HEAD_TOO_LARGE "the head or the trailers of the answer are too large"

/* Zero before each transfer. */
struct stw_http_head {
    size_t cost;
};

/* For CURLOPT_HEADERFUNCTION.  False: end the transfer. */
static inline bool stw_http_head_take(struct stw_http_head *h, size_t len)
{
    h->cost += len + STW_HTTP_HEAD_LINE_COST;
    return h->cost <= STW_HTTP_HEAD_MAX;
}

#endif
