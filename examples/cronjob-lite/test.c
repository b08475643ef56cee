/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedule without a cluster, with a clock that is moved. */
#include <steward/operator.h>
#include <steward/test.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MINUTE_MS 60000u

extern const struct stw_kind stw_kind_cronjob;
extern const struct stw_controller stw_controller_cronjob;

static const struct stw_operator cronjob_lite = {
    .name = "cronjob-lite",
    .domain = "cronjob-lite.example.org",
    .metric_prefix = "cronjob_lite",
    .version = "0.1.0",
    .kinds = (const struct stw_kind *const[]){&stw_kind_cronjob, NULL},
    .controllers = (const struct stw_controller *const[]){&stw_controller_cronjob, NULL},
};
static const struct stw_resource job = {"batch", "v1", "Job", "jobs", true};

static void fail_test(const char *text)
{
    fail_msg("%s", text);
}

/* A CronJob that is due each five minutes. */
static struct stw_test *begin(const char *concurrency)
{
    struct stw_test *t =
        stw_test_begin(&(struct stw_test_config){.op = &cronjob_lite, .fail = fail_test});
    stw_test_put(t, json_pack("{s:s,s:s,s:{s:s},s:{s:s,s:s,s:i,s:{s:{s:{s:{s:s,s:[{s:s,s:s}]}}}}}}",
                              "apiVersion", "batch.tutorial.example.org/v1", "kind", "CronJob",
                              "metadata", "name", "hello", "spec", "schedule", "*/5 * * * *",
                              "concurrencyPolicy", concurrency, "successfulJobsHistoryLimit", 2,
                              "jobTemplate", "spec", "template", "spec", "restartPolicy", "Never",
                              "containers", "name", "hello", "image", "busybox:1.36"));
    stw_test_settle(t);
    return t;
}

static size_t count_jobs(struct stw_test *t)
{
    json_auto_t *jobs = stw_test_server_list(stw_test_server(t), &job, "default");
    return json_array_size(jobs);
}

/* Nothing runs Jobs here: the test says that they have ended. */
static void end_jobs(struct stw_test *t)
{
    json_auto_t *jobs = stw_test_server_list(stw_test_server(t), &job, "default");
    json_t *one;
    size_t i;
    json_array_foreach (jobs, i, one) {
        json_object_set_new(
            one, "status",
            json_pack("{s:[{s:s,s:s}]}", "conditions", "type", "Complete", "status", "True"));
        stw_test_put(t, json_incref(one));
    }
    stw_test_settle(t);
}

static void test_a_job_each_time(void **state)
{
    struct stw_test *t = begin("Allow");
    (void)state;
    size_t before = count_jobs(t);
    stw_test_advance(t, 5 * MINUTE_MS);
    assert_int_equal(count_jobs(t), before + 1);
    stw_test_advance(t, 10 * MINUTE_MS);
    assert_int_equal(count_jobs(t), before + 3);
    stw_test_end(t);
}

static void test_the_history(void **state)
{
    struct stw_test *t = begin("Allow");
    (void)state;
    stw_test_advance(t, 30 * MINUTE_MS);
    end_jobs(t);
    assert_int_equal(count_jobs(t), 2);
    stw_test_end(t);
}

static void test_one_at_a_time(void **state)
{
    struct stw_test *t = begin("Forbid");
    (void)state;
    stw_test_advance(t, 30 * MINUTE_MS);
    assert_int_equal(count_jobs(t), 1);
    stw_test_end(t);
}

/* The Job was created, but its operator does not learn it: there is no second one. */
static void test_a_lost_answer(void **state)
{
    struct stw_test *t = begin("Allow");
    (void)state;
    size_t before = count_jobs(t);
    stw_test_fail(
        t, &(struct stw_test_fault){.at = {.verb = "create", .resource = &job}, .done = true});
    stw_test_advance(t, 5 * MINUTE_MS);
    assert_int_equal(stw_test_server_faults_left(stw_test_server(t)), 0);
    assert_int_equal(count_jobs(t), before + 1);
    stw_test_end(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_each_time),
        cmocka_unit_test(test_the_history),
        cmocka_unit_test(test_one_at_a_time),
        cmocka_unit_test(test_a_lost_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
