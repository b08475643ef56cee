/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/checks_priv.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static bool fine(void *ctx, char *why, size_t size)
{
    (void)ctx, (void)why, (void)size;
    return true;
}

static bool broken(void *ctx, char *why, size_t size)
{
    (void)snprintf(why, size, "%s", (const char *)ctx);
    return false;
}

static char reason[] = "not synced:\nmywebs";
static const struct stw_probe good[] = {{"webhook", fine, NULL}, {0}};
static const struct stw_probe bad[] = {{"webhook", fine, NULL}, {"caches", broken, reason}, {0}};
static const char *const no_caches[] = {"caches", NULL};
static const char *const no_such[] = {"nothing", NULL};

static const struct {
    struct stw_check_query q;
    const struct stw_probe *probes;
    bool stopping;
    int code;
    const char *text;
} cases[] = {
    {{"readyz", NULL, false, NULL}, good, false, 200, "ok"},
    {{"readyz", NULL, true, NULL},
     good,
     false,
     200,
     "[+]ping ok\n[+]webhook ok\n[+]shutdown ok\nreadyz check passed\n"},
    {{"healthz", NULL, true, NULL}, NULL, true, 200, "[+]ping ok\nhealthz check passed\n"},
    {{"livez", NULL, false, NULL}, good, true, 200, "ok"},
    /* a failure is always verbose, and its reason one line */
    {{"readyz", NULL, false, NULL},
     bad,
     false,
     500,
     "[+]ping ok\n[+]webhook ok\n[-]caches failed: not synced: mywebs\n[+]shutdown ok\n"
     "readyz check failed\n"},
    {{"readyz", NULL, false, NULL},
     good,
     true,
     500,
     "[+]ping ok\n[+]webhook ok\n[-]shutdown failed: shutting down\nreadyz check failed\n"},
    {{"readyz", NULL, true, no_caches},
     bad,
     false,
     200,
     "[+]ping ok\n[+]webhook ok\n[+]caches excluded: ok\n[+]shutdown ok\nreadyz check passed\n"},
    {{"readyz", NULL, true, no_such},
     good,
     false,
     200,
     "[+]ping ok\n[+]webhook ok\n[+]shutdown ok\n"
     "warn: some health checks cannot be excluded: no matches for \"nothing\"\nreadyz check "
     "passed\n"},
    /* a single check */
    {{"readyz", "webhook", false, NULL}, bad, false, 200, "ok"},
    {{"readyz", "caches", false, NULL},
     bad,
     false,
     500,
     "internal server error: not synced: mywebs\n"},
    {{"readyz", "caches", false, no_caches},
     bad,
     false,
     500,
     "internal server error: not synced: mywebs\n"},
    {{"readyz", "other", false, NULL}, bad, false, 404, "there is no check \"other\" on /readyz\n"},
};

static void test_probe_texts_show_each_check(void **state)
{
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(65536);
        int code = stw_checks_run(&cases[i].q, cases[i].probes, cases[i].stopping, &out);
        if (code != cases[i].code || !stw_streq(stw_buf_str(&out), cases[i].text))
            fail_msg("row %zu: %d %s", i, code, stw_buf_str(&out));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_probe_texts_show_each_check)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
