/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/reach.h"

#include "base/util.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/un.h>

#include <cmocka.h>

static struct sockaddr_storage address(const char *text)
{
    struct sockaddr_storage s = {0};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        memcpy(&s, &v4, sizeof(v4));
        return s;
    }
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    memcpy(&s, &v6, sizeof(v6));
    return s;
}

static void test_addresses_are_classified(void **state)
{
    static const struct {
        const char *text;
        enum stw_address_class class;
    } all[] = {
        {"8.8.8.8", STW_ADDRESS_ORDINARY},
        {"10.0.0.1", STW_ADDRESS_ORDINARY},
        {"172.16.0.1", STW_ADDRESS_ORDINARY},
        {"192.168.1.1", STW_ADDRESS_ORDINARY},
        {"100.64.0.1", STW_ADDRESS_ORDINARY},
        {"126.255.255.255", STW_ADDRESS_ORDINARY},
        {"128.0.0.1", STW_ADDRESS_ORDINARY},
        {"0.0.0.0", STW_ADDRESS_UNSPECIFIED},
        {"0.1.2.3", STW_ADDRESS_UNSPECIFIED},
        {"0.255.255.255", STW_ADDRESS_UNSPECIFIED},
        {"127.0.0.1", STW_ADDRESS_LOOPBACK},
        {"127.255.255.254", STW_ADDRESS_LOOPBACK},
        {"169.254.169.254", STW_ADDRESS_LINK_LOCAL},
        {"169.253.255.255", STW_ADDRESS_ORDINARY},
        {"169.255.0.1", STW_ADDRESS_ORDINARY},
        {"100.100.100.200", STW_ADDRESS_METADATA},
        {"192.0.0.192", STW_ADDRESS_METADATA},
        {"168.63.129.16", STW_ADDRESS_METADATA},
        {"192.0.0.1", STW_ADDRESS_RESERVED},
        {"223.255.255.255", STW_ADDRESS_ORDINARY},
        {"224.0.0.1", STW_ADDRESS_MULTICAST},
        {"239.255.255.255", STW_ADDRESS_MULTICAST},
        {"240.0.0.1", STW_ADDRESS_RESERVED},
        {"255.255.255.255", STW_ADDRESS_RESERVED},
        {"2606:4700::1", STW_ADDRESS_ORDINARY},
        {"fd12:3456::1", STW_ADDRESS_ORDINARY},
        {"::", STW_ADDRESS_UNSPECIFIED},
        {"::1", STW_ADDRESS_LOOPBACK},
        {"fe80::1", STW_ADDRESS_LINK_LOCAL},
        {"febf::1", STW_ADDRESS_LINK_LOCAL},
        {"fec0::1", STW_ADDRESS_LINK_LOCAL},
        {"ff02::1", STW_ADDRESS_MULTICAST},
        {"fd00:ec2::254", STW_ADDRESS_METADATA},
        {"fd20:ce::254", STW_ADDRESS_METADATA},
        {"100::1", STW_ADDRESS_RESERVED},
        {"::ffff:0:127.0.0.1", STW_ADDRESS_RESERVED},
        /* an embedded IPv4 address */
        {"::ffff:127.0.0.1", STW_ADDRESS_LOOPBACK},
        {"::ffff:169.254.169.254", STW_ADDRESS_LINK_LOCAL},
        {"::ffff:0.0.0.0", STW_ADDRESS_UNSPECIFIED},
        {"::ffff:10.0.0.1", STW_ADDRESS_ORDINARY},
        {"::127.0.0.1", STW_ADDRESS_LOOPBACK},
        {"::169.254.169.254", STW_ADDRESS_LINK_LOCAL},
        {"64:ff9b::127.0.0.1", STW_ADDRESS_LOOPBACK},
        {"64:ff9b::169.254.169.254", STW_ADDRESS_LINK_LOCAL},
        {"64:ff9b::8.8.8.8", STW_ADDRESS_ORDINARY},
        {"64:ff9b:1::10.0.0.1", STW_ADDRESS_RESERVED},
        {"2002:7f00:1::", STW_ADDRESS_LOOPBACK},
        {"2002:a9fe:a9fe::1", STW_ADDRESS_LINK_LOCAL},
        {"2002:808:808::", STW_ADDRESS_ORDINARY},
        {"2001:0:1:2:3:4:80ff:fffe", STW_ADDRESS_LOOPBACK}, /* Teredo, inverted */
        {"2001:db9::5efe:127.0.0.1", STW_ADDRESS_LOOPBACK}, /* ISATAP */
        {"2001:db9::200:5efe:169.254.169.254", STW_ADDRESS_LINK_LOCAL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(all); i++) {
        struct sockaddr_storage s = address(all[i].text);
        enum stw_address_class c = stw_address_classify((const struct sockaddr *)&s);
        if (c != all[i].class)
            fail_msg("%s is %s", all[i].text, stw_address_class_name(c));
    }
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    assert_int_equal(stw_address_classify((const struct sockaddr *)&local), STW_ADDRESS_RESERVED);
}

static bool allows(const char *list, const char *text)
{
    struct stw_reach *r = NULL;
    struct stw_error err = {0};
    struct sockaddr_storage s = address(text);
    assert_int_equal(stw_reach_parse(list, &r, &err), 0);
    bool yes = stw_reach_address(r, (const struct sockaddr *)&s);
    stw_reach_destroy(r);
    return yes;
}

static void test_address_lists_allow_and_deny(void **state)
{
    (void)state;
    assert_true(allows("*", "10.1.2.3"));
    assert_false(allows("*", "127.0.0.1"));
    assert_false(allows("*", "::1"));
    assert_false(allows("", "10.1.2.3"));
    assert_false(allows("10.0.0.0/8", "11.0.0.1"));
    assert_true(allows("10.0.0.0/8", "10.255.0.1"));
    assert_true(allows("10.0.0.0/8", "::ffff:10.255.0.1"));
    assert_true(allows("*,127.0.0.0/8", "127.1.2.3"));
    assert_true(allows("*,127.0.0.1", "::ffff:127.0.0.1"));
    assert_false(allows("*,127.0.0.1", "127.0.0.2"));
    assert_false(allows("*,127.0.0.1", "64:ff9b::127.0.0.1"));
    assert_true(allows("fe80::/10", "fe80::1"));
    assert_false(allows("*,!10.96.0.1", "10.96.0.1"));
    assert_false(allows("*,!10.96.0.1", "::ffff:10.96.0.1"));
    assert_false(allows("*,!10.96.0.1", "64:ff9b::10.96.0.1"));
    assert_false(allows("10.0.0.0/8,!10.96.0.1", "10.96.0.1"));
    assert_true(allows("10.96.0.1,!10.96.0.1", "10.96.0.1"));
    assert_true(allows("*,!10.96.0.1", "10.96.0.2"));
    assert_false(allows("localhost", "127.0.0.1")); /* a host name is not an address */
    struct sockaddr_storage s = address("127.0.0.1");
    assert_true(stw_reach_address(NULL, (const struct sockaddr *)&s));
}

static void test_host_patterns_are_matched(void **state)
{
    struct stw_reach *r = NULL;
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_reach_parse("*,s3.example.com,*.minio.svc", &r, &err), 0);
    assert_true(stw_reach_host(r, "https://s3.example.com"));
    assert_true(stw_reach_host(r, "https://S3.EXAMPLE.com.:9000/"));
    assert_false(stw_reach_host(r, "https://as3.example.com"));
    assert_false(stw_reach_host(r, "https://s3.example.com.evil.org"));
    assert_false(stw_reach_host(r, "https://evil.org/s3.example.com"));
    assert_true(stw_reach_host(r, "http://a.minio.svc:9000"));
    assert_false(stw_reach_host(r, "http://minio.svc:9000"));
    assert_false(stw_reach_host(r, "http://evilminio.svc"));
    stw_reach_destroy(r);
}

static void test_malformed_address_lists_are_refused(void **state)
{
    static const char *const bad[] = {",",         "*,",    "10.0.0.0/33", "::1/129", "a b",
                                      "300.1.1.1", "!host", "!",           "http://a"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(bad); i++) {
        struct stw_reach *r = NULL;
        struct stw_error err = {0};
        int rc = stw_reach_parse(bad[i], &r, &err);
        if (stw_streq(bad[i], "*,")) { /* a trailing comma is allowed */
            assert_int_equal(rc, 0);
            stw_reach_destroy(r);
            continue;
        }
        if (rc == 0)
            fail_msg("%s was taken", bad[i]);
        assert_int_equal(err.code, STW_ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_are_classified),
        cmocka_unit_test(test_address_lists_allow_and_deny),
        cmocka_unit_test(test_host_patterns_are_matched),
        cmocka_unit_test(test_malformed_address_lists_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
