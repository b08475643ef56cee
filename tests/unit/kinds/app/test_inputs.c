/* SPDX-License-Identifier: Apache-2.0
 *
 * Which Secrets and ConfigMaps an App reads, and when a change of them restarts its pods. */
#include "fixture.h"
#include "kinds/app/deployment.h"

#include "kinds/app/inputs.h"

/* --- names */

static void assert_names(const char *spec, const char *want)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    struct stw_inputs names = {0};
    assert_int_equal(stw_json_scan(&doc, spec, strlen(spec), NULL), 0);
    app_names_read(stw_json_root(&doc), &names);
    for (size_t i = 0; i < names.count; i++)
        stw_buf_addf(&text, "%s ", names.all[i].name);
    assert_string_equal(stw_buf_str(&text), want);
    stw_inputs_done(&names);
}

static void test_secrets_and_configmaps_are_found_wherever_a_spec_names_them(void **state)
{
    (void)state;
    assert_names("{}", "");
    assert_names("{\"config\":{\"databaseUrlSecretRef\":{\"name\":\"db\",\"key\":\"url\"}}}",
                 "secret:db ");
    assert_names("{\"env\":[{\"name\":\"A\",\"value\":\"x\"},{\"name\":\"B\",\"valueFrom\":{"
                 "\"secretKeyRef\":{\"name\":\"b\",\"key\":\"k\"}}},{\"name\":\"C\",\"valueFrom\":{"
                 "\"configMapKeyRef\":{\"name\":\"b\",\"key\":\"k\"}}}]}",
                 "configmap:b secret:b ");
    assert_names("{\"podTemplate\":{\"spec\":{\"containers\":[{\"envFrom\":[{\"secretRef\":{"
                 "\"name\":\"e\"}}]}],\"initContainers\":[{\"env\":[{\"valueFrom\":{"
                 "\"secretKeyRef\":{\"name\":\"i\"}}}]}],\"volumes\":[{\"secret\":{\"secretName\":"
                 "\"v\"}},{\"configMap\":{\"name\":\"v\"}},{\"projected\":{\"sources\":[{"
                 "\"secret\":{\"name\":\"p\"}},{\"configMap\":{\"name\":\"p\"}}]}}]}}}",
                 "configmap:p configmap:v secret:e secret:i secret:p secret:v ");
}

/* Each name once; nothing that could reach another namespace or break an index. */
static void test_names_that_reach_elsewhere_are_ignored(void **state)
{
    (void)state;
    assert_names("{\"env\":[{\"valueFrom\":{\"secretKeyRef\":{\"name\":\"a\"}}},"
                 "{\"valueFrom\":{\"secretKeyRef\":{\"name\":\"a\"}}},"
                 "{\"valueFrom\":{\"secretKeyRef\":{\"name\":\"other/a\"}}},"
                 "{\"valueFrom\":{\"secretKeyRef\":{\"name\":\"x\\nsecret:other/a\"}}},"
                 "{\"valueFrom\":{\"secretKeyRef\":{\"name\":\"\"}}},"
                 "{\"valueFrom\":{\"secretKeyRef\":{\"name\":7}}}]}",
                 "secret:a ");
}

static void test_number_of_names_is_bounded(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autobuf struct stw_buf text = STW_BUF_INIT(65536);
    struct stw_inputs names = {0};
    (void)state;
    stw_buf_adds(&text, "{\"env\":[{}");
    for (int i = 0; i < 2 * STW_INPUTS_MAX; i++)
        stw_buf_addf(&text, ",{\"valueFrom\":{\"secretKeyRef\":{\"name\":\"s%d\"}}}", i);
    stw_buf_adds(&text, "]}");
    assert_int_equal(stw_json_scan(&doc, stw_buf_str(&text), text.len, NULL), 0);
    app_names_read(stw_json_root(&doc), &names);
    assert_int_equal(names.count, STW_INPUTS_MAX);
    assert_true(names.more);
    stw_inputs_done(&names);
}

/* --- decisions */

struct world {
    struct app_spec spec;
    struct app_seen seen;
    json_t *status;
    struct app_inputs state; /* after the latest run */
    char live[STW_HASH_LEN]; /* the annotation of the pod template */
};

static void init(struct world *w)
{
    *w = (struct world){.spec = {.restart = {.enabled = true, .min_interval_s = 300}},
                        .seen = {.digest = "one", .names = "n"},
                        .status = json_object()};
}

static void set_digest(struct world *w, const char *digest)
{
    (void)snprintf(w->seen.digest, sizeof(w->seen.digest), "%s", digest);
}

/* One run, whose state goes through the status; it does not write the Deployment. */
static void decide_at(struct world *w, int64_t now)
{
    app_inputs_read(w->status, &w->state);
    if (app_inputs_is_late(&w->spec, &stw_zone_utc, now, &w->state))
        app_inputs_take_back(&w->state, w->live);
    app_inputs_decide(&w->spec, &stw_zone_utc, &w->seen, now, &w->state);
    json_decref(w->status);
    w->status = json_object();
    app_inputs_write(&w->state, w->status);
}

/* The same, and what follows once the Deployment has the annotation; true: the pods were restarted. */
static bool run_at(struct world *w, int64_t now)
{
    decide_at(w, now);
    bool restarted = w->state.restarting && strcmp(w->live, w->state.applied) != 0;
    (void)snprintf(w->live, sizeof(w->live), "%s", w->state.applied);
    (void)json_object_del(json_object_get(w->status, "inputs"), "restarting");
    return restarted;
}

/* What was decided stays decided until the Deployment has it, also when it is switched off. */
static void test_decided_restart_is_made_even_if_switched_off(void **state)
{
    struct world w;
    (void)state;
    init(&w);
    assert_false(run_at(&w, 1000));
    set_digest(&w, "two");
    decide_at(&w, 2000);
    assert_true(w.state.restarting);
    decide_at(&w, 2001);
    assert_true(w.state.restarting);
    w.spec.restart.enabled = false;
    decide_at(&w, 2002);
    assert_true(w.state.restarting);
    assert_string_equal(w.state.applied, "two");
    json_decref(w.status);
}

/* Neither a new App nor an upgraded steward nor switching it on restarts anything. */
static void test_first_look_restarts_nothing(void **state)
{
    struct world w;
    (void)state;
    init(&w);
    assert_false(run_at(&w, 1000));
    assert_string_equal(w.state.applied, "");
    assert_false(run_at(&w, 5000));
    set_digest(&w, "two");
    assert_true(run_at(&w, 5001));
    assert_string_equal(w.state.applied, "two");
    assert_false(run_at(&w, 5002));
    assert_string_equal(w.state.applied, "two");
    json_decref(w.status);
}

static void test_change_while_switched_off_is_no_restart_when_switched_on(void **state)
{
    struct world w;
    (void)state;
    init(&w);
    w.spec.restart.enabled = false;
    assert_false(run_at(&w, 1000));
    assert_null(json_object_get(w.status, "inputs"));
    w.spec.restart.enabled = true;
    (void)run_at(&w, 1001);
    set_digest(&w, "two");
    assert_true(run_at(&w, 1002));
    w.spec.restart.enabled = false;
    set_digest(&w, "three");
    assert_false(run_at(&w, 9000));
    assert_string_equal(w.state.applied, "two"); /* the annotation stays */
    w.spec.restart.enabled = true;
    assert_false(run_at(&w, 9001));
    assert_string_equal(w.state.applied, "two");
    json_decref(w.status);
}

/* The spec names another Secret: its rollout already starts pods with it. */
static void test_another_secret_in_the_spec_is_no_restart_of_its_own(void **state)
{
    struct world w;
    (void)state;
    init(&w);
    (void)run_at(&w, 1000);
    (void)snprintf(w.seen.names, sizeof(w.seen.names), "m");
    set_digest(&w, "two");
    assert_false(run_at(&w, 1001));
    set_digest(&w, "three");
    assert_true(run_at(&w, 1002));
    json_decref(w.status);
}

/* New pods could not start without it. */
static void test_nothing_is_restarted_while_an_object_is_missing(void **state)
{
    struct world w;
    (void)state;
    init(&w);
    w.seen.missing = true; /* from the beginning: its creation restarts nothing */
    assert_false(run_at(&w, 1000));
    w.seen.missing = false;
    set_digest(&w, "created");
    assert_false(run_at(&w, 1001));
    w.seen.missing = true;
    set_digest(&w, "gone");
    assert_false(run_at(&w, 1002));
    w.seen.missing = false; /* created again, with other contents */
    set_digest(&w, "again");
    assert_true(run_at(&w, 1003));
    json_decref(w.status);
}

/* A ConfigMap that changes each second for a month. */
static void test_flood_of_changes_restarts_about_once_a_day(void **state)
{
    struct world w;
    int restarts = 0;
    (void)state;
    init(&w);
    (void)run_at(&w, 1000);
    for (int64_t now = 1001; now < 1001 + 30 * 86400; now += 30) {
        char digest[24];
        (void)snprintf(digest, sizeof(digest), "d%lld", (long long)now);
        set_digest(&w, digest);
        restarts += run_at(&w, now);
    }
    assert_in_range(restarts, 30, 45); /* about one a day after the first hours */
    assert_true(w.state.pending);
    assert_in_range(w.state.interval_s, 300, 86400);
    /* it calms down: the interval is short again */
    set_digest(&w, "calm");
    assert_true(run_at(&w, 1001 + 33 * 86400));
    set_digest(&w, "calm2");
    assert_true(run_at(&w, 1001 + 40 * 86400));
    assert_int_equal(w.state.interval_s, 300);
    json_decref(w.status);
}

static void test_change_within_the_interval_waits(void **state)
{
    struct world w;
    (void)state;
    init(&w);
    (void)run_at(&w, 1000);
    set_digest(&w, "two");
    assert_true(run_at(&w, 2000));
    set_digest(&w, "three");
    assert_false(run_at(&w, 2100));
    assert_true(w.state.pending);
    assert_int_equal(app_inputs_wait_ms(&w.state, 2100), 200 * 1000);
    set_digest(&w, "two"); /* it was changed back */
    assert_false(run_at(&w, 2200));
    assert_false(w.state.pending);
    assert_int_equal(app_inputs_wait_ms(&w.state, 2200), 0);
    set_digest(&w, "four");
    assert_true(run_at(&w, 2300));
    assert_int_equal(w.state.interval_s, 600);
    /* the clock is set back: it waits for one interval, not until the clock catches up */
    set_digest(&w, "five");
    assert_false(run_at(&w, 100));
    assert_true(run_at(&w, 700));
    json_decref(w.status);
}

/* `doc` becomes a view of `text`, the windows. */
static void init_windows(struct world *w, struct stw_json_doc *doc, const char *text)
{
    init(w);
    assert_int_equal(stw_json_scan(doc, text, strlen(text), NULL), 0);
    w->spec.restart.windows = stw_json_root(doc);
}

/* Saturday 1970-01-03, 12:00 */
#define SATURDAY (2 * 86400 + 12 * 3600)

static void test_change_outside_of_windows_waits_for_one(void **state)
{
    static const char text[] = "[{\"days\":[\"Sat\"],\"start\":\"13:00\",\"end\":\"14:00\"}]";
    stw_autojson struct stw_json_doc doc = {0};
    struct world w;
    (void)state;
    init_windows(&w, &doc, text);
    (void)run_at(&w, 1000);
    set_digest(&w, "two");
    assert_false(run_at(&w, SATURDAY));
    assert_true(w.state.pending);
    assert_int_equal(app_inputs_wait_ms(&w.state, SATURDAY), 60 * 1000);
    assert_true(run_at(&w, SATURDAY + 3600));
    assert_true(app_inputs_has_windows(&w.spec));
    assert_false(app_inputs_in_window(&w.spec, &stw_zone_utc, SATURDAY));
    assert_true(app_inputs_in_window(&w.spec, &stw_zone_utc, SATURDAY + 3600));
    assert_false(app_inputs_in_window(&w.spec, NULL, SATURDAY + 3600));
    w.spec.restart.enabled = false;
    assert_false(app_inputs_in_window(&w.spec, &stw_zone_utc, SATURDAY + 3600));
    w.spec.restart = (struct app_spec){.restart.enabled = true}.restart; /* always: not a window */
    assert_false(app_inputs_in_window(&w.spec, &stw_zone_utc, SATURDAY + 3600));
    w.spec.restart.windows = stw_json_root(&doc);
    set_digest(&w, "three");
    assert_false(run_at(&w, SATURDAY + 2 * 3600));
    json_decref(w.status);
}

/* It was decided, but the Deployment could not be written until the window had ended: the pods are
 * restarted once, in the next one. */
static void test_restart_that_missed_its_window_waits_for_the_next(void **state)
{
    static const char text[] =
        "[{\"days\":[\"Sat\",\"Sun\"],\"start\":\"13:00\",\"end\":\"14:00\"}]";
    static const char *const decided[] = {"two", "four"}, *const changed[] = {"three", "five"};
    stw_autojson struct stw_json_doc doc = {0};
    struct world w;
    (void)state;
    init_windows(&w, &doc, text);
    w.spec.restart.min_interval_s = 86400; /* counts from restarts that were made */
    (void)run_at(&w, 1000);
    for (int i = 0; i < 2; i++) { /* the first restart, and one after another */
        int64_t start = SATURDAY + 3600 + i * 7 * 86400;
        set_digest(&w, decided[i]);
        decide_at(&w, start + 1800);
        assert_true(w.state.restarting);
        decide_at(&w, start + 7200);
        assert_false(w.state.restarting);
        assert_true(w.state.pending);
        assert_string_equal(w.state.applied, w.live); /* the pod template stays */
        assert_int_equal(app_inputs_wait_ms(&w.state, start + 7200), 60 * 1000);
        set_digest(&w, changed[i]);
        assert_false(run_at(&w, start + 7260));
        assert_true(run_at(&w, start + 86400));
        assert_string_equal(w.live, changed[i]);
        assert_false(run_at(&w, start + 86460));
        assert_false(w.state.pending);
    }
    json_decref(w.status);
}

/* The Deployment was written, but not the status before the window had ended. */
static void test_restart_made_in_a_window_is_recorded_after_it(void **state)
{
    static const char text[] = "[{\"days\":[\"Sat\"],\"start\":\"13:00\",\"end\":\"14:00\"}]";
    stw_autojson struct stw_json_doc doc = {0};
    struct world w;
    (void)state;
    init_windows(&w, &doc, text);
    (void)run_at(&w, 1000);
    set_digest(&w, "two");
    decide_at(&w, SATURDAY + 3600);
    (void)snprintf(w.live, sizeof(w.live), "two");
    decide_at(&w, SATURDAY + 3 * 3600);
    assert_true(w.state.restarting);
    assert_string_equal(w.state.applied, "two");
    assert_false(run_at(&w, SATURDAY + 3 * 3600));
    assert_int_equal(w.state.restarted, SATURDAY + 3600);
    json_decref(w.status);
}

/* A status that another client wrote. */
static void test_invalid_status_restarts_nothing(void **state)
{
    struct world w;
    (void)state;
    init(&w);
    json_decref(w.status);
    w.status = json_loads("{\"inputs\":{\"hash\":7,\"namesHash\":\"n\",\"intervalSeconds\":"
                          "9223372036854775807,\"lastRestartTime\":\"2100-01-01T00:00:00Z\"}}",
                          0, NULL);
    assert_false(run_at(&w, 1000));
    set_digest(&w, "two");
    assert_false(run_at(&w, 1001));
    assert_true(run_at(&w, 1001 + APP_INPUTS_MOST_S));
    json_decref(w.status);
}

/* --- the pod template */

static void test_annotation_of_the_template_has_the_digest(void **state)
{
    struct fixture f;
    (void)state;
    fixture_init(&f, "{\"image\":\"web:1\",\"restartOnChange\":{\"enabled\":true}}", "");
    json_t *before = app_deployment(&f.app);
    (void)snprintf(f.app.inputs.applied, sizeof(f.app.inputs.applied), "two");
    json_t *after = app_deployment(&f.app);
    assert_false(json_equal(before, after));
    json_t *annotations = json_object_get(
        json_object_get(json_object_get(json_object_get(after, "spec"), "template"), "metadata"),
        "annotations");
    assert_string_equal(json_string_value(json_object_get(annotations, APP_INPUTS_ANNOTATION)),
                        "two");
    (void)json_object_del(annotations, APP_INPUTS_ANNOTATION);
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
    fixture_done(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secrets_and_configmaps_are_found_wherever_a_spec_names_them),
        cmocka_unit_test(test_names_that_reach_elsewhere_are_ignored),
        cmocka_unit_test(test_number_of_names_is_bounded),
        cmocka_unit_test(test_decided_restart_is_made_even_if_switched_off),
        cmocka_unit_test(test_first_look_restarts_nothing),
        cmocka_unit_test(test_change_while_switched_off_is_no_restart_when_switched_on),
        cmocka_unit_test(test_another_secret_in_the_spec_is_no_restart_of_its_own),
        cmocka_unit_test(test_nothing_is_restarted_while_an_object_is_missing),
        cmocka_unit_test(test_flood_of_changes_restarts_about_once_a_day),
        cmocka_unit_test(test_change_within_the_interval_waits),
        cmocka_unit_test(test_change_outside_of_windows_waits_for_one),
        cmocka_unit_test(test_restart_that_missed_its_window_waits_for_the_next),
        cmocka_unit_test(test_restart_made_in_a_window_is_recorded_after_it),
        cmocka_unit_test(test_invalid_status_restarts_nothing),
        cmocka_unit_test(test_annotation_of_the_template_has_the_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
