/* SPDX-License-Identifier: Apache-2.0
 *
 * Kubeconfig text.  What is accepted must be usable: it has a server, and both halves of a client
 * certificate or neither. */
#include "kube/kubeconfig.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stw_kubeconfig *c = NULL;
    struct stw_error err = {0};
    if (size > 65536)
        return 0;
    /* Without a folder, files that it names are not read. */
    if (stw_kubeconfig_parse("fuzz", (const char *)data, size, NULL, NULL, &c, &err) < 0) {
        if (c || err.code == STW_OK || err.text[0] == '\0')
            abort();
        return 0;
    }
    if (!c->server || !c->source || !c->cert_pem != !c->key_pem)
        abort();
    stw_kubeconfig_destroy(c);
    return 0;
}
