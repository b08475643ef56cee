/* SPDX-License-Identifier: Apache-2.0
 *
 * Which events are sent for which records, with a fake clock. */
#include "base/util.h"
#include "fake.h"
#include "kube/events.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

static _Atomic uint64_t now_ms;

static uint64_t get_ms(void *ctx)
{
    (void)ctx;
    return atomic_load(&now_ms);
}

static int64_t get_us(void *ctx)
{
    (void)ctx;
    return (int64_t)atomic_load(&now_ms) * 1000;
}

static const struct stw_clock clock_of_test = {NULL, get_ms, get_us};

static int set_up(void **state)
{
    atomic_store(&now_ms, 1000000);
    (void)fake_set_up(state);
    fake_steps(&fake, "[{'match':'/events','times':0,'status':201}]");
    return 0;
}

static struct stw_events *create(void)
{
    struct stw_events *e = NULL;
    struct stw_error err;
    assert_int_equal(stw_events_create(fake.client, &clock_of_test, "steward-test", &e, &err), 0);
    return e;
}

/* Waits for `want` requests with `part`; what was submitted before them is in the log then, too. */
static void sent(const char *part, unsigned want)
{
    wait_until(fake_count(&fake, part) >= want);
    assert_int_equal(fake_count(&fake, part), want);
}

static void test_event_has_its_members(void **state)
{
    struct stw_events *e = create();
    struct stw_event_object o = {&stw_res_configmap, "ns", "one", "uid-1", "77"},
                            wide = {&stw_res_namespace, NULL, "wide", NULL, NULL};
    (void)state;
    stw_events_record(e, &o, true, "BadDay", "Update", "a \"note\"");
    sent("POST /apis/events.k8s.io/v1/namespaces/ns/events {\"apiVersion\":\"events.k8s.io/v1\"",
         1);
    sent("\"eventTime\":\"1970-01-01T00:16:40.000000Z\",\"type\":\"Warning\",\"reason\":\"BadDay\","
         "\"action\":\"Update\",\"note\":\"a "
         "\\\"note\\\"\",\"reportingController\":\"steward-test\"",
         1);
    sent("\"regarding\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"namespace\":\"ns\","
         "\"name\":\"one\",\"uid\":\"uid-1\",\"resourceVersion\":\"77\"}",
         1);
    stw_events_record(e, &wide, false, "Seen", "Look", "x");
    sent("/namespaces/default/events {", 1);
    stw_events_destroy(e);
}

static void test_repeated_event_becomes_a_series(void **state)
{
    struct stw_events *e = create();
    struct stw_event_object o = {&stw_res_configmap, "series", "two", "u", NULL};
    (void)state;
    for (int i = 0; i < 5; i++)
        stw_events_record(e, &o, false, "Again", "Try", "the same");
    sent("POST /apis/events.k8s.io/v1/namespaces/series", 1);
    assert_int_equal(fake_count(&fake, "PATCH /apis/events.k8s.io/v1/namespaces/series"), 0);
    atomic_fetch_add(&now_ms, 31000);
    stw_events_record(e, &o, false, "Again", "Try", "the same");
    sent("PATCH /apis/events.k8s.io/v1/namespaces/series/events/two.", 1);
    sent("{\"series\":{\"count\":6,\"lastObservedTime\":", 1);
    stw_events_record(e, &o, false, "Again", "Try", "another");
    sent("POST /apis/events.k8s.io/v1/namespaces/series", 2);
    /* repeats that were not written yet are written at the end */
    stw_events_record(e, &o, false, "Again", "Try", "the same");
    stw_events_destroy(e);
    sent("{\"series\":{\"count\":7,", 1);
    /* much later it is a new event */
    e = create();
    stw_events_record(e, &o, false, "Again", "Try", "the same");
    sent("POST /apis/events.k8s.io/v1/namespaces/series", 3);
    atomic_fetch_add(&now_ms, 7 * 60 * 1000);
    stw_events_record(e, &o, false, "Again", "Try", "the same");
    sent("POST /apis/events.k8s.io/v1/namespaces/series", 4);
    stw_events_destroy(e);
}

static void test_flood_of_events_is_limited(void **state)
{
    struct stw_events *e = create();
    struct stw_event_object o = {&stw_res_configmap, "flood", "three", "u", NULL},
                            other = {&stw_res_configmap, "flood-other", "four", "u", NULL};
    char note[64];
    (void)state;
    for (int i = 0; i < 100; i++) {
        (void)snprintf(note, sizeof(note), "note %d", i);
        stw_events_record(e, &o, false, "Flood", "Run", note);
    }
    stw_events_record(e, &other, false, "Flood", "Run", "mine");
    sent("/namespaces/flood-other/", 1);
    sent("/namespaces/flood/", 25);
    atomic_fetch_add(&now_ms, 10 * 60 * 1000);
    for (int i = 200; i < 210; i++) {
        (void)snprintf(note, sizeof(note), "note %d", i);
        stw_events_record(e, &o, false, "Flood", "Run", note);
    }
    sent("/namespaces/flood/", 27);
    stw_events_destroy(e);
}

/* Far more objects than are remembered: memory stays bounded (for ASan). */
static void test_events_of_many_objects_use_bounded_memory(void **state)
{
    struct stw_events *e = create();
    char name[300];
    (void)state;
    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "%0250d", i);
        stw_events_record(e,
                          &(struct stw_event_object){&stw_res_configmap, "many", name, "u", NULL},
                          i % 2, "Many", "Run", "x");
    }
    stw_events_destroy(e);
}

/* An event that was dropped because the queue was full is sent when it is recorded again, and does
 * not count as a repeat. */
static void test_dropped_event_is_no_series(void **state)
{
    static char body[256 << 10];
    struct stw_events *e = create();
    struct stw_event_object o = {&stw_res_configmap, "dropped", "six", "u", NULL};
    struct stw_request fill = {.method = "POST", .path = "/fill", .body = body};
    (void)state;
    memset(body, '1', sizeof(body));
    fake_steps(&fake, "[{'match':'/fill','stream':[{'wait':'fill'}],'times':4},"
                      "{'match':'/fill','times':0},{'match':'/events','times':0,'status':201}]");
    for (fill.body_len = sizeof(body); fill.body_len > 0; fill.body_len /= 16)
        while (stw_client_submit(fake.client, &fill))
            ;
    stw_events_record(e, &o, false, "Late", "Try", "the same");
    fake_go(&fake, "fill");
    fill.body_len = sizeof(body);
    wait_until(stw_client_submit(fake.client, &fill)); /* there is space again */
    assert_int_equal(fake_count(&fake, "/namespaces/dropped/"), 0);
    stw_events_record(e, &o, false, "Late", "Try", "the same");
    sent("POST /apis/events.k8s.io/v1/namespaces/dropped/events", 1);
    stw_events_destroy(e);
}

static void test_long_event_note_is_truncated(void **state)
{
    struct stw_events *e = create();
    struct stw_event_object o = {&stw_res_configmap, "long", "five", "u", NULL};
    char note[1200], want[1200];
    (void)state;
    memset(note, 'x', 1023);
    (void)snprintf(note + 1023, sizeof(note) - 1023, "\xc3\xa9 and more");
    (void)snprintf(want, sizeof(want), "%.1023s\",\"reporting", note);
    stw_events_record(e, &o, false, "Long", "Run", note);
    memcpy(want + 1023, "\",\"reporting", 13);
    sent(want, 1);
    stw_events_destroy(e);
}

static void test_event_note_has_no_control_characters(void **state)
{
    struct stw_events *e = create();
    struct stw_event_object o = {&stw_res_configmap, "shown", "five", "u", NULL};
    (void)state;
    stw_events_record(e, &o, true, "Bad", "Run", "key \x1b[2J\n\xe2\x80\xae");
    sent("\"note\":\"key \\\\x1b[2J\\\\n\\\\u202e\",", 1);
    stw_events_destroy(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_has_its_members),
        cmocka_unit_test(test_repeated_event_becomes_a_series),
        cmocka_unit_test(test_flood_of_events_is_limited),

        cmocka_unit_test(test_event_note_has_no_control_characters),
        cmocka_unit_test(test_long_event_note_is_truncated),
        cmocka_unit_test(test_events_of_many_objects_use_bounded_memory),
        cmocka_unit_test(test_dropped_event_is_no_series),
    };
    return cmocka_run_group_tests(tests, set_up, fake_tear_down);
}
