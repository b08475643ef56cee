/* SPDX-License-Identifier: Apache-2.0
 *
 * Credential plugins: shell scripts.  The attacker is a plugin that fails in any way, and the
 * secret is what it prints. */
#include "base/base64.h"
#include "base/util.h"
#include "kube/client/client_priv.h"
#include "kube/client/exec.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

#define V1 "client.authentication.k8s.io/v1"
#define V1BETA1 "client.authentication.k8s.io/v1beta1"
#define SECRET "hunter2"
/* A script that prints an answer with this status. */
#define ANSWER(status)                                                                             \
    "cat <<'END'\n{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":" status       \
    "}\nEND\n"

static char dir[64];
static struct stw_kubeconfig *config;
static struct stw_exec_answer answer;
static struct stw_error err;

static const char *in_dir(const char *name)
{
    static char path[256];
    stw_format(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static int set_up(void **state)
{
    (void)state;
    stw_format(dir, sizeof(dir), "/tmp/steward-exec-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"plugin", "runs", "cert", "key"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(names); i++)
        (void)unlink(in_dir(names[i]));
    return rmdir(dir);
}

static int clear(void **state)
{
    (void)state;
    stw_exec_answer_done(&answer);
    stw_kubeconfig_destroy(config);
    config = NULL;
    return 0;
}

static void write_script(const char *script)
{
    FILE *f = fopen(in_dir("plugin"), "w");
    assert_non_null(f);
    assert_true(fprintf(f, "#!/bin/sh\n%s\n", script) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(in_dir("plugin"), 0700), 0);
}

/* `fields` follow the command: ", args: [x]". */
static int read_config(const char *version, const char *command, const char *fields)
{
    char text[4096];
    stw_kubeconfig_destroy(config);
    config = NULL;
    err = (struct stw_error){0};
    stw_format(text, sizeof(text),
               "current-context: c\n"
               "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
               "clusters: [{name: k, cluster: {server: 'https://h:1', tls-server-name: api, "
               "proxy-url: 'http://p:3', certificate-authority-data: Zm9v, extensions: [{name: "
               "client.authentication.k8s.io/exec, extension: {audience: here}}]}}]\n"
               "users: [{name: u, user: {exec: {apiVersion: %s, command: '%s'%s}}}]\n",
               version, command, fields);
    return stw_kubeconfig_parse("f", text, strlen(text), dir, NULL, &config, &err);
}

static int run_script(const char *script, const char *fields)
{
    char more[1024];
    write_script(script);
    stw_format(more, sizeof(more), ", interactiveMode: Never%s", fields);
    if (read_config(V1, "./plugin", more) != 0)
        fail_msg("%s", err.text);
    stw_exec_answer_done(&answer);
    config->exec->timeout_ms = 20000;
    return stw_exec_run(config->exec, &answer, &err);
}

static void test_plugin_token_is_read(void **state)
{
    (void)state;
    if (run_script(ANSWER("{\"token\":\"abc\",\"expirationTimestamp\":\"2030-01-02T03:04:05Z\"}"),
                   "") != 0)
        fail_msg("%s", err.text);
    assert_string_equal(answer.token, "abc");
    assert_null(answer.cert_pem);
    assert_int_equal(answer.expires_us, 1893553445000000);
    assert_int_equal(run_script(ANSWER("{\"token\":\"abc\"}"), ""), 0);
    assert_int_equal(answer.expires_us, INT64_MAX);
}

/* Arguments and variables arrive, the last of two variables holds, ours are there too. */
static void test_plugin_gets_arguments_and_variables(void **state)
{
    (void)state;
    assert_int_equal(setenv("OURS", "o", 1), 0);
    assert_int_equal(setenv("KUBERNETES_EXEC_INFO", "wrong", 1), 0);
    assert_int_equal(
        run_script("printf '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":"
                   "{\"token\":\"%s\"}}' \"$#-$1-$2-$A-$OURS\"",
                   ", args: [x, 'y z'], env: [{name: A, value: '1'}, {name: A, value: '2'}]"),
        -1);
    assert_non_null(strstr(err.text, "cannot be sent in a header")); /* the blank */
    assert_int_equal(
        run_script("printf '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":"
                   "{\"token\":\"%s\"}}' \"$#-$1-$2-$A-$OURS\"",
                   ", args: [x, yz], env: [{name: A, value: '1'}, {name: A, value: '2'}]"),
        0);
    assert_string_equal(answer.token, "2-x-yz-2-o");
}

static void test_plugin_gets_the_cluster_info(void **state)
{
    static const char script[] =
        "printf '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":"
        "{\"token\":\"%s\"}}' \"$(printf %s \"$KUBERNETES_EXEC_INFO\" | base64 -w0)\"";
    static const char small[] = "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\","
                                "\"spec\":{\"interactive\":false}}";
    static const char whole[] =
        "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"spec\":{\"interactive\":false,"
        "\"cluster\":{\"server\":\"https://h:1\",\"tls-server-name\":\"api\","
        "\"certificate-authority-data\":\"Zm9v\",\"proxy-url\":\"http://p:3\","
        "\"config\":{\"audience\":\"here\"}}}}";
    stw_autobuf struct stw_buf want = STW_BUF_INIT(4096);
    (void)state;
    if (run_script(script, "") != 0)
        fail_msg("%s", err.text);
    stw_base64_encode(small, sizeof(small) - 1, &want);
    assert_string_equal(answer.token, stw_buf_str(&want));
    assert_int_equal(run_script(script, ", provideClusterInfo: true"), 0);
    stw_buf_clear(&want);
    stw_base64_encode(whole, sizeof(whole) - 1, &want);
    assert_string_equal(answer.token, stw_buf_str(&want));
}

static void test_plugin_failures_are_reported_without_output(void **state)
{
    static const struct {
        const char *script, *want;
    } rows[] = {
        {"echo " SECRET, "is not JSON"},
        {"echo '{\"" SECRET "\":'", "is not JSON"},
        {":", "printed nothing"},
        {"echo " SECRET "; echo " SECRET " >&2; exit 7", "failed with status 7"},
        {"kill -9 $$", "was ended by signal 9"},
        {"yes " SECRET, "printed more than 1048576 bytes"},
        {"read x || exit 9; " ANSWER("{\"token\":\"abc\"}"), "failed with status 9"},
        {"read x </dev/tty || exit 8; " ANSWER("{\"token\":\"abc\"}"), "failed with status"},
        {"echo '[]'", "is not an ExecCredential"},
        {"echo '{\"kind\":\"" SECRET "\"}'", "is not an ExecCredential"},
        {"echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1BETA1 "\"}'",
         "another apiVersion"},
        {ANSWER("{}"), "neither a token nor"},
        {ANSWER("\"" SECRET "\""), "neither a token nor"},
        {ANSWER("{\"token\":\"\"}"), "neither a token nor"},
        {ANSWER("{\"token\":\"" SECRET "\\r\\nX: y\"}"), "cannot be sent in a header"},
        {ANSWER("{\"clientCertificateData\":\"" SECRET "\"}"), "only one of"},
        {ANSWER("{\"clientCertificateData\":\"" SECRET "\",\"clientKeyData\":\"x\"}"),
         "do not belong together"},
        {ANSWER("{\"token\":\"t\",\"expirationTimestamp\":\"" SECRET "\"}"), "is not a time"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        if (run_script(rows[i].script, "") == 0 || !strstr(err.text, rows[i].want))
            fail_msg("row %zu: %s", i, err.text);
        assert_non_null(strstr(err.text, "f: user \"u\": the credential plugin "));
        assert_null(strstr(err.text, SECRET));
        assert_null(answer.token);
    }
}

/* What it asks for on standard input is not answered by ours. */
static void test_plugin_does_not_read_our_input(void **state)
{
    int ends[2], saved = dup(STDIN_FILENO);
    char left[8] = "";
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "ours\n", 5), 5);
    (void)close(ends[1]);
    assert_int_equal(dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
    assert_int_equal(run_script("read x && exit 5; exit 6", ""), -1);
    assert_non_null(strstr(err.text, "status 6"));
    assert_int_equal(read(ends[0], left, sizeof(left)), 5);
    assert_int_equal(read_config(V1, "./plugin", ", interactiveMode: Always"), 0);
    assert_int_equal(stw_exec_run(config->exec, &answer, &err), -1);
    assert_non_null(strstr(err.text, "there is no terminal"));
    (void)close(ends[0]);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    (void)close(saved);
}

static void test_hanging_plugin_is_killed(void **state)
{
    (void)state;
    write_script("echo " SECRET "; sleep 1000");
    assert_int_equal(read_config(V1BETA1, "./plugin", ""), 0);
    config->exec->timeout_ms = 300;
    assert_int_equal(stw_exec_run(config->exec, &answer, &err), -1);
    assert_int_equal(err.code, STW_ERR_TIMEOUT);
    assert_non_null(strstr(err.text, "did not end in 1 s"));
    assert_null(strstr(err.text, SECRET));
}

static void test_missing_plugin_shows_its_hint(void **state)
{
    (void)state;
    assert_int_equal(read_config(V1, "steward-no-such-plugin",
                                 ", interactiveMode: Never, installHint: \"get it\\nhere\""),
                     0);
    assert_int_equal(stw_exec_run(config->exec, &answer, &err), -1);
    assert_non_null(strstr(err.text, "steward-no-such-plugin is not installed: get it here"));
    assert_int_equal(read_config(V1, "./absent", ", interactiveMode: Never"), 0);
    assert_int_equal(stw_exec_run(config->exec, &answer, &err), -1);
    assert_non_null(strstr(err.text, "/./absent is not installed"));
    write_script("exit 0");
    assert_int_equal(chmod(in_dir("plugin"), 0600), 0);
    assert_int_equal(read_config(V1, "./plugin", ", interactiveMode: Never"), 0);
    assert_int_equal(stw_exec_run(config->exec, &answer, &err), -1);
    assert_non_null(strstr(err.text, geteuid() == 0 ? "" : "may not be executed"));
}

static void test_invalid_plugin_descriptions_are_refused(void **state)
{
    static const struct {
        const char *version, *command, *fields, *want;
    } rows[] = {
        {"client.authentication.k8s.io/v1alpha1", "x", "", "exec.apiVersion must be"},
        {V1, "x", "", "exec.interactiveMode must be"},
        {V1, "x", ", interactiveMode: Sometimes", "exec.interactiveMode must be"},
        {V1, "", ", interactiveMode: Never", "exec.command must be"},
        {V1BETA1, "x", ", args: y", "exec.args must be a list"},
        {V1BETA1, "x", ", args: [1]", "exec.args must be a list of texts"},
        {V1BETA1, "x", ", env: [{value: v}]", "exec.env must be a list of"},
        {V1BETA1, "x", ", env: [{name: 'a=b', value: v}]", "exec.env must be a list of"},
        {V1BETA1, "x", ", env: {}", "exec.env must be a list"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++)
        if (read_config(rows[i].version, rows[i].command, rows[i].fields) == 0 ||
            !strstr(err.text, rows[i].want))
            fail_msg("row %zu: %s", i, err.text);
}

static void test_user_token_precedes_the_plugin(void **state)
{
    (void)state;
    assert_int_equal(read_config(V1BETA1, "x", "}, token: t, z: {a: b"), 0);
    assert_null(config->exec);
    assert_string_equal(config->token, "t");
}

/* Each run returns another token: one that has expired, or was refused, is replaced. */
static void test_expired_plugin_token_is_renewed(void **state)
{
    struct stw_auth auth = {0};
    stw_autobuf struct stw_buf header = STW_BUF_INIT(1000);
    char script[1024];
    (void)state;
    (void)unlink(in_dir("runs"));
    stw_format(script, sizeof(script),
               "echo x >> %s; printf '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\","
               "\"status\":{\"token\":\"t%%s\",\"expirationTimestamp\":\"2020-01-01T00:00:00Z\"}}' "
               "$(wc -l < %s)",
               in_dir("runs"), in_dir("runs"));
    assert_int_equal(run_script(script, ""), 0); /* t1 */
    assert_int_equal(stw_auth_init(&auth, config, 1000, &err), 0);
    assert_true(stw_auth_replaceable(&auth));
    stw_auth_refresh(&auth, 2000, false); /* too early to run it again */
    stw_auth_header(&auth, &header);
    assert_string_equal(stw_buf_str(&header), "Authorization: Bearer t2");
    stw_auth_refresh(&auth, 20000, false);
    stw_auth_refresh(&auth, 20001, true);
    stw_buf_clear(&header);
    stw_auth_header(&auth, &header);
    assert_string_equal(stw_buf_str(&header), "Authorization: Bearer t4");
    write_script("exit 1"); /* the old one stays */
    stw_auth_refresh(&auth, 20002, true);
    stw_buf_clear(&header);
    stw_auth_header(&auth, &header);
    assert_string_equal(stw_buf_str(&header), "Authorization: Bearer t4");
    stw_auth_done(&auth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_plugin_token_is_read, clear),
        cmocka_unit_test_teardown(test_plugin_gets_arguments_and_variables, clear),
        cmocka_unit_test_teardown(test_plugin_gets_the_cluster_info, clear),
        cmocka_unit_test_teardown(test_plugin_failures_are_reported_without_output, clear),
        cmocka_unit_test_teardown(test_plugin_does_not_read_our_input, clear),
        cmocka_unit_test_teardown(test_hanging_plugin_is_killed, clear),
        cmocka_unit_test_teardown(test_missing_plugin_shows_its_hint, clear),
        cmocka_unit_test_teardown(test_invalid_plugin_descriptions_are_refused, clear),
        cmocka_unit_test_teardown(test_user_token_precedes_the_plugin, clear),
        cmocka_unit_test_teardown(test_expired_plugin_token_is_renewed, clear),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
