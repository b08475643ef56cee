/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/spec.h"

#include "kinds/common/product.h"
#include "sql/target/dialect.h"
#include "sql/target/target.h"
#include "support/judge.h"

/* A target of each engine. */
#define TARGET(name, engine)                                                                       \
    "{\"name\":\"" name "\",\"engine\":\"" engine "\",\"host\":\"h\",\"admin\":{\"user\":"         \
    "\"chief\",\"passwordFile\":\"/f\"}}"
static const char targets_json[] =
    "[" TARGET("my", "mysql") "," TARGET("maria", "mariadb") "," TARGET("pg", "postgresql") "]";

static struct stw_targets *targets;
static unsigned secrets_asked;

static int secret(void *ctx, const char *ns, const char *name, const char *key,
                  struct stw_secret_facts *ret)
{
    (void)ctx, (void)ns, (void)name, (void)key;
    secrets_asked++;
    *ret = (struct stw_secret_facts){
        .secret_there = true, .key_there = true, .is_text = true, .len = 24, .bare_len = 24};
    return 0;
}

static struct stw_targets *targets_now(void *ctx)
{
    (void)ctx;
    return stw_targets_ref(targets);
}

static const struct stw_lookup lookup = {.secret = secret};
static const struct stw_product product = {.targets = targets_now};
static const struct stw_env env = {.lookup = &lookup, .product = &product};

static int setup(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    (void)state;
    scan(&doc, targets_json);
    return stw_targets_parse(stw_json_root(&doc), &targets, &f);
}

static int teardown(void **state)
{
    (void)state;
    stw_targets_unref(targets);
    return 0;
}

#define ON(target, members)                                                                        \
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"labels\":{\"target\":\"" target      \
    "\"}},\"spec\":{" members "}}"
#define USER(name) "\"user\":\"" name "\",\"password\":{\"name\":\"s\"},\"requireTLS\":\"SSL\""
#define GOOD USER("app")
/* On PostgreSQL, where pg_hba.conf decides on TLS. */
#define PG_GOOD "\"user\":\"app\",\"password\":{\"name\":\"s\"}"

static void test_target_that_is_not_configured_is_warned_of(void **state)
{
    struct stw_targets *all = targets;
    (void)state;
    targets = NULL;
    assert_answer(&stw_kind_databaseuser, ON("maria", GOOD), NULL, &env,
                  "W: target \"maria\" is not configured; the account is created when it is\n");
    targets = all;
}

static void test_reserved_names_are_refused(void **state)
{
    static const struct {
        const char *target, *engine, *names[12];
    } cases[] = {
        {"my",
         "mysql",
         {"root", "ROOT", "mysql.sys", "mysql.session", "rdsadmin", "cloudsqladmin",
          "azure_superuser", "debian-sys-maint", "event_scheduler", "chief", "Chief"}},
        {"maria",
         "mariadb",
         {"root", "mysql", "mariadb.sys", "mysql.infoschema", "PUBLIC", "public", "rdsadmin",
          "cloudsqlsuperuser", "azure_superuser", "chief"}},
        {"pg",
         "postgresql",
         {"postgres", "Postgres", "pg_monitor", "pg_anything", "public", "PUBLIC", "none",
          "rds_superuser", "cloudsqladmin", "azure_superuser", "chief"}},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        for (const char *const *n = cases[i].names; *n; n++) {
            char object[512], want[256];
            snprintf(object, sizeof(object),
                     "{\"metadata\":{\"name\":\"web\",\"labels\":{\"target\":\"%s\"}},\"spec\":{"
                     "\"user\":\"%s\",\"password\":{\"name\":\"s\"},\"hosts\":[\"%s\"]}}",
                     cases[i].target, *n, i == 2 ? "%" : "h");
            snprintf(want, sizeof(want), "spec.user: Forbidden: \"%s\" is reserved on %s\n", *n,
                     cases[i].engine);
            assert_answer(&stw_kind_databaseuser, object, NULL, &env, want);
        }
    assert_answer(&stw_kind_databaseuser, ON("maria", USER("postgres")), NULL, &env, "");
    assert_answer(&stw_kind_databaseuser, ON("maria", USER("rooted")), NULL, &env, "");
}

/* Each field at its maximum length, and with one unit more. */
static void test_longest_values_are_accepted_and_longer_ones_refused(void **state)
{
    static const struct {
        const char *before, *unit, *after, *message;
        int most;
    } cases[] = {
        {"\"password\":{\"name\":\"s\",\"key\":\"", "a", "\"}", "must be at most 253 bytes", 253},
        {"\"password\":{\"name\":\"", "a.", "a\"}", "must be at most 253 bytes", 126},
        {"\"password\":{\"name\":\"s\"},\"hosts\":[\"", "a", "\"]", "must be at most 255 bytes",
         255},
        {"\"password\":{\"name\":\"s\"},\"reassignOwnedTo\":\"", "a", "\"",
         "must be at most 63 bytes", 63},
        {"\"password\":{\"name\":\"s\"},\"grants\":[{\"privileges\":[\"SELECT\"],\"database\":\"",
         "a", "\"}]", "must be at most 255 bytes", 255},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        for (int more = 0; more < 2; more++) {
            stw_autobuf struct stw_buf object = STW_BUF_INIT(4096);
            struct question q;
            stw_buf_addf(&object,
                         "{\"metadata\":{\"name\":\"web\",\"labels\":{\"target\":\"x\"}},\"spec\":"
                         "{\"user\":\"app\",%s",
                         cases[i].before);
            for (int n = 0; n < cases[i].most + more; n++)
                stw_buf_adds(&object, cases[i].unit);
            stw_buf_addf(&object, "%s}}", cases[i].after);
            ask(&q, &stw_kind_databaseuser, stw_buf_str(&object), NULL, NULL);
            stw_autofree char *got = answer(&q.a);
            if (more ? !strstr(got, cases[i].message) : *got != '\0')
                fail_msg("case %zu, %d more: %s", i, more, got);
            ask_done(&q);
        }
}

/* A value that is far too long causes a finding, not a failure of the validation. */
static void test_enormous_values_are_refused_with_short_messages(void **state)
{
    static const char *const fields[] = {
        "\"user\":\"%s\",\"password\":{\"name\":\"s\"}",
        "\"user\":\"app\",\"password\":{\"name\":\"%s\"}",
        "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"requireTLS\":\"%s\"",
        "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"hosts\":[\"%s\"]",
        "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"reassignOwnedTo\":\"%s\"",
        "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"grants\":[{\"database\":\"%s\","
        "\"privileges\":[\"SELECT\"]}]",
        "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"grants\":[{\"database\":\"a\","
        "\"table\":\"%s\",\"schema\":\"%s\",\"privileges\":[\"%s\"]}]",
    };
    static char text[20001], spec[100000];
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    for (size_t i = 0; i < STW_COUNT(fields); i++)
        for (size_t t = 0; t < 3; t++) {
            stw_autobuf struct stw_buf object = STW_BUF_INIT(1 << 20);
            struct question q;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            (void)snprintf(spec, sizeof(spec), fields[i], text, text, text);
#pragma GCC diagnostic pop
            stw_buf_addf(&object,
                         "{\"metadata\":{\"name\":\"web\",\"labels\":{\"target\":\"%s\"}},",
                         (const char *const[]){"maria", "pg", "nowhere"}[t]);
            stw_buf_addf(&object, "\"spec\":{%s}}", spec);
            ask(&q, &stw_kind_databaseuser, stw_buf_str(&object), NULL, &env);
            stw_autofree char *got = answer(&q.a); /* fails the test if the validation failed */
            assert_non_null(strstr(got, "spec."));
            assert_true(strlen(got) < 2000);
            ask_done(&q);
        }
}

static void test_more_than_100_grants_are_refused(void **state)
{
    struct stw_buf object = STW_BUF_INIT(1 << 20);
    struct question q;
    (void)state;
    stw_buf_adds(&object, "{\"metadata\":{\"name\":\"web\",\"labels\":{\"target\":\"x\"}},\"spec\":"
                          "{" GOOD ",\"grants\":[");
    for (int i = 0; i < 101; i++)
        stw_buf_addf(&object, "%s{\"database\":\"d%d\",\"privileges\":[\"SELECT\"]}", i ? "," : "",
                     i);
    stw_buf_adds(&object, "]}}");
    ask(&q, &stw_kind_databaseuser, stw_buf_str(&object), NULL, NULL);
    stw_autofree char *got = answer(&q.a);
    assert_non_null(strstr(got, ": must be at most 100 entries\n"));
    ask_done(&q);
    stw_buf_done(&object);
}

/* GRANT ALL ON *.* would create an administrator. */
static void test_no_privilege_makes_an_account_an_admin(void **state)
{
    static const char *const names[] = {"ALL",
                                        "SUPER",
                                        "FILE",
                                        "CREATE USER",
                                        "SHUTDOWN",
                                        "RELOAD",
                                        "GRANT OPTION",
                                        "USAGE",
                                        "PROXY",
                                        "SYSTEM_USER",
                                        "SET_USER_ID",
                                        "SET_ANY_DEFINER",
                                        "ALLOW_NONEXISTENT_DEFINER",
                                        "ROLE_ADMIN",
                                        "CREATE ROLE",
                                        "DROP ROLE",
                                        "SYSTEM_VARIABLES_ADMIN",
                                        "PERSIST_RO_VARIABLES_ADMIN",
                                        "SESSION_VARIABLES_ADMIN",
                                        "CONNECTION_ADMIN",
                                        "CLONE_ADMIN",
                                        "APPLICATION_PASSWORD_ADMIN",
                                        "AUTHENTICATION_POLICY_ADMIN",
                                        "PASSWORDLESS_USER_ADMIN",
                                        "BINLOG_ADMIN",
                                        "REPLICATION_APPLIER",
                                        "REPLICATION_SLAVE_ADMIN",
                                        "GROUP_REPLICATION_ADMIN",
                                        "AUDIT_ADMIN",
                                        "FIREWALL_ADMIN",
                                        "TABLE_ENCRYPTION_ADMIN",
                                        "SET USER",
                                        "FEDERATED ADMIN",
                                        "CONNECTION ADMIN",
                                        "READ_ONLY ADMIN",
                                        "REPLICATION SLAVE ADMIN",
                                        "BINLOG ADMIN",
                                        "BINLOG REPLAY"};
    (void)state;
    for (enum stw_engine e = STW_ENGINE_MYSQL; e <= STW_ENGINE_MARIADB; e++)
        for (size_t i = 0; i < STW_COUNT(names); i++) {
            const struct stw_engine_privilege *p = stw_engine_privilege(e, names[i]);
            assert_false(p && (p->places & STW_ON_ALL));
        }
}

/* Reading the Secret costs a request: not done when the result cannot matter. */
static void test_secret_is_read_only_when_it_matters(void **state)
{
    static const struct {
        const char *now, *old;
        bool quiet;
        unsigned asked;
    } cases[] = {
        {ON("pg", PG_GOOD), NULL, false, 1},
        {ON("pg", PG_GOOD), NULL, true, 0},
        {ON("pg", PG_GOOD), ON("pg", PG_GOOD), false, 0},
        {ON("pg", PG_GOOD ",\"resyncSeconds\":60"), ON("pg", PG_GOOD), false, 0},
        {ON("pg", "\"user\":\"app\",\"password\":{\"name\":\"t\"}"), ON("pg", PG_GOOD), false, 1},
        {ON("pg", "\"user\":\"app\",\"password\":{\"name\":\"s\",\"key\":\"k\"}"),
         ON("pg", PG_GOOD), false, 1},
        {ON("pg", "\"user\":\"postgres\",\"password\":{\"name\":\"s\"}"), NULL, false, 0},
        {ON("pg", "\"user\":\"app\",\"password\":\"plain\""), NULL, false, 0},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct question q;
        secrets_asked = 0;
        ask(&q, &stw_kind_databaseuser, cases[i].now, cases[i].old, &env);
        q.a.quiet = cases[i].quiet;
        stw_autofree char *said = answer(&q.a);
        ask_done(&q);
        if (secrets_asked != cases[i].asked)
            fail_msg("case %zu: asked %u times; %s", i, secrets_asked, said);
    }
}

static void test_spec_is_decoded_with_its_defaults(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    struct stw_error err = {0};
    struct dbu_spec u;
    struct dbu_spec_grant g = {0};
    (void)state;
    scan(&doc, "{\"user\":\"app\",\"password\":{\"name\":\"s\",\"trimNewline\":true},"
               "\"limits\":{\"maxUserConnections\":7},\"grants\":[{\"database\":\"d\",\"table\":"
               "\"t\",\"privileges\":[\"SELECT\"]}]}");
    assert_int_equal(stw_kind_decode(&stw_kind_databaseuser, stw_json_root(&doc), arena, &u, &err),
                     0);
    assert_string_equal(u.user, "app");
    assert_string_equal(u.password.name, "s");
    assert_string_equal(u.password.key, "password");
    assert_true(u.password.trim_newline);
    assert_false(stw_json_there(u.hosts));
    assert_string_equal(u.grants_policy, "Managed");
    assert_string_equal(u.require_tls, "None");
    assert_int_equal(u.limits.max_user_connections, 7);
    assert_int_equal(u.limits.max_queries_per_hour, 0);
    assert_string_equal(u.deletion_policy, "Delete");
    assert_string_equal(u.adoption_policy, "Fail");
    assert_null(u.reassign_owned_to);
    assert_int_equal(u.resync_seconds, 300);
    assert_int_equal(stw_fields_decode(dbu_grant_fields, stw_json_at(u.grants, 0), arena, &g), 0);
    assert_string_equal(g.database, "d");
    assert_null(g.schema);
    assert_string_equal(g.table, "t");
    assert_true(stw_json_is(stw_json_at(g.privileges, 0), "SELECT"));
}

/* The error goes into a condition and into events. */
static void test_plain_password_is_not_in_the_error(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    struct stw_error err = {0};
    struct dbu_spec u;
    (void)state;
    scan(&doc, "{\"user\":\"app\",\"password\":\"changeit\"}");
    assert_int_equal(stw_kind_decode(&stw_kind_databaseuser, stw_json_root(&doc), arena, &u, &err),
                     -1);
    assert_string_equal(err.text, "spec.password: Invalid value: must be an object {name, key} "
                                  "that names a Secret; plain-text passwords are not accepted");
}

static void test_account_key_has_the_target_in_small_letters(void **state)
{
    stw_autobuf struct stw_buf key = STW_BUF_INIT(256);
    (void)state;
    dbu_account_key("Orders-DB", "App", &key);
    assert_string_equal(stw_buf_str(&key), "orders-db/App");
}

static void test_annotation_confirms_the_databases_that_it_lists(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    static const char object[] =
        "{\"metadata\":{\"annotations\":{\"d/one\":\"a\",\"d/more\":\" a , b,c d ,\","
        "\"d/comma\":\"a,b\",\"d/none\":\"\"}}}";
    (void)state;
    scan(&doc, object);
    struct stw_json o = stw_json_root(&doc);
    assert_true(dbu_confirms(o, "d/one", "a"));
    assert_false(dbu_confirms(o, "d/one", "A"));
    assert_false(dbu_confirms(o, "d/other", "a"));
    assert_true(dbu_confirms(o, "d/more", "a"));
    assert_true(dbu_confirms(o, "d/more", "b"));
    assert_true(dbu_confirms(o, "d/more", "c d"));
    assert_false(dbu_confirms(o, "d/more", "c"));
    assert_true(dbu_confirms(o, "d/comma", "a,b"));
    assert_false(dbu_confirms(o, "d/none", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_annotation_confirms_the_databases_that_it_lists),
        cmocka_unit_test(test_target_that_is_not_configured_is_warned_of),
        cmocka_unit_test(test_reserved_names_are_refused),
        cmocka_unit_test(test_longest_values_are_accepted_and_longer_ones_refused),
        cmocka_unit_test(test_enormous_values_are_refused_with_short_messages),
        cmocka_unit_test(test_more_than_100_grants_are_refused),
        cmocka_unit_test(test_no_privilege_makes_an_account_an_admin),
        cmocka_unit_test(test_secret_is_read_only_when_it_matters),
        cmocka_unit_test(test_spec_is_decoded_with_its_defaults),
        cmocka_unit_test(test_plain_password_is_not_in_the_error),
        cmocka_unit_test(test_account_key_has_the_target_in_small_letters),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
