/* SPDX-License-Identifier: Apache-2.0
 *
 * References of images, the list of registries, and what registries answer. */
#include "registry/registry_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_image_references_are_parsed(void **state)
{
    static const struct {
        const char *text, *said; /* DOMAIN PATH TAG; NULL: refused */
    } rows[] = {
        {"nginx", " nginx latest"},
        {"nginx:1.22", " nginx 1.22"},
        {"team/app", " team/app latest"},
        {"r.example.com/app", "r.example.com app latest"},
        {"r.example.com/a/b-c/d__e.f:V_1.2-x", "r.example.com a/b-c/d__e.f V_1.2-x"},
        {"r.example.com:5000/app:1", "r.example.com:5000 app 1"},
        {"host:5000/app", "host:5000 app latest"},
        {"localhost/app", "localhost app latest"},
        {"localhost5/app", " localhost5/app latest"},
        {"Host/app", "Host app latest"},
        {"127.0.0.1:5000/app", "127.0.0.1:5000 app latest"},
        {"[::1]:5000/app", "[::1]:5000 app latest"},
        {"[fd00::1]/app", "[fd00::1] app latest"},
        {"nginx@sha256:" HEX64, " nginx latest pinned"},
        {"r.example.com/app:1@sha256:" HEX64, "r.example.com app 1 pinned"},
        {"", NULL},
        {"/app", NULL},
        {"app/", NULL},
        {"a//b", NULL},
        {"a/../b", NULL},
        {"r.example.com/../../v2/x", NULL},
        {"r.example.com/a..b", NULL},
        {"r.example.com/App", NULL},
        {"App", NULL},
        {"app:", NULL},
        {"app:.x", NULL},
        {"app:a/b", NULL},
        {"app:a:b", NULL},
        {"app:a b", NULL},
        {"app?x", NULL},
        {"app:1?x", NULL},
        {"app#x", NULL},
        {"app%2f", NULL},
        {"http://r.example.com/app", NULL},
        {"user@r.example.com/app", NULL},
        {"user:pw@r.example.com/app", NULL},
        {"r.example.com:x/app", NULL},
        {"-r.example.com/app", NULL},
        {"r..example.com/app", NULL},
        {"r.example.com\r\nX: y/app", NULL},
        {"[::1/app", NULL},
        {"[::1]x/app", NULL},
        {"app@", NULL},
        {"app@sha256:short", NULL},
        {"app@sha256:" HEX64 "@x", NULL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_image image;
        char said[1024];
        int rc = stw_image_parse(rows[i].text, &image);
        if ((rc == 0) != (rows[i].said != NULL))
            fail_msg("%s: %d", rows[i].text, rc);
        if (rc != 0)
            continue;
        (void)snprintf(said, sizeof(said), "%s %s %s%s", image.domain, image.path, image.tag,
                       image.pinned ? " pinned" : "");
        assert_string_equal(said, rows[i].said);
    }
}

static void test_long_image_references_are_refused(void **state)
{
    char text[2000] = "r.example.com/";
    struct stw_image image;
    size_t at = strlen(text);
    (void)state;
    memset(text + at, 'a', 255 - at);
    assert_int_equal(stw_image_parse(text, &image), 0);
    text[255] = 'a';
    assert_int_equal(stw_image_parse(text, &image), -1);
    memset(text + at, 'a', sizeof(text) - 1 - at);
    assert_int_equal(stw_image_parse(text, &image), -1);
    (void)snprintf(text, sizeof(text), "app:%0128d", 1);
    assert_int_equal(stw_image_parse(text, &image), 0);
    (void)snprintf(text, sizeof(text), "app:%0129d", 1);
    assert_int_equal(stw_image_parse(text, &image), -1);
}

static void test_digests_are_recognised(void **state)
{
    (void)state;
    assert_true(stw_image_is_digest("sha256:" HEX64, 71));
    assert_true(stw_image_is_digest("sha256:" HEX64 "\r\n", 71));
    assert_false(stw_image_is_digest("sha256:" HEX64, 70));
    assert_false(stw_image_is_digest("sha256:" HEX64 "0", 72));
    assert_false(stw_image_is_digest("sha512:" HEX64, 71));
    assert_false(stw_image_is_digest("sha256:A123456789abcdef0123456789abcdef0123456789abcdef"
                                     "0123456789abcdef",
                                     71));
    assert_false(stw_image_is_digest("", 0));
}

/* --- the list */

static struct stw_registries *list(const char *text)
{
    struct stw_registries *r = NULL;
    struct stw_error err = {0};
    if (stw_registries_create(text, &r, &err) != 0)
        fail_msg("%s: %s", text, err.text);
    return r;
}

static void assert_found(struct stw_registries *r, const char *image, const char *wanted)
{
    struct stw_image_tag tag;
    char said[1024] = "";
    if (stw_registries_find(r, image, &tag))
        (void)snprintf(said, sizeof(said), "%s/%s:%s", tag.registry->origin, tag.path, tag.tag);
    assert_string_equal(said, wanted);
}

static void test_images_map_to_listed_registries(void **state)
{
    (void)state;
    struct stw_registries *r = list("r.example.com,http://10.0.0.1:5000,default=hub.example.com,"
                                    "io.example.com=hub.example.com,m.example.com=http://n:80");
    assert_found(r, "r.example.com/a:1", "https://r.example.com/a:1");
    assert_found(r, "R.Example.COM/a:1", "https://r.example.com/a:1");
    assert_found(r, "10.0.0.1:5000/a/b", "http://10.0.0.1:5000/a/b:latest");
    assert_found(r, "m.example.com/a", "http://n:80/a:latest");
    assert_found(r, "nginx", "https://hub.example.com/library/nginx:latest");
    assert_found(r, "team/app:2", "https://hub.example.com/team/app:2");
    assert_found(r, "io.example.com/nginx", "https://hub.example.com/library/nginx:latest");
    assert_found(r, "io.example.com/a/b", "https://hub.example.com/a/b:latest");
    /* others */
    assert_found(r, "r.example.com:443/a:1", "");
    assert_found(r, "x.r.example.com/a:1", "");
    assert_found(r, "r.example.com.evil/a:1", "");
    assert_found(r, "10.0.0.1/a", "");
    assert_found(r, "10.0.0.1:5001/a", "");
    assert_found(r, "hub.example.com/a", "");
    assert_found(r, "r.example.com/a:1@sha256:" HEX64, "");
    assert_found(r, "r.example.com/../a:1", "");
    assert_found(r, "r.example.com@evil/a:1", "");
    assert_found(r, "", "");
    stw_registries_destroy(r);
    r = list("r.example.com");
    assert_found(r, "nginx", "");
    stw_registries_destroy(r);
    r = list("");
    assert_found(r, "nginx", "");
    assert_found(r, "r.example.com/a", "");
    stw_registries_destroy(r);
    assert_found(NULL, "nginx", "");
}

static void test_invalid_registry_lists_are_refused(void **state)
{
    static const char *const rows[] = {
        "*",
        "*.example.com",
        "r.example.com,",
        ",r.example.com",
        "r.example.com,r.example.com",
        "r.example.com,R.example.com",
        "default=a.b,default=c.d",
        "default=",
        "default",
        "host",
        "=r.example.com",
        "r.example.com=",
        "a=r.example.com",
        "ftp://r.example.com",
        "r.example.com/path",
        "r.example.com:0",
        "r.example.com:99999",
        "user@r.example.com",
        "a.b=c.d=e.f",
        " r.example.com",
        "http://http://r.example.com",
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_registries *r = NULL;
        struct stw_error err = {0};
        if (stw_registries_create(rows[i], &r, &err) == 0)
            fail_msg("%s", rows[i]);
        assert_int_equal(err.code, STW_ERR_INVALID);
    }
}

/* --- challenges and tokens */

static void test_token_challenges_are_parsed(void **state)
{
    static const struct {
        const char *text, *realm, *service; /* realm NULL: refused */
    } rows[] = {
        {"Bearer realm=\"https://a/t\",service=\"s\",scope=\"x\"", "https://a/t", "s"},
        {"bearer service=s , realm=https://a/t", "https://a/t", "s"},
        {"Bearer realm=\"https://a/t\"", "https://a/t", ""},
        {"Bearer realm=\"a\\\"b\"", "a\"b", ""},
        {"Bearer realm=\"https://a/t\", Basic realm=\"b\"", "https://a/t", ""},
        {"Basic realm=\"r\"", NULL, NULL},
        {"Bearer", NULL, NULL},
        {"Bearer ", NULL, NULL},
        {"Bearer service=\"s\"", NULL, NULL},
        {"Bearer realm=\"open", NULL, NULL},
        {"Bearer realm=\"a\x01\"", NULL, NULL},
        {"Bearer realm=\"\xc3\xa4\"", NULL, NULL},
        {"Bearer realm=", NULL, NULL},
        {"Bearer =,=,\"", NULL, NULL},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct registry_challenge c;
        int rc = registry_challenge_parse(rows[i].text, &c);
        if ((rc == 0) != (rows[i].realm != NULL))
            fail_msg("%s: %d", rows[i].text, rc);
        if (rc != 0)
            continue;
        assert_string_equal(c.realm, rows[i].realm);
        assert_string_equal(c.service, rows[i].service);
    }
}

static void test_long_token_challenges_are_refused(void **state)
{
    char text[8000] = "Bearer realm=\"";
    struct registry_challenge c;
    size_t at = strlen(text);
    (void)state;
    memset(text + at, 'a', sizeof(text) - 2 - at);
    text[sizeof(text) - 2] = '"';
    assert_int_equal(registry_challenge_parse(text, &c), -1);
    (void)snprintf(text, sizeof(text), "Bearer realm=\"r\",service=\"%0256d\"", 1);
    assert_int_equal(registry_challenge_parse(text, &c), -1);
}

static void test_token_urls_are_built(void **state)
{
    static const struct {
        const char *realm, *service, *url; /* NULL: refused */
    } rows[] = {
        {"https://auth.example.com/t", "r",
         "https://auth.example.com/t?service=r&scope=repository"
         "%3Ateam%2Fapp%3Apull"},
        {"https://AUTH.example.com/t?x=1", "",
         "https://AUTH.example.com/t?x=1&scope=repository%3Ateam%2Fapp%3Apull"},
        {"https://auth.example.com", "a&b=c",
         "https://auth.example.com?service=a%26b%3Dc&scope=repository%3Ateam%2Fapp%3Apull"},
        {"http://plain.example.com:5000/t", "",
         "http://plain.example.com:5000/t?scope=repository%3Ateam%2Fapp%3Apull"},
        {"http://auth.example.com/t", "", NULL},
        {"https://plain.example.com:5000/t", "", NULL},
        {"https://evil.example.com/t", "", NULL},
        {"https://auth.example.com.evil/t", "", NULL},
        {"https://auth.example.com:444/t", "", NULL},
        {"https://auth.example.com@evil/t", "", NULL},
        {"https://auth.example.com\\@evil/t", "", NULL},
        {"https://user@auth.example.com/t", "", NULL},
        {"https://auth.example.com#@evil/t", "", NULL},
        {"https://auth.example.com/t#x", "", NULL},
        {"https://auth.example.com/ x", "", NULL},
        {"file:///etc/passwd", "", NULL},
        {"//auth.example.com/t", "", NULL},
        {"/t", "", NULL},
        {"", "", NULL},
    };
    (void)state;
    struct stw_registries *r = list("r.example.com,auth.example.com,http://plain.example.com:5000");
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct registry_challenge c;
        char url[REGISTRY_URL_LEN] = "";
        (void)snprintf(c.realm, sizeof(c.realm), "%s", rows[i].realm);
        (void)snprintf(c.service, sizeof(c.service), "%s", rows[i].service);
        int rc = registry_token_url(r, &c, "team/app", url);
        if ((rc == 0) != (rows[i].url != NULL))
            fail_msg("%s: %d", rows[i].realm, rc);
        assert_string_equal(url, rc == 0 ? rows[i].url : "");
    }
    stw_registries_destroy(r);
}

static void test_tokens_are_read_and_validated(void **state)
{
    static const struct {
        const char *text, *token; /* NULL: refused */
    } rows[] = {
        {"{\"token\":\"a.b-c_d~e+f/g==\",\"expires_in\":60}", "a.b-c_d~e+f/g=="},
        {"{\"access_token\":\"x\"}", "x"},
        {"{\"token\":\"\"}", NULL},
        {"{\"token\":\"a\\r\\nHost: x\"}", NULL},
        {"{\"token\":\"a b\"}", NULL},
        {"{\"token\":7}", NULL},
        {"{}", NULL},
        {"[]", NULL},
        {"", NULL},
        {"{\"token\":\"x\"", NULL},
        {"<html>", NULL},
    };
    static char token[REGISTRY_TOKEN_LEN];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        int rc = registry_token_parse(rows[i].text, strlen(rows[i].text), token);
        if ((rc == 0) != (rows[i].token != NULL))
            fail_msg("%s: %d", rows[i].text, rc);
        if (rc == 0)
            assert_string_equal(token, rows[i].token);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_image_references_are_parsed),
        cmocka_unit_test(test_long_image_references_are_refused),
        cmocka_unit_test(test_digests_are_recognised),
        cmocka_unit_test(test_images_map_to_listed_registries),
        cmocka_unit_test(test_invalid_registry_lists_are_refused),
        cmocka_unit_test(test_token_challenges_are_parsed),
        cmocka_unit_test(test_long_token_challenges_are_refused),
        cmocka_unit_test(test_token_urls_are_built),
        cmocka_unit_test(test_tokens_are_read_and_validated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
