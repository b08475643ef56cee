/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of targets follows its file, and a wrong file changes nothing. */
#include "kinds/databaseuser/target/targets.h"

#include "base/clock.h"
#include "base/log.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#define TARGET(name)                                                                               \
    "- name: " name "\n"                                                                           \
    "  engine: mariadb\n"                                                                          \
    "  host: db\n"                                                                                 \
    "  admin: {user: chief, passwordFile: /run/pw}\n"
#define ONE "targets:\n" TARGET("orders")
#define TWO ONE TARGET("stock")
#define BAD ONE "  prot: 5\n" TARGET("stock") "  port: 0\n"

/* --- parsing a file */

static int parse(const char *text, struct dbu_target_file *f, struct stw_error *err)
{
    return dbu_target_file_parse("c.yaml", text, strlen(text), f, err);
}

static void test_targets_are_read_from_a_configuration(void **state)
{
    static const struct {
        const char *text;
        size_t count;
    } cases[] = {
        {"", 0},  {"logLevel: info\n", 0},     {"targets:\n", 0}, {"targets: []\n", 0},
        {ONE, 1}, {"logLevel: info\n" TWO, 2},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        dbu_autotargetfile struct dbu_target_file f = {0};
        struct stw_error err = {0};
        assert_int_equal(parse(cases[i].text, &f, &err), 0);
        assert_int_equal(stw_targets_count(f.targets), cases[i].count);
        assert_int_equal(f.error_count, 0);
    }
}

static void test_errors_have_line_and_column(void **state)
{
    static const struct {
        const char *text, *lines, *err;
        unsigned count;
    } cases[] = {
        {BAD,
         "c.yaml:6:9: targets[0].prot: Forbidden: unknown field; did you mean \"port\"?\n"
         "c.yaml:11:9: targets[1].port: Invalid value: 0: must be between 1 and 65535\n",
         "c.yaml:6:9: targets[0].prot: Forbidden: unknown field; did you mean \"port\"? (and 1 "
         "more)",
         2},
        {"a: 1\ntargets: 5\n", "c.yaml:2:10: targets: Invalid value: must be a list\n",
         "c.yaml:2:10: targets: Invalid value: must be a list", 1},
        {"- 1\n", "c.yaml:1: must be a map of options\n", "c.yaml:1: must be a map of options", 1},
        {ONE "---\n" ONE, "c.yaml:7: one document is enough\n", "c.yaml:7: one document is enough",
         1},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        dbu_autotargetfile struct dbu_target_file f = {0};
        struct stw_error err = {0};
        assert_int_equal(parse(cases[i].text, &f, &err), -1);
        assert_string_equal(stw_buf_str(&f.errors), cases[i].lines);
        assert_string_equal(err.text, cases[i].err);
        assert_int_equal(f.error_count, cases[i].count);
        assert_null(f.targets);
    }
}

static void test_broken_yaml_is_an_error(void **state)
{
    dbu_autotargetfile struct dbu_target_file f = {0};
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(parse("targets: [\n", &f, &err), -1);
    assert_non_null(strstr(err.text, "c.yaml:"));
    assert_int_equal(f.error_count, 1);
}

/* --- a file that changes */

struct fixture {
    char dir[64], path[128];
    struct stw_metrics *metrics;
    struct dbu_target_store *store;
    atomic_uint told;
    atomic_size_t told_count;
    char last[256]; /* text that was passed on */
    unsigned passed;
};

static void put(const struct fixture *x, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", x->dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static void move(const struct fixture *x, const char *from, const char *to)
{
    char a[256], b[256];
    (void)snprintf(a, sizeof(a), "%s/%s", x->dir, from);
    (void)snprintf(b, sizeof(b), "%s/%s", x->dir, to);
    assert_int_equal(rename(a, b), 0);
}

static void told(void *ctx, struct stw_targets *now)
{
    struct fixture *x = ctx;
    atomic_store(&x->told_count, stw_targets_count(now));
    atomic_fetch_add(&x->told, 1);
}

static void pass(void *ctx, const char *text, size_t len)
{
    struct fixture *x = ctx;
    (void)snprintf(x->last, sizeof(x->last), "%.*s", (int)len, text);
    x->passed++;
}

static void open_store(struct fixture *x)
{
    struct stw_error err = {0};
    struct dbu_target_store_config config = {
        .path = x->path, .metrics = x->metrics, .text = pass, .text_ctx = x};
    if (dbu_target_store_create(&config, &x->store, &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(dbu_target_store_on_change(x->store, told, x), 0);
}

static int setup(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));
    assert_non_null(x);
    (void)snprintf(x->dir, sizeof(x->dir), "/tmp/steward-targets-XXXXXX");
    assert_non_null(mkdtemp(x->dir));
    (void)snprintf(x->path, sizeof(x->path), "%s/steward.yaml", x->dir);
    x->metrics = stw_metrics_create("steward");
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    char command[128];
    dbu_target_store_destroy(x->store);
    stw_metrics_destroy(x->metrics);
    (void)snprintf(command, sizeof(command), "rm -rf %s", x->dir);
    assert_int_equal(system(command), 0);
    free(x);
    return 0;
}

static size_t count_now(const struct fixture *x)
{
    struct stw_targets *now = dbu_target_store_get(x->store);
    size_t count = stw_targets_count(now);
    stw_targets_unref(now);
    return count;
}

static double metric(const struct fixture *x, const char *result)
{
    struct stw_family *f = stw_metrics_family(x->metrics, STW_COUNTER, "_config_reloads_total", "",
                                              (const char *const[]){"result", NULL}, NULL);
    return stw_series_value(STW_SERIES(f, result));
}

/* New content counts when a second check finds it unchanged. */
static void look_twice(const struct fixture *x)
{
    assert_int_equal(dbu_target_store_look(x->store), 100);
    assert_int_equal(dbu_target_store_look(x->store), 60000);
}

static void test_changed_file_is_read_when_it_is_quiet(void **state)
{
    struct fixture *x = *state;
    put(x, "steward.yaml", ONE);
    open_store(x);
    assert_int_equal(count_now(x), 1);
    assert_int_equal(dbu_target_store_look(x->store), 60000); /* nothing new */
    put(x, "steward.yaml", TWO);
    assert_int_equal(dbu_target_store_look(x->store), 100);
    assert_int_equal(count_now(x), 1); /* perhaps it is still being written */
    assert_int_equal(dbu_target_store_look(x->store), 60000);
    assert_int_equal(count_now(x), 2);
    assert_int_equal(x->told, 1);
    assert_int_equal(x->told_count, 2);
    put(x, "steward.yaml", "logLevel: info\n");
    look_twice(x);
    assert_int_equal(count_now(x), 0);
    assert_int_equal(x->told, 2);
    assert_true(metric(x, "success") == 3);
    assert_true(metric(x, "error") == 0);
}

static void test_half_written_file_is_not_read(void **state)
{
    struct fixture *x = *state;
    put(x, "steward.yaml", TWO);
    open_store(x);
    put(x, "steward.yaml", "targets:\n");
    assert_int_equal(dbu_target_store_look(x->store), 100);
    put(x, "steward.yaml", ONE);
    assert_int_equal(dbu_target_store_look(x->store), 100);
    put(x, "steward.yaml", TWO);
    assert_int_equal(dbu_target_store_look(x->store), 60000);
    assert_int_equal(count_now(x), 2);
    assert_int_equal(x->told, 0);
}

static void test_wrong_lists_are_refused_whole(void **state)
{
    static const char *const wrong[] = {BAD,     "targets: [\n", "targets: {}\n",
                                        ONE ONE, "- 1\n",        ONE TARGET("ORDERS")};
    struct fixture *x = *state;
    put(x, "steward.yaml", ONE);
    open_store(x);
    for (size_t i = 0; i < STW_COUNT(wrong); i++) {
        put(x, "steward.yaml", wrong[i]);
        look_twice(x);
        assert_int_equal(dbu_target_store_look(x->store), 60000);
        assert_int_equal(count_now(x), 1);
        assert_true(metric(x, "error") == (double)(i + 1)); /* each once */
    }
    assert_int_equal(x->told, 0);
    put(x, "steward.yaml", TWO);
    look_twice(x);
    assert_int_equal(count_now(x), 2);
}

static void test_missing_file_keeps_the_targets(void **state)
{
    struct fixture *x = *state;
    put(x, "steward.yaml", ONE);
    open_store(x);
    move(x, "steward.yaml", "away.yaml");
    look_twice(x);
    assert_int_equal(count_now(x), 1);
    assert_true(metric(x, "error") == 1);
    move(x, "away.yaml", "steward.yaml");
    assert_int_equal(dbu_target_store_look(x->store), 60000);
    put(x, "steward.yaml", TWO);
    look_twice(x);
    assert_int_equal(count_now(x), 2);
}

/* Other options are not read again, and an unchanged list is not reported. */
static void test_other_keys_report_no_change(void **state)
{
    struct fixture *x = *state;
    put(x, "steward.yaml", ONE);
    open_store(x);
    struct stw_targets *before = dbu_target_store_get(x->store);
    put(x, "steward.yaml", "# a word\nlogLevel: debug\n" ONE);
    look_twice(x);
    struct stw_targets *after = dbu_target_store_get(x->store);
    assert_ptr_equal(before, after);
    assert_int_equal(x->told, 0);
    stw_targets_unref(before);
    stw_targets_unref(after);
}

/* Other readers of the file get each new text once, whether its targets are valid or not. */
static void test_new_text_is_passed_on_once(void **state)
{
    struct fixture *x = *state;
    put(x, "steward.yaml", ONE);
    open_store(x);
    assert_int_equal(x->passed, 0);
    put(x, "steward.yaml", "logLevel: debug\n" BAD);
    look_twice(x);
    assert_int_equal(dbu_target_store_look(x->store), 60000);
    assert_int_equal(x->passed, 1);
    assert_string_equal(x->last, "logLevel: debug\n" BAD);
    put(x, "steward.yaml", ONE);
    assert_int_equal(dbu_target_store_look(x->store), 60000);
    assert_int_equal(x->passed, 2);
    assert_string_equal(x->last, ONE);
}

static void test_invalid_first_file_is_an_error(void **state)
{
    struct fixture *x = *state;
    struct stw_error err = {0};
    struct dbu_target_store_config config = {.path = x->path, .metrics = x->metrics};
    assert_int_equal(dbu_target_store_create(&config, &x->store, &err), -1);
    assert_non_null(strstr(err.text, "steward.yaml"));
    put(x, "steward.yaml", BAD);
    assert_int_equal(dbu_target_store_create(&config, &x->store, &err), -1);
    assert_non_null(strstr(err.text, "steward.yaml:6:9: targets[0].prot"));
    assert_null(x->store);
}

static void test_no_file_means_no_targets(void **state)
{
    struct fixture *x = *state;
    struct stw_error err = {0};
    struct dbu_target_store_config config = {.metrics = x->metrics};
    assert_int_equal(dbu_target_store_create(&config, &x->store, &err), 0);
    assert_int_equal(dbu_target_store_start(x->store, &err), 0);
    assert_null(dbu_target_store_get(x->store));
}

static void test_forgotten_listener_is_not_told(void **state)
{
    struct fixture *x = *state;
    put(x, "steward.yaml", ONE);
    open_store(x);
    dbu_target_store_forget(x->store, told, x);
    put(x, "steward.yaml", TWO);
    look_twice(x);
    assert_int_equal(count_now(x), 2);
    assert_int_equal(x->told, 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(dbu_target_store_on_change(x->store, told, x), 0);
    assert_int_equal(dbu_target_store_on_change(x->store, told, x), -1);
}

/* --- with its thread */

static void wait_for_count(const struct fixture *x, size_t count)
{
    uint64_t deadline = stw_now_ms(&stw_clock_system) + 40000;
    while (count_now(x) != count) {
        if (stw_now_ms(&stw_clock_system) > deadline)
            fail_msg("there are never %zu targets", count);
        (void)usleep(2000);
    }
}

static void start(struct fixture *x)
{
    struct stw_error err = {0};
    open_store(x);
    assert_int_equal(dbu_target_store_start(x->store, &err), 0);
}

static void test_replaced_file_is_noticed(void **state)
{
    struct fixture *x = *state;
    put(x, "steward.yaml", ONE);
    start(x);
    put(x, "new.yaml", TWO);
    move(x, "new.yaml", "steward.yaml");
    wait_for_count(x, 2);
    put(x, "steward.yaml", ONE); /* in place */
    wait_for_count(x, 1);
}

static void in_folder(const struct fixture *x, const char *folder, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", x->dir, folder);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/steward.yaml", folder);
    put(x, path, text);
}

static void link_to(const struct fixture *x, const char *target, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", x->dir, name);
    assert_int_equal(symlink(target, path), 0);
}

/* As the kubelet does it: the file is a link into ..data, which is a link that a rename
 * replaces. */
static void test_update_of_a_mounted_configmap_is_noticed(void **state)
{
    struct fixture *x = *state;
    in_folder(x, "..first", ONE);
    link_to(x, "..first", "..data");
    link_to(x, "..data/steward.yaml", "steward.yaml");
    start(x);
    assert_int_equal(count_now(x), 1);
    in_folder(x, "..second", TWO);
    link_to(x, "..second", "..data_tmp");
    move(x, "..data_tmp", "..data");
    wait_for_count(x, 2);
}

static void test_watch_ends_at_once(void **state)
{
    struct fixture *x = *state;
    put(x, "steward.yaml", ONE);
    start(x);
    uint64_t begin = stw_now_ms(&stw_clock_system);
    dbu_target_store_stop(x->store);
    assert_true(stw_now_ms(&stw_clock_system) - begin < 5000);
    assert_int_equal(count_now(x), 1);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets_are_read_from_a_configuration),
        cmocka_unit_test(test_errors_have_line_and_column),
        cmocka_unit_test(test_broken_yaml_is_an_error),
        WITH_FILE(test_changed_file_is_read_when_it_is_quiet),
        WITH_FILE(test_half_written_file_is_not_read),
        WITH_FILE(test_wrong_lists_are_refused_whole),
        WITH_FILE(test_missing_file_keeps_the_targets),
        WITH_FILE(test_other_keys_report_no_change),
        WITH_FILE(test_new_text_is_passed_on_once),
        WITH_FILE(test_invalid_first_file_is_an_error),
        WITH_FILE(test_no_file_means_no_targets),
        WITH_FILE(test_forgotten_listener_is_not_told),
        WITH_FILE(test_replaced_file_is_noticed),
        WITH_FILE(test_update_of_a_mounted_configmap_is_noticed),
        WITH_FILE(test_watch_ends_at_once),
    };
    stw_log_setup(STW_LOG_TEXT, STW_LOG_ERROR, open("/dev/null", O_WRONLY | O_CLOEXEC));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
