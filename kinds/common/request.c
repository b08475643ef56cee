/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/common/request.h"

#include "base/hex.h"

static bool is_plain(const char *text)
{
    while (*text >= ' ' && *text <= '~')
        text++;
    return *text == '\0';
}

void stw_request_read(struct stw_json value, char out[STW_REQUEST_LEN])
{
    size_t len = 0;
    const char *raw = stw_json_raw(value, &len);
    out[0] = '\0';
    if (!stw_json_there(value) ||
        (stw_json_strcpy(value, out, STW_REQUEST_LEN) == 0 && is_plain(out)))
        return;
    stw_hash_format(stw_hash_bytes(raw, len), out);
}
