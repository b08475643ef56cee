/* SPDX-License-Identifier: Apache-2.0
 *
 * When an EtcdBackup is due, with the clock passed in; which of many backups are deleted; and the
 * names of backups. */
#include "base/tzfile.h"
#include "base/util.h"
#include "kinds/etcdbackup/plan.h"
#include "kinds/etcdbackup/state.h"
#include "schema/zones.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const int64_t t0 = 1767225600; /* 2026-01-01T00:00:00Z */

struct world {
    struct eb_clockwork c;
    struct eb_state s;
    struct eb_due due;
    struct stw_cron cron;
    struct stw_zones *zones;
};

static void begin(struct world *w, enum eb_mode mode, int64_t interval_s, const char *schedule)
{
    *w = (struct world){
        .c = {
            .mode = mode, .interval_s = interval_s, .deadline_s = 3600, .created = t0, .now = t0}};
    w->zones = stw_zones_create(stw_tz_read);
    w->c.cron = &w->cron;
    w->c.zone = stw_zones_get(w->zones, "Etc/UTC");
    if (schedule)
        assert_int_equal(stw_cron_parse(schedule, &w->cron, NULL), 0);
    eb_state_read(NULL, &w->s);
}

static void end(struct world *w)
{
    eb_state_done(&w->s);
    stw_zones_destroy(w->zones);
}

/* Writes the state to a status and reads it back, as between two runs: what is not written is
 * lost. */
static void restart(struct world *w)
{
    json_t *status = json_object();
    eb_state_write(&w->s, status);
    eb_state_done(&w->s);
    eb_state_read(status, &w->s);
    json_decref(status);
}

static bool starts(struct world *w, int64_t at)
{
    restart(w);
    w->c.now = at;
    eb_plan(&w->c, &w->s, false, &w->due);
    return w->due.start;
}

static void succeed(struct world *w)
{
    struct eb_snapshot made = {.revision = 7, .time = w->c.now, .verified = true};
    eb_state_succeed(&w->s, &made, "s3://b/k");
}

static void go_wrong(struct world *w)
{
    struct eb_snapshot failed = {.fault = EB_SNAPSHOT_STORE, .reason = "StoreFull"};
    eb_state_fail(&w->s, &failed, w->c.now);
}

static void test_single_backup_is_made_once(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_ONCE, 0, NULL);
    assert_true(starts(&w, t0));
    w.s.phase = EB_RUNNING;
    assert_true(starts(&w, t0 + 5)); /* the process that ran it is gone */
    go_wrong(&w);
    assert_false(starts(&w, t0 + 6));
    assert_true(w.due.wake == t0 + 5 + EB_BACKOFF_S);
    assert_true(starts(&w, w.due.wake));
    succeed(&w);
    assert_false(starts(&w, t0 + 100));
    assert_false(starts(&w, t0 + 1000000000)); /* never again */
    assert_true(w.due.wake == EB_NEVER);
    end(&w);
}

static void test_interval_keeps_its_rhythm(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_INTERVAL, 600, NULL);
    assert_true(starts(&w, t0));
    succeed(&w);
    assert_false(starts(&w, t0 + 599));
    assert_true(w.due.wake == t0 + 600);
    assert_true(starts(&w, t0 + 600));
    succeed(&w);
    /* Of several missed times only the newest is taken, and the rhythm is kept. */
    assert_true(starts(&w, t0 + 600 * 5 + 17));
    assert_true(w.s.last_schedule == t0 + 600 * 5);
    assert_true(w.s.next_schedule == t0 + 600 * 6);
    /* It is retried until the next one takes its place. */
    go_wrong(&w);
    assert_false(starts(&w, w.c.now + 1));
    assert_true(starts(&w, t0 + 600 * 6));
    assert_true(w.s.last_schedule == t0 + 600 * 6);
    end(&w);
}

static void test_interval_survives_a_clock_that_is_put_back(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_INTERVAL, 600, NULL);
    assert_true(starts(&w, t0 + 1000000));
    succeed(&w);
    assert_false(starts(&w, t0)); /* days earlier: does not wait for days */
    assert_true(w.due.wake == t0 + 600);
    assert_true(w.due.ahead && w.due.ahead_at == t0 + 1000000);
    assert_false(starts(&w, t0 + 1));
    assert_false(w.due.ahead); /* it is told once */
    end(&w);
}

static void test_schedule_survives_a_clock_that_was_ahead(void **state)
{
    const int64_t day = 24 * 3600, year = 365 * day;
    struct world w;
    (void)state;
    begin(&w, EB_CRON, 0, "0 4 * * *");
    assert_true(starts(&w, t0 + year + 4 * 3600));
    succeed(&w);
    assert_false(starts(&w, t0));
    assert_true(w.due.ahead && w.due.ahead_at == t0 + year + 4 * 3600);
    assert_true(w.s.next_schedule == t0 + 4 * 3600);
    assert_false(starts(&w, t0 + 1));
    assert_false(w.due.ahead);
    assert_true(starts(&w, t0 + 4 * 3600));
    succeed(&w);
    assert_false(starts(&w, t0 + 4 * 3600 - 60)); /* a minute back: no second one */
    assert_false(w.due.ahead);
    assert_false(starts(&w, t0 + 4 * 3600));
    assert_true(starts(&w, t0 + day + 4 * 3600));
    end(&w);

    begin(&w, EB_CRON, 0, "0 4 * * *"); /* by the clock of the API server */
    w.c.created = t0 + year;
    assert_false(starts(&w, t0 + 5));
    assert_true(w.due.ahead);
    assert_int_equal(w.s.phase, EB_PENDING);
    assert_true(starts(&w, t0 + 4 * 3600));
    end(&w);
}

static bool asked_starts(struct world *w, const char *request, int64_t at)
{
    stw_format(w->c.request, sizeof(w->c.request), "%s", request);
    return starts(w, at);
}

static void test_request_makes_one_backup_and_the_schedule_goes_on(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_CRON, 0, "0 4 * * *");
    assert_true(asked_starts(&w, "a", t0 + 10));
    assert_true(w.due.requested);
    assert_true(w.s.next_schedule == t0 + 4 * 3600);
    assert_string_equal(w.s.request_met, "");
    succeed(&w);
    assert_false(asked_starts(&w, "a", t0 + 1000)); /* once */
    assert_string_equal(w.s.request_met, "a");
    assert_true(asked_starts(&w, "a", t0 + 4 * 3600));
    assert_false(w.due.requested);
    succeed(&w);
    /* one that fails is tried again, and a new request does not wait for its backoff */
    assert_true(asked_starts(&w, "b", t0 + 5 * 3600));
    for (int i = 0; i < 6; i++)
        go_wrong(&w);
    assert_false(asked_starts(&w, "b", t0 + 5 * 3600 + 60));
    assert_true(asked_starts(&w, "c", t0 + 5 * 3600 + 60));
    assert_string_equal(w.s.request_met, "a");
    go_wrong(&w);
    assert_true(asked_starts(&w, "c", t0 + 28 * 3600)); /* that of the schedule serves it, too */
    succeed(&w);
    assert_string_equal(w.s.request_met, "c");
    end(&w);
    begin(&w, EB_INTERVAL, 600, NULL);
    assert_true(asked_starts(&w, "", t0));
    succeed(&w);
    assert_true(asked_starts(&w, "a", t0 + 100));
    assert_true(w.s.next_schedule == t0 + 700);
    succeed(&w);
    assert_false(asked_starts(&w, "a", t0 + 699));
    assert_true(asked_starts(&w, "a", t0 + 700));
    end(&w);
}

/* At most one a minute, however often the annotation changes; the latest value is not lost. */
static void test_requests_are_a_minute_apart(void **state)
{
    struct world w;
    char request[8];
    int made = 0;
    (void)state;
    begin(&w, EB_CRON, 0, "0 4 * * *");
    for (int i = 0; i < 600; i++) {
        (void)snprintf(request, sizeof(request), "%d", i);
        if (asked_starts(&w, request, t0 + i)) {
            succeed(&w);
            made++;
        }
    }
    assert_int_equal(made, 10);
    assert_true(w.due.wake == t0 + 600);
    assert_true(asked_starts(&w, "599", t0 + 600));
    succeed(&w);
    assert_true(asked_starts(&w, "z", t0)); /* the clock was set back */
    end(&w);
}

static void test_request_is_followed_while_suspended(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_INTERVAL, 600, NULL);
    w.c.suspend = true;
    assert_false(asked_starts(&w, "", t0));
    assert_true(asked_starts(&w, "a", t0 + 1));
    assert_true(w.s.next_schedule == EB_NEVER);
    go_wrong(&w);
    assert_false(eb_plan_suspended(&w.c, &w.s));
    assert_true(asked_starts(&w, "a", w.s.retry_at));
    succeed(&w);
    assert_true(eb_plan_suspended(&w.c, &w.s));
    assert_false(asked_starts(&w, "a", t0 + 100000));
    /* a backup of the schedule that is open when it is suspended waits, as before */
    w.c.suspend = false;
    assert_true(asked_starts(&w, "a", t0 + 200000));
    go_wrong(&w);
    w.c.suspend = true;
    assert_false(asked_starts(&w, "a", t0 + 300000));
    end(&w);
}

static void test_request_of_a_clock_that_was_ahead_is_tried_again(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_CRON, 0, "0 4 * * *");
    assert_true(asked_starts(&w, "a", t0 + 1000000));
    go_wrong(&w);
    assert_false(asked_starts(&w, "a", t0 + 999999));
    assert_true(asked_starts(&w, "a", t0));
    assert_true(w.s.requested_at == t0 && w.due.ahead);
    end(&w);
}

static void test_request_ends_with_its_annotation(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_CRON, 0, "0 4 * * *");
    assert_true(asked_starts(&w, "a", t0));
    succeed(&w);
    assert_true(asked_starts(&w, "b", t0 + 60));
    go_wrong(&w);
    eb_plan(&w.c, &w.s, true, &w.due);
    w.c.request[0] = '\0';
    eb_plan(&w.c, &w.s, true, &w.due); /* a transfer that runs goes on */
    assert_string_equal(w.s.request, "b");
    assert_false(asked_starts(&w, "", t0 + 1000));
    assert_false(eb_plan_open(&w.c, &w.s));
    assert_string_equal(w.s.request, "");
    assert_string_equal(w.s.request_met, "a");
    assert_true(w.due.wake == t0 + 4 * 3600);
    assert_true(asked_starts(&w, "b", t0 + 2000)); /* asked for again */
    succeed(&w);
    assert_false(asked_starts(&w, "", t0 + 3000)); /* one that was made stays so */
    assert_int_equal(w.s.phase, EB_SUCCEEDED);
    assert_true(asked_starts(&w, "", t0 + 4 * 3600));
    go_wrong(&w);
    assert_true(asked_starts(&w, "", t0 + 5 * 3600)); /* that of the schedule is not of a request */
    end(&w);
}

static void test_request_waits_for_the_transfer_that_runs(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_CRON, 0, "0 4 * * *");
    stw_format(w.c.request, sizeof(w.c.request), "a");
    eb_plan(&w.c, &w.s, true, &w.due);
    assert_false(w.due.start);
    assert_string_equal(w.s.request, "");
    assert_true(asked_starts(&w, "a", t0 + 5));
    end(&w);
    begin(&w, EB_ONCE, 0, NULL); /* makes one backup only */
    assert_true(asked_starts(&w, "a", t0));
    assert_false(w.due.requested);
    succeed(&w);
    assert_false(asked_starts(&w, "b", t0 + 1000));
    end(&w);
}

static void test_schedule_starts_at_its_times(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_CRON, 0, "0 4 * * *");
    assert_false(starts(&w, t0));
    assert_int_equal(w.s.phase, EB_PENDING);
    assert_true(w.due.wake == t0 + 4 * 3600);
    assert_false(starts(&w, t0 + 4 * 3600 - 1));
    assert_true(starts(&w, t0 + 4 * 3600));
    succeed(&w);
    assert_false(starts(&w, t0 + 4 * 3600 + 1));
    assert_true(w.s.next_schedule == t0 + 28 * 3600);
    /* Too late counts as missed, and is reported. */
    assert_false(starts(&w, t0 + 28 * 3600 + 3601));
    assert_true(w.due.missed && w.due.missed_at == t0 + 28 * 3600);
    assert_false(starts(&w, t0 + 28 * 3600 + 3602));
    assert_false(w.due.missed);
    /* A backup that was started in time may be retried after its deadline. */
    assert_true(starts(&w, t0 + 52 * 3600 + 60));
    go_wrong(&w);
    assert_true(starts(&w, t0 + 52 * 3600 + 7200));
    end(&w);
}

static void test_suspended_backup_waits(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_INTERVAL, 600, NULL);
    w.c.suspend = true;
    assert_false(starts(&w, t0));
    assert_true(w.s.next_schedule == EB_NEVER && w.due.wake == EB_NEVER);
    w.c.suspend = false;
    assert_true(starts(&w, t0));
    end(&w);
}

/* Its instant stays open, and is made up for. */
static void test_suspended_backup_that_was_open_is_not_running(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_CRON, 0, "0 4 * * *");
    assert_true(starts(&w, t0 + 4 * 3600));
    w.c.suspend = true;
    eb_plan(&w.c, &w.s, true, &w.due); /* its transfer ends first */
    assert_int_equal(w.s.phase, EB_RUNNING);
    assert_false(starts(&w, t0 + 4 * 3600 + 60));
    assert_int_equal(w.s.phase, EB_SUSPENDED);
    w.c.suspend = false;
    assert_true(starts(&w, t0 + 4 * 3600 + 120));
    end(&w);
    begin(&w, EB_INTERVAL, 600, NULL);
    assert_true(starts(&w, t0));
    w.s.phase = EB_VERIFYING;
    w.c.suspend = true;
    assert_false(starts(&w, t0 + 1));
    assert_int_equal(w.s.phase, EB_SUSPENDED);
    w.c.suspend = false;
    assert_true(starts(&w, t0 + 700));
    end(&w);
}

/* For an EtcdCluster that waits for it. */
static void test_snapshot_is_sent_for_a_limited_time(void **state)
{
    struct world w;
    (void)state;
    begin(&w, EB_ONCE, 0, NULL);
    assert_false(eb_plan_sends(&w.s, 60, t0));
    w.s.phase = EB_RUNNING; /* it waits for a place, or its pod does not start */
    assert_false(eb_plan_sends(&w.s, 60, t0));
    w.s.snapshot_start = t0;
    restart(&w);
    assert_true(eb_plan_sends(&w.s, 60, t0 + 59));
    assert_false(eb_plan_sends(&w.s, 60, t0 + 60));
    assert_true(eb_plan_sends(&w.s, 60, t0 - 5));
    assert_false(eb_plan_sends(&w.s, 60, t0 - 1000000)); /* the clock was ahead */
    end(&w);
    assert_int_equal(eb_snapshot_limit(90, INT64_MAX), 90);
    assert_int_equal(eb_snapshot_limit(0, 0), 60);
    assert_int_equal(eb_snapshot_limit(0, 100 << 20), 160);
    assert_int_equal(eb_snapshot_limit(INT64_MAX, INT64_MAX), 24 * 3600);
}

static void test_backoff_grows_and_ends(void **state)
{
    struct world w;
    int64_t last = 0;
    (void)state;
    begin(&w, EB_ONCE, 0, NULL);
    for (int i = 0; i < 20; i++) {
        int64_t wait;
        go_wrong(&w);
        wait = w.s.retry_at - w.c.now;
        assert_true(wait >= last && wait <= EB_BACKOFF_MAX_S);
        last = wait;
    }
    assert_true(last == EB_BACKOFF_MAX_S);
    assert_int_equal(w.s.failures, 20);
    end(&w);
}

/* --- names and retention */

static void test_names_of_snapshots_are_read(void **state)
{
    static const struct {
        const char *key;
        int rc;
        uint64_t revision;
        bool own;
    } rows[] = {
        {"db_v000000004711_2026-01-01-00:00:00", 0, 4711, true},
        {"db_v4711_2026-01-01-00:00:00", 0, 4711, false}, /* of coreos' etcd-operator */
        {"db_v9999999999999_2026-01-01-00:00:00", 0, 9999999999999, true},
        {"db_v_2026-01-01-00:00:00", -1, 0, false},
        {"db_v1_2026-01-01-00:00", -1, 0, false},
        {"db_v1_2026-01-01-00:00:00x", -1, 0, false},
        {"db_v1_yesterday", -1, 0, false},
        {"db_v000000004711_2026-01-01-00:00: 0", -1, 0, false},
        {"db_v000000004711_2026-02-31-00:00:00", -1, 0, false},
        {"db2_v1_2026-01-01-00:00:00", -1, 0, false},
        {"db_v99999999999999999999_2026-01-01-00:00:00", -1, 0, false},
        {"db_v1_2026-01-01-00:00:00_00000000000000ff_u-1", 0, 1, false},
        {"db_v000000004711_2026-01-01-00:00:00_00000000000000ff_u-1", 0, 4711, true},
        {"db_v1_2026-01-01-00:00:00_ff_u-1", -1, 0, false},
        {"db_v1_2026-01-01-00:00:00_00000000000000ff_", -1, 0, false},
        {"db_v1_2026-01-01-00:00:00_00000000000000ff", -1, 0, false},
        {"db_v1_2026-01-01-00:00:00_00000000000000ff_../x", -1, 0, false},
        {"db_v1_2026-01-01-00:00:00_00000000000000fF_u", -1, 0, false},
        {"db", -1, 0, false},
        {"", -1, 0, false},
    };
    char key[STW_STORE_KEY_MAX + 1];
    (void)state;
    struct eb_snapshot_name made = {.revision = 4711, .time = t0};
    assert_int_equal(eb_snapshot_key("db", &made, key), 0);
    assert_string_equal(key, rows[0].key);
    made = (struct eb_snapshot_name){
        .revision = 4711, .time = t0, .cluster = 0xff00000000000001, .owner = "5b0e-1"};
    assert_int_equal(eb_snapshot_key("db", &made, key), 0);
    assert_string_equal(key, "db_v000000004711_2026-01-01-00:00:00_ff00000000000001_5b0e-1");
    assert_int_equal(eb_snapshot_key_parse("db", key, &made), 0);
    assert_true(made.cluster == 0xff00000000000001);
    assert_string_equal(made.owner, "5b0e-1");
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct eb_snapshot_name name = {0};
        assert_int_equal(eb_snapshot_key_parse("db", rows[i].key, &name), rows[i].rc);
        assert_true(name.revision == rows[i].revision && name.own == rows[i].own);
        if (rows[i].rc == 0)
            assert_true(name.time == t0);
    }
}

#define OWN(revision_, age)                                                                        \
    {                                                                                              \
        .key = (char[]){"k" #revision_}, .name = {                                                 \
            .revision = (revision_),                                                               \
            .time = t0 - (age),                                                                    \
            .own = true                                                                            \
        }                                                                                          \
    }

static void test_retention_keeps_the_last_verified_one(void **state)
{
    static const struct {
        struct eb_snapshot_retention r;
        const char *goes; /* of the four below, newest first */
    } rows[] = {
        {{0, 0, NULL}, "...."},   {{2, 0, NULL}, "...x"}, /* what is not ours is neither counted nor
                                                             removed */
        {{1, 0, NULL}, "..xx"},   {{1, 0, "k10"}, "...x"}, /* the last verified one stays */
        {{0, 100, NULL}, "..xx"}, {{0, 100, "k9"}, "..x."}, {{3, 1, NULL}, "x.xx"},
    };
    struct eb_snapshot_entry all[] = {OWN(11, 50), OWN(500, 9999), OWN(10, 200), OWN(9, 300)};
    const struct eb_snapshot_list l = {.all = all, .count = STW_COUNT(all)};
    bool goes[STW_COUNT(all)];
    (void)state;
    all[1].name.own = false;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char text[STW_COUNT(all) + 1] = "";
        eb_snapshot_choose_old(&l, &rows[i].r, t0, goes);
        for (size_t k = 0; k < STW_COUNT(all); k++)
            text[k] = goes[k] ? 'x' : '.';
        text[STW_COUNT(all)] = '\0';
        assert_string_equal(text, rows[i].goes);
    }
}

#define OF(name_, cluster_, owner_, revision_, age)                                                \
    {                                                                                              \
        .key = (char[]){name_}, .name = {                                                          \
            .revision = (revision_),                                                               \
            .time = t0 - (age),                                                                    \
            .own = true,                                                                           \
            .cluster = (cluster_),                                                                 \
            .owner = owner_                                                                        \
        }                                                                                          \
    }

/* Two incarnations of a cluster, another object on the same path, and snapshots from before they
 * named an owner. */
static void test_retention_counts_owner_and_incarnation(void **state)
{
    struct eb_snapshot_entry all[] = {
        OF("restored-2", 2, "me", 1000012, 10), OF("sibling-1", 2, "you", 1000011, 15),
        OF("restored-1", 2, "me", 11, 20),      OF("old-life-3", 1, "me", 9000003, 30),
        OF("nobodys", 0, "", 9000002, 35),      OF("old-life-2", 1, "me", 9000002, 40),
        OF("old-life-1", 1, "me", 9000001, 50),
    };
    static const struct {
        struct eb_snapshot_retention r;
        const char *goes;
    } rows[] = {
        {{.max_backups = 1, .owner = "me"}, "..x..xx"},
        {{.max_backups = 2, .owner = "me"}, "......x"},
        {{.max_backups = 1, .owner = "me", .keep = "old-life-1"}, "..x..x."},
        {{.max_backups = 1, .owner = "you"}, "......."},
        {{.max_backups = 1, .owner = "stranger"}, "......."},
        {{.max_backups = 1}, "......."},
        {{.max_age_s = 12, .owner = "me"}, "..xx.xx"},
        {{.max_age_s = 12}, "....x.."}, /* called by a person */
    };
    const struct eb_snapshot_list l = {.all = all, .count = STW_COUNT(all)};
    bool goes[STW_COUNT(all)];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char text[STW_COUNT(all) + 1] = "";
        eb_snapshot_choose_old(&l, &rows[i].r, t0, goes);
        for (size_t k = 0; k < STW_COUNT(all); k++)
            text[k] = goes[k] ? 'x' : '.';
        assert_string_equal(text, rows[i].goes);
    }
}

/* By a clock that was ahead, or by another writer. */
static void test_retention_ignores_names_of_the_future(void **state)
{
    struct eb_snapshot_entry all[] = {
        OF("century", 1, "me", 1, -3000000000),
        OF("tomorrow", 1, "me", 2, -86400),
        OF("now", 1, "me", 13, 0),
        OF("before", 1, "me", 12, 100),
        OF("earlier", 1, "me", 11, 200),
    };
    static const struct {
        struct eb_snapshot_retention r;
        const char *goes;
    } rows[] = {
        {{.max_backups = 2, .owner = "me"}, "....x"},
        {{.max_backups = 1, .owner = "me"}, "...xx"},
        {{.max_age_s = 50, .owner = "me"}, "...xx"},
    };
    const struct eb_snapshot_list l = {.all = all, .count = STW_COUNT(all)};
    bool goes[STW_COUNT(all)];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        char text[STW_COUNT(all) + 1] = "";
        eb_snapshot_choose_old(&l, &rows[i].r, t0, goes);
        for (size_t k = 0; k < STW_COUNT(all); k++)
            text[k] = goes[k] ? 'x' : '.';
        assert_string_equal(text, rows[i].goes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_backup_is_made_once),
        cmocka_unit_test(test_interval_keeps_its_rhythm),
        cmocka_unit_test(test_interval_survives_a_clock_that_is_put_back),
        cmocka_unit_test(test_request_makes_one_backup_and_the_schedule_goes_on),
        cmocka_unit_test(test_requests_are_a_minute_apart),
        cmocka_unit_test(test_request_is_followed_while_suspended),
        cmocka_unit_test(test_schedule_survives_a_clock_that_was_ahead),
        cmocka_unit_test(test_request_of_a_clock_that_was_ahead_is_tried_again),
        cmocka_unit_test(test_request_ends_with_its_annotation),
        cmocka_unit_test(test_request_waits_for_the_transfer_that_runs),
        cmocka_unit_test(test_schedule_starts_at_its_times),
        cmocka_unit_test(test_suspended_backup_waits),
        cmocka_unit_test(test_suspended_backup_that_was_open_is_not_running),
        cmocka_unit_test(test_snapshot_is_sent_for_a_limited_time),
        cmocka_unit_test(test_backoff_grows_and_ends),
        cmocka_unit_test(test_names_of_snapshots_are_read),
        cmocka_unit_test(test_retention_keeps_the_last_verified_one),
        cmocka_unit_test(test_retention_counts_owner_and_incarnation),
        cmocka_unit_test(test_retention_ignores_names_of_the_future),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
