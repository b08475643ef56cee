/* SPDX-License-Identifier: Apache-2.0
 *
 * The ClientHello of any client, whole and cut: no read is beyond its end. */
#include "base/util.h"
#include "webhook/tls_alert_priv.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t len = size; len > 0; len /= 2) {
        stw_autofree uint8_t *copy = malloc(len); /* of exactly this size, for the sanitizer */
        if (!copy)
            return 0;
        memcpy(copy, data, len);
        (void)stw_tls_offers_version(copy, len);
    }
    return 0;
}
