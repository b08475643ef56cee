/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantities: the canonical form has the same value and is its own canonical form. */
#include "base/util.h"
#include "schema/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[128];
    stw_quantity q, again;
    stw_autobuf struct stw_buf once = STW_BUF_INIT(1024);
    stw_autobuf struct stw_buf twice = STW_BUF_INIT(1024);
    if (size >= sizeof(text))
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (stw_quantity_parse(text, &q) != 0)
        return 0;
    if (stw_quantity_canonical(text, &once) != 0)
        abort();
    if (stw_quantity_parse(stw_buf_str(&once), &again) != 0 || q != again)
        abort();
    if (stw_quantity_canonical(stw_buf_str(&once), &twice) != 0 ||
        !stw_streq(stw_buf_str(&once), stw_buf_str(&twice)))
        abort();
    return 0;
}
