/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/plain_priv.h"

#include <stdlib.h>

enum MHD_Result stw_plain_answer(struct MHD_Connection *mhd, int code, const char *type,
                                 const char *const *headers, struct stw_buf *text)
{
    size_t len = text->len;
    char *data = stw_buf_take(text);
    struct MHD_Response *r =
        data ? MHD_create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE) : NULL;
    if (!r) {
        free(data);
        return MHD_NO;
    }
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    (void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    (void)MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (code == 405)
        (void)MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    for (; headers && *headers; headers += 2)
        (void)MHD_add_response_header(r, headers[0], headers[1]);
    enum MHD_Result status = MHD_queue_response(mhd, (unsigned)code, r);
    MHD_destroy_response(r);
    return status;
}
