/* SPDX-License-Identifier: Apache-2.0
 *
 * A walk over pages against the scripted server. */
#include "kube/pages.h"

#include "base/process/memory_budget.h"
#include "base/util.h"
#include "fake.h"
#include "kube/api/answers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct seen {
    char names[256];
    int stop_at; /* 0: never */
    int count;
};

static int see(void *ctx, struct stw_json object)
{
    struct seen *s = ctx;
    size_t len = strlen(s->names);
    char name[64] = "?";
    (void)stw_json_strcpy(stw_json_path(object, "metadata.name"), name, sizeof(name));
    (void)snprintf(s->names + len, sizeof(s->names) - len, "%s,", name);
    return ++s->count == s->stop_at ? 7 : 0;
}

#define ITEM(name) "{'metadata':{'name':'" name "'}}"
#define TWO_PAGES                                                                                  \
    "[{'match':'limit=2$','body':{'metadata':{'continue':'x/y'},"                                  \
    "'items':[" ITEM("a") "," ITEM(                                                                \
        "b") "]}},"                                                                                \
             "{'match':'limit=2&continue=x%2Fy$','body':{'metadata':{},'items':[" ITEM("c") "]}}]"

static int walk(struct seen *seen, struct stw_error *err)
{
    struct stw_pages q = {.resource = &stw_res_service, .ns = "n", .page_size = 2};
    return stw_pages_each(fake.client, &q, see, seen, err);
}

static void test_all_pages_are_read(void **state)
{
    struct seen seen = {0};
    struct stw_error err = {0};
    (void)state;
    fake_steps(&fake, TWO_PAGES);
    assert_int_equal(walk(&seen, &err), 0);
    assert_string_equal(seen.names, "a,b,c,");
    assert_int_equal(fake_count(&fake, "GET /api/v1/namespaces/n/services?limit=2"), 2);
}

static void test_callback_ends_the_paging(void **state)
{
    struct seen seen = {.stop_at = 2};
    struct stw_error err = {0};
    (void)state;
    fake_steps(&fake, TWO_PAGES);
    assert_int_equal(walk(&seen, &err), 7);
    assert_string_equal(seen.names, "a,b,");
    assert_int_equal(fake_count(&fake, "continue"), 0);
}

static void test_missing_and_empty_lists_are_handled(void **state)
{
    struct seen seen = {0};
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(walk(&seen, &err), -1);
    assert_int_equal(err.code, STW_ERR_NOT_FOUND);
    fake_steps(&fake, "[{'match':'limit','body':{'items':null}}]");
    assert_int_equal(walk(&seen, &err), 0);
    fake_steps(&fake, "[{'match':'limit','body':'['}]");
    assert_int_equal(walk(&seen, &err), -1);
    assert_int_equal(err.code, STW_ERR_INVALID);
    assert_int_equal(seen.count, 0);
}

/* A page that is too large for the server is requested again, with half as many objects. */
static void test_oversized_page_is_halved(void **state)
{
    struct seen seen = {0};
    struct stw_error err = {0};
    (void)state;
    fake_steps(&fake, "[{'match':'limit=2$','status':413},"
                      "{'match':'limit=1$','body':{'items':[" ITEM("a") "]}}]");
    assert_int_equal(walk(&seen, &err), 0);
    assert_string_equal(seen.names, "a,");
}

/* The same for one that does not arrive in time, at most three times: the server may be silent. */
static void test_slow_page_is_halved(void **state)
{
    struct stw_pages q = {.resource = &stw_res_service, .ns = "n", .page_size = 64};
    struct seen seen = {0};
    struct stw_error err = {0};
    (void)state;
    fake_steps(&fake, "[{'match':'limit=64$','status':504},{'match':'limit=32$','status':504},"
                      "{'match':'limit=16$','body':{'items':[" ITEM("a") "]}}]");
    assert_int_equal(stw_pages_each(fake.client, &q, see, &seen, &err), 0);
    assert_string_equal(seen.names, "a,");
    fake_steps(&fake, "[{'match':'limit=','status':504,'times':0}]");
    unsigned before = fake_count(&fake, "limit=");
    assert_int_equal(stw_pages_each(fake.client, &q, see, &seen, &err), -1);
    assert_int_equal(err.code, STW_ERR_TIMEOUT);
    assert_int_equal(fake_count(&fake, "limit=") - before, 4);
}

static int note_unreadable(void *ctx, const char *key, const char *place, const char *why)
{
    (void)place;
    stw_buf_addf(ctx, "%s: %s;", key, why);
    return 0;
}

static int see_no_more(void *ctx, struct stw_json object)
{
    char name[64] = "?";
    (void)stw_json_strcpy(stw_json_path(object, "metadata.name"), name, sizeof(name));
    stw_buf_addf(ctx, "%s;", name);
    return 0;
}

/* A run lists beside many others: an object is counted while it is read, and costs only itself. */
static void test_listed_objects_are_counted_in_memory(void **state)
{
    stw_autobuf struct stw_buf seen = STW_BUF_INIT(4096);
    struct stw_error err = {0};
    struct stw_pages q = {
        .resource = &stw_res_service, .ns = "n", .page_size = 2, .unreadable = note_unreadable};
    (void)state;
    stw_memory_budget_set((uint64_t)128 << 20);
    fake_steps(
        &fake,
        "[{'match':'limit=2$','stream':[{'raw':'{\\'items\\':[{\\'metadata\\':{\\'namespace\\':"
        "\\'n\\',\\'name\\':\\'huge\\'},\\'v\\':\\''},{'repeat':'x','bytes':7000000},"
        "{'raw':'\\'},{\\'metadata\\':{\\'name\\':\\'b\\'}}]}'}]}]");
    stw_answers_begin();
    assert_int_equal(stw_pages_each(fake.client, &q, see_no_more, &seen, &err), 0);
    stw_answers_end();
    assert_string_equal(stw_buf_str(&seen), "n/huge: it has more than 1 MiB of JSON;b;");
    struct stw_share_facts f = stw_share_facts(STW_SHARE_ANSWERS);
    assert_int_equal(f.used, 0);
    assert_in_range(f.peak, 1 << 20, f.limit / 2);
    stw_memory_budget_set(0);
}

struct asked {
    unsigned objects, before_the_end;
    char names[256];
};

/* Sends a request for each object. */
static int ask_about(void *ctx, struct stw_json object)
{
    struct asked *a = ctx;
    stw_autobuf struct stw_buf text = STW_BUF_INIT(4096);
    char name[64], uid[64] = "-";
    size_t len = strlen(a->names);
    (void)stw_json_strcpy(stw_json_path(object, "metadata.name"), name, sizeof(name));
    (void)stw_json_strcpy(stw_json_path(object, "metadata.uid"), uid, sizeof(uid));
    assert_false(stw_json_there(stw_json_get(object, "spec")));
    assert_false(stw_json_there(stw_json_path(object, "metadata.labels")));
    (void)snprintf(a->names + len, sizeof(a->names) - len, "%s=%s,", name, uid);
    a->objects++;
    a->before_the_end += fake_count(&fake, "continue") == 0;
    return stw_kube_get(fake.client, &stw_res_service, "n", name, &text, NULL);
}

static void test_endless_list_is_an_error(void **state)
{
    struct seen seen = {0};
    struct stw_error err = {0};
    (void)state;
    fake_steps(&fake, "[{'match':'limit','times':150,"
                      "'body':{'metadata':{'continue':'x'},'items':[]}}]");
    assert_int_equal(walk(&seen, &err), -1);
    assert_int_equal(err.code, STW_ERR_INVALID);
    assert_string_equal(err.text, "services: the list goes on without objects");
    assert_int_equal(fake_count(&fake, "limit"), 101);
}

static void test_circular_list_is_an_error(void **state)
{
    struct seen seen = {0};
    struct stw_error err = {0};
    (void)state;
    fake_steps(&fake,
               "[{'match':'limit=[0-9]+$','body':{'metadata':{'continue':'a'},'items':[{}]}},"
               "{'match':'continue=a','times':90,"
               "'body':{'metadata':{'continue':'b'},'items':[{}]}},"
               "{'match':'continue=b','times':90,"
               "'body':{'metadata':{'continue':'c'},'items':[{}]}},"
               "{'match':'continue=c','times':90,"
               "'body':{'metadata':{'continue':'a'},'items':[{}]}}]");
    assert_int_equal(walk(&seen, &err), -1);
    assert_int_equal(err.code, STW_ERR_INVALID);
    assert_string_equal(err.text, "services: the pages of the list go round in a circle");
    assert_in_range(fake_count(&fake, "limit"), 4, 12);
}

static void test_callbacks_run_after_the_list(void **state)
{
    struct asked asked = {0};
    struct stw_error err = {0};
    struct stw_pages q = {.resource = &stw_res_service, .ns = "n", .page_size = 2};
    (void)state;
    fake_steps(&fake, "[{'match':'limit=2$','body':{'metadata':{'continue':'x'},'items':["
                      "{'metadata':{'name':'a','uid':'1','labels':{'x':'y'}},'spec':{}}," ITEM(
                          "b") "]}},"
                               "{'match':'continue=x$','body':{'items':[" ITEM(
                                   "c") "]}},"
                                        "{'match':'services/','times':0,'body':{}}]");
    assert_int_equal(stw_pages_each_after(fake.client, &q, ask_about, &asked, &err), 0);
    assert_int_equal(asked.objects, 3);
    assert_int_equal(asked.before_the_end, 0);
    assert_string_equal(asked.names, "a=1,b=-,c=-,");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_pages_are_read, fake_set_up, fake_tear_down),
        cmocka_unit_test_setup_teardown(test_callback_ends_the_paging, fake_set_up, fake_tear_down),
        cmocka_unit_test_setup_teardown(test_missing_and_empty_lists_are_handled, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_oversized_page_is_halved, fake_set_up, fake_tear_down),
        cmocka_unit_test_setup_teardown(test_slow_page_is_halved, fake_set_up, fake_tear_down),
        cmocka_unit_test_setup_teardown(test_listed_objects_are_counted_in_memory, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_circular_list_is_an_error, fake_set_up,
                                        fake_tear_down),
        cmocka_unit_test_setup_teardown(test_endless_list_is_an_error, fake_set_up, fake_tear_down),
        cmocka_unit_test_setup_teardown(test_callbacks_run_after_the_list, fake_set_up,
                                        fake_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
