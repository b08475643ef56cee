/* SPDX-License-Identifier: Apache-2.0
 *
 * The Secret's content as facts for the decision, and the effect of each action on it.  No I/O, no
 * clock. */
#ifndef STW_CERTS_STEPS_PRIV_H
#define STW_CERTS_STEPS_PRIV_H

#include "base/buf.h"
#include "base/operator.h"
#include "base/util.h"
#include "content_priv.h"
#include "decide_priv.h"

struct stw_rotation_config {
    const struct stw_operator *op; /* names of the CA and labels of the Secret */
    const char *ns, *secret;
    const char *const *dns_names;
    const char *const *ip_addresses;
    const char *hook_names[STW_ROTATION_HOOKS]; /* NULL or "": none */
    uint32_t ca_days, leaf_days;
    struct stw_rotation_times times;
};

/* Instead of a time in ca-old.until: STAGE found no CA, and the overlap has not begun yet. */
#define STW_UNTIL_OPEN "open"

#define STW_BUNDLE_MAX_CERTS 8
#define STW_BUNDLE_MAX_BYTES ((size_t)64 * 1024)

/* Fills all facts except the hooks; `bundle` becomes the PEM for them. */
void stw_rotation_examine(const struct stw_content *c, const struct stw_rotation_config *config,
                          int64_t now_us, struct stw_rotation_facts *facts, struct stw_buf *bundle);

/* Adds those certificates of `pem` to `bundle` that are CAs, valid now and not in it yet.  Sorted
 * by age, so that a bundle of the same CAs is the same text.  Cannot fail: what does not parse is
 * skipped, and of more than STW_BUNDLE_MAX_CERTS the newest are kept. */
void stw_bundle_add(struct stw_buf *bundle, const char *pem, int64_t now_us);

/* Changes `c` for STAGE, ISSUE, PROMOTE, STAMP or RETIRE.  For a STAGE without a CA, `found` has
 * the CAs in the configurations: another replica may be serving a leaf signed by these. */
int stw_rotation_change(struct stw_content *c, enum stw_rotation_action action,
                        const struct stw_rotation_config *config, const char *found, int64_t now_us,
                        struct stw_error *err) STW_MUST_CHECK;

#endif
