/* SPDX-License-Identifier: Apache-2.0
 *
 * Certificates for the tests of this folder. */
#ifndef STW_TESTS_WEBHOOK_PKI_H
#define STW_TESTS_WEBHOOK_PKI_H

#include "base/clock.h"
#include "certs/issue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define DAY_US ((int64_t)86400 * 1000000)

/* A leaf for localhost, issued at `issued_us` for `days` days; the caller frees it. */
static inline struct stw_pem_pair make_pair(int64_t issued_us, uint32_t days)
{
    static const char *const names[] = {"localhost", NULL};
    static const char *const addresses[] = {"127.0.0.1", NULL};
    struct stw_pem_pair ca = {0}, leaf = {0};
    struct stw_error err = {0};
    if (stw_issue_ca("test", issued_us, 3650, &ca, &err) != 0 ||
        stw_issue_leaf(&ca, names, addresses, issued_us, days, &leaf, &err) != 0)
        fail_msg("%s", err.text);
    stw_pem_pair_done(&ca);
    return leaf;
}

#endif
