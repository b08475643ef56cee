/* SPDX-License-Identifier: Apache-2.0
 *
 * Folder mode: the decisions with a fake clock, then the thread with a real folder. */
#include "certs/folder_priv.h"

#include "base/log.h"
#include "base/util.h"
#include "certs/issue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#define DAY ((int64_t)86400 * 1000000)
#define NOW ((int64_t)1700000000 * 1000000)

static const struct stw_operator op = {
    .name = "steward", .domain = "steward.dev", .metric_prefix = "steward"};

static const char *const dns[] = {"steward.ns.svc", NULL};
static struct stw_pem_pair ca, first, second;

static int64_t fake_wall_us = NOW;
static uint64_t fake_ms = 5000;

static uint64_t monotonic(void *ctx)
{
    (void)ctx;
    return fake_ms;
}
static int64_t wall(void *ctx)
{
    (void)ctx;
    return fake_wall_us;
}
static const struct stw_clock fake_clock = {.monotonic_ms = monotonic, .wall_us = wall};

static int64_t now_real(void)
{
    return stw_wall_us(&stw_clock_system);
}

static void issue(struct stw_pem_pair *p, int64_t now_us)
{
    assert_int_equal(stw_issue_leaf(&ca, dns, NULL, now_us, 90, p, NULL), 0);
}

/* --- fixture: a folder, and a server that takes its pairs */

struct fixture {
    char dir[64];
    struct stw_metrics *metrics;
    struct stw_folder folder;

    pthread_mutex_t lock;
    char *served; /* guarded by lock */
    unsigned uses;
    bool refuse;
};

static void write_to(const struct fixture *x, const char *sub, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s%s", x->dir, sub, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    (void)close(fd);
}

static void put(const struct fixture *x, const char *name, const char *text)
{
    write_to(x, "", name, text);
}

static void put_pair(const struct fixture *x, const struct stw_pem_pair *p)
{
    put(x, "tls.crt", p->cert);
    put(x, "tls.key", p->key);
}

static int use(void *ctx, const char *cert_pem, const char *key_pem, struct stw_error *err)
{
    struct fixture *x = ctx;
    (void)key_pem;
    if (x->refuse)
        return stw_fail(err, STW_ERR_INVALID, "the TLS library does not like it");
    pthread_mutex_lock(&x->lock);
    free(x->served);
    x->served = strdup(cert_pem);
    x->uses++;
    pthread_mutex_unlock(&x->lock);
    return 0;
}

static void remove_tree(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char sub[512];
        if (stw_streq(e->d_name, ".") || stw_streq(e->d_name, ".."))
            continue;
        (void)snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
        if (unlink(sub) < 0 && errno == EISDIR)
            remove_tree(sub);
    }
    if (d)
        (void)closedir(d);
    (void)rmdir(path);
}

static int setup(void **state)
{
    struct fixture *x = calloc(1, sizeof(*x));
    assert_non_null(x);
    (void)snprintf(x->dir, sizeof(x->dir), "/tmp/steward-test-XXXXXX");
    assert_non_null(mkdtemp(x->dir));
    (void)pthread_mutex_init(&x->lock, NULL);
    x->metrics = stw_metrics_create("steward");
    fake_wall_us = NOW;
    stw_folder_init(&x->folder, x->dir, &fake_clock);
    x->folder.use = use;
    x->folder.ctx = x;
    x->folder.reads =
        STW_SERIES0(stw_metrics_family(x->metrics, STW_COUNTER, "reads", "r", NULL, NULL));
    x->folder.errors =
        STW_SERIES0(stw_metrics_family(x->metrics, STW_COUNTER, "errors", "e", NULL, NULL));
    *state = x;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *x = *state;
    stw_folder_done(&x->folder);
    stw_metrics_destroy(x->metrics);
    remove_tree(x->dir);
    free(x->served);
    (void)pthread_mutex_destroy(&x->lock);
    free(x);
    return 0;
}

static int setup_all(void **state)
{
    (void)state;
    assert_int_equal(stw_issue_ca("test", NOW, 3650, &ca, NULL), 0);
    issue(&first, NOW);
    issue(&second, NOW);
    return 0;
}

static int teardown_all(void **state)
{
    (void)state;
    stw_pem_pair_done(&ca);
    stw_pem_pair_done(&first);
    stw_pem_pair_done(&second);
    return 0;
}

/* --- checks of the folder */

static void test_unchanged_pair_is_loaded_once(void **state)
{
    struct fixture *x = *state;
    put_pair(x, &first);
    put(x, "ca.crt", ca.cert);
    assert_int_equal(stw_folder_load(&x->folder, NULL), 0);
    assert_string_equal(x->served, first.cert);
    assert_int_equal(x->folder.ca_not_after_us, NOW + 3650 * DAY);
    put_pair(x, &first);
    assert_int_equal(stw_folder_check(&x->folder), STW_FOLDER_POLL_MS);
    assert_int_equal(x->uses, 1);
    put_pair(x, &second);
    assert_int_equal(stw_folder_check(&x->folder), STW_FOLDER_POLL_MS);
    assert_string_equal(x->served, second.cert);
    assert_int_equal((int)stw_series_value(x->folder.reads), 2);
    assert_int_equal((int)stw_series_value(x->folder.errors), 0);
}

/* At startup each of these is an error whose message names the folder and the problem. */
static void test_start_without_a_pair_fails(void **state)
{
    struct fixture *x = *state;
    const struct {
        const char *cert, *key;
        int64_t now_us;
        const char *text;
    } rows[] = {
        {NULL, first.key, NOW, "tls.crt: No such file"},
        {first.cert, NULL, NOW, "tls.key: No such file"},
        {first.cert, second.key, NOW, "does not belong"},
        {first.cert, first.key, NOW + 91 * DAY, "expired at"},
        {"garbage", first.key, NOW, "holds no PEM certificate"},
        {"", "", NOW, "is empty"},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_error err = {0};
        remove_tree(x->dir);
        assert_int_equal(mkdir(x->dir, 0700), 0);
        if (rows[i].cert)
            put(x, "tls.crt", rows[i].cert);
        if (rows[i].key)
            put(x, "tls.key", rows[i].key);
        fake_wall_us = rows[i].now_us;
        assert_int_equal(stw_folder_load(&x->folder, &err), -1);
        if (!strstr(err.text, rows[i].text))
            fail_msg("row %zu: %s", i, err.text);
        assert_non_null(strstr(err.text, x->dir));
    }
    assert_int_equal(x->uses, 0);
}

/* A new certificate with the old key is not an error until the grace period ends. */
static void test_half_written_pair_is_not_loaded(void **state)
{
    struct fixture *x = *state;
    put_pair(x, &first);
    assert_int_equal(stw_folder_check(&x->folder), STW_FOLDER_POLL_MS);
    put(x, "tls.crt", second.cert);
    assert_int_equal(stw_folder_check(&x->folder), STW_FOLDER_RETRY_MS);
    fake_ms += STW_FOLDER_GRACE_MS - 1;
    assert_int_equal(stw_folder_check(&x->folder), STW_FOLDER_RETRY_MS);
    assert_int_equal((int)stw_series_value(x->folder.errors), 0);
    put(x, "tls.key", second.key);
    assert_int_equal(stw_folder_check(&x->folder), STW_FOLDER_POLL_MS);
    assert_string_equal(x->served, second.cert);
    assert_int_equal((int)stw_series_value(x->folder.errors), 0);
}

static void test_broken_pair_keeps_the_served_one(void **state)
{
    struct fixture *x = *state;
    put_pair(x, &first);
    (void)stw_folder_check(&x->folder);
    put(x, "tls.key", "garbage");
    (void)stw_folder_check(&x->folder);
    fake_ms += STW_FOLDER_GRACE_MS;
    assert_int_equal(stw_folder_check(&x->folder), STW_FOLDER_POLL_MS);
    assert_true(x->folder.logged);
    assert_int_equal((int)stw_series_value(x->folder.errors), 1);
    assert_string_equal(x->served, first.cert);
    fake_ms += STW_FOLDER_POLL_MS;
    (void)stw_folder_check(&x->folder);
    assert_int_equal((int)stw_series_value(x->folder.errors), 2);
    /* other content gets a grace period of its own */
    put(x, "tls.key", "other garbage");
    assert_int_equal(stw_folder_check(&x->folder), STW_FOLDER_RETRY_MS);
    assert_false(x->folder.logged);
    put(x, "tls.key", first.key);
    (void)stw_folder_check(&x->folder);
    assert_false(x->folder.broken);
    assert_int_equal(x->uses, 1);
}

static void test_pair_refused_by_the_server_is_retried(void **state)
{
    struct fixture *x = *state;
    put_pair(x, &first);
    (void)stw_folder_check(&x->folder);
    x->refuse = true;
    put_pair(x, &second);
    (void)stw_folder_check(&x->folder);
    fake_ms += STW_FOLDER_GRACE_MS;
    (void)stw_folder_check(&x->folder);
    assert_int_equal((int)stw_series_value(x->folder.errors), 1);
    x->refuse = false;
    (void)stw_folder_check(&x->folder);
    assert_string_equal(x->served, second.cert);
}

static void test_oversized_pair_is_refused(void **state)
{
    struct fixture *x = *state;
    struct stw_error err = {0};
    put_pair(x, &first);
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/tls.crt", x->dir);
    assert_int_equal(truncate(path, 10 << 20), 0);
    assert_int_equal(stw_folder_load(&x->folder, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
}

/* --- the watch: which ways of replacing files are reported */

static bool reported(struct fixture *x)
{
    struct pollfd p = {.fd = x->folder.notify.fd, .events = POLLIN};
    bool yes = poll(&p, 1, 0) > 0;
    stw_notify_drain(&x->folder.notify);
    return yes;
}

static void link_once(const char *to, const char *path)
{
    if (symlink(to, path) < 0)
        assert_int_equal(errno, EEXIST);
}

/* A Secret's mount: tls.crt -> ..data/tls.crt, ..data -> ..<time>, swapped by a rename. */
static void mount_secret(struct fixture *x, const char *version, const struct stw_pem_pair *p)
{
    char path[256], link[256], tmp[256];
    (void)snprintf(path, sizeof(path), "%s/%s", x->dir, version);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof(path), "%s/", version);
    write_to(x, path, "tls.crt", p->cert);
    write_to(x, path, "tls.key", p->key);
    (void)snprintf(tmp, sizeof(tmp), "%s/..data_tmp", x->dir);
    (void)snprintf(link, sizeof(link), "%s/..data", x->dir);
    assert_int_equal(symlink(version, tmp), 0);
    assert_int_equal(rename(tmp, link), 0);
    (void)snprintf(link, sizeof(link), "%s/tls.crt", x->dir);
    link_once("..data/tls.crt", link);
    (void)snprintf(link, sizeof(link), "%s/tls.key", x->dir);
    link_once("..data/tls.key", link);
}

static void test_folder_changes_are_reported(void **state)
{
    struct fixture *x = *state;
    char from[128], to[128];
    stw_folder_watch(&x->folder);
    assert_false(reported(x));
    mount_secret(x, "..1", &first);
    assert_true(reported(x));
    assert_int_equal(stw_folder_load(&x->folder, NULL), 0);
    mount_secret(x, "..2", &second);
    assert_true(reported(x));
    assert_int_equal(stw_folder_load(&x->folder, NULL), 0);
    assert_string_equal(x->served, second.cert);
    /* an editor: writes a new file, then renames it */
    put(x, "new", first.cert);
    (void)reported(x);
    (void)snprintf(from, sizeof(from), "%s/new", x->dir);
    (void)snprintf(to, sizeof(to), "%s/tls.crt", x->dir);
    assert_int_equal(rename(from, to), 0);
    assert_true(reported(x));
    /* a script: writes in place */
    put(x, "tls.crt", second.cert);
    assert_true(reported(x));
    assert_false(reported(x));
}

static void test_replaced_folder_is_noticed(void **state)
{
    struct fixture *x = *state;
    char aside[80];
    stw_folder_watch(&x->folder);
    (void)snprintf(aside, sizeof(aside), "%s-old", x->dir);
    assert_int_equal(rename(x->dir, aside), 0);
    assert_int_equal(mkdir(x->dir, 0700), 0);
    assert_true(reported(x));
    stw_folder_watch(&x->folder);
    put_pair(x, &first);
    assert_true(reported(x));
    remove_tree(aside);
}

/* --- the thread */

static bool serves(struct fixture *x, const char *cert)
{
    pthread_mutex_lock(&x->lock);
    bool yes = x->served && stw_streq(x->served, cert);
    pthread_mutex_unlock(&x->lock);
    return yes;
}

static void await_served(struct fixture *x, const char *cert)
{
    uint64_t end = stw_now_ms(&stw_clock_system) + 40000;
    while (!serves(x, cert)) {
        assert_true(stw_now_ms(&stw_clock_system) < end);
        (void)poll(NULL, 0, 2);
    }
}

/* The counter is incremented after the pair is put in service, so what is served does not show that
 * it was counted. */
static void await_counted(struct fixture *x, const char *line)
{
    uint64_t end = stw_now_ms(&stw_clock_system) + 40000;
    for (;;) {
        struct stw_buf stw_autobuf text = STW_BUF_INIT(1 << 16);
        stw_metrics_render(x->metrics, &text);
        if (strstr(stw_buf_str(&text), line))
            return;
        assert_true(stw_now_ms(&stw_clock_system) < end);
        (void)poll(NULL, 0, 2);
    }
}

static void test_thread_loads_changed_pairs(void **state)
{
    struct fixture *x = *state;
    struct stw_pem_pair one = {0}, two = {0}, three = {0};
    struct stw_certs *c = NULL;
    struct stw_error err = {0};
    char why[200] = "";
    struct stw_buf stw_autobuf text = STW_BUF_INIT(1 << 16);
    issue(&one, now_real());
    issue(&two, now_real());
    issue(&three, now_real());
    const struct stw_certs_config config = {.folder = x->dir, .use = use, .ctx = x};
    assert_int_equal(stw_certs_create(&config, &stw_clock_system, x->metrics, &c, &err), 0);
    assert_false(stw_certs_ready(c, why, sizeof(why)));
    assert_string_equal(why, "no certificate yet");
    mount_secret(x, "..1", &one);
    assert_int_equal(stw_certs_start(c, &err), 0);
    assert_true(stw_certs_ready(c, why, sizeof(why)));
    assert_true(stw_certs_ready(c, NULL, 0));
    assert_true(serves(x, one.cert));
    mount_secret(x, "..2", &two);
    await_served(x, two.cert);
    put(x, "beside", three.cert);
    stw_certs_poke(c);
    assert_true(serves(x, two.cert));
    mount_secret(x, "..3", &three);
    await_served(x, three.cert);
    await_counted(x, "certwatcher_read_certificate_total 3\n");
    stw_metrics_render(x->metrics, &text);
    assert_non_null(strstr(stw_buf_str(&text), "certwatcher_read_certificate_errors_total 0\n"));
    assert_non_null(
        strstr(stw_buf_str(&text), "steward_certificate_not_after_seconds{cert=\"serving\"} 1"));
    stw_certs_destroy(c);
    stw_pem_pair_done(&one);
    stw_pem_pair_done(&two);
    stw_pem_pair_done(&three);
}

static void test_failed_thread_start_is_an_error(void **state)
{
    struct fixture *x = *state;
    struct stw_certs *c = NULL;
    struct stw_error err = {0};
    const struct stw_certs_config config = {.folder = x->dir, .use = use, .ctx = x};
    assert_int_equal(stw_certs_create(&config, &stw_clock_system, NULL, &c, &err), 0);
    assert_int_equal(stw_certs_start(c, &err), -1);
    assert_int_equal(err.code, STW_ERR_NOT_FOUND);
    stw_certs_destroy(c);
    stw_certs_destroy(NULL);
}

static void test_expired_pair_in_use_is_reported(void **state)
{
    struct fixture *x = *state;
    struct stw_certs *c = NULL;
    struct stw_error err = {0};
    char why[200];
    const struct stw_certs_config config = {.folder = x->dir, .use = use, .ctx = x};
    put_pair(x, &first);
    assert_int_equal(stw_certs_create(&config, &fake_clock, NULL, &c, &err), 0);
    assert_int_equal(stw_certs_start(c, &err), 0);
    assert_true(stw_certs_ready(c, why, sizeof(why)));
    stw_certs_destroy(c); /* before the clock is set: the thread reads it */
    assert_int_equal(stw_certs_create(&config, &fake_clock, NULL, &c, &err), 0);
    fake_wall_us = NOW + 100 * DAY;
    assert_int_equal(stw_certs_start(c, &err), -1);
    assert_non_null(strstr(err.text, "expired at"));
    stw_certs_destroy(c);
}

static void test_invalid_certificate_config_is_refused(void **state)
{
    (void)state;
    static const char *const none[] = {NULL};
    struct stw_client *client = (struct stw_client *)(uintptr_t)8; /* never called */
    const struct {
        struct stw_certs_config config;
        const char *text;
    } rows[] = {
        {{.use = use}, "folder or from a Secret"},
        {{.folder = "/tmp", .client = client}, "folder or from a Secret"},
        {{.op = &op, .client = client, .dns_names = dns}, "namespace and a name"},
        {{.op = &op, .client = client, .ns = "a", .secret = "b", .dns_names = none},
         "at least one DNS name"},
        {{.op = &op,
          .client = client,
          .ns = "a",
          .secret = "b",
          .dns_names = dns,
          .ca_days = 10,
          .leaf_days = 20},
         "outlive its CA"},
    };
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_certs *c = NULL;
        struct stw_error err = {0};
        assert_int_equal(stw_certs_create(&rows[i].config, &fake_clock, NULL, &c, &err), -1);
        assert_null(c);
        if (!strstr(err.text, rows[i].text))
            fail_msg("row %zu: %s", i, err.text);
    }
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH(test_unchanged_pair_is_loaded_once),
        WITH(test_start_without_a_pair_fails),
        WITH(test_half_written_pair_is_not_loaded),
        WITH(test_broken_pair_keeps_the_served_one),
        WITH(test_pair_refused_by_the_server_is_retried),
        WITH(test_oversized_pair_is_refused),
        WITH(test_folder_changes_are_reported),
        WITH(test_replaced_folder_is_noticed),
        WITH(test_thread_loads_changed_pairs),
        WITH(test_failed_thread_start_is_an_error),
        WITH(test_expired_pair_in_use_is_reported),
        cmocka_unit_test(test_invalid_certificate_config_is_refused),
    };
    stw_log_setup(STW_LOG_JSON, STW_LOG_ERROR, 2);
    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
