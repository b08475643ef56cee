/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/notify.h"

#include "base/util.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static bool told(const struct stw_notify *n, int ms)
{
    struct pollfd p = {.fd = n->fd, .events = POLLIN};
    return poll(&p, 1, ms) == 1;
}

static void touch(const char *folder, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
}

static void test_changes_in_a_folder_are_reported(void **state)
{
    char dir[] = "/tmp/steward-notify-XXXXXX", old[64], command[128];
    struct stw_notify n = STW_NOTIFY_INIT;
    struct stw_error err = {0};
    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(stw_notify_folder(&n, dir, &err), 0);
    assert_false(told(&n, 0));
    touch(dir, "a");
    assert_true(told(&n, 5000));
    stw_notify_drain(&n);
    assert_false(told(&n, 0));
    /* the folder is replaced by another */
    (void)snprintf(old, sizeof(old), "%s.old", dir);
    assert_int_equal(rename(dir, old), 0);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(stw_notify_folder(&n, dir, &err), 0);
    stw_notify_drain(&n);
    touch(dir, "b");
    assert_true(told(&n, 5000));
    stw_notify_done(&n);
    assert_int_equal(n.fd, -1);
    stw_notify_done(&n);
    stw_notify_drain(&n);
    (void)snprintf(command, sizeof(command), "rm -rf %s %s", dir, old);
    assert_int_equal(system(command), 0);
}

static void test_missing_folder_is_an_error(void **state)
{
    struct stw_notify n = STW_NOTIFY_INIT;
    struct stw_error err = {0};
    (void)state;
    assert_int_equal(stw_notify_folder(&n, "/nowhere/at/all", &err), -1);
    assert_string_equal(err.text, "cannot watch /nowhere/at/all: No such file or directory");
    stw_notify_done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_changes_in_a_folder_are_reported),
                                       cmocka_unit_test(test_missing_folder_is_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
