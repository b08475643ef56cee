/* SPDX-License-Identifier: Apache-2.0
 *
 * What a mounted folder or a Secret may hold: any bytes as certificate, as key, and as bundle. */
#include "certs/issue.h"

#include "base/buf.h"
#include "base/util.h"
#include "certs/content_priv.h"
#include "certs/steps_priv.h"

#include <assert.h>

#define INPUT_MAX_BYTES 16384
#define NOW ((int64_t)1700000000 * 1000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const dns[] = {"steward.ns.svc", NULL};
static const char *const ips[] = {"127.0.0.1", NULL};

/* The same text in every slot: the facts must be consistent. */
static void examine(const char *text)
{
    static const struct stw_rotation_config config = {.ns = "ns",
                                                      .secret = "name",
                                                      .dns_names = dns,
                                                      .ip_addresses = ips,
                                                      .ca_days = 10,
                                                      .leaf_days = 1};
    struct stw_buf stw_autobuf bundle = STW_BUF_INIT(STW_BUNDLE_MAX_BYTES);
    struct stw_content c = {.exists = true};
    struct stw_rotation_facts facts;
    for (unsigned i = 0; i < STW_SLOTS; i++)
        stw_content_set(&c, (enum stw_slot)i, strdup(text));
    stw_rotation_examine(&c, &config, NOW, &facts, &bundle);
    assert(!facts.ca.key || facts.ca.cert);
    assert(!facts.leaf.by_ca || facts.leaf.pair);
    stw_content_done(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct stw_cert_info info;
    struct stw_error err;
    if (size > INPUT_MAX_BYTES)
        return 0;
    stw_autofree char *text = strndup((const char *)data, size);
    if (!text)
        return 0;
    int rc = stw_cert_info(text, &info, &err);
    assert(rc == 0 || err.text[0]);
    rc = stw_pair_check(text, text, NOW, &err);
    assert(rc == 0 || err.text[0]);
    (void)stw_cert_covers(text, dns, ips);
    (void)stw_cert_signed_by(text, text);
    examine(text);
    return 0;
}
