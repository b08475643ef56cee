/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/listen_priv.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void test_listen_addresses_are_parsed(void **state)
{
    static const struct {
        const char *address, *host, *port; /* host NULL: refused */
    } cases[] = {
        {":9443", "", "9443"},
        {"127.0.0.1:0", "127.0.0.1", "0"},
        {"localhost:8080", "localhost", "8080"},
        {"[::1]:80", "::1", "80"},
        {"[::]:443", "::", "443"},
        {"", NULL, NULL},
        {"9443", NULL, NULL},
        {"127.0.0.1", NULL, NULL},
        {"127.0.0.1:", NULL, NULL},
        {"127.0.0.1:x", NULL, NULL},
        {":65536", NULL, NULL},
        {":-1", NULL, NULL},
        {"::1:80", NULL, NULL},
        {"[::1:80", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        char host[256], port[6];
        struct stw_error err = {0};
        int status = stw_address_split(cases[i].address, host, port, &err);
        if (!cases[i].host) {
            assert_int_equal(status, -1);
            assert_non_null(strstr(err.text, "bind address"));
            continue;
        }
        assert_int_equal(status, 0);
        assert_string_equal(host, cases[i].host);
        assert_string_equal(port, cases[i].port);
    }
}

static void test_port_in_use_is_named(void **state)
{
    stw_autoclose int first = -1;
    int second = -1;
    uint16_t port = 0, other = 0;
    char address[32];
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_listen("127.0.0.1:0", &first, &port, &err), 0);
    assert_int_not_equal(port, 0);
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port);
    assert_int_equal(stw_listen(address, &second, &other, &err), -1);
    assert_non_null(strstr(err.text, "Address already in use"));
    assert_int_equal(second, -1);
}

static void test_empty_host_listens_on_every_address(void **state)
{
    stw_autoclose int fd = -1;
    uint16_t port = 0;
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_listen(":0", &fd, &port, &err), 0);
    assert_int_not_equal(port, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listen_addresses_are_parsed),
        cmocka_unit_test(test_port_in_use_is_named),
        cmocka_unit_test(test_empty_host_listens_on_every_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
