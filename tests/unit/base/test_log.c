/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/util.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static int fd = -1;
static off_t seen;
static char text[1 << 20];

/* What was logged since the last call. */
static const char *logged(void)
{
    ssize_t n = pread(fd, text, sizeof(text) - 1, seen);
    assert_true(n >= 0);
    text[n] = '\0';
    seen += n;
    return text;
}

/* The rest of a text line after its time stamp, which must be valid. */
static const char *behind_time(const char *line)
{
    char stamp[STW_TIME_LEN] = "";
    int64_t us;
    memcpy(stamp, line, 27);
    assert_int_equal(stw_time_parse(stamp, &us), 0);
    assert_int_equal(line[27], ' ');
    return line + 28;
}

static void test_log_text_format(void **state)
{
    (void)state;
    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, fd);
    stw_log(STW_LOG_INFO, "listening", STW_STR("address", "[::]:9443"), STW_INT("port", 9443),
            STW_BOOL("tls", true), STW_SECONDS("took", 1500), STW_STR("none", NULL),
            STW_STR("reason", "two words"), STW_STR("empty", ""), STW_STR("lines", "a\nb"));
    assert_string_equal(behind_time(logged()),
                        "INFO  listening address=[::]:9443 port=9443 tls=true took=0.001500 "
                        "reason=\"two words\" empty=\"\" lines=\"a\\nb\"\n");
    stw_log(STW_LOG_ERROR, "no fields");
    assert_string_equal(behind_time(logged()), "ERROR no fields\n");
    stw_log(STW_LOG_WARN, "injected\nline");
    assert_string_equal(behind_time(logged()), "WARN  \"injected\\nline\"\n");
}

/* In both forms, and of the same value: nothing acts on a terminal or on a CI job that shows the log. */
static void test_log_values_have_no_control_characters(void **state)
{
    static const char
        value[] = "\xc2\x9b"
                  "31m\xe2\x80\xae##vso[x]\xf3\xa0\x81\x81\x7f\xc3\xa9",
        shown[] = "value\":\"\\u009b31m\\u202e#\\u0023vso[x]\\udb40\\udc41\\u007f\xc3\xa9\"";
    (void)state;
    stw_log_setup(STW_LOG_JSON, STW_LOG_INFO, fd);
    stw_log(STW_LOG_INFO, "m", STW_STR("value", value));
    assert_non_null(strstr(logged(), shown));
    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, fd);
    stw_log(STW_LOG_INFO, "m", STW_STR("value", value), STW_STR("short", "##vso[x]"));
    const char *line = behind_time(logged());
    assert_non_null(strstr(line, strchr(shown, ':') + 1));
    assert_non_null(strstr(line, "short=\"#\\u0023vso[x]\"\n"));
}

static void test_log_level_filters_lines(void **state)
{
    (void)state;
    stw_log_setup(STW_LOG_TEXT, STW_LOG_WARN, fd);
    assert_false(stw_log_on(STW_LOG_INFO));
    stw_log(STW_LOG_INFO, "quiet");
    assert_string_equal(logged(), "");
    stw_log_set_level(STW_LOG_DEBUG);
    stw_log(STW_LOG_DEBUG, "loud", STW_SECONDS("back", -2500000));
    assert_string_equal(behind_time(logged()), "DEBUG loud back=-2.500000\n");
}

static void test_log_json_format(void **state)
{
    (void)state;
    static const struct stw_log_field context[] = {{.key = "controller", .str = "myweb"}, {0}};
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_error err;
    int64_t n = 0, us;
    char stamp[STW_TIME_LEN];

    stw_log_setup(STW_LOG_JSON, STW_LOG_INFO, fd);
    stw_log_context(context);
    stw_log(STW_LOG_WARN, "a \"quoted\" message", STW_STR("broken", "x\xff\xc0\x80y\xed\xa0\x80"),
            STW_INT("n", INT64_MIN), STW_BOOL("ok", false), STW_STR("control", "\x01\t\x7f"));
    stw_log_context(NULL);
    const char *line = logged();
    size_t len = strlen(line);
    assert_int_equal(line[len - 1], '\n');
    assert_int_equal(stw_json_scan(&doc, line, len, &err), 0);
    struct stw_json root = stw_json_root(&doc);
    assert_int_equal(stw_json_strcpy(stw_json_get(root, "time"), stamp, sizeof(stamp)), 0);
    assert_int_equal(strlen(stamp), 27);
    assert_int_equal(stw_time_parse(stamp, &us), 0);
    assert_true(stw_json_is(stw_json_get(root, "level"), "warn"));
    assert_true(stw_json_is(stw_json_get(root, "msg"), "a \"quoted\" message"));
    assert_true(stw_json_is(stw_json_get(root, "controller"), "myweb"));
    assert_true(stw_json_is(stw_json_get(root, "broken"),
                            "x\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdy\xef\xbf\xbd\xef\xbf\xbd"
                            "\xef\xbf\xbd"));
    assert_int_equal(stw_json_int(stw_json_get(root, "n"), &n), 0);
    assert_int_equal(n, INT64_MIN);
    assert_false(stw_json_bool(stw_json_get(root, "ok"), true));
    assert_true(stw_json_is(stw_json_get(root, "control"), "\x01\t\x7f"));
    stw_log(STW_LOG_WARN, "the context is gone");
    assert_null(strstr(logged(), "myweb"));
}

/* However long the parts are, a line is at most 16 KiB and still JSON. */
static void test_long_log_lines_are_truncated(void **state)
{
    (void)state;
    stw_log_setup(STW_LOG_JSON, STW_LOG_INFO, fd);
    for (size_t len = 16000; len < 16700; len++) {
        stw_autofree char *value = malloc(len + 1);
        stw_autojson struct stw_json_doc doc = {0};
        assert_non_null(value);
        memset(value, len % 3 ? 'x' : '\xff', len);
        value[len] = '\0';
        if (len % 2)
            stw_log(STW_LOG_INFO, "m", STW_STR("a", value), STW_INT("b", 123456789));
        else
            stw_log(STW_LOG_INFO, value, STW_STR("a", value), STW_STR("b", value));
        const char *line = logged();
        assert_true(strlen(line) <= 16384);
        assert_int_equal(stw_json_scan(&doc, line, strlen(line), NULL), 0);
    }
}

static void *log_lines(void *arg)
{
    const struct stw_log_field own[] = {{.key = "thread", .str = arg}, {0}};
    stw_log_context(own);
    for (int i = 0; i < 500; i++)
        stw_log(STW_LOG_INFO, "line", STW_STR("again", arg), STW_INT("i", i));
    stw_log_context(NULL);
    return NULL;
}

/* Lines of several threads do not mix, nor do their contexts. */
static void test_log_lines_of_threads_do_not_mix(void **state)
{
    (void)state;
    char names[4][8] = {"t0", "t1", "t2", "t3"};
    pthread_t ids[4];
    unsigned count = 0;

    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, fd);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, log_lines, names[i]), 0);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_join(ids[i], NULL), 0);
    (void)logged();
    char *rest = text;
    for (char *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n")) {
        char a[8], b[8];
        int i;
        assert_int_equal(
            sscanf(behind_time(line), "INFO  line thread=%7s again=%7s i=%d", a, b, &i), 3);
        assert_string_equal(a, b);
        count++;
    }
    assert_int_equal(count, 2000);
}

static void test_log_level_names_are_parsed(void **state)
{
    (void)state;
    enum stw_log_level level = STW_LOG_DEBUG;
    enum stw_log_format format = STW_LOG_JSON;
    assert_int_equal(stw_log_level_parse("error", &level), 0);
    assert_int_equal(level, STW_LOG_ERROR);
    assert_int_equal(stw_log_level_parse("Error", &level), -1);
    assert_int_equal(stw_log_level_parse("", &level), -1);
    assert_int_equal(level, STW_LOG_ERROR);
    assert_int_equal(stw_log_format_parse("text", &format), 0);
    assert_int_equal(format, STW_LOG_TEXT);
    assert_int_equal(stw_log_format_parse("json", &format), 0);
    assert_int_equal(format, STW_LOG_JSON);
    assert_int_equal(stw_log_format_parse("xml", &format), -1);
}

static int setup(void **state)
{
    char path[] = "/tmp/stw-log-XXXXXX";
    *state = NULL;
    seen = 0;
    fd = mkstemp(path);
    return fd < 0 ? -1 : unlink(path);
}

static int teardown(void **state)
{
    (void)state;
    stw_log_setup(STW_LOG_TEXT, STW_LOG_INFO, 2);
    return close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_log_text_format, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_values_have_no_control_characters, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_log_level_filters_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_json_format, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_log_lines_are_truncated, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_lines_of_threads_do_not_mix, setup, teardown),
        cmocka_unit_test(test_log_level_names_are_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
