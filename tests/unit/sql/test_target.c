/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/target/target.h"

#include "support/judge.h"

#define ADMIN "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/run/pw\"}"
#define ONE(members) "{\"targets\":[{" members "}]}"
#define SETTING                                                                                    \
    "must be the name of a setting in lower case, and not one that changes whose rights a "        \
    "session "                                                                                     \
    "has, loads libraries, or changes what is logged\n"
#define BASE "\"name\":\"orders\",\"engine\":\"mariadb\",\"host\":\"db\""
#define WITH(members) ONE(BASE "," ADMIN "," members)

/* Returns errors as lines, then warnings as "W: ..."  lines.  Sets `*ret` to NULL if the list is
 * refused. */
static char *parse(const char *text, struct stw_targets **ret)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    struct stw_buf out = STW_BUF_INIT(1 << 20);
    struct stw_targets *list = NULL;
    scan(&doc, text);
    int rc = stw_targets_parse(stw_json_get(stw_json_root(&doc), "targets"), &list, &f);
    assert_false(f.failed);
    assert_int_equal(rc, f.error_count ? -1 : 0);
    assert_int_equal(list != NULL, rc == 0);
    for (size_t i = 0; i < f.error_count; i++) {
        stw_finding_text(&f.errors[i], &out);
        stw_buf_addc(&out, '\n');
    }
    for (size_t i = 0; i < f.warning_count; i++)
        stw_buf_addf(&out, "W: %s\n", f.warnings[i]);
    if (ret)
        *ret = list;
    else
        stw_targets_unref(list);
    return stw_buf_take(&out);
}

static struct stw_targets *good(const char *text)
{
    struct stw_targets *list;
    stw_autofree char *said = parse(text, &list);
    assert_string_equal(said, "");
    return list;
}

/* '*' and "{namespace}" in the three lists; an absent list has its default. */
static void test_target_patterns_match(void **state)
{
    struct stw_targets *list = good(
        "{\"targets\":[{" BASE "," ADMIN "},{\"name\":\"pg\",\"engine\":\"postgresql\",\"host\":"
        "\"h\"," ADMIN ",\"allowedDatabases\":[\"a*c*e\",\"x-{namespace}-{namespace}\"],"
        "\"allowAdoption\":[\"{namespace}\"],\"allowedOwners\":[\"*\"],"
        "\"allowedRoles\":[\"{namespace}_*\"]},"
        "{\"name\":\"none\",\"engine\":\"mysql\",\"host\":\"h\"," ADMIN
        ",\"allowedDatabases\":[]}]}");
    const struct stw_target *own = stw_targets_at(list, 0), *pg = stw_targets_at(list, 1);
    (void)state;
    assert_true(stw_target_allows_database(own, "shop", "shop_1"));
    assert_false(stw_target_allows_database(own, "shop", "xshop"));
    assert_false(stw_target_allows_database(own, NULL, "shop"));
    assert_false(stw_target_allows_adoption(own, "shop", "shop"));
    assert_false(stw_target_allows_owner(own, "shop", "shop"));
    assert_false(stw_target_allows_database(stw_targets_at(list, 2), "shop", "shop"));
    assert_true(stw_target_allows_database(pg, NULL, "abcde"));
    assert_true(stw_target_allows_database(pg, NULL, "acce"));
    assert_false(stw_target_allows_database(pg, NULL, "abcd"));
    assert_false(stw_target_allows_database(pg, NULL, "abde"));
    assert_true(stw_target_allows_database(pg, "n", "x-n-n"));
    assert_false(stw_target_allows_database(pg, "n", "x-n-m"));
    assert_false(stw_target_allows_database(pg, "n", "x-{namespace}-{namespace}"));
    assert_true(stw_target_allows_adoption(pg, "n", "n"));
    assert_false(stw_target_allows_adoption(pg, "n", "nn"));
    assert_true(stw_target_allows_owner(pg, "n", ""));
    assert_true(stw_target_allows_role(pg, "n", "n_readers"));
    assert_false(stw_target_allows_role(pg, "n", "m_readers"));
    assert_false(stw_target_allows_role(own, "n", "n_readers"));
    assert_true(stw_target_allows_privilege(pg, "GRANT OPTION"));
    stw_targets_unref(list);
}

/* A misspelt pattern must not become a name that does not exist, or match all names. */
static void test_invalid_target_patterns_are_refused(void **state)
{
    stw_autofree char *said = parse(
        WITH("\"allowedDatabases\":[\"{ns}\",\"{namespace\",\"}\",\"\"],\"allowedOwners\":[]"),
        NULL);
    (void)state;
    assert_string_equal(
        said,
        "targets[0].allowedDatabases[0]: Invalid value: \"{ns}\": braces must be part of "
        "\"{namespace}\"\n"
        "targets[0].allowedDatabases[1]: Invalid value: \"{namespace\": braces must be part of "
        "\"{namespace}\"\n"
        "targets[0].allowedDatabases[2]: Invalid value: \"}\": braces must be part of "
        "\"{namespace}\"\n"
        "targets[0].allowedDatabases[3]: Required value\n"
        "targets[0].allowedOwners: Invalid value: not supported on mariadb\n");
}

static void test_absent_target_list_is_empty(void **state)
{
    static const char *const texts[] = {"{}", "{\"targets\":null}", "{\"targets\":[]}"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(texts); i++) {
        struct stw_targets *list = good(texts[i]);
        assert_int_equal(stw_targets_count(list), 0);
        assert_null(stw_targets_find(list, "orders"));
        assert_null(stw_targets_at(list, 0));
        stw_targets_unref(list);
    }
    assert_int_equal(stw_targets_count(NULL), 0);
    assert_null(stw_targets_find(NULL, "orders"));
    assert_null(stw_targets_default(NULL));
    stw_targets_unref(stw_targets_ref(NULL));
}

static void test_omitted_target_fields_have_defaults(void **state)
{
    struct stw_targets *list = good(
        "{\"targets\":[{" BASE "," ADMIN "},{\"name\":\"pg\",\"engine\":\"postgresql\",\"host\":"
        "\"::1\",\"admin\":{\"user\":\"boss\",\"passwordSecret\":{\"name\":\"s\"}}},"
        "{\"name\":\"my\",\"engine\":\"mysql\",\"host\":\"h\"," ADMIN "}]}");
    (void)state;
    assert_int_equal(stw_targets_count(list), 3);
    const struct stw_target *t = stw_targets_find(list, "ORDERS");
    assert_ptr_equal(t, stw_targets_at(list, 0));
    assert_string_equal(t->name, "orders");
    assert_int_equal(t->engine, STW_ENGINE_MARIADB);
    assert_int_equal(t->port, 3306);
    assert_string_equal(t->admin_user, "chief");
    assert_string_equal(t->password_file, "/run/pw");
    assert_null(t->secret_name);
    assert_null(t->secret_key);
    assert_null(t->admin_database);
    assert_int_equal(t->tls_mode, STW_TLS_VERIFY_FULL);
    assert_null(t->tls_ca_file);
    assert_null(t->allowed_namespaces);
    assert_null(t->allowed_privileges);
    assert_false(t->allow_all_databases);
    assert_false(t->allow_iam);
    assert_null(t->certificate_file);
    assert_null(stw_targets_default(list));
    assert_int_equal(t->max_users, 0);
    assert_int_equal(t->max_connections, 4);
    assert_int_equal(t->connect_timeout_seconds, 5);
    assert_int_equal(t->statement_timeout_seconds, 10);
    assert_int_equal(t->ping_seconds, 15);
    t = stw_targets_find(list, "pg");
    assert_int_equal(t->port, 5432);
    assert_string_equal(t->admin_database, "postgres");
    assert_string_equal(t->secret_name, "s");
    assert_string_equal(t->secret_key, "password");
    assert_null(t->password_file);
    assert_int_equal(stw_targets_find(list, "my")->port, 3306);
    assert_null(stw_targets_find(list, "order"));
    stw_targets_unref(list);
}

static void test_target_fields_are_read(void **state)
{
    struct stw_targets *list = good(
        ONE("\"name\":\"a.B_c-1\",\"engine\":\"postgresql\",\"host\":\"10.0.0.1\",\"port\":5433,"
            "\"admin\":{\"user\":\"u\",\"database\":\"admin\",\"passwordSecret\":{\"name\":\"s\","
            "\"key\":\"k\"}},\"tls\":{\"mode\":\"VerifyCA\",\"caFile\":\"/ca.pem\"},"
            "\"allowedNamespaces\":[\"a\",\"b\"],\"allowedPrivileges\":[\"SELECT\","
            "\"GRANT OPTION\"],\"allowIAM\":true,\"maxUsers\":9,\"maxConnections\":1,"
            "\"connectTimeoutSeconds\":2,\"statementTimeoutSeconds\":3,\"pingSeconds\":0"));
    const struct stw_target *t = stw_targets_at(list, 0);
    (void)state;
    assert_int_equal(t->port, 5433);
    assert_string_equal(t->admin_database, "admin");
    assert_string_equal(t->secret_key, "k");
    assert_int_equal(t->tls_mode, STW_TLS_VERIFY_CA);
    assert_string_equal(t->tls_ca_file, "/ca.pem");
    assert_string_equal(t->allowed_namespaces[1], "b");
    assert_null(t->allowed_namespaces[2]);
    assert_string_equal(t->allowed_privileges[1], "GRANT OPTION");
    assert_null(t->allowed_privileges[2]);
    assert_true(t->allow_iam);
    assert_int_equal(t->max_users, 9);
    assert_int_equal(t->max_connections, 1);
    assert_int_equal(t->connect_timeout_seconds, 2);
    assert_int_equal(t->statement_timeout_seconds, 3);
    assert_int_equal(t->ping_seconds, 0);
    stw_targets_unref(list);
}

/* An empty list allows nothing, unlike an absent one. */
static void test_empty_target_list_allows_nothing(void **state)
{
    struct stw_targets *list = good(WITH("\"allowedNamespaces\":[],\"allowedPrivileges\":[]"));
    const struct stw_target *t = stw_targets_at(list, 0);
    (void)state;
    assert_non_null(t->allowed_namespaces);
    assert_null(t->allowed_namespaces[0]);
    assert_non_null(t->allowed_privileges);
    assert_null(t->allowed_privileges[0]);
    stw_targets_unref(list);
}

static void test_invalid_target_fields_are_refused(void **state)
{
    static const char nothing_set[] =
        "targets[0].admin: Invalid value: set one of passwordSecret, passwordFile, or "
        "certificateFile and keyFile\n";
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"{\"targets\":{}}", "targets: Invalid value: must be a list\n"},
        {"{\"targets\":\"orders\"}", "targets: Invalid value: must be a list\n"},
        {"{\"targets\":[5]}", "targets[0]: Invalid value: must be an object\n"},
        {ONE(""), "targets[0].name: Required value\ntargets[0].engine: Required value\n"
                  "targets[0].host: Required value\ntargets[0].admin: Required value\n"},
        {ONE("\"name\":\"-a\",\"engine\":\"oracle\",\"host\":\"a,b\"," ADMIN),
         "targets[0].name: Invalid value: \"-a\": must consist of letters, digits, '-', '_' and "
         "'.', and must start and end with a letter or a digit, as the values of labels\n"
         "targets[0].engine: Unsupported value: \"oracle\": supported values: \"mysql\", "
         "\"mariadb\", \"postgresql\"\n"
         "targets[0].host: Invalid value: \"a,b\": must be the name or the address of a host\n"},
        {ONE("\"name\":\"a b\",\"engine\":\"mysql\",\"host\":\"/run/db.sock\"," ADMIN),
         "targets[0].name: Invalid value: \"a b\": must consist of letters, digits, '-', '_' and "
         "'.', and must start and end with a letter or a digit, as the values of labels\n"
         "targets[0].host: Invalid value: \"/run/db.sock\": must be the name or the address of a "
         "host\n"},
        {WITH("\"port\":0"), "targets[0].port: Invalid value: 0: must be between 1 and 65535\n"},
        {WITH("\"port\":\"3306\""),
         "targets[0].port: Invalid value: \"3306\": must be an integer\n"},
        {WITH("\"tls\":{\"mode\":\"Prefer\",\"caFile\":\"ca.pem\"}"),
         "targets[0].tls.mode: Unsupported value: \"Prefer\": supported values: \"Disable\", "
         "\"Require\", \"VerifyCA\", \"VerifyFull\"\n"
         "targets[0].tls.caFile: Invalid value: \"ca.pem\": must be an absolute path\n"},
        {WITH("\"tls\":{\"mode\":\"Disable\"}"),
         "W: target \"orders\": without TLS, passwords can be read on the network\n"},
        {WITH("\"tls\":{\"mode\":\"Require\"}"), "W: target \"orders\": TLS mode Require does not "
                                                 "check the server's identity; VerifyFull does\n"},
        /* a password from exactly one source */
        {ONE(BASE ",\"admin\":{\"user\":\"u\"}"), nothing_set},
        {ONE(BASE ",\"admin\":{\"user\":\"u\",\"passwordFile\":\"/f\",\"passwordSecret\":{"
                  "\"name\":\"s\"}}"),
         "targets[0].admin: Invalid value: set only one of passwordSecret, passwordFile\n"},
        {ONE(BASE ",\"admin\":{\"user\":\"u\",\"passwordFile\":\"/f\",\"keyFile\":\"/k\"}"),
         "targets[0].admin: Invalid value: set both of certificateFile, keyFile\n"},
        {ONE(BASE ",\"admin\":{\"user\":\"u\",\"certificateFile\":\"c\",\"keyFile\":\"/k\"},"
                  "\"tls\":{\"mode\":\"Disable\"}"),
         "targets[0].admin.certificateFile: Invalid value: \"c\": must be an absolute path\n"
         "targets[0].admin: Invalid value: certificateFile needs TLS, and tls.mode is Disable\n"
         "W: target \"orders\": without TLS, passwords can be read on the network\n"},
        {ONE(BASE ",\"admin\":{\"passwordFile\":\"/f\"}"),
         "targets[0].admin.user: Required value\n"},
        {ONE(BASE ",\"admin\":{\"user\":\"u\",\"passwordFile\":\"f\"}"),
         "targets[0].admin.passwordFile: Invalid value: \"f\": must be an absolute path\n"},
        {ONE(BASE ",\"admin\":{\"user\":\"u\",\"passwordSecret\":{\"name\":\"S\",\"key\":\"/\"}}"),
         "targets[0].admin.passwordSecret.name: Invalid value: \"S\": must consist of lower case "
         "alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
         "character\n"
         "targets[0].admin.passwordSecret.key: Invalid value: \"/\": must consist of letters, "
         "digits, '-', '_' and '.'\n"},
        /* which never appears in a message */
        {ONE(BASE ",\"admin\":\"hunter2\""),
         "targets[0].admin: Invalid value: must be an object {user, passwordSecret}, {user, "
         "passwordFile} or {user, certificateFile, keyFile}\n"},
        {ONE(BASE ",\"admin\":{\"user\":\"u\",\"passwordSecret\":\"hunter2\"}"),
         "targets[0].admin.passwordSecret: Invalid value: must be an object {name, key} that names "
         "a Secret in steward's namespace\n"},
        {ONE(BASE ",\"admin\":{\"user\":\"u\",\"password\":\"hunter2\",\"passwordFile\":\"/f\"}"),
         "targets[0].admin.password: Forbidden: unknown field\n"},
        /* a misspelt key may be one that restricts access */
        {WITH("\"allowedNamespace\":[\"a\"]"), "targets[0].allowedNamespace: Forbidden: unknown "
                                               "field; did you mean \"allowedNamespaces\"?\n"},
        {WITH("\"allowedNamespaces\":[\"A\",5]"),
         "targets[0].allowedNamespaces[0]: Invalid value: \"A\": must be the name of a namespace\n"
         "targets[0].allowedNamespaces[1]: Invalid value: 5: must be a string\n"},
        {WITH("\"allowedPrivileges\":[\"SELECT\",\"CONNECT\"]"),
         "targets[0].allowedPrivileges[1]: Unsupported value: \"CONNECT\": supported values: "
         "\"ALL\", \"ALTER\", \"ALTER ROUTINE\", \"BINLOG MONITOR\", \"CREATE\", \"CREATE "
         "ROUTINE\", \"CREATE TEMPORARY TABLES\", \"CREATE VIEW\", \"DELETE\", \"DELETE "
         "HISTORY\", \"DROP\", \"EVENT\", \"EXECUTE\", \"INDEX\", \"INSERT\", \"LOCK TABLES\", "
         "\"PROCESS\", \"REFERENCES\", \"REPLICATION SLAVE\", \"SELECT\", \"SHOW DATABASES\", "
         "\"SHOW VIEW\", \"SLAVE MONITOR\", \"TRIGGER\", \"UPDATE\", \"GRANT OPTION\"\n"},
        {ONE("\"name\":\"p\",\"engine\":\"postgresql\",\"host\":\"h\"," ADMIN
             ",\"allowedSettings\":[\"work_mem\",\"role\",\"Log_Statement\",\"auto_explain.x\","
             "\"local_preload_libraries\"]"),
         "targets[0].allowedSettings[1]: Invalid value: \"role\": " SETTING
         "targets[0].allowedSettings[2]: Invalid value: \"Log_Statement\": " SETTING
         "targets[0].allowedSettings[3]: Invalid value: \"auto_explain.x\": " SETTING
         "targets[0].allowedSettings[4]: Invalid value: \"local_preload_libraries\": " SETTING},
        {WITH("\"allowedSettings\":[\"work_mem\"]"),
         "targets[0].allowedSettings: Invalid value: not supported on mariadb\n"},
        {WITH("\"allowedAuthPlugins\":[\"ed25519\",\"unix_socket\",\"\",\"ED25519\"]"),
         "targets[0].allowedAuthPlugins[2]: Required value\n"
         "targets[0].allowedAuthPlugins[1]: Unsupported value: \"unix_socket\": supported values: "
         "\"ed25519\", \"mysql_native_password\", \"parsec\"; only plugins that check the password "
         "of the account can be allowed\n"
         "targets[0].allowedAuthPlugins[3]: Unsupported value: \"ED25519\": supported values: "
         "\"ed25519\", \"mysql_native_password\", \"parsec\"; only plugins that check the password "
         "of the account can be allowed\n"},
        {ONE("\"name\":\"a\",\"engine\":\"mysql\",\"host\":\"h\"," ADMIN
             ",\"allowedAuthPlugins\":[\"authentication_ldap_simple\",\"sha256_password\"]"),
         "targets[0].allowedAuthPlugins[0]: Unsupported value: \"authentication_ldap_simple\": "
         "supported values: \"caching_sha2_password\", \"mysql_native_password\", "
         "\"sha256_password\"; only plugins that check the password of the account can be "
         "allowed\n"},
        {ONE("\"name\":\"a\",\"engine\":\"postgresql\",\"host\":\"h\"," ADMIN
             ",\"allowedAuthPlugins\":[\"x\"]"),
         "targets[0].allowedAuthPlugins: Invalid value: not supported on postgresql\n"},
        {WITH("\"maxUsers\":-1,\"maxConnections\":0,\"connectTimeoutSeconds\":61,"
              "\"statementTimeoutSeconds\":601,\"pingSeconds\":-1"),
         "targets[0].maxUsers: Invalid value: -1: must be between 0 and 2147483647\n"
         "targets[0].maxConnections: Invalid value: 0: must be between 1 and 64\n"
         "targets[0].connectTimeoutSeconds: Invalid value: 61: must be between 1 and 60\n"
         "targets[0].statementTimeoutSeconds: Invalid value: 601: must be between 1 and 600\n"
         "targets[0].pingSeconds: Invalid value: -1: must be between 0 and 3600\n"},
        /* what only some engines have */
        {ONE(BASE ",\"admin\":{\"user\":\"u\",\"database\":\"d\",\"passwordFile\":\"/f\"}"),
         "targets[0].admin.database: Invalid value: not supported on mariadb\n"},
        {ONE("\"name\":\"pg\",\"engine\":\"postgresql\",\"host\":\"h\",\"allowAllDatabases\":"
             "true," ADMIN),
         "targets[0].allowAllDatabases: Invalid value: not supported on postgresql\n"},
        /* objects without a target have one */
        {"{\"targets\":[{" BASE ",\"default\":true," ADMIN "},{\"name\":\"a\",\"engine\":"
         "\"mysql\",\"host\":\"h\"," ADMIN "},{\"name\":\"b\",\"engine\":\"mysql\",\"host\":"
         "\"h\",\"default\":true," ADMIN "}]}",
         "targets[2].default: Invalid value: true: only one target can be the default, and "
         "targets[0] is\n"},
        /* names are unique */
        {"{\"targets\":[{" BASE "," ADMIN "},{\"name\":\"ORDERS\",\"engine\":\"mysql\",\"host\":"
         "\"h\"," ADMIN "},5]}",
         "targets[1].name: Duplicate value: \"ORDERS\": targets are compared without case\n"
         "targets[2]: Invalid value: must be an object\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autofree char *got = parse(cases[i].text, NULL);
        if (!stw_streq(got, cases[i].want))
            fail_msg("\ntext %s\ngot  <%s>\nwant <%s>", cases[i].text, got, cases[i].want);
    }
}

static void test_default_target_is_found(void **state)
{
    struct stw_targets *list =
        good("{\"targets\":[{" BASE "," ADMIN "},{\"name\":\"a\",\"engine\":\"mysql\",\"host\":"
             "\"h\",\"default\":true," ADMIN "}]}");
    (void)state;
    assert_ptr_equal(stw_targets_default(list), stw_targets_at(list, 1));
    stw_targets_unref(list);
}

static void test_too_many_targets_are_refused(void **state)
{
    struct stw_buf text = STW_BUF_INIT(1 << 20);
    (void)state;
    stw_buf_adds(&text, "{\"targets\":[0");
    for (int i = 0; i < 1000; i++)
        stw_buf_adds(&text, ",0");
    stw_buf_adds(&text, "]}");
    stw_autofree char *got = parse(stw_buf_str(&text), NULL);
    assert_string_equal(got, "targets: Invalid value: must be at most 1000 entries\n");
    stw_buf_done(&text);
}

static void test_changed_login_of_target_is_recognised(void **state)
{
    static const struct {
        const char *other;
        bool same;
    } cases[] = {
        {WITH("\"port\":3306"), true},
        {WITH("\"allowedNamespaces\":[\"a\"],\"maxUsers\":5"), true},
        {WITH("\"port\":3307"), false},
        {WITH("\"tls\":{\"mode\":\"VerifyCA\"}"), false},
        {WITH("\"tls\":{\"caFile\":\"/ca\"}"), false},
        {WITH("\"connectTimeoutSeconds\":6"), false},
        {ONE("\"name\":\"orders\",\"engine\":\"mariadb\",\"host\":\"db2\"," ADMIN), false},
        {ONE("\"name\":\"orders\",\"engine\":\"mysql\",\"host\":\"db\"," ADMIN), false},
        {ONE(BASE ",\"admin\":{\"user\":\"boss\",\"passwordFile\":\"/run/pw\"}"), false},
        {ONE(BASE ",\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/run/p\"}"), false},
        {ONE(BASE ",\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/run/pw\",\"certificateFile\":"
                  "\"/c\",\"keyFile\":\"/k\"}"),
         false},
        {ONE(BASE ",\"admin\":{\"user\":\"chief\",\"passwordSecret\":{\"name\":\"s\"}}"), false},
    };
    struct stw_targets *one = good(ONE(BASE "," ADMIN));
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct stw_targets *other = good(cases[i].other);
        assert_int_equal(stw_target_same_login(stw_targets_at(one, 0), stw_targets_at(other, 0)),
                         cases[i].same);
        stw_targets_unref(other);
    }
    stw_targets_unref(one);
}

/* A reference may outlive the current list. */
static void test_target_list_is_reference_counted(void **state)
{
    struct stw_targets *list = good(ONE(BASE "," ADMIN)), *held = stw_targets_ref(list);
    (void)state;
    stw_targets_unref(list);
    assert_string_equal(stw_targets_at(held, 0)->host, "db");
    stw_targets_unref(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_target_patterns_match),
        cmocka_unit_test(test_invalid_target_patterns_are_refused),
        cmocka_unit_test(test_absent_target_list_is_empty),
        cmocka_unit_test(test_omitted_target_fields_have_defaults),
        cmocka_unit_test(test_target_fields_are_read),
        cmocka_unit_test(test_empty_target_list_allows_nothing),
        cmocka_unit_test(test_invalid_target_fields_are_refused),
        cmocka_unit_test(test_default_target_is_found),
        cmocka_unit_test(test_too_many_targets_are_refused),
        cmocka_unit_test(test_changed_login_of_target_is_recognised),
        cmocka_unit_test(test_target_list_is_reference_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
