/* SPDX-License-Identifier: Apache-2.0
 *
 * Lookups of hosts: addresses, names, unknown names, and name servers that do not respond. */
#include "sql/target/resolve.h"

#include "base/clock.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

static atomic_int asked, silent;

static int none(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    (void)host;
    (void)service;
    (void)hints;
    (void)ret;
    asked++;
    return EAI_NONAME;
}

/* Blocks until the test releases it. */
static int hangs(const char *host, const char *service, const struct addrinfo *hints,
                 struct addrinfo **ret)
{
    asked++;
    while (silent)
        (void)usleep(1000);
    return none(host, service, hints, ret);
}

static void test_numeric_addresses_need_no_lookup(void **state)
{
    static const char *const rows[] = {"127.0.0.1", "10.0.0.255", "::1", "2001:db8::7"};
    (void)state;
    asked = 0;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_addresses a = {0};
        struct stw_error err = {0};
        assert_int_equal(stw_resolve_by(none, rows[i], 0, &a, &err), 0);
        assert_int_equal(a.count, 1);
        assert_string_equal(a.text[0], rows[i]);
    }
    assert_int_equal(asked, 0);
}

static void test_host_names_are_resolved(void **state)
{
    struct stw_addresses a = {0};
    struct stw_error err = {0};
    bool loopback = false;
    (void)state;
    assert_int_equal(stw_resolve("localhost", 10000, &a, &err), 0);
    for (size_t i = 0; i < a.count; i++)
        loopback |= stw_streq(a.text[i], "127.0.0.1") || stw_streq(a.text[i], "::1");
    assert_true(loopback);
    a = (struct stw_addresses){0};
    assert_int_equal(stw_resolve_by(none, "db.example", 10000, &a, &err), -1);
    assert_int_equal(err.code, STW_ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "cannot find the host: "));
    assert_int_equal(a.count, 0);
}

/* No caller waits longer than its timeout.  The number of abandoned lookups is limited, and goes
 * down when they end. */
static void test_silent_lookups_time_out_and_are_limited(void **state)
{
    struct stw_addresses a = {0};
    struct stw_error err = {0};
    (void)state;
    silent = 1;
    uint64_t begin = stw_now_ms(&stw_clock_system);
    for (int i = 0; i < STW_LOOKUPS_MAX; i++) {
        assert_int_equal(stw_resolve_by(hangs, "db.example", 5, &a, &err), -1);
        assert_int_equal(err.code, STW_ERR_TIMEOUT);
    }
    assert_int_equal(stw_resolve_by(hangs, "db.example", 5, &a, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    assert_non_null(strstr(err.text, "earlier lookups have no answer yet"));
    assert_true(stw_now_ms(&stw_clock_system) - begin < 9000);
    silent = 0;
    begin = stw_now_ms(&stw_clock_system);
    while (stw_resolve_by(none, "db.example", 10000, &a, &err) == 0 ||
           err.code != STW_ERR_NOT_FOUND)
        assert_true(stw_now_ms(&stw_clock_system) - begin < 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numeric_addresses_need_no_lookup),
        cmocka_unit_test(test_host_names_are_resolved),
        cmocka_unit_test(test_silent_lookups_time_out_and_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
