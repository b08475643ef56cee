/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/names.h"

#include "support/judge.h"

#define A63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define H64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_dns_labels_are_validated(void **state)
{
    static const struct {
        const char *name;
        bool dns1035, dns1123, subdomain;
    } cases[] = {
        {"web", true, true, true},
        {"w", true, true, true},
        {"web-1", true, true, true},
        {"1web", false, true, true}, /* a digit first */
        {"", false, false, false},
        {"-web", false, false, false},
        {"web-", false, false, false},
        {"Web", false, false, false},
        {"we_b", false, false, false},
        {"we\xc3\xa4", false, false, false},
        {"a.b", false, false, true},
        {"a..b", false, false, false},
        {".a", false, false, false},
        {"a.", false, false, false},
        {"a-.b", false, false, false},
        {"a.-b", false, false, false},
        {"a.b-c.d", false, false, true},
        {A63, true, true, true},
        {A63 "a", false, false, true}, /* parts of a subdomain may be longer */
        {A63 "." A63 "." A63 "."
             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         false, false, true}, /* 253 */
        {A63 "." A63 "." A63 "." A63, false, false, false},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        if (stw_is_dns1035_label(cases[i].name) != cases[i].dns1035 ||
            stw_is_dns1123_label(cases[i].name) != cases[i].dns1123 ||
            stw_is_dns1123_subdomain(cases[i].name) != cases[i].subdomain)
            fail_msg("\"%s\"", cases[i].name);
        assert_int_equal(stw_check_dns1123_subdomain(cases[i].name) == NULL, cases[i].subdomain);
    }
}

static void test_image_names_are_validated(void **state)
{
    static const struct {
        const char *image;
        bool valid, floats;
        const char *tag;
    } cases[] = {
        {"nginx", true, true, ""},
        {"nginx:latest", true, true, "latest"},
        {"nginx:1.22", true, false, "1.22"},
        {"nginx@sha256:" H64, true, false, ""},
        {"nginx:latest@sha256:" H64, true, false, "latest"}, /* the digest decides */
        {"library/nginx:1", true, false, "1"},
        {"localhost/nginx", true, true, ""},
        {"localhost:5000/nginx", true, true, ""},
        {"registry.example.com:5000/a/b-c/d_e.f:v1.2-rc_3", true, false, "v1.2-rc_3"},
        {"[2001:db8::1]:5000/nginx:1", true, false, "1"},
        {"[::1]/nginx", true, true, ""},
        {"Registry/nginx", true, true, ""}, /* capitals make it a host */
        {"a__b", true, true, ""},
        {"a---b", true, true, ""},
        {"192.168.0.1/x", true, true, ""},
        {"nginx@sha512:" H64 H64, true, false, ""},
        {"", false, true, ""},
        {"Nginx", false, true, ""},
        {"host/Nginx", false, true, ""},
        {"nginx:", false, false, ""},
        {"nginx:-a", false, false, "-a"},
        {"nginx: 1", false, false, " 1"},
        {" nginx", false, true, ""},
        {"nginx ", false, true, ""},
        {"nginx\n", false, true, ""},
        {"/nginx", false, true, ""},
        {"nginx/", false, true, ""},
        {"a//b", false, true, ""},
        {"a..b", false, true, ""},
        {"a___b", false, true, ""},
        {"a-_b", false, true, ""},
        {"-a", false, true, ""},
        {"a-", false, true, ""},
        {"http://nginx", false, true, ""},
        {"host:port/nginx", false, true, ""},
        {"host:/nginx", false, true, ""},
        {"ho_st.x/nginx", false, true, ""},
        {"[::1/nginx", false, true, ""},
        {"[]/nginx", false, true, ""},
        {"[::1]:/nginx", false, true, ""},
        {"nginx@sha256:123", false, false, ""},
        {"nginx@sha256:" H64 "0", false, false, ""},
        {"nginx@md5:" H64, false, false, ""},
        {"nginx@", false, false, ""},
        {"nginx@sha256", false, false, ""},
        {"@sha256:" H64, false, false, ""},
        {H64, false, true, ""}, /* an image ID is not a name */
        {H64 ":1", true, false, "1"},
        {"nginx:" H64 H64, true, false, H64 H64},
        {"nginx:" H64 H64 "x", false, false, H64 H64 "x"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        char tag[256];
        stw_image_tag(cases[i].image, tag, sizeof(tag));
        if (stw_is_image(cases[i].image) != cases[i].valid ||
            stw_image_floats(cases[i].image) != cases[i].floats)
            fail_msg("\"%s\"", cases[i].image);
        assert_string_equal(tag, cases[i].tag);
    }
}

static void test_long_image_names_are_refused(void **state)
{
    char image[1100];
    (void)state;
    memset(image, 'a', sizeof(image));
    image[247] = '\0'; /* runtimes write "library/" before it */
    assert_true(stw_is_image(image));
    image[247] = 'a';
    image[248] = '\0';
    assert_false(stw_is_image(image));
    image[248] = 'a';
    image[100] = '/';
    image[255] = '\0';
    assert_true(stw_is_image(image));
    image[255] = 'a';
    image[256] = '\0';
    assert_false(stw_is_image(image));
    image[256] = 'a';
    image[1099] = '\0';
    assert_false(stw_is_image(image));
    char tag[4];
    stw_image_tag("nginx:12345", tag, sizeof(tag));
    assert_string_equal(tag, "123");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dns_labels_are_validated),
        cmocka_unit_test(test_image_names_are_validated),
        cmocka_unit_test(test_long_image_names_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
