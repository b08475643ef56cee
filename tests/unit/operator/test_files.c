/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/installed/files.h"

#include "base/buf.h"
#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static char folder[] = "/tmp/steward-files-XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
}

static int make(void **state)
{
    char path[256];
    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/sub", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    put("b.yaml", "b");
    put("a.yml", "a");
    put("sub/c.json", "c");
    put("README.md", "no");
    put(".hidden.yaml", "h");
    put(".yaml", "y");
    (void)snprintf(path, sizeof(path), "%s/.git", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    put(".git/d.yaml", "no");
    return 0;
}

static int drop(void **state)
{
    static const char *const names[] = {"b.yaml",      "a.yml",        "sub/c.json",
                                        "README.md",   ".hidden.yaml", ".yaml",
                                        ".git/d.yaml", ".git",         "sub"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(names); i++) {
        char path[256];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        assert_int_equal(remove(path), 0);
    }
    return rmdir(folder);
}

static void on_file(void *ctx, const char *name, const char *text, size_t len)
{
    (void)name;
    stw_buf_add(ctx, text, len);
}

static void on_error(void *ctx, const char *name, const char *why)
{
    stw_buf_addf(ctx, "!%s %s", name ? name : "", why);
}

static void test_files_are_visited_in_order(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf seen = STW_BUF_INIT(1000);
    stw_files_each(folder, true, on_file, on_error, &seen);
    assert_string_equal(stw_buf_str(&seen), "hyabc");
}

static void test_subfolders_can_be_excluded(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf seen = STW_BUF_INIT(1000);
    stw_files_each(folder, false, on_file, on_error, &seen);
    assert_string_equal(stw_buf_str(&seen), "hyab");
}

static void test_missing_file_is_reported(void **state)
{
    (void)state;
    stw_autobuf struct stw_buf seen = STW_BUF_INIT(1000);
    stw_files_each("/nowhere.yaml", true, on_file, on_error, &seen);
    assert_string_equal(stw_buf_str(&seen), "!/nowhere.yaml No such file or directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_visited_in_order),
        cmocka_unit_test(test_subfolders_can_be_excluded),
        cmocka_unit_test(test_missing_file_is_reported),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
