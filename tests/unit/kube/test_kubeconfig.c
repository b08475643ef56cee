/* SPDX-License-Identifier: Apache-2.0 */
#include "base/util.h"
#include "kube/config/kubeconfig_priv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[4][256];
    static unsigned turn;
    char *p = path[turn++ % 4];
    (void)snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
    return p;
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof(dir), "/tmp/steward-kubeconfig-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    write_file("ca.crt", "CA PEM\n");
    write_file("token", "tok\n");
    write_file("namespace", "home\n");
    return 0;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"ca.crt", "token", "namespace", "a", "b"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(names); i++)
        (void)unlink(in_dir(names[i]));
    return rmdir(dir);
}

#define HEAD                                                                                       \
    "current-context: c\n"                                                                         \
    "contexts: [{name: c, context: {cluster: k, user: u, namespace: here}}]\n"
#define CLUSTER "clusters: [{name: k, cluster: {server: 'https://h:1/'}}]\n"

static struct stw_kubeconfig *parse(const char *text)
{
    struct stw_kubeconfig *c = NULL;
    struct stw_error err;
    if (stw_kubeconfig_parse("f", text, strlen(text), dir, NULL, &c, &err) < 0)
        fail_msg("%s", err.text);
    return c;
}

static void test_kubeconfig_fields_are_read(void **state)
{
    (void)state;
    struct stw_kubeconfig *c =
        parse(HEAD "clusters: [{name: k, cluster: {server: 'https://h:1//', "
                   "certificate-authority: ca.crt, tls-server-name: api.example, "
                   "proxy-url: 'http://p:2'}}]\n"
                   "users: [{name: u, user: {client-certificate-data: Zm9v, "
                   "client-key-data: YmFy, client-key: absent, token: t, "
                   "tokenFile: token, username: me, password: pw}}]\n");
    assert_string_equal(c->server, "https://h:1");
    assert_string_equal(c->ca_pem, "CA PEM\n");
    assert_string_equal(c->ca_path, in_dir("ca.crt"));
    assert_string_equal(c->tls_server_name, "api.example");
    assert_string_equal(c->proxy_url, "http://p:2");
    assert_string_equal(c->cert_pem, "foo");
    assert_string_equal(c->key_pem, "bar");
    assert_string_equal(c->token, "t");
    assert_string_equal(c->token_path, in_dir("token"));
    assert_string_equal(c->username, "me");
    assert_string_equal(c->password, "pw");
    assert_string_equal(c->ns, "here");
    assert_string_equal(c->source, "f");
    assert_false(c->insecure);
    struct stw_kubeconfig *copy = stw_kubeconfig_copy(c);
    assert_string_equal(copy->token_path, c->token_path);
    stw_kubeconfig_destroy(copy);
    stw_kubeconfig_destroy(c);
}

static void test_client_certificate_is_read_by_path(void **state)
{
    (void)state;
    struct stw_kubeconfig *c =
        parse(HEAD "clusters: [{name: k, cluster: {server: 'https://h'}}]\n"
                   "users: [{name: u, user: {client-certificate: ca.crt, client-key: token}}]\n");
    assert_string_equal(c->cert_pem, "CA PEM\n");
    assert_string_equal(c->cert_path, in_dir("ca.crt"));
    assert_string_equal(c->key_path, in_dir("token"));
    struct stw_kubeconfig *copy = stw_kubeconfig_copy(c);
    assert_string_equal(copy->cert_path, c->cert_path);
    assert_string_equal(copy->key_path, c->key_path);
    stw_kubeconfig_destroy(copy);
    stw_kubeconfig_destroy(c);
}

static void test_inline_data_precedes_paths(void **state)
{
    (void)state;
    struct stw_kubeconfig *c =
        parse("current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
              "clusters: [{name: k, cluster: {server: 'http://h', certificate-authority: absent, "
              "certificate-authority-data: Zm9v}}]\n");
    assert_string_equal(c->ca_pem, "foo");
    assert_null(c->ca_path);
    assert_null(c->token);
    assert_null(c->ns);
    stw_kubeconfig_destroy(c);
}

static void test_invalid_kubeconfigs_are_refused(void **state)
{
    static const struct {
        const char *text, *want; /* a part of the error */
    } rows[] = {
        {"", "f: current-context is not set"},
        {"a: [", "f:"},
        {"current-context: x\n", "f: there is no context \"x\""},
        {HEAD, "names cluster \"k\", which is not there"},
        {HEAD CLUSTER, "names user \"u\", which is not there"},
        {HEAD CLUSTER "users: [{name: u, user: {exec: {command: aws}}}]",
         "exec.apiVersion must be"},
        {HEAD CLUSTER "users: [{name: u, user: {auth-provider: {name: gcp}}}]", "ServiceAccount"},
        {HEAD CLUSTER "users: [{name: u, user: {as-groups: [g]}}]",
         "user \"u\": as-uid, as-groups"},
        {HEAD CLUSTER "users: [{name: u, user: {as-uid: x}}]", "need `as`"},
        {HEAD CLUSTER "users: [{name: u, user: {as: \"a\\nb\"}}]", "as must be texts of one line"},
        {HEAD CLUSTER "users: [{name: u, user: {as: 7}}]", "as must be texts"},
        {HEAD CLUSTER "users: [{name: u, user: {as: a, as-groups: g}}]",
         "as-groups must be a list"},
        {HEAD CLUSTER "users: [{name: u, user: {as: a, as-user-extra: {k: \"v\"}}}]",
         "must be a list"},
        {HEAD CLUSTER "users: [{name: u, user: {as: a, as-user-extra: {k: [\"v\\r\\nX: y\"]}}}]",
         "texts of one line"},
        {HEAD CLUSTER "users: [{name: u, user: {as: a, as-user-extra: {'': [v]}}}]",
         "a key that is"},
        {HEAD CLUSTER "users: [{name: u, user: {token: 7}}]", "token must be a string"},
        {HEAD CLUSTER "users: [{name: u, user: {client-key-data: '?'}}]", "client-key-data is not"},
        {HEAD CLUSTER "users: [{name: u, user: {client-key-data: Zm9v}}]", "both are needed"},
        {HEAD CLUSTER "users: [{name: u, user: {client-key: absent}}]", "client-key"},
        {HEAD "clusters: [{name: k, cluster: {server: 'h:1'}}]", "must be a URL"},
        {HEAD "clusters: [{name: k, cluster: {server: 'https://u:p@h'}}]", "must be a URL"},
        {HEAD "clusters: [{name: k, cluster: {server: 'https:///x'}}]", "must be a URL"},
        {HEAD "clusters: [{name: k, cluster: {}}]", "must be a URL"},
        {HEAD "clusters: [{name: k, cluster: {server: 'https://h', insecure-skip-tls-verify: true, "
              "certificate-authority-data: Zm9v}}]",
         "remove one"},
        {HEAD "clusters: {}\n", "names cluster"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        struct stw_kubeconfig *c = NULL;
        struct stw_error err = {0};
        const char *text = rows[i].text;
        int r = stw_kubeconfig_parse("f", text, strlen(text), dir, NULL, &c, &err);
        if (r == 0 || c || !strstr(err.text, rows[i].want))
            fail_msg("row %zu: %s", i, err.text);
    }
}

static void test_impersonation_is_read(void **state)
{
    (void)state;
    struct stw_kubeconfig *c =
        parse(HEAD CLUSTER "users: [{name: u, user: {token: t, as: jane, as-uid: '7', as-groups: "
                           "[a, b], as-user-extra: {Scopes: [s1, s2], 'example.com/q%': [z]}}}]\n");
    assert_string_equal(c->impersonation, "Impersonate-User: jane\n"
                                          "Impersonate-Uid: 7\n"
                                          "Impersonate-Group: a\n"
                                          "Impersonate-Group: b\n"
                                          "Impersonate-Extra-Scopes: s1\n"
                                          "Impersonate-Extra-Scopes: s2\n"
                                          "Impersonate-Extra-example.com%2Fq%25: z\n");
    struct stw_kubeconfig *copy = stw_kubeconfig_copy(c);
    assert_string_equal(copy->impersonation, c->impersonation);
    stw_kubeconfig_destroy(copy);
    stw_kubeconfig_destroy(c);
}

/* A server never runs what a kubeconfig names. */
static void test_servers_ignore_credential_plugins(void **state)
{
    struct stw_kubeconfig *c = NULL;
    struct stw_error err = {0};
    (void)state;
    write_file("a", HEAD CLUSTER "users: [{name: u, user: {exec: {command: aws, apiVersion: "
                                 "client.authentication.k8s.io/v1beta1}}}]\n");
    assert_int_equal(stw_kubeconfig_load(in_dir("a"), NULL, &c, &err), -1);
    assert_non_null(strstr(err.text, "user \"u\" has exec"));
    assert_non_null(strstr(err.text, "ServiceAccount"));
    assert_null(c);
    assert_int_equal(stw_kubeconfig_load_for_person(in_dir("a"), NULL, &c, &err), 0);
    assert_non_null(c->exec);
    struct stw_kubeconfig *copy = stw_kubeconfig_copy(c);
    stw_kubeconfig_destroy(c);
    assert_non_null(copy->exec);
    stw_kubeconfig_destroy(copy);
}

static void test_named_context_is_used(void **state)
{
    const char *text =
        "contexts: [{name: a, context: {cluster: x}}, {name: b, context: {cluster: w}}]\n"
        "clusters: [{name: x, cluster: {server: 'http://x'}}, {name: w, cluster: "
        "{server: 'http://w'}}]\n";
    struct stw_kubeconfig *c = NULL;
    struct stw_error err;
    (void)state;
    assert_int_equal(stw_kubeconfig_parse("f", text, strlen(text), dir, "b", &c, &err), 0);
    assert_string_equal(c->server, "http://w");
    stw_kubeconfig_destroy(c);
}

/* The first file that has a name provides the whole entry; missing files of the list are
 * ignored. */
static void test_kubeconfig_files_are_merged(void **state)
{
    char list[600];
    struct stw_kubeconfig *c = NULL;
    struct stw_error err = {0};
    (void)state;
    write_file("a", "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                    "users: [{name: u, user: {token: first}}]\n");
    write_file("b", HEAD "clusters: [{name: k, cluster: {server: 'http://b', "
                         "certificate-authority: ca.crt}}]\n"
                         "users: [{name: u, user: {token: second, username: x}}]\n");
    (void)snprintf(list, sizeof(list), "%s::%s:%s", in_dir("absent"), in_dir("a"), in_dir("b"));
    assert_int_equal(setenv("KUBECONFIG", list, 1), 0);
    if (stw_kubeconfig_load(NULL, NULL, &c, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(c->server, "http://b");
    assert_string_equal(c->token, "first");
    assert_null(c->username);
    assert_null(c->ns);
    assert_string_equal(c->ca_path, in_dir("ca.crt"));
    stw_kubeconfig_destroy(c);
    c = NULL;
    /* the flag overrides the list */
    assert_int_equal(stw_kubeconfig_load(in_dir("b"), NULL, &c, &err), 0);
    assert_string_equal(c->token, "second");
    stw_kubeconfig_destroy(c);
    c = NULL;
    assert_int_equal(stw_kubeconfig_load(in_dir("absent"), NULL, &c, &err), -1);
    assert_non_null(strstr(err.text, "absent"));
    assert_int_equal(setenv("KUBECONFIG", in_dir("absent"), 1), 0);
    assert_int_equal(stw_kubeconfig_load(NULL, NULL, &c, &err), -1);
    assert_non_null(strstr(err.text, "KUBECONFIG"));
    assert_int_equal(unsetenv("KUBECONFIG"), 0);
}

static void test_in_cluster_config_is_read(void **state)
{
    struct stw_kubeconfig *c = NULL;
    struct stw_error err;
    (void)state;
    assert_int_equal(stw_kubeconfig_in_cluster("10.0.0.1", "443", dir, &c, &err), 0);
    assert_string_equal(c->server, "https://10.0.0.1:443");
    assert_string_equal(c->ns, "home");
    assert_string_equal(c->token_path, in_dir("token"));
    assert_string_equal(c->ca_pem, "CA PEM\n");
    assert_string_equal(c->source, "in-cluster");
    stw_kubeconfig_destroy(c);
    c = NULL;
    assert_int_equal(stw_kubeconfig_in_cluster("fd00::1", "6443", dir, &c, &err), 0);
    assert_string_equal(c->server, "https://[fd00::1]:6443");
    stw_kubeconfig_destroy(c);
    c = NULL;
    assert_int_equal(stw_kubeconfig_in_cluster("h", "1", "/nowhere", &c, &err), -1);
    assert_non_null(strstr(err.text, "/nowhere/token"));
    assert_null(c);
}

static void test_oversized_kubeconfig_is_refused(void **state)
{
    size_t len = STW_KUBECONFIG_MAX_BYTES + 1;
    struct stw_kubeconfig *c = NULL;
    struct stw_error err;
    char *text = malloc(len);
    (void)state;
    assert_non_null(text);
    memset(text, '#', len);
    assert_int_equal(stw_kubeconfig_parse("f", text, len, dir, NULL, &c, &err), -1);
    assert_int_equal(err.code, STW_ERR_TOO_LARGE);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kubeconfig_fields_are_read),
        cmocka_unit_test(test_client_certificate_is_read_by_path),
        cmocka_unit_test(test_inline_data_precedes_paths),
        cmocka_unit_test(test_invalid_kubeconfigs_are_refused),
        cmocka_unit_test(test_impersonation_is_read),
        cmocka_unit_test(test_servers_ignore_credential_plugins),
        cmocka_unit_test(test_named_context_is_used),
        cmocka_unit_test(test_kubeconfig_files_are_merged),
        cmocka_unit_test(test_in_cluster_config_is_read),
        cmocka_unit_test(test_oversized_kubeconfig_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
