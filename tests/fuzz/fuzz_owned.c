/* SPDX-License-Identifier: Apache-2.0
 *
 * Digests and differences of any JSON: fieldsV1 comes from a server, but is walked by recursion. */
#include "kube/owned.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stw_json_doc doc = {0};
    struct stw_buf names = STW_BUF_INIT(1u << 16);
    if (size < 65536 && stw_json_scan(&doc, (const char *)data, size, NULL) == 0) {
        struct stw_json root = stw_json_root(&doc);
        struct stw_json live = stw_json_get(root, "live"), want = stw_json_get(root, "want");
        (void)stw_owned_live(live, "m", true);
        (void)stw_owned_live(root, "m", false);
        (void)stw_owned_desired(root);
        (void)stw_owned_diff(want, live, 3, &names);
        stw_buf_clear(&names);
        (void)stw_owned_leftovers(want, live, "m", &names);
        (void)stw_owned_has(live, "m", "spec.replicas");
        stw_buf_clear(&names);
        if (stw_owned_leftovers(live, live, "m", &names) != 0)
            abort(); /* an object has no leftovers compared with itself */
        stw_buf_clear(&names);
        (void)stw_owned_template(live, "m", &names);
        stw_buf_clear(&names);
        if (stw_owned_diff(root, root, 3, &names) != 0)
            abort();
    }
    stw_json_done(&doc);
    stw_buf_done(&names);
    return 0;
}
