/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/framing_priv.h"

#include "base/util.h"
#include "webhook/plain_priv.h"

#include <strings.h>

struct head {
    unsigned lengths, codings, hosts;
    bool bad_length, bad_coding;
};

static enum MHD_Result count_header(void *cls, enum MHD_ValueKind kind, const char *name,
                                    const char *value)
{
    struct head *h = cls;
    int64_t length;
    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0) {
        h->hosts++;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        h->lengths++;
        h->bad_length |= !value || strspn(value, "0123456789") != strlen(value) ||
                         stw_parse_int(value, 0, INT64_MAX, &length) != 0;
    } else if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        h->codings++;
        h->bad_coding |= !value || strcasecmp(value, "chunked") != 0;
    }
    return MHD_YES;
}

bool stw_framing_is_clear(struct MHD_Connection *mhd, const char *version)
{
    struct head h = {0};
    (void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, count_header, &h);
    bool first = stw_streq(version, MHD_HTTP_VERSION_1_1);
    return h.hosts <= 1 && h.lengths + h.codings <= 1 && !h.bad_length && !h.bad_coding &&
           (first ? h.hosts == 1 : h.codings == 0);
}

enum MHD_Result stw_framing_refuse_plain(struct MHD_Connection *mhd)
{
    static const char *const last[] = {MHD_HTTP_HEADER_CONNECTION, "close", NULL};
    struct stw_buf text = STW_BUF_INIT(512);
    stw_buf_adds(&text, STW_FRAMING_MESSAGE "\n");
    return stw_plain_answer(mhd, 400, STW_PLAIN_TEXT, last, &text);
}
