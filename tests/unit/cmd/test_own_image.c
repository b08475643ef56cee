/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the image of the process's own pod from the scripted server. */
#include "base/util.h"
#include "cmd/own_image.h"
#include "fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define POD(containers)                                                                            \
    "[{'match':'GET /api/v1/namespaces/home/pods/p$','body':{'spec':{" containers "}}}]"
#define STATUS(code, reason)                                                                       \
    "{'match':'GET /api/v1/namespaces/home/pods/p$','status':" #code                               \
    ",'body':{'kind':'Status','code':" #code ",'reason':'" reason "','message':'" reason "'}}"

static void test_own_image_is_read_from_the_pod(void **state)
{
    static const struct {
        const char *steps, *image, *text; /* image or error */
        enum stw_err code;
    } rows[] = {
        {POD("'containers':[{'name':'manager','image':'r/steward:1'}]"), "r/steward:1", NULL,
         STW_OK},
        /* a service mesh puts its container before ours */
        {POD("'containers':[{'name':'proxy','image':'p'},{'name':'manager','image':'s@sha256:0'}]"),
         "s@sha256:0", NULL, STW_OK},
        /* another manifest may name the container differently */
        {POD("'containers':[{'name':'steward','image':'s:2'},{'name':'x','image':'x'}]"), "s:2",
         NULL, STW_OK},
        {POD("'containers':[]"), NULL, "pod home/p names no image", STW_ERR_INVALID},
        {POD("'containers':[{'name':'manager'}]"), NULL, "names no image", STW_ERR_INVALID},
        {POD("'containers':[{'name':'manager','image':7}]"), NULL, "names no image",
         STW_ERR_INVALID},
        {POD("'containers':'many'"), NULL, "names no image", STW_ERR_INVALID},
        {"[" STATUS(403, "Forbidden") "]", NULL, "Forbidden", STW_ERR_FORBIDDEN},
        {"[" STATUS(404, "NotFound") "]", NULL, "NotFound", STW_ERR_NOT_FOUND},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err = {0};
        char *image = NULL;
        fake_steps(&fake, rows[i].steps);
        int r = stw_own_image(fake.client, "home", "p", 60000, &image, &err);
        assert_int_equal(r, rows[i].image ? 0 : -1);
        if (rows[i].image) {
            assert_string_equal(image, rows[i].image);
        } else {
            assert_int_equal(err.code, rows[i].code);
            assert_non_null(strstr(err.text, rows[i].text));
        }
        free(image);
    }
}

static void test_own_image_lookup_is_retried(void **state)
{
    struct stw_error err = {0};
    char *image = NULL;
    (void)state;
    fake_steps(
        &fake,
        "[" STATUS(500, "InternalError") "," STATUS(
            500, "InternalError") ","
                                  "{'match':'GET /api/v1/namespaces/home/pods/p$','body':"
                                  "{'spec':{'containers':[{'name':'manager','image':'late'}]}}}]");
    assert_int_equal(stw_own_image(fake.client, "home", "p", 60000, &image, &err), 0);
    assert_string_equal(image, "late");
    free(image);
}

static void test_own_image_lookup_gives_up(void **state)
{
    struct stw_error err = {0};
    char *image = NULL;
    (void)state;
    fake_steps(&fake, "[" STATUS(500, "InternalError") "," STATUS(500, "never asked for") "]");
    assert_int_equal(stw_own_image(fake.client, "home", "p", 0, &image, &err), -1);
    assert_int_equal(err.code, STW_ERR_UNAVAILABLE);
    assert_null(image);
    assert_int_equal(fake_count(&fake, "GET /api/v1/namespaces/home/pods/p"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_own_image_is_read_from_the_pod, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_own_image_lookup_is_retried, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_own_image_lookup_gives_up, fake_set_up,
                                        fake_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
