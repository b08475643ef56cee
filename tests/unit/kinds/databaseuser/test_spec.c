/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/spec.h"
#include "schema/core.h"

#include "kinds/common/product.h"
#include "schema/core.h"
#include "sql/dialect.h"
#include "sql/target.h"
#include "support/judge.h"

/* --- the world: a target of each engine, and restricted ones */

static const char targets_json[] =
    "{\"targets\":["
    "{\"name\":\"my\",\"engine\":\"mysql\",\"host\":\"h\",\"allowAllDatabases\":true,"
    "\"allowedDatabases\":[\"*\"],\"allowedAuthPlugins\":[\"caching_sha2_password\","
    "\"sha256_password\"],"
    "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"}},"
    "{\"name\":\"maria\",\"engine\":\"mariadb\",\"host\":\"h\",\"allowAllDatabases\":true,"
    "\"allowIAM\":true,"
    "\"allowedDatabases\":[\"*\"],\"allowAdoption\":[\"*\"],\"allowCreateDatabases\":[\"*\"],"
    "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"}},"
    "{\"name\":\"pg\",\"engine\":\"postgresql\",\"host\":\"h\",\"allowedDatabases\":[\"*\"],"
    "\"allowedOwners\":[\"{namespace}-*\",\"boss\",\"post*\"],"
    "\"allowedRoles\":[\"team_*\",\"post*\",\"app\",\"chief\"],"
    "\"allowCreateDatabases\":[\"{namespace}\",\"{namespace}_*\"],"
    "\"allowedExtensions\":[\"pg_trgm\",\"{namespace}_x\"],"
    "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"}},"
    "{\"name\":\"Narrow\",\"engine\":\"mariadb\",\"host\":\"h\","
    "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"},"
    "\"allowedDatabases\":[\"*\"],"
    "\"allowedNamespaces\":[\"shop\"],\"allowedPrivileges\":[\"SELECT\",\"INSERT\"]},"
    "{\"name\":\"watched\",\"engine\":\"mysql\",\"host\":\"h\","
    "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"},\"allowedPrivileges\":[\"SELECT\","
    "\"BACKUP_ADMIN\",\"PROCESS\",\"GRANT OPTION\"]},"
    "{\"name\":\"own\",\"engine\":\"mariadb\",\"host\":\"h\",\"allowAllDatabases\":true,"
    "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"}},"
    "{\"name\":\"listed\",\"engine\":\"postgresql\",\"host\":\"h\","
    "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"},"
    "\"allowedDatabases\":[\"shared\",\"x-{namespace}-*\"]},"
    "{\"name\":\"closed\",\"engine\":\"mariadb\",\"host\":\"h\","
    "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"},\"allowedNamespaces\":[]}"
    "]}";

struct world {
    struct stw_targets *targets;
    const char *account, *holder; /* the entry of the index */
    char asked[512], self[600];
    struct stw_secret_facts facts;
    int secret_rc;
    unsigned secrets_asked;
    char secret[128];
    int has; /* whether that Secret is in the cache; -1: unknown */
    char had[128];
};
static struct world world;

static bool find(void *ctx, const char *index, const char *key, const char *self, char *ret_holder)
{
    struct world *w = ctx;
    snprintf(w->asked, sizeof(w->asked), "%s %s", index, key);
    snprintf(w->self, sizeof(w->self), "%s", self);
    if (!w->account || !stw_streq(key, w->account) || stw_streq(self, w->holder))
        return false;
    (void)snprintf(ret_holder, 512, "%s", w->holder);
    return true;
}

static int secret(void *ctx, const char *ns, const char *name, const char *key,
                  struct stw_secret_facts *ret)
{
    struct world *w = ctx;
    w->secrets_asked++;
    (void)snprintf(w->secret, sizeof(w->secret), "%s/%s %s", ns, name, key);
    *ret = w->facts;
    return w->secret_rc;
}

static int has(void *ctx, const char *plural, const char *key)
{
    struct world *w = ctx;
    (void)snprintf(w->had, sizeof(w->had), "%s %s", plural, key);
    return w->has;
}

static struct stw_targets *targets(void *ctx)
{
    struct world *w = ctx;
    return stw_targets_ref(w->targets);
}

static const struct stw_lookup lookup = {.ctx = &world, .find = find, .has = has, .secret = secret};
static const struct stw_product product = {.targets = targets, .targets_ctx = &world};
static const struct stw_env env = {.lookup = &lookup, .product = &product};

static const struct stw_secret_facts fine = {
    .secret_there = true, .key_there = true, .is_text = true, .len = 24, .bare_len = 24};

static int setup(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    (void)state;
    world = (struct world){.facts = fine};
    scan(&doc, targets_json);
    return stw_targets_parse(stw_json_get(stw_json_root(&doc), "targets"), &world.targets, &f);
}

static int teardown(void **state)
{
    (void)state;
    stw_targets_unref(world.targets);
    return 0;
}

/* --- objects */

#define OBJECT(labels, members)                                                                    \
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"labels\":{" labels "}},"             \
    "\"spec\":{" members "}}"
#define ON(target, members) OBJECT("\"target\":\"" target "\"", members)
#define GOOD "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"requireTLS\":\"SSL\""
#define USER(name) "\"user\":\"" name "\",\"password\":{\"name\":\"s\"},\"requireTLS\":\"SSL\""
/* On PostgreSQL, where pg_hba.conf decides on TLS. */
#define PG_GOOD "\"user\":\"app\",\"password\":{\"name\":\"s\"}"
#define GRANTS(list) GOOD ",\"grants\":[" list "]"
#define PG_GRANTS(list) PG_GOOD ",\"grants\":[" list "]"
#define GRANT(database, list) "{\"database\":\"" database "\",\"privileges\":[" list "]}"
#define NO_TARGET                                                                                  \
    "metadata.labels[target]: Required value: label \"target\" must name a database target\n"

#define TEN "aaaaaaaaaa"
#define THIRTY TEN TEN TEN
#define SIXTY THIRTY THIRTY

struct rule {
    const char *object, *want;
};

static void assert_rules(const struct rule *rules, size_t count, const struct stw_env *e)
{
    for (size_t i = 0; i < count; i++)
        assert_answer(&stw_kind_databaseuser, rules[i].object, NULL, e, rules[i].want);
}
#define ASSERT_RULES(rules, e) assert_rules(rules, STW_COUNT(rules), e)

/* All but the closed one. */
#define MAY_USE                                                                                    \
    "W: namespace \"shop\" may use the targets my, maria, pg, Narrow, watched, own, listed\n"

static void the_label(void **state)
{
    static const struct rule rules[] = {
        {OBJECT("", GOOD), NO_TARGET MAY_USE},
        {OBJECT("\"target\":\"\"", GOOD), NO_TARGET MAY_USE},
        {OBJECT("\"target\":null", GOOD), NO_TARGET MAY_USE},
        {OBJECT("\"target\":5", GOOD),
         "metadata.labels[target]: Invalid value: 5: must be a string\n" MAY_USE},
        {OBJECT("\"target\":\"" SIXTY "aaaa\"", GOOD),
         "metadata.labels[target]: Invalid value: \"" SIXTY
         "aaaa\": must be at most 63 characters\n" MAY_USE},
        {"{\"metadata\":{\"name\":\"web\"},\"spec\":{" GOOD "}}", NO_TARGET MAY_USE},
        {"{\"metadata\":{\"name\":\"web\",\"labels\":[]},\"spec\":{" GOOD "}}", NO_TARGET MAY_USE},
        {ON("maria", GOOD), ""},
        {ON("MARIA", GOOD), ""},
        {ON("narrow", GOOD), ""},
        {ON("closed", GOOD), "metadata.labels[target]: Forbidden: target \"closed\" does not "
                             "accept namespace \"shop\"\n" MAY_USE},
        {ON("elsewhere", GOOD),
         MAY_USE "W: target \"elsewhere\" is not configured; the account is created when it is\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

static void namespaces(void **state)
{
    struct question q;
    (void)state;
    ask(&q, &stw_kind_databaseuser, ON("narrow", GOOD), NULL, &env);
    q.a.ns = "other";
    stw_autofree char *got = answer(&q.a);
    assert_string_equal(got,
                        "metadata.labels[target]: Forbidden: target \"narrow\" does not "
                        "accept namespace \"other\"\n"
                        "W: namespace \"other\" may use the targets my, maria, pg, watched, own, "
                        "listed\n");
    ask_done(&q);
}

static void no_target_is_configured(void **state)
{
    struct stw_targets *all = world.targets;
    (void)state;
    world.targets = NULL;
    assert_answer(&stw_kind_databaseuser, ON("maria", GOOD), NULL, &env,
                  "W: target \"maria\" is not configured; the account is created when it is\n");
    world.targets = all;
    /* without an environment there is no warning */
    assert_answer(&stw_kind_databaseuser, ON("maria", GOOD), NULL, NULL, "");
}

static void the_target_stays(void **state)
{
    static const char made[] =
        "{\"metadata\":{\"name\":\"web\",\"labels\":{\"target\":\"maria\"}},\"spec\":{" GOOD
        "},\"status\":{\"account\":\"app@%\",\"target\":\"Maria\"}}";
    static const char unmade[] =
        "{\"metadata\":{\"name\":\"web\",\"labels\":{\"target\":\"maria\"}},\"spec\":{" GOOD
        "},\"status\":{\"observedGeneration\":-1}}";
    static const char moved[] = /* by a client that bypassed the webhook */
        "{\"metadata\":{\"name\":\"web\",\"labels\":{\"target\":\"my\"}},\"spec\":{" GOOD
        "},\"status\":{\"account\":\"app@%\",\"target\":\"maria\"}}";
    static const struct {
        const char *now, *old, *want;
    } cases[] = {
        {ON("my", GOOD), made,
         "metadata.labels[target]: Forbidden: target cannot change from \"Maria\" to \"my\": the "
         "account would be left behind\n"},
        {OBJECT("", GOOD), made, NO_TARGET MAY_USE},
        {ON("MARIA", GOOD), made, ""},
        {ON("my", GOOD), unmade, ""},
        {ON("maria", GOOD), moved, ""},
        {ON("my", GOOD), moved,
         "W: metadata.labels[target]: Forbidden: target cannot change from \"maria\" to \"my\": "
         "the account would be left behind; not refused, because it has not changed\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        assert_answer(&stw_kind_databaseuser, cases[i].now, cases[i].old, &env, cases[i].want);
}

static void users(void **state)
{
    static const struct rule rules[] = {
        {ON("maria", "\"password\":{\"name\":\"s\"},\"requireTLS\":\"SSL\""),
         "spec.user: Required value\n"},
        {ON("maria", USER("")), "spec.user: Required value\n"},
        {ON("maria", "\"user\":7,\"password\":{\"name\":\"s\"},\"requireTLS\":\"SSL\""),
         "spec.user: Invalid value: 7: must be a string\n"},
        {ON("my", USER(THIRTY "aa")), ""},
        {ON("my", USER(THIRTY "aaa")),
         "spec.user: Invalid value: \"" THIRTY "aaa\": must be at most 32 characters for mysql\n"},
        /* characters, not bytes */
        {ON("my", USER("\xc3\xa4\xc3\xa4" THIRTY)), ""},
        {ON("my", USER("'app'")), "spec.user: Invalid value: \"'app'\": must not be in single "
                                  "quotes on mysql, whose servers "
                                  "take them off when a client logs in\n"},
        {ON("my", USER("'app")), ""},
        {ON("my", USER("'")), ""},
        {ON("maria", USER(SIXTY TEN TEN)), ""},
        {ON("maria", USER(SIXTY TEN TEN "b")),
         "spec.user: Invalid value: \"" SIXTY TEN "aaaaaaaaa"
         "...\": must be at most 80 characters for mariadb\n"},
        {ON("pg", "\"user\":\"" SIXTY "aaa\",\"password\":{\"name\":\"s\"}"), ""},
        {ON("pg", "\"user\":\"" SIXTY "aa\xc3\xa4\",\"password\":{\"name\":\"s\"}"),
         "spec.user: Invalid value: \"" SIXTY
         "aa\xc3\xa4\": must be at most 63 bytes for postgresql\n"},
        {ON("maria", USER("a\\nb")),
         "spec.user: Invalid value: \"a\\nb\": must not hold control characters\n"},
        {ON("maria", USER("a\xc2\x85"
                          "b")),
         "spec.user: Invalid value: \"a\\u0085"
         "b\": must not hold control characters\n"},
        {ON("maria", USER("a\\u007f")),
         "spec.user: Invalid value: \"a\\u007f\": must not hold control characters\n"},
        {ON("maria", USER("app ")),
         "spec.user: Invalid value: \"app \": must not start or end with a blank\n"},
        {ON("maria", USER(" ")),
         "spec.user: Invalid value: \" \": must not start or end with a blank\n"},
        /* quotes of all kinds are allowed in names */
        {ON("maria", USER("o'ne\\\"t`w\\\\o;--")), ""},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
    assert_answer(&stw_kind_databaseuser, ON("x", USER(SIXTY TEN TEN "b")), NULL, NULL,
                  "spec.user: Invalid value: \"" SIXTY TEN "aaaaaaaaa"
                  "...\": must be at most 80 characters\n");
}

static void reserved_names(void **state)
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
    assert_answer(&stw_kind_databaseuser, ON("x", USER("root")), NULL, NULL,
                  "W: \"root\" is reserved on mysql, mariadb\n");
}

static void one_account_one_object(void **state)
{
    static const char want[] =
        "spec.user: Forbidden: account already managed by DatabaseUser other/one\n";
    (void)state;
    world.account = "maria/app";
    world.holder = "other/one";
    assert_answer(&stw_kind_databaseuser, ON("Maria", GOOD), NULL, &env, want);
    assert_string_equal(world.asked, "databaseusers.account maria/app");
    assert_string_equal(world.self, "shop/web");
    assert_answer(&stw_kind_databaseuser, ON("my", GOOD), NULL, &env, "");
    assert_answer(&stw_kind_databaseuser, ON("maria", USER("App")), NULL, &env, "");
    /* an object that existed before the rule, or that won a race, may be updated */
    assert_answer(&stw_kind_databaseuser, ON("maria", GOOD ",\"resyncSeconds\":60"),
                  ON("maria", GOOD), &env,
                  "W: spec.user: Forbidden: account already managed by DatabaseUser other/one; not "
                  "refused, because it has not changed\n");
    world.holder = "shop/web";
    assert_answer(&stw_kind_databaseuser, ON("maria", GOOD), NULL, &env, "");
    world.account = NULL;
}

static void the_user_stays(void **state)
{
    (void)state;
    assert_answer(&stw_kind_databaseuser, ON("maria", USER("other")), ON("maria", GOOD), &env,
                  "spec.user: Forbidden: field is immutable (was \"app\")\n");
}

static void passwords(void **state)
{
    static const char sentence[] =
        "spec.password: Invalid value: must be an object {name, key} that names a Secret; "
        "plain-text passwords are not accepted\n";
    static const struct rule rules[] = {
        {ON("x", "\"user\":\"app\",\"password\":\"changeit\""), sentence},
        {ON("x", "\"user\":\"app\",\"password\":12345"), sentence},
        {ON("x", "\"user\":\"app\",\"password\":[\"changeit\"]"), sentence},
        {ON("x", "\"user\":\"app\""),
         "spec.password: Required value: set it, or authentication IAM\n"},
        {ON("x", "\"user\":\"app\",\"password\":null"),
         "spec.password: Required value: set it, or authentication IAM\n"},
        {ON("x", "\"user\":\"app\",\"password\":{}"),
         "spec.password.name: Required value: set one of name, generate\n"},
        {ON("x", "\"user\":\"app\",\"password\":{\"name\":\"My\"}"),
         "spec.password.name: Invalid value: \"My\": must consist of lower case alphanumeric "
         "characters, '-' or '.', and must start and end with an alphanumeric character\n"},
        {ON("x", "\"user\":\"app\",\"password\":{\"name\":\"s\",\"key\":\"\"}"),
         "spec.password.key: Invalid value: \"\": must not be empty\n"},
        {ON("x", "\"user\":\"app\",\"password\":{\"name\":\"s\",\"key\":\"a b\"}"),
         "spec.password.key: Invalid value: \"a b\": must consist of letters, digits, '-', '_' and "
         "'.'\n"},
        {ON("x", "\"user\":\"app\",\"password\":{\"name\":\"s\",\"key\":\"a-B_c.1\"}"), ""},
        {ON("x", "\"user\":\"app\",\"password\":{\"name\":\"s\",\"trimNewline\":\"yes\"}"),
         "spec.password.trimNewline: Invalid value: \"yes\": must be a boolean\n"},
        {ON("x", "\"user\":\"app\",\"password\":{\"name\":\"s\",\"value\":\"changeit\"}"),
         "W: unknown field \"spec.password.value\"\n"},
    };
    (void)state;
    ASSERT_RULES(rules, NULL);
}

static void hosts(void **state)
{
    static const struct rule rules[] = {
        {ON("maria", GOOD ",\"hosts\":[\"10.%\",\"::1\",\"web_.example.com\",\"10.0.0.0/"
                          "255.0.0.0\"]"),
         ""},
        {ON("maria", GOOD ",\"hosts\":[]"), "spec.hosts: Invalid value: []: must not be empty\n"},
        {ON("maria", GOOD ",\"hosts\":\"%\""),
         "spec.hosts: Invalid value: \"%\": must be a list\n"},
        {ON("maria", GOOD ",\"hosts\":[5]"), "spec.hosts[0]: Invalid value: 5: must be a string\n"},
        {ON("maria", GOOD ",\"hosts\":[\"\"]"), "spec.hosts[0]: Required value\n"},
        {ON("maria", GOOD ",\"hosts\":[\"a'\"]"),
         "spec.hosts[0]: Invalid value: \"a'\": must be a name, an address or a pattern, without "
         "quotes, backslashes and blanks\n"},
        {ON("maria", GOOD ",\"hosts\":[\"a\",\"b\\\\\"]"),
         "spec.hosts[1]: Invalid value: \"b\\\\\": must be a name, an address or a pattern, "
         "without "
         "quotes, backslashes and blanks\n"},
        {ON("maria", GOOD ",\"hosts\":[\"\xc3\xa4\"]"),
         "spec.hosts[0]: Invalid value: \"\xc3\xa4\": must be a name, an address or a pattern, "
         "without quotes, backslashes and blanks\n"},
        {ON("maria", GOOD ",\"hosts\":[\"a b\"]"),
         "spec.hosts[0]: Invalid value: \"a b\": must be a name, an address or a pattern, without "
         "quotes, backslashes and blanks\n"},
        {ON("maria", GOOD ",\"hosts\":[\"a\",\"b\",\"A\"]"),
         "spec.hosts[2]: Duplicate value: \"A\"\n"},
        {ON("maria", GOOD ",\"hosts\":[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\","
                          "\"10\",\"11\",\"12\",\"13\",\"14\",\"15\",\"16\",\"17\",\"18\",\"19\","
                          "\"20\",\"21\"]"),
         "spec.hosts: Invalid value: "
         "[\"1\",\"2\",\"3\",\"4\",\"5\",\"6\",\"7\",\"8\",\"9\",\"10\",\"11\",\"12\",\"13\","
         "\"14\",\"15\",\"16\",\"17\",\"18...\": must be at most 20 entries\n"},
        {ON("pg", PG_GOOD ",\"hosts\":[\"10.%\"]"), "W: hosts is ignored on postgresql\n"},
        {ON("pg", PG_GOOD ",\"hosts\":[\"%\"]"), ""},
        {ON("pg", PG_GOOD), ""},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

static void grant_shapes(void **state)
{
    static const struct rule rules[] = {
        {ON("x", GRANTS(GRANT("a", "\"SELECT\""))), ""},
        {ON("x", GRANTS("{\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].database: Required value\n"},
        {ON("x", GRANTS("{\"database\":\"a\"}")), "spec.grants[0].privileges: Required value\n"},
        {ON("x", GRANTS(GRANT("a", ""))),
         "spec.grants[0].privileges: Invalid value: []: must not be empty\n"},
        {ON("x", GRANTS("{\"database\":\"a\",\"privileges\":\"SELECT\"}")),
         "spec.grants[0].privileges: Invalid value: \"SELECT\": must be a list\n"},
        {ON("x", GRANTS("{\"database\":\"a\",\"privileges\":[null]}")),
         "spec.grants[0].privileges[0]: Invalid value: null: must be a string\n"},
        {ON("x", GRANTS("{\"database\":\"a\",\"privileges\":[\"select\"]}")),
         "spec.grants[0].privileges[0]: Unsupported value: \"select\": no engine has such a "
         "privilege\n"},
        {ON("x", GRANTS("{\"database\":\"a\\u0001\",\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].database: Invalid value: \"a\\u0001\": must not hold control "
         "characters\n"},
        {ON("x", GRANTS("5")), "spec.grants[0]: Invalid value: 5: must be an object\n"},
        {ON("x", GOOD ",\"grants\":{}"), "spec.grants: Invalid value: {}: must be a list\n"},
        {ON("x", GRANTS(GRANT("a", "\"SELECT\",\"INSERT\",\"SELECT\""))),
         "spec.grants[0].privileges[2]: Duplicate value: \"SELECT\"\n"},
        {ON("x", GRANTS(GRANT("a", "\"SELECT\",\"ALL\""))),
         "spec.grants[0].privileges[0]: Invalid value: \"SELECT\": must be left out, because ALL "
         "is in the list\nW: spec.grants[0].privileges: ALL is more than most accounts need\n"},
        {ON("x", GRANTS(GRANT("a", "\"SELECT\"") "," GRANT("b", "\"SELECT\"") "," GRANT(
                     "a", "\"INSERT\""))),
         "spec.grants[2]: Duplicate value: spec.grants[0] is for the same; put the privileges into "
         "one list\n"},
        {ON("x",
            GRANTS(GRANT(
                "a",
                "\"SELECT\"") ","
                              "{\"database\":\"a\",\"table\":\"t\",\"privileges\":[\"SELECT\"]},"
                              "{\"database\":\"a\",\"schema\":\"t\",\"privileges\":[\"USAGE\"]}")),
         ""},
        {ON("x", GRANTS("{\"database\":\"a\",\"privileges\":[\"SELECT\"],\"grantOption\":true}")),
         "W: spec.grants[0].grantOption: the account may give these rights to others\n"},
        {ON("x", GRANTS("{\"database\":\"a\",\"privileges\":[\"SELECT\"],\"rows\":1}")),
         "W: unknown field \"spec.grants[0].rows\"\n"},
    };
    (void)state;
    ASSERT_RULES(rules, NULL);
}

/* Each field at its maximum length, and with one unit more. */
static void lengths(void **state)
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
static void enormous_values(void **state)
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

static void too_many_grants(void **state)
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

#define TABLE_VALUES                                                                               \
    "\"ALL\", \"ALTER\", \"CREATE\", \"CREATE VIEW\", \"DELETE\", \"DROP\", \"INDEX\", "           \
    "\"INSERT\", \"REFERENCES\", \"SELECT\", \"SHOW VIEW\", \"TRIGGER\", \"UPDATE\""

static void grants_by_engine(void **state)
{
    static const struct rule rules[] = {
        {ON("my", GRANTS(GRANT("a", "\"EXECUTE\",\"LOCK TABLES\""))), ""},
        {ON("my", GRANTS("{\"database\":\"a\",\"table\":\"t\",\"privileges\":[\"EXECUTE\"]}")),
         "spec.grants[0].privileges[0]: Unsupported value: \"EXECUTE\": supported "
         "values: " TABLE_VALUES "\n"},
        {ON("my", GRANTS("{\"database\":\"a\",\"table\":\"t\",\"privileges\":[\"SUPER\"]}")),
         "spec.grants[0].privileges[0]: Unsupported value: \"SUPER\": supported "
         "values: " TABLE_VALUES "\n"},
        {ON("my", GRANTS("{\"database\":\"a\",\"schema\":\"s\",\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].schema: Invalid value: \"s\": not supported on mysql\n"},
        {ON("my", GRANTS("{\"database\":\"a\",\"table\":\"*\",\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].table: Invalid value: \"*\": leave table out for all tables of a "
         "database\n"},
        {ON("my", GRANTS("{\"database\":\"" SIXTY "aaaaa\",\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].database: Invalid value: \"" SIXTY
         "aaaaa\": must be at most 64 characters for mysql\n"},
        {ON("my", GRANTS(GRANT("a ", "\"SELECT\""))),
         "spec.grants[0].database: Invalid value: \"a \": must not end with a blank on mysql\n"},
        {ON("my", GRANTS("{\"database\":\"\xf0\x9f\x90\x98\",\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].database: Invalid value: \"\xf0\x9f\x90\x98\": must not hold characters "
         "beyond U+FFFF on mysql\n"},
        {ON("pg", PG_GRANTS("{\"database\":\"\xf0\x9f\x90\x98 \",\"privileges\":[\"CONNECT\"]}")),
         ""},
        /* all databases */
        {ON("my", GRANTS(GRANT("*", "\"SELECT\",\"PROCESS\""))), ""},
        {ON("my", GRANTS("{\"database\":\"a\",\"table\":\"t\",\"privileges\":[\"ALL\"]}")),
         "W: spec.grants[0].privileges: ALL is more than most accounts need\n"},
        {ON("narrow", GRANTS(GRANT("*", "\"SELECT\""))),
         "spec.grants[0].database: Forbidden: target \"narrow\" does not allow grants on all "
         "databases\n"},
        {ON("my", GRANTS("{\"database\":\"*\",\"table\":\"t\",\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].table: Invalid value: \"t\": must be left out when database is \"*\"\n"},
        {ON("pg", PG_GRANTS(GRANT("*", "\"CONNECT\""))),
         "spec.grants[0].database: Invalid value: \"*\": not supported on postgresql; name each "
         "database\n"},
        /* PostgreSQL */
        {ON("pg", PG_GRANTS(GRANT(
                      "a", "\"CONNECT\",\"TEMPORARY\"") ","
                                                        "{\"database\":\"a\",\"schema\":\"s\","
                                                        "\"privileges\":[\"USAGE\"]},"
                                                        "{\"database\":\"a\",\"schema\":\"s\","
                                                        "\"table\":\"*\",\"privileges\":"
                                                        "[\"SELECT\",\"TRUNCATE\"]}")),
         ""},
        {ON("pg", PG_GRANTS("{\"database\":\"a\",\"schema\":\"s\",\"routine\":\"f\","
                            "\"privileges\":[\"EXECUTE\"]},{\"database\":\"a\",\"schema\":\"s\","
                            "\"routine\":\"*\",\"privileges\":[\"EXECUTE\"],\"grantOption\":false},"
                            "{\"database\":\"a\",\"schema\":\"s\",\"table\":\"f\","
                            "\"privileges\":[\"SELECT\"]}")),
         ""},
        {ON("pg", PG_GRANTS("{\"database\":\"a\",\"routine\":\"f\",\"table\":\"t\","
                            "\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].routine: Forbidden: set only one of table, routine\n"
         "spec.grants[0].schema: Required value: a function of postgresql is in a schema\n"
         "spec.grants[0].schema: Required value: a table of postgresql is in a schema\n"
         "spec.grants[0].privileges[0]: Unsupported value: \"SELECT\": supported values: \"ALL\", "
         "\"EXECUTE\"\n"},
        {ON("pg", PG_GRANTS("{\"database\":\"a\",\"table\":\"t\",\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].schema: Required value: a table of postgresql is in a schema\n"},
        {ON("pg", PG_GRANTS(GRANT("a", "\"SELECT\""))),
         "spec.grants[0].privileges[0]: Unsupported value: \"SELECT\": supported values: \"ALL\", "
         "\"CONNECT\", \"CREATE\", \"TEMPORARY\"\n"},
        {ON("pg", PG_GRANTS("{\"database\":\"a\",\"schema\":\"s\",\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].privileges[0]: Unsupported value: \"SELECT\": supported values: \"ALL\", "
         "\"CREATE\", \"USAGE\"\n"},
        /* columns and routines */
        {ON("maria",
            GRANTS(
                "{\"database\":\"a\",\"table\":\"t\",\"columns\":[\"c\",\"d\"],\"privileges\":"
                "[\"SELECT\",\"INSERT\"]},{\"database\":\"a\",\"table\":\"t\",\"columns\":[\"c\"],"
                "\"privileges\":[\"UPDATE\"]},{\"database\":\"a\",\"table\":\"t\",\"privileges\":"
                "[\"DELETE\"]},{\"database\":\"a\",\"routine\":\"f\",\"privileges\":[\"EXECUTE\"]"
                "}")),
         ""},
        {ON("maria",
            GRANTS("{\"database\":\"a\",\"columns\":[\"c\",\"C\",\"d \"],\"privileges\":[\"DROP\"],"
                   "\"grantOption\":true},{\"database\":\"*\",\"routine\":\"f\",\"privileges\":"
                   "[\"EXECUTE\"]},{\"database\":\"a\",\"routine\":\"*\",\"privileges\":["
                   "\"SELECT\"]}")),
         "spec.grants[0].columns: Forbidden: needs table, the name of one table\n"
         "spec.grants[0].columns: Forbidden: mariadb has no grantOption of columns, only of their "
         "table\n"
         "spec.grants[0].columns[1]: Duplicate value: \"C\"\n"
         "spec.grants[0].columns[2]: Invalid value: \"d \": must not end with a blank on mariadb\n"
         "spec.grants[0].privileges[0]: Unsupported value: \"DROP\": supported values: \"ALL\", "
         "\"INSERT\", \"REFERENCES\", \"SELECT\", \"UPDATE\"\n"
         "spec.grants[1].routine: Invalid value: \"f\": must be left out when database is \"*\"\n"
         "spec.grants[2].routine: Invalid value: \"*\": leave routine out for all routines of a "
         "database\n"
         "spec.grants[2].privileges[0]: Unsupported value: \"SELECT\": supported values: "
         "\"EXECUTE\"\n"
         "W: spec.grants[0].grantOption: the account may give these rights to others\n"},
        {ON("pg",
            PG_GRANTS(
                "{\"database\":\"a\",\"schema\":\"s\",\"table\":\"*\",\"columns\":[\"c\"],"
                "\"privileges\":[\"SELECT\"]},{\"database\":\"a\",\"schema\":\"s\",\"table\":"
                "\"t\",\"columns\":[\"c\",\"C\"],\"privileges\":[\"TRUNCATE\"],\"grantOption\":"
                "true}")),
         "spec.grants[0].columns: Forbidden: needs table, the name of one table\n"
         "spec.grants[1].privileges[0]: Unsupported value: \"TRUNCATE\": supported values: "
         "\"ALL\", "
         "\"INSERT\", \"REFERENCES\", \"SELECT\", \"UPDATE\"\n"
         "W: spec.grants[1].grantOption: the account may give these rights to others\n"},
        {ON("maria", GRANTS(GRANT("50%", "\"SELECT\""))),
         "W: spec.grants[0].database: \"%\" is part of the name of one database, not a pattern\n"},
        /* what the target allows */
        {ON("narrow", GRANTS(GRANT("a", "\"SELECT\",\"INSERT\""))), ""},
        {ON("narrow", GRANTS("{\"database\":\"a\",\"routine\":\"f\",\"privileges\":[\"SELECT\"]}")),
         "spec.grants[0].privileges[0]: Unsupported value: \"SELECT\": supported values: "
         "\"EXECUTE\"\n"},
        {ON("narrow", GRANTS(GRANT("a", "\"SELECT\",\"DELETE\""))),
         "spec.grants[0].privileges[1]: Forbidden: target \"narrow\" does not allow DELETE\n"},
        {ON("narrow", GRANTS("{\"database\":\"a\",\"privileges\":[\"SELECT\"],"
                             "\"grantOption\":true}")),
         "spec.grants[0].grantOption: Forbidden: target \"narrow\" does not allow GRANT OPTION\n"
         "W: spec.grants[0].grantOption: the account may give these rights to others\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

static void what_belongs_to_the_server(void **state)
{
    static const struct {
        const char *target, *engine, *database, *schema, *privilege;
    } cases[] = {
        {"my", "mysql", "mysql", NULL, "SELECT"},
        {"maria", "mariadb", "MySQL", NULL, "INSERT"},
        {"maria", "mariadb", "sys", NULL, "SELECT"},
        {"maria", "mariadb", "steward", NULL, "UPDATE"},
        {"maria", "mariadb", "performance_schema", NULL, "SELECT"},
        {"maria", "mariadb", "information_schema", NULL, "SELECT"},
        {"pg", "postgresql", "template1", NULL, "CONNECT"},
        {"pg", "postgresql", NULL, "pg_catalog", "USAGE"},
        {"pg", "postgresql", NULL, "information_schema", "USAGE"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        char object[512], want[256], schema[64] = "";
        if (cases[i].schema)
            snprintf(schema, sizeof(schema), "\"schema\":\"%s\",", cases[i].schema);
        snprintf(object, sizeof(object),
                 "{\"metadata\":{\"name\":\"web\",\"labels\":{\"target\":\"%s\"}},\"spec\":{"
                 "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"hosts\":[\"%s\"],\"grants\":[{"
                 "\"database\":\"%s\",%s\"privileges\":[\"%s\"]}]}}",
                 cases[i].target, stw_streq(cases[i].target, "pg") ? "%" : "h",
                 cases[i].database ? cases[i].database : "d", schema, cases[i].privilege);
        snprintf(want, sizeof(want), "spec.grants[0].%s: Forbidden: \"%s\" is reserved on %s\n",
                 cases[i].schema ? "schema" : "database",
                 cases[i].schema ? cases[i].schema : cases[i].database, cases[i].engine);
        assert_answer(&stw_kind_databaseuser, object, NULL, &env, want);
    }
}

/* GRANT ALL ON *.* would create an administrator. */
static void nobody_becomes_admin(void **state)
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

#define ON_SERVER(target, more, list)                                                              \
    ON(target, "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"hosts\":[\"h\"],\"grants\":["     \
               "{\"database\":\"*\"," more "\"privileges\":[" list "]}]")

/* Without allowAllDatabases, and only those that the target lists. */
static void privileges_on_the_server(void **state)
{
    static const struct rule rules[] = {
        {ON_SERVER("watched", "", "\"BACKUP_ADMIN\",\"PROCESS\""), ""},
        {ON_SERVER("watched", "", "\"SHOW_ROUTINE\""),
         "spec.grants[0].database: Forbidden: target \"watched\" does not allow grants on all "
         "databases\n"
         "spec.grants[0].privileges[0]: Forbidden: target \"watched\" does not allow "
         "SHOW_ROUTINE\n"},
        {ON_SERVER("watched", "", "\"PROCESS\",\"SELECT\""),
         "spec.grants[0].database: Forbidden: target \"watched\" does not allow grants on all "
         "databases\n"},
        {ON_SERVER("watched", "\"grantOption\":true,", "\"BACKUP_ADMIN\""),
         "spec.grants[0].database: Forbidden: target \"watched\" does not allow grants on all "
         "databases\n"
         "spec.grants[0].privileges[0]: Forbidden: BACKUP_ADMIN is not given with grantOption\n"
         "W: spec.grants[0].grantOption: the account may give these rights to others\n"},
        {ON_SERVER("my", "", "\"PROCESS\""), ""},
        {ON_SERVER("my", "", "\"BACKUP_ADMIN\""),
         "spec.grants[0].privileges[0]: Forbidden: target \"my\" does not allow BACKUP_ADMIN\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

#define REFUSED(database)                                                                          \
    "spec.grants[0].database: Forbidden: target \"own\" does not allow \"" database                \
    "\" for namespace \"shop\": without allowedDatabases it gives \"shop\" and names that begin "  \
    "with \"shop-\" or \"shop_\"\n"
#define ON_DATABASE(target, database)                                                              \
    ON(target, "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"hosts\":[\"h\"],\"grants\":["     \
               "{\"database\":\"" database "\",\"privileges\":[\"CREATE\"]}]")
#define PG_DATABASE(database)                                                                      \
    ON("listed", "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"grants\":["                     \
                 "{\"database\":\"" database "\",\"privileges\":[\"CREATE\"]}]")

static void databases(void **state)
{
    static const struct rule rules[] = {
        {ON_DATABASE("own", "shop"), ""},
        {ON_DATABASE("own", "shop-eu"), ""},
        {ON_DATABASE("own", "shop_"), ""},
        {ON_DATABASE("own", "*"), ""}, /* subject to allowAllDatabases */
        {ON_DATABASE("own", "shopping"), REFUSED("shopping")},
        {ON_DATABASE("own", "Shop"), REFUSED("Shop")},
        {ON_DATABASE("own", "sho"), REFUSED("sho")},
        {ON_DATABASE("own", "hr"), REFUSED("hr")},
        {ON_DATABASE("own", "shop%"),
         REFUSED("shop%") "W: spec.grants[0].database: \"%\" is part of the name of one database, "
                          "not a pattern\n"},
        {ON_DATABASE("own", "mysql"),
         "spec.grants[0].database: Forbidden: \"mysql\" is reserved on mariadb\n"},
        {PG_DATABASE("shared"), ""},
        {PG_DATABASE("x-shop-1"), ""},
        {PG_DATABASE("shop"),
         "spec.grants[0].database: Forbidden: target \"listed\" does not allow \"shop\" for "
         "namespace \"shop\"; have it added to allowedDatabases of the target\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

static void what_can_never_work(void **state)
{
    static const struct rule rules[] = {
        {ON("maria",
            "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"hosts\":[\"h\",\"10.0.0.0/8\"]"),
         "spec.hosts[1]: Invalid value: \"10.0.0.0/8\": mariadb has no prefix lengths; write the "
         "netmask, as in 10.0.0.0/255.0.0.0\n"},
        {ON("maria",
            "\"user\":\"app\",\"password\":{\"name\":\"s\"},\"hosts\":[\"10.0.0.0/255.0.0.0\"]"),
         ""},
        {ON("listed",
            PG_GRANTS("{\"database\":\"shared\",\"schema\":\"*\",\"table\":\"*\",\"privileges\":"
                      "[\"SELECT\"]},{\"database\":\"shared\",\"schema\":\"*\",\"privileges\":"
                      "[\"USAGE\"]},{\"database\":\"shared\",\"schema\":\"*\",\"routine\":\"*\","
                      "\"privileges\":[\"EXECUTE\"]}")),
         ""},
        {ON("listed",
            PG_GRANTS("{\"database\":\"shared\",\"schema\":\"*\",\"table\":\"t\",\"privileges\":"
                      "[\"SELECT\"]},{\"database\":\"shared\",\"schema\":\"*\",\"routine\":\"f\","
                      "\"privileges\":[\"EXECUTE\"]}")),
         "spec.grants[0].schema: Invalid value: \"*\": in every schema, table or routine is \"*\" "
         "or "
         "absent; name the schema of a single one\n"
         "spec.grants[1].schema: Invalid value: \"*\": in every schema, table or routine is \"*\" "
         "or "
         "absent; name the schema of a single one\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

static void tls(void **state)
{
    static const struct rule rules[] = {
        {ON("maria", PG_GOOD), "W: the account may log in from any host without TLS; narrow hosts "
                               "or set requireTLS\n"},
        {ON("maria", PG_GOOD ",\"hosts\":[\"a\",\"%\"]"),
         "W: the account may log in from any host without TLS; narrow hosts or set requireTLS\n"},
        {ON("maria", PG_GOOD ",\"hosts\":[\"a\"]"), ""},
        {ON("maria", PG_GOOD ",\"requireTLS\":\"X509\""), ""},
        {ON("maria", PG_GOOD ",\"requireTLS\":\"Yes\""),
         "spec.requireTLS: Unsupported value: \"Yes\": supported values: \"None\", \"SSL\", "
         "\"X509\"\n"},
        {ON("maria", PG_GOOD ",\"requireTLS\":\"X509\",\"requireCertificate\":{\"subject\":"
                             "\"/O=It's/CN=app\",\"issuer\":\"/CN=CA\"}"),
         ""},
        {ON("maria", PG_GOOD ",\"requireTLS\":\"SSL\",\"requireCertificate\":{}"), ""},
        {ON("maria",
            PG_GOOD ",\"requireTLS\":\"SSL\",\"requireCertificate\":{\"issuer\":\"/CN=CA\"}"),
         "spec.requireCertificate: Forbidden: needs requireTLS X509\n"},
        {ON("maria", PG_GOOD ",\"requireTLS\":\"X509\",\"requireCertificate\":{\"subject\":"
                             "\"CN=app\",\"issuer\":\"/CN=a\\nb\"}"),
         "spec.requireCertificate.subject: Invalid value: \"CN=app\": must be printable ASCII and "
         "start with '/', as in /O=Example/CN=app\n"
         "spec.requireCertificate.issuer: Invalid value: \"/CN=a\\nb\": must be printable ASCII "
         "and start with '/', as in /O=Example/CN=app\n"},
        {ON("maria", PG_GOOD ",\"requireTLS\":\"X509\",\"requireCertificate\":{\"subject\":\"\"}"),
         "spec.requireCertificate.subject: Invalid value: \"\": must not be empty\n"},
        {ON("pg", PG_GOOD ",\"requireCertificate\":{}"),
         "spec.requireCertificate: Invalid value: not supported on postgresql\n"},
        {ON("pg", PG_GOOD ",\"requireTLS\":\"None\""), ""},
        {ON("pg", PG_GOOD ",\"requireTLS\":\"SSL\""),
         "spec.requireTLS: Invalid value: \"SSL\": not supported on postgresql\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
    assert_answer(&stw_kind_databaseuser, ON("maria", GOOD),
                  ON("maria", GOOD ",\"requireCertificate\":{}"), &env,
                  "W: without requireCertificate, the account requires on the server what it does "
                  "now; set it to {} to remove that\n");
}

#define IAM "\"user\":\"app\",\"authentication\":\"IAM\",\"requireTLS\":\"SSL\""
#define NOT_WITH_IAM ": Forbidden: not with authentication IAM, which uses no password\n"

static void accounts_without_a_password(void **state)
{
    static const char stays[] = "spec.authentication: Forbidden: cannot change: the account would "
                                "need, or lose, a password\n";
    static const struct rule rules[] = {
        {ON("maria", IAM), ""},
        {ON("maria", IAM ",\"connectionSecret\":{\"name\":\"c\"}"), ""},
        {ON("maria", GOOD ",\"authentication\":\"Password\""), ""},
        {ON("maria", GOOD ",\"authentication\":\"iam\""),
         "spec.authentication: Unsupported value: \"iam\": supported values: \"Password\", "
         "\"IAM\"\n"},
        {ON("my", IAM),
         "spec.authentication: Forbidden: target \"my\" does not allow accounts without "
         "a password; have allowIAM of the target set\n"},
        {ON("maria", IAM ",\"password\":{\"name\":\"s\"},\"rotation\":{\"strategy\":\"InPlace\"}"),
         "spec.password" NOT_WITH_IAM "spec.rotation" NOT_WITH_IAM},
        {ON("none", IAM ",\"authPlugin\":\"parsec\""),
         "spec.authPlugin" NOT_WITH_IAM MAY_USE
         "W: target \"none\" is not configured; the account is created when it is\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
    assert_answer(&stw_kind_databaseuser, ON("maria", IAM), ON("maria", GOOD), &env, stays);
    assert_answer(&stw_kind_databaseuser, ON("maria", GOOD), ON("maria", IAM), &env, stays);
}

static void the_rest(void **state)
{
    static const struct rule rules[] = {
        {ON("maria",
            GOOD ",\"limits\":{\"maxUserConnections\":2147483647,\"maxQueriesPerHour\":5}"),
         ""},
        {ON("maria", GOOD ",\"limits\":{\"maxUserConnections\":2147483648}"),
         "spec.limits.maxUserConnections: Invalid value: 2147483648: must be between 0 and "
         "2147483647\n"},
        {ON("maria", GOOD ",\"limits\":{\"maxUpdatesPerHour\":-1}"),
         "spec.limits.maxUpdatesPerHour: Invalid value: -1: must be between 0 and 2147483647\n"},
        {ON("pg", PG_GOOD ",\"limits\":{\"maxUserConnections\":5,\"maxQueriesPerHour\":0}"), ""},
        {ON("pg", PG_GOOD ",\"limits\":{\"maxQueriesPerHour\":1,\"maxUpdatesPerHour\":2,"
                          "\"maxConnectionsPerHour\":3}"),
         "spec.limits.maxQueriesPerHour: Invalid value: 1: not supported on postgresql\n"
         "spec.limits.maxUpdatesPerHour: Invalid value: 2: not supported on postgresql\n"
         "spec.limits.maxConnectionsPerHour: Invalid value: 3: not supported on postgresql\n"},
        {ON("maria", GOOD ",\"grantsPolicy\":\"All\""),
         "spec.grantsPolicy: Unsupported value: \"All\": supported values: \"Managed\", \"Exact\", "
         "\"Additive\"\n"},
        {ON("maria", GOOD ",\"deletionPolicy\":\"Keep\""),
         "spec.deletionPolicy: Unsupported value: \"Keep\": supported values: \"Delete\", "
         "\"Lock\", \"Retain\"\n"},
        {ON("maria", GOOD ",\"deletionPolicy\":\"Lock\""),
         "W: deletionPolicy is Lock: the account and its rights stay on the server, locked, when "
         "this object is deleted\n"},
        {ON("maria", GOOD ",\"deletionPolicy\":\"Retain\""),
         "W: deletionPolicy is Retain: the account and its rights stay on the server when this "
         "object is deleted\n"},
        {ON("pg", PG_GOOD ",\"roles\":[\"team_a\",\"team_b\"]"), ""},
        {ON("pg", PG_GOOD ",\"roles\":[\"team_a\",\"boss\",\"postgres\",\"app\",\"team_a\","
                          "\"chief\"]"),
         "spec.roles[1]: Forbidden: target \"pg\" does not allow the role \"boss\" for namespace "
         "\"shop\"; have it added to allowedRoles of the target\n"
         "spec.roles[2]: Forbidden: \"postgres\" is reserved on postgresql\n"
         "spec.roles[3]: Invalid value: \"app\": must be another role than spec.user\n"
         "spec.roles[4]: Duplicate value: \"team_a\"\n"
         "spec.roles[5]: Forbidden: \"chief\" is reserved on postgresql\n"},
        {ON("maria", GOOD ",\"adoptionPolicy\":\"Always\""),
         "spec.adoptionPolicy: Unsupported value: \"Always\": supported values: \"Fail\", "
         "\"Adopt\"\n"},
        {ON("maria", GOOD ",\"reassignOwnedTo\":\"boss\""),
         "spec.reassignOwnedTo: Invalid value: \"boss\": not supported on mariadb\n"},
        {ON("pg", PG_GOOD ",\"reassignOwnedTo\":\"boss\""), ""},
        {ON("pg", PG_GOOD ",\"reassignOwnedTo\":\"shop-heir\""), ""},
        {ON("pg", PG_GOOD ",\"reassignOwnedTo\":\"other-heir\""),
         "spec.reassignOwnedTo: Forbidden: target \"pg\" does not allow \"other-heir\" as a new "
         "owner; leave it out, or have it added to allowedOwners of the target\n"},
        {ON("listed", PG_GOOD ",\"reassignOwnedTo\":\"boss\""),
         "spec.reassignOwnedTo: Forbidden: target \"listed\" does not allow \"boss\" as a new "
         "owner; leave it out, or have it added to allowedOwners of the target\n"},
        {ON("maria", GOOD ",\"adoptionPolicy\":\"Adopt\""), ""},
        {ON("narrow", GOOD ",\"adoptionPolicy\":\"Adopt\""),
         "W: adoptionPolicy is Adopt, and target \"narrow\" does not allow the adoption of "
         "\"app\": "
         "an account that exists is left as it is\n"},
        {ON("pg", PG_GOOD ",\"reassignOwnedTo\":\"app\""),
         "spec.reassignOwnedTo: Invalid value: \"app\": must be another role than spec.user\n"},
        {ON("pg", PG_GOOD ",\"reassignOwnedTo\":\"postgres\""),
         "spec.reassignOwnedTo: Forbidden: \"postgres\" is reserved on postgresql\n"},
        {ON("maria", GOOD ",\"resyncSeconds\":29"),
         "spec.resyncSeconds: Invalid value: 29: must be between 30 and 86400\n"},
        {ON("maria", GOOD ",\"resyncSeconds\":86401"),
         "spec.resyncSeconds: Invalid value: 86401: must be between 30 and 86400\n"},
        {ON("maria", GOOD ",\"resyncSeconds\":30"), ""},
        {ON("my", GOOD ",\"authPlugin\":\"sha256_password\""), ""},
        {ON("my", GOOD ",\"authPlugin\":\"mysql_native_password\""),
         "spec.authPlugin: Unsupported value: \"mysql_native_password\": supported values: "
         "\"caching_sha2_password\", \"sha256_password\", the allowedAuthPlugins of target "
         "\"my\"\n"},
        {ON("maria", GOOD ",\"authPlugin\":\"ed25519\""),
         "spec.authPlugin: Forbidden: target \"maria\" allows no plugin to be chosen; leave it "
         "out, or have it added to allowedAuthPlugins of the target\n"},
        {ON("pg", PG_GOOD ",\"authPlugin\":\"ed25519\""),
         "spec.authPlugin: Invalid value: \"ed25519\": not supported on postgresql\n"},
        {ON("my", GOOD ",\"authPlugin\":\"a' BY 'x\""),
         "spec.authPlugin: Invalid value: \"a' BY 'x\": must consist of small letters, digits and "
         "'_'\n"},
        {ON("my", GOOD ",\"authPlugin\":7"),
         "spec.authPlugin: Invalid value: 7: must be a string\n"},
        {ON("unknown", GOOD ",\"authPlugin\":\"any\""),
         MAY_USE "W: target \"unknown\" is not configured; the account is created when it is\n"},
        {ON("maria", GOOD ",\"colour\":\"x\""), "W: unknown field \"spec.colour\"\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

/* --- the Secret */

static void what_is_said_of_the_secret(void **state)
{
    static const struct {
        struct stw_secret_facts facts;
        const char *more, *want;
    } cases[] = {
        {{.secret_there = false},
         "",
         "W: Secret \"s\" not found; the account is created when it appears\n"},
        {{.secret_there = true},
         "",
         "W: Secret \"s\" has no key \"password\"; the account is created when it appears\n"},
        {{.secret_there = true, .key_there = true, .is_text = true},
         "",
         "W: the value of key \"password\" in Secret \"s\" is empty; the account is created when "
         "it is not\n"},
        {{.secret_there = true, .key_there = true, .is_text = true, .len = 12}, "", ""},
        {{.secret_there = true, .key_there = true, .is_text = true, .len = 11},
         "",
         "W: the password in Secret \"s\" is shorter than 12 bytes\n"},
        {{.secret_there = true, .key_there = true, .len = 20},
         "",
         "W: the value of key \"password\" in Secret \"s\" holds control characters or is not "
         "text\n"},
        {{.secret_there = true,
          .key_there = true,
          .is_text = true,
          .ends_in_newline = true,
          .len = 20},
         "",
         "W: the value of key \"password\" in Secret \"s\" ends in a newline, which would be part "
         "of the password; set spec.password.trimNewline to leave it out\n"},
        {{.secret_there = true,
          .key_there = true,
          .is_text = true,
          .ends_in_newline = true,
          .len = 20,
          .bare_len = 19},
         ",\"trimNewline\":true",
         ""},
        {{.secret_there = true,
          .key_there = true,
          .is_text = true,
          .ends_in_newline = true,
          .len = 14, /* twelve bytes and \r\n */
          .bare_len = 12},
         ",\"trimNewline\":true",
         ""},
        {{.secret_there = true,
          .key_there = true,
          .is_text = true,
          .ends_in_newline = true,
          .len = 13, /* eleven bytes and \r\n */
          .bare_len = 11},
         ",\"trimNewline\":true",
         "W: the password in Secret \"s\" is shorter than 12 bytes\n"},
        {{.secret_there = true,
          .key_there = true,
          .is_text = true,
          .ends_in_newline = true,
          .len = 1,
          .bare_len = 0},
         ",\"trimNewline\":true",
         "W: the value of key \"password\" in Secret \"s\" is empty; the account is created when "
         "it is not\n"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        char object[512];
        world.facts = cases[i].facts;
        snprintf(object, sizeof(object),
                 "{\"metadata\":{\"name\":\"web\",\"labels\":{\"target\":\"pg\"}},\"spec\":{"
                 "\"user\":\"app\",\"password\":{\"name\":\"s\"%s}}}",
                 cases[i].more);
        assert_answer(&stw_kind_databaseuser, object, NULL, &env, cases[i].want);
        assert_string_equal(world.secret, "shop/s password");
    }
    world.secret_rc = -1; /* the lookup failed: no warning */
    assert_answer(&stw_kind_databaseuser, ON("pg", PG_GOOD), NULL, &env, "");
    world.secret_rc = 0;
    world.facts = fine;
}

/* Reading the Secret costs a request: not done when the result cannot matter. */
static void when_the_secret_is_looked_at(void **state)
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
        world.secrets_asked = 0;
        ask(&q, &stw_kind_databaseuser, cases[i].now, cases[i].old, &env);
        q.a.quiet = cases[i].quiet;
        stw_autofree char *said = answer(&q.a);
        ask_done(&q);
        if (world.secrets_asked != cases[i].asked)
            fail_msg("case %zu: asked %u times; %s", i, world.secrets_asked, said);
    }
}

#define WITH_PASSWORD(text) "\"user\":\"app\",\"requireTLS\":\"SSL\",\"password\":{" text "}"
#define CONNECTION(text) GOOD ",\"connectionSecret\":{" text "}"
#define IN_BRACES                                                                                  \
    "double braces must hold one of host, port, user, password, database, engine, uri, jdbcUrl, "  \
    "ca, as in {{host}}\n"

#define ON_TABLE(table, list)                                                                      \
    PG_GRANTS("{\"database\":\"d\",\"schema\":\"s\",\"table\":\"" table "\",\"privileges\":[" list \
              "]}")

static void valid_until(void **state)
{
    static const struct rule rules[] = {
        {ON("pg", PG_GOOD ",\"validUntil\":\"2030-01-31T12:00:00Z\""), ""},
        {ON("pg", PG_GOOD ",\"validUntil\":\"infinity\""), ""},
        {ON("pg", PG_GOOD ",\"validUntil\":\"2030-02-31T12:00:00Z\""),
         "spec.validUntil: Invalid value: \"2030-02-31T12:00:00Z\": must be a time like "
         "2030-01-31T12:00:00Z, or infinity\n"},
        {ON("pg", PG_GOOD ",\"validUntil\":\"now'; DROP\""),
         "spec.validUntil: Invalid value: \"now'; DROP\": must be a time like "
         "2030-01-31T12:00:00Z, or infinity\n"},
        {ON("maria", GOOD ",\"validUntil\":\"infinity\""),
         "spec.validUntil: Invalid value: \"infinity\": not supported on mariadb\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

static void settings(void **state)
{
    static const struct rule rules[] = {
        {ON("pg", PG_GOOD ",\"settings\":[{\"name\":\"search_path\",\"value\":\"a, b\"},{\"name\":"
                          "\"search_path\",\"value\":\"c\",\"database\":\"d\"}]"),
         ""},
        {ON("maria", GOOD ",\"settings\":[]"),
         "spec.settings: Invalid value: not supported on mariadb\n"},
        {ON("listed",
            PG_GOOD ",\"settings\":[{\"name\":\"lock_timeout\",\"value\":\"1s\",\"database\":"
                    "\"other\"},{\"name\":\"lock_timeout\",\"value\":\"2s\",\"database\":"
                    "\"other\"},{\"name\":\"Role\",\"value\":\"\"}]"),
         "spec.settings[2].name: Invalid value: \"Role\": must consist of small letters, digits "
         "and '_'\n"
         "spec.settings[2].value: Required value\n"
         "spec.settings[0].database: Forbidden: target \"listed\" does not allow \"other\" for "
         "namespace \"shop\"\n"
         "spec.settings[1]: Duplicate value: \"lock_timeout\"\n"},
        {ON("pg",
            PG_GOOD ",\"settings\":[{\"name\":\"session_preload_libraries\",\"value\":\"x\"}]"),
         "spec.settings[0].name: Unsupported value: \"session_preload_libraries\": supported "
         "values: "
         "\"application_name\", \"datestyle\", \"default_transaction_isolation\", "
         "\"default_transaction_read_only\", \"idle_in_transaction_session_timeout\", "
         "\"lock_timeout\", \"search_path\", \"statement_timeout\", \"timezone\", the "
         "allowedSettings of target \"pg\"\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

/* A sequence is named like a table. */
static void sequences(void **state)
{
    static const struct rule rules[] = {
        {ON("pg", ON_TABLE("orders_id_seq", "\"USAGE\",\"SELECT\",\"UPDATE\"")), ""},
        {ON("pg", ON_TABLE("*", "\"USAGE\",\"MAINTAIN\"")), ""},
        {ON("maria", GRANTS("{\"database\":\"d\",\"table\":\"t\",\"privileges\":[\"MAINTAIN\"]}")),
         "spec.grants[0].privileges[0]: Unsupported value: \"MAINTAIN\": supported values: "
         "\"ALL\", \"ALTER\", \"CREATE\", \"CREATE VIEW\", \"DELETE\", \"DELETE HISTORY\", "
         "\"DROP\", \"INDEX\", \"INSERT\", \"REFERENCES\", \"SELECT\", \"SHOW VIEW\", "
         "\"TRIGGER\", \"UPDATE\"\n"},
        {ON("listed", ON_TABLE("orders_id_seq", "\"USAGE\"")), /* another tenant's database */
         "spec.grants[0].database: Forbidden: target \"listed\" does not allow \"d\" for namespace "
         "\"shop\"; have it added to allowedDatabases of the target\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

static void generated_passwords(void **state)
{
    static const struct rule rules[] = {
        {ON("maria", WITH_PASSWORD("\"generate\":{}")), ""},
        {ON("maria", WITH_PASSWORD("\"key\":\"k\"")),
         "spec.password.name: Required value: set one of name, generate\n"},
        {ON("maria", WITH_PASSWORD("\"name\":\"s\",\"generate\":{}")),
         "spec.password.generate: Forbidden: set only one of name, generate\n"},
        {ON("maria", WITH_PASSWORD("\"trimNewline\":true,\"generate\":{}")),
         "spec.password.trimNewline: Forbidden: a generated password has no newline\n"},
        {ON("maria", WITH_PASSWORD("\"generate\":{\"length\":15}")),
         "spec.password.generate.length: Invalid value: 15: must be between 16 and 128\n"},
        {ON("maria", WITH_PASSWORD("\"generate\":{\"alphabet\":\"abcdefghijklmnopa\"}")),
         "spec.password.generate.alphabet: Invalid value: \"abcdefghijklmnopa\": must consist of "
         "different visible ASCII characters\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

#define RESERVED_KEY "reserved: steward, Kubernetes or Argo CD acts on keys of this domain\n"

static void connection_secrets(void **state)
{
    static const struct rule rules[] = {
        {ON("maria", CONNECTION("\"name\":\"c\"")), ""},
        {ON("maria", CONNECTION("\"name\":\"c\",\"keys\":{\"A\":\"uri\"},\"template\":{\"b\":"
                                "\"{{host}}\"}")),
         ""},
        {ON("maria", CONNECTION("\"keys\":{}")), "spec.connectionSecret.name: Required value\n"},
        {ON("maria", CONNECTION("\"name\":\"s\"")),
         "spec.connectionSecret.name: Invalid value: \"s\": must differ from the Secret of the "
         "password\n"},
        {ON("maria", WITH_PASSWORD("\"generate\":{}") ",\"connectionSecret\":{\"name\":"
                                                      "\"web-password\"}"),
         "spec.connectionSecret.name: Invalid value: \"web-password\": must differ from the Secret "
         "of the password\n"},
        {ON("maria", CONNECTION("\"name\":\"c\",\"keys\":{\"A\":\"token\"}")),
         "spec.connectionSecret.keys[A]: Unsupported value: \"token\": supported values: \"host\", "
         "\"port\", \"user\", \"password\", \"database\", \"engine\", \"uri\", \"jdbcUrl\", "
         "\"ca\"\n"},
        {ON("maria", CONNECTION("\"name\":\"c\",\"template\":{\"A\":\"{{admin}}\"}")),
         "spec.connectionSecret.template[A]: Invalid value: \"{{admin}}\": " IN_BRACES},
        {ON("maria", CONNECTION("\"name\":\"c\",\"keys\":{\"A\":\"uri\"},\"template\":{\"A\":"
                                "\"x\",\"b c\":\"x\"}")),
         "spec.connectionSecret.template[A]: Duplicate value: keys has it\n"
         "spec.connectionSecret.template[b c]: Invalid value: must be 1 to 253 letters, digits, "
         "'-', '_' and '.'\n"},
        {ON("maria", CONNECTION("\"name\":\"c\",\"labels\":{\"team\":\"billing\"},\"annotations\":"
                                "{\"notkubernetes.io/a\":\"any text\"}")),
         ""},
        {ON("maria", CONNECTION("\"name\":\"c\",\"labels\":{\"app.kubernetes.io/name\":\"x\","
                                "\"argocd.argoproj.io/secret-type\":\"repository\","
                                "\"a\":\"two words\"},"
                                "\"annotations\":{\"sub.k8s.io/x\":\"\",\"b c\":\"\"}")),
         "spec.connectionSecret.labels[app.kubernetes.io/name]: Forbidden: " RESERVED_KEY
         "spec.connectionSecret.labels[argocd.argoproj.io/secret-type]: Forbidden: " RESERVED_KEY
         "spec.connectionSecret.annotations[sub.k8s.io/x]: Forbidden: " RESERVED_KEY
         "spec.connectionSecret.labels[a]: Invalid value: \"two words\": " STW_CORE_LABEL_TEXT "\n"
         "spec.connectionSecret.annotations[b c]: Invalid value: \"b c\": " STW_CORE_KEY_TEXT "\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
    assert_answer(&stw_kind_databaseuser, ON("maria", CONNECTION("\"name\":\"c\"")),
                  ON("maria", CONNECTION("\"name\":\"d\"")), &env,
                  "spec.connectionSecret.name: Forbidden: field is immutable (was \"d\")\n");
    assert_answer(&stw_kind_databaseuser, ON("maria", CONNECTION("\"name\":\"c\"")),
                  ON("maria", GOOD), &env, "");
}

#define ANY_HOST                                                                                   \
    "W: the account may log in from any host without TLS; narrow hosts or set requireTLS\n"
#define TWINS ",\"rotation\":{\"strategy\":\"TwinAccounts\"}"
#define NEEDS_CONNECTION                                                                           \
    "must be set, because TwinAccounts changes the name of the login, which applications read "    \
    "there"
/* A user, with twins. */
#define TWINS_OF(user)                                                                             \
    "\"user\":\"" user                                                                             \
    "\",\"password\":{\"name\":\"s\"},\"connectionSecret\":{\"name\":\"c\"}" TWINS
#define ROTATION(text) CONNECTION("\"name\":\"c\"") ",\"rotation\":{" text "}"

static void rotations(void **state)
{
    static const struct rule rules[] = {
        {ON("maria", ROTATION("\"strategy\":\"InPlace\"")), ""},
        {ON("maria", ROTATION("")), ""},
        {ON("pg", GOOD ",\"rotation\":{}"),
         "spec.connectionSecret: Required value: " NEEDS_CONNECTION
         "\nspec.requireTLS: Invalid value: \"SSL\": not supported on postgresql\n"},
        {ON("nowhere", GOOD ",\"rotation\":{\"strategy\":\"TwinAccounts\"}"),
         "spec.connectionSecret: Required value: " NEEDS_CONNECTION "\n" MAY_USE
         "W: target \"nowhere\" is not configured; the account is created when it is\n"},
        {ON("pg", ROTATION("\"strategy\":\"DualPassword\"")),
         "spec.rotation.strategy: Invalid value: \"DualPassword\": needs two valid passwords at a "
         "time, which postgresql does not have; set TwinAccounts or InPlace\n"
         "spec.requireTLS: Invalid value: \"SSL\": not supported on postgresql\n"},
        {ON("maria", ROTATION("\"strategy\":\"TwinAccounts\"")), ""},
        {ON("maria", ROTATION("\"strategy\":\"Twins\"")),
         "spec.rotation.strategy: Unsupported value: \"Twins\": supported values: \"Auto\", "
         "\"DualPassword\", \"TwinAccounts\", \"InPlace\"\n"},
        {ON("maria", CONNECTION("\"name\":\"c\",\"keys\":{\"P\":\"password\"},\"template\":{\"A\":"
                                "\"{{host}}\"}") TWINS),
         "spec.connectionSecret: Invalid value: keys or template must have user, uri or jdbcUrl, "
         "because TwinAccounts changes the name of the login\n"},
        {ON("maria", CONNECTION("\"name\":\"c\",\"keys\":{\"P\":\"user\"}") TWINS), ""},
        {ON("maria", CONNECTION("\"name\":\"c\",\"template\":{\"P\":\"x{{jdbcUrl}}\"}") TWINS), ""},
        {ON("maria", ROTATION("\"strategy\":\"InPlace\",\"overlapSeconds\":0")),
         "spec.rotation.overlapSeconds: Invalid value: 0: must be between 1 and 604800\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

#define EVERY(password, text)                                                                      \
    "\"user\":\"app\",\"password\":{" password "},\"requireTLS\":\"SSL\",\"connectionSecret\":"    \
    "{\"name\":\"c\"},\"rotation\":{" text "}"
#define MADE "\"generate\":{}"

static void rotations_by_the_clock(void **state)
{
    static const struct rule rules[] = {
        {ON("maria", EVERY(MADE, "\"every\":\"30d\"")), ""},
        {ON("maria", EVERY(MADE, "\"every\":\"61m\"")), ""},
        {ON("maria", EVERY(MADE, "\"every\":\"1m\",\"strategy\":\"InPlace\"")), ""},
        {ON("maria", EVERY(MADE, "\"every\":\"60m\"")),
         "spec.rotation.every: Invalid value: \"60m\": must be longer than overlapSeconds\n"},
        {ON("maria", EVERY("\"name\":\"s\"", "\"every\":\"30d\"")),
         "spec.rotation.every: Forbidden: needs spec.password.generate: the password of a named "
         "Secret is changed by who writes it\n"},
        {ON("maria", EVERY(MADE, "\"every\":\"0d\"")),
         "spec.rotation.every: Invalid value: \"0d\": must be 1 to 9999 minutes, hours or days, "
         "such "
         "as 90m, 12h or 30d\n"},
        {ON("maria", EVERY(MADE, "\"every\":\"30\"")),
         "spec.rotation.every: Invalid value: \"30\": must be 1 to 9999 minutes, hours or days, "
         "such "
         "as 90m, 12h or 30d\n"},
        {ON("maria", EVERY(MADE, "\"every\":\"1h30m\"")),
         "spec.rotation.every: Invalid value: \"1h30m\": must be 1 to 9999 minutes, hours or days, "
         "such as 90m, 12h or 30d\n"},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

/* The logins are names, too: not too long, not reserved, and of no other object. */
static void logins_of_twins(void **state)
{
    static const struct rule rules[] = {
        {ON("pg", TWINS_OF(SIXTY "a")), ""},
        {ON("pg", TWINS_OF(SIXTY "aa")), "spec.rotation.strategy: Invalid value: \"TwinAccounts\": "
                                         "spec.user must be at most 61 bytes, "
                                         "because the logins have two more\n"},
        {ON("my", TWINS_OF(TEN TEN TEN)), ANY_HOST},
        {ON("my", TWINS_OF(TEN TEN TEN "a")),
         "spec.rotation.strategy: Invalid value: \"TwinAccounts\": spec.user must be at most 30 "
         "characters, because the logins have two more\n" ANY_HOST},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
    world.account = "maria/app_b";
    world.holder = "other/one";
    assert_answer(&stw_kind_databaseuser, ON("maria", ROTATION("")), NULL, &env,
                  "spec.rotation.strategy: Forbidden: the login \"app_b\" is the account of "
                  "DatabaseUser other/one\n");
    assert_answer(&stw_kind_databaseuser, ON("my", ROTATION("")), NULL, &env, "");
    world.account = world.holder = NULL;
}

/* --- updates */

/* The label counts as part of the spec, although it is metadata. */
static void another_target_is_another_wish(void **state)
{
    static const char root[] = "spec.user: Forbidden: \"root\" is reserved on mariadb";
    static const struct {
        const char *now, *old, *more;
    } cases[] = {
        {ON("maria", USER("root")), ON("nowhere", USER("root")), ""},
        {ON("maria", USER("root")), ON("maria", USER("root")),
         "; not refused, because it has not changed"},
        {OBJECT("\"target\":\"maria\",\"a\":\"b\"", USER("root")), ON("maria", USER("root")),
         "; not refused, because it has not changed"},
        {ON("MARIA", USER("root")), ON("maria", USER("root")),
         "; not refused, because it has not changed"},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        char want[256];
        snprintf(want, sizeof(want), "%s%s%s\n", *cases[i].more ? "W: " : "", root, cases[i].more);
        assert_answer(&stw_kind_databaseuser, cases[i].now, cases[i].old, &env, want);
    }
}

/* --- deletions */

static void deletions_are_commented_on(void **state)
{
    static const struct {
        const char *old, *want;
    } cases[] = {
        {"{\"metadata\":{},\"spec\":{" GOOD "}}", ""},
        {"{\"metadata\":{},\"spec\":{" GOOD
         "},\"status\":{\"account\":\"app@%\",\"target\":\"maria\"}}",
         "W: account app@% is dropped from target \"maria\"\n"},
        {"{\"metadata\":{},\"spec\":{" GOOD ",\"deletionPolicy\":\"Retain\"},"
         "\"status\":{\"account\":\"app@%\",\"target\":\"maria\"}}",
         "W: deletionPolicy is Retain: account app@% stays on target \"maria\", with its rights "
         "and its password\n"},
        {"{\"metadata\":{},\"spec\":{" GOOD ",\"deletionPolicy\":\"Lock\"},"
         "\"status\":{\"account\":\"app@%\",\"target\":\"maria\"}}",
         "W: deletionPolicy is Lock: account app@% stays on target \"maria\", locked, with its "
         "rights\n"},
        {"{\"spec\":5,\"status\":[]}", ""},
        {"[]", ""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        struct question q;
        ask(&q, &stw_kind_databaseuser, "{}", cases[i].old, &env);
        q.a.operation = STW_DELETE;
        q.a.object = STW_JSON_NONE;
        stw_autofree char *got = answer(&q.a);
        assert_string_equal(got, cases[i].want);
        ask_done(&q);
    }
}

static void leaving_objects_pass(void **state)
{
    static const char leaving[] =
        "{\"metadata\":{\"name\":\"web\",\"deletionTimestamp\":\"2024-01-01T00:00:00Z\"},"
        "\"spec\":{\"user\":\"root\"}}";
    (void)state;
    assert_answer(&stw_kind_databaseuser, leaving, leaving, &env, "");
}

/* --- defaults and decoding */

static void what_is_defaulted(void **state)
{
    (void)state;
    assert_defaults(&stw_kind_databaseuser,
                    OBJECT("", "\"user\":\"a\",\"password\":{\"name\":\"s\"}"),
                    "/spec/password/key=\"password\"\n/spec/password/trimNewline=false\n"
                    "/spec/hosts=[\"%\"]\n/spec/grantsPolicy=\"Managed\"\n"
                    "/spec/requireTLS=\"None\"\n/spec/deletionPolicy=\"Delete\"\n"
                    "/spec/adoptionPolicy=\"Fail\"\n/spec/resyncSeconds=300\n");
    assert_defaults(&stw_kind_databaseuser,
                    OBJECT("", "\"password\":\"plain\",\"hosts\":[],\"grants\":[{},5],"
                               "\"limits\":{\"maxUserConnections\":1},\"grantsPolicy\":\"Exact\","
                               "\"requireTLS\":\"SSL\",\"deletionPolicy\":\"Retain\","
                               "\"adoptionPolicy\":\"Adopt\",\"resyncSeconds\":60"),
                    "/spec/grants/0/grantOption=false\n/spec/limits/maxQueriesPerHour=0\n"
                    "/spec/limits/maxUpdatesPerHour=0\n/spec/limits/maxConnectionsPerHour=0\n");
}

/* What the webhook adds to an object with this metadata and a complete spec. */
static char *added_to_metadata(const char *metadata, enum stw_operation operation,
                               const struct stw_env *e)
{
    struct question q;
    struct stw_buf out = STW_BUF_INIT(1 << 16);
    struct stw_defaults d = {.add = list_default, .ctx = &out};
    stw_autobuf struct stw_buf object = STW_BUF_INIT(1 << 16);
    stw_buf_addf(&object,
                 "{\"metadata\":{\"name\":\"web\",%s},\"spec\":{\"user\":\"app\","
                 "\"password\":{\"name\":\"s\",\"key\":\"k\",\"trimNewline\":false},"
                 "\"hosts\":[\"%%\"],\"grantsPolicy\":\"Managed\",\"requireTLS\":\"SSL\","
                 "\"deletionPolicy\":\"Retain\",\"adoptionPolicy\":\"Fail\","
                 "\"resyncSeconds\":300}}",
                 metadata);
    ask(&q, &stw_kind_databaseuser, stw_buf_str(&object),
        operation == STW_UPDATE ? stw_buf_str(&object) : NULL, e);
    stw_kind_default(&q.a, &d);
    ask_done(&q);
    (void)stw_buf_str(&out);
    return stw_buf_take(&out);
}

#define MARIA "\"labels\":{\"target\":\"maria\"}"
#define MINE "\"mygroup.handsomeguy.cn/databaseuser\""
#define LIST "/metadata/finalizers=[" MINE "]\n"

/* The webhook sets it where the controller would set it a moment later. */
static void the_finalizer(void **state)
{
    static const struct stw_env alone = {.product = &product};
    static const struct {
        const char *metadata;
        int has;
        enum stw_operation operation;
        const struct stw_env *env;
        const char *want;
    } cases[] = {
        {MARIA, 1, STW_CREATE, &env, LIST},
        {"\"labels\":{\"target\":\"MARIA\"}", 1, STW_CREATE, &env, LIST},
        {MARIA ",\"finalizers\":null", 1, STW_CREATE, &env, LIST},
        {MARIA ",\"finalizers\":[]", 1, STW_CREATE, &env, "/metadata/finalizers/-=" MINE "\n"},
        {MARIA ",\"finalizers\":[\"a/b\"]", 1, STW_CREATE, &env,
         "/metadata/finalizers/-=" MINE "\n"},
        {MARIA ",\"finalizers\":[\"a/b\"," MINE "]", 1, STW_CREATE, &env, ""}, /* there already */
        {MARIA ",\"finalizers\":\"a/b\"", 1, STW_CREATE, &env, ""},            /* of a wrong type */
        {MARIA, 0, STW_CREATE, &env, ""},                                      /* no Secret yet */
        {MARIA, -1, STW_CREATE, &env, ""}, /* unknown: namespace not watched */
        {"\"labels\":{\"target\":\"elsewhere\"}", 1, STW_CREATE, &env, ""}, /* not configured */
        {"\"labels\":{\"target\":5}", 1, STW_CREATE, &env, ""},
        {"\"labels\":{}", 1, STW_CREATE, &env, ""},
        {MARIA, 1, STW_UPDATE, &env, ""}, /* it may just have been removed */
        /* the API server drops it from what is created */
        {MARIA ",\"deletionTimestamp\":\"2026-11-21T07:42:48Z\"", 1, STW_CREATE, &env, LIST},
        {MARIA, 1, STW_CREATE, &alone, ""}, /* a webhook without a cluster */
        {MARIA, 1, STW_CREATE, NULL, ""},
    };
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        world.has = cases[i].has;
        stw_autofree char *got =
            added_to_metadata(cases[i].metadata, cases[i].operation, cases[i].env);
        if (!stw_streq(got, cases[i].want))
            fail_msg("%zu: got <%s>, want <%s>", i, got, cases[i].want);
    }
    assert_string_equal(world.had, "secrets shop/s");
}

/* --- the default target */

static const char default_json[] =
    "{\"targets\":["
    "{\"name\":\"Main\",\"engine\":\"mariadb\",\"host\":\"h\",\"default\":true,"
    "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"},\"allowedNamespaces\":[\"shop\"]},"
    "{\"name\":\"old\",\"engine\":\"mariadb\",\"host\":\"h\","
    "\"admin\":{\"user\":\"chief\",\"passwordFile\":\"/f\"}}]}";

#define MAY_USE_OLD "W: namespace \"shop\" may use the targets Main, old\n"

static struct stw_targets *use_targets(const char *json)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autofindings struct stw_findings f = {0};
    struct stw_targets *before = world.targets;
    scan(&doc, json);
    assert_int_equal(
        stw_targets_parse(stw_json_get(stw_json_root(&doc), "targets"), &world.targets, &f), 0);
    return before;
}

static void restore_targets(struct stw_targets *before)
{
    stw_targets_unref(world.targets);
    world.targets = before;
}

#define MADE_ON(target)                                                                            \
    "{\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\"},\"spec\":{" GOOD                      \
    "},\"status\":{\"account\":\"app@%\",\"target\":\"" target "\"}}"

/* What the webhook would add is checked also for objects that it did not see. */
static void no_label_is_the_default_target(void **state)
{
    static const struct {
        const char *now, *old, *want;
    } cases[] = {
        {OBJECT("", GOOD), NULL, ""},
        {"{\"metadata\":{\"name\":\"web\"},\"spec\":{" GOOD "}}", NULL, ""},
        {OBJECT("", USER("root")), NULL, "spec.user: Forbidden: \"root\" is reserved on mariadb\n"},
        {OBJECT("\"target\":\"\"", GOOD), NULL,
         NO_TARGET MAY_USE_OLD}, /* it names none on purpose */
        /* an account stays where it is, even if another target is the default now */
        {OBJECT("", GOOD), MADE_ON("old"), ""},
        {ON("main", GOOD), MADE_ON("old"),
         "metadata.labels[target]: Forbidden: target cannot change from \"old\" to \"main\": the "
         "account would be left behind\n"},
        {OBJECT("", GOOD), MADE_ON("gone"),
         MAY_USE_OLD
         "W: metadata.labels[target]: Required value: label \"target\" must name a database "
         "target; not refused, because it has not changed\n"},
    };
    struct stw_targets *before = use_targets(default_json);
    struct question q;
    (void)state;
    for (size_t i = 0; i < STW_COUNT(cases); i++)
        assert_answer(&stw_kind_databaseuser, cases[i].now, cases[i].old, &env, cases[i].want);
    ask(&q, &stw_kind_databaseuser, OBJECT("", GOOD), NULL, &env);
    q.a.ns = "other";
    stw_autofree char *got = answer(&q.a);
    assert_string_equal(got, "metadata.labels[target]: Forbidden: target \"Main\" does not accept "
                             "namespace \"other\"\n"
                             "W: namespace \"other\" may use the target old\n");
    ask_done(&q);
    restore_targets(before);
}

static void the_label_is_added(void **state)
{
    static const struct {
        const char *metadata;
        enum stw_operation operation;
        const char *want;
    } cases[] = {
        {"\"uid\":\"u\"", STW_CREATE, "/metadata/labels={\"target\":\"Main\"}\n" LIST},
        {"\"labels\":{}", STW_CREATE, "/metadata/labels/target=\"Main\"\n" LIST},
        {"\"labels\":{\"a\":\"b\"}", STW_UPDATE, "/metadata/labels/target=\"Main\"\n"},
        {"\"labels\":{\"target\":\"old\"}", STW_CREATE, LIST},
        {"\"labels\":{\"target\":\"\"}", STW_CREATE, ""},
        {"\"labels\":[]", STW_CREATE, LIST},
        {"\"labels\":{},\"deletionTimestamp\":\"2026-11-21T07:42:48Z\"", STW_UPDATE, ""},
    };
    struct stw_targets *before = use_targets(default_json);
    (void)state;
    world.has = 1;
    for (size_t i = 0; i < STW_COUNT(cases); i++) {
        stw_autofree char *got = added_to_metadata(cases[i].metadata, cases[i].operation, &env);
        if (!stw_streq(got, cases[i].want))
            fail_msg("%zu: got <%s>, want <%s>", i, got, cases[i].want);
    }
    restore_targets(before);
}

static void decoded(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    struct stw_error err = {0};
    struct stw_databaseuser u;
    struct stw_databaseuser_grant g = {0};
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
    assert_int_equal(
        stw_fields_decode(stw_databaseuser_grant_fields, stw_json_at(u.grants, 0), arena, &g), 0);
    assert_string_equal(g.database, "d");
    assert_null(g.schema);
    assert_string_equal(g.table, "t");
    assert_true(stw_json_is(stw_json_at(g.privileges, 0), "SELECT"));
}

/* The error goes into a condition and into events. */
static void a_plain_password_is_not_repeated(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    stw_autoarena struct stw_arena *arena = stw_arena_create();
    struct stw_error err = {0};
    struct stw_databaseuser u;
    (void)state;
    scan(&doc, "{\"user\":\"app\",\"password\":\"changeit\"}");
    assert_int_equal(stw_kind_decode(&stw_kind_databaseuser, stw_json_root(&doc), arena, &u, &err),
                     -1);
    assert_string_equal(err.text, "spec.password: Invalid value: must be an object {name, key} "
                                  "that names a Secret; plain-text passwords are not accepted");
}

static void account_keys(void **state)
{
    stw_autobuf struct stw_buf key = STW_BUF_INIT(256);
    (void)state;
    stw_databaseuser_account_key("Orders-DB", "App", &key);
    assert_string_equal(stw_buf_str(&key), "orders-db/App");
}

/* --- databases */

#define DATABASES(list) GOOD ",\"databases\":[" list "]"
#define PG_DATABASES(list) PG_GOOD ",\"databases\":[" list "]"
#define DATABASE(members) "{\"name\":" members "}"
#define NOT_CREATED(i, ns, name)                                                                   \
    "spec.databases[" i "].name: Forbidden: target \"pg\" does not allow namespace \"" ns          \
    "\" to create the database \"" name                                                            \
    "\"; have it added to allowCreateDatabases of the target\n"

static void test_databases(void **state)
{
    static const struct rule rules[] = {
        {ON("pg", PG_DATABASES(DATABASE("\"shop\",\"extensions\":[\"pg_trgm\",\"shop_x\"],"
                                        "\"schemas\":[\"a\",\"b \\\" c\"],\"characterSet\":"
                                        "\"UTF8\",\"collation\":\"en_US.UTF-8@x\""))),
         ""},
        {ON("maria", DATABASES(DATABASE("\"a`b\",\"characterSet\":\"utf8mb4\",\"collation\":"
                                        "\"utf8mb4_bin\",\"deletionPolicy\":\"Delete\""))),
         "W: spec.databases[0]: deletionPolicy is Delete: the database is dropped with all its "
         "data when this object is deleted and has the annotation steward.dev/confirm-drop: "
         "a`b\n"},
        {ON("pg",
            PG_DATABASES(DATABASE("\"shop_a\"") "," DATABASE("\"other\"") "," DATABASE(
                "\"postgres"
                "\"") "," DATABASE("\"template1\"") "," DATABASE("\"*\"") "," DATABASE("\"steward_"
                                                                                       "new_1\"") "," DATABASE("\"shop_a\"") "," DATABASE("\"shop_" SIXTY
                                                                                                                                          "\""))),
         "spec.databases[4].name: Invalid value: \"*\": must be the name of one database\n"
         "spec.databases[5].name: Invalid value: \"steward_new_1\": must not begin with "
         "\"steward_new_\", which is for databases that are being created\n" NOT_CREATED(
             "1", "shop", "other") "spec.databases[2].name: Forbidden: \"postgres\" is reserved on "
                                   "postgresql\n"
                                   "spec.databases[3].name: Forbidden: \"template1\" is reserved "
                                   "on postgresql\n" NOT_CREATED("4", "shop", "*") NOT_CREATED(
                                       "5", "shop",
                                       "steward_new_1") "spec.databases[6].name: Duplicate value: "
                                                        "\"shop_a\"\n"
                                                        "spec.databases[7].name: Invalid value: "
                                                        "\"shop_" SIXTY
                                                        "\": must be at most 63 bytes for "
                                                        "postgresql\n"},
        {ON("pg", PG_DATABASES(DATABASE("\"shop\",\"extensions\":[\"file_fdw\",\"a'b\",\"pg_trgm\","
                                        "\"pg_trgm\"],\"schemas\":[\"public\",\"pg_x\",\"a\","
                                        "\"a\"],\"characterSet\":\"a b\",\"collation\":\"a'\""))),
         "spec.databases[0].extensions[1]: Invalid value: \"a'b\": must consist of letters, "
         "digits, "
         "'-' and '_'\n"
         "spec.databases[0].schemas[0]: Invalid value: \"public\": must be left out: each database "
         "has this schema; grants gives rights on it\n"
         "spec.databases[0].characterSet: Invalid value: \"a b\": must consist of letters, digits "
         "and '_'\n"
         "spec.databases[0].collation: Invalid value: \"a'\": must consist of letters, digits, "
         "'-', "
         "'_', '.' and '@'\n"
         "spec.databases[0].extensions[3]: Duplicate value: \"pg_trgm\"\n"
         "spec.databases[0].schemas[3]: Duplicate value: \"a\"\n"
         "spec.databases[0].extensions[0]: Forbidden: target \"pg\" does not allow the extension "
         "\"file_fdw\"; have it added to allowedExtensions of the target\n"
         "spec.databases[0].extensions[1]: Forbidden: target \"pg\" does not allow the extension "
         "\"a'b\"; have it added to allowedExtensions of the target\n"
         "spec.databases[0].schemas[1]: Forbidden: \"pg_x\" is reserved on postgresql\n"},
        {ON("maria", DATABASES(DATABASE("\"mysql\"") "," DATABASE(
                         "\"b\",\"extensions\":[\"x\"],\"schemas\":[\"y\"],\"collation\":"
                         "\"en_US.UTF-8\",\"deletionPolicy\":\"Drop\""))),
         "spec.databases[1].deletionPolicy: Unsupported value: \"Drop\": supported values: "
         "\"Retain\", \"Delete\"\n"
         "spec.databases[0].name: Forbidden: \"mysql\" is reserved on mariadb\n"
         "spec.databases[1].extensions[0]: Invalid value: \"x\": not supported on mariadb\n"
         "spec.databases[1].schemas[0]: Invalid value: \"y\": not supported on mariadb\n"
         "spec.databases[1].collation: Invalid value: \"en_US.UTF-8\": must consist of letters, "
         "digits and '_' on mariadb\n"},
        {ON("pg", PG_DATABASES(DATABASE("\"shop\",\"owner\":true"))),
         "W: spec.databases[0].owner: the account may drop the database, change its settings, and "
         "give others rights on it\n"},
        {ON("maria", DATABASES(DATABASE("\"shop\",\"owner\":true"))),
         "spec.databases[0].owner: Invalid value: \"true\": not supported on mariadb\n"},
        {ON("maria", DATABASES(DATABASE("\"shop\",\"owner\":false"))), ""},
    };
    (void)state;
    ASSERT_RULES(rules, &env);
}

static void test_confirmation(void **state)
{
    stw_autojson struct stw_json_doc doc = {0};
    static const char object[] =
        "{\"metadata\":{\"annotations\":{\"d/one\":\"a\",\"d/more\":\" a , b,c d ,\","
        "\"d/comma\":\"a,b\",\"d/none\":\"\"}}}";
    (void)state;
    scan(&doc, object);
    struct stw_json o = stw_json_root(&doc);
    assert_true(stw_databaseuser_confirms(o, "d/one", "a"));
    assert_false(stw_databaseuser_confirms(o, "d/one", "A"));
    assert_false(stw_databaseuser_confirms(o, "d/other", "a"));
    assert_true(stw_databaseuser_confirms(o, "d/more", "a"));
    assert_true(stw_databaseuser_confirms(o, "d/more", "b"));
    assert_true(stw_databaseuser_confirms(o, "d/more", "c d"));
    assert_false(stw_databaseuser_confirms(o, "d/more", "c"));
    assert_true(stw_databaseuser_confirms(o, "d/comma", "a,b"));
    assert_false(stw_databaseuser_confirms(o, "d/none", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_databases),
        cmocka_unit_test(test_confirmation),
        cmocka_unit_test(the_label),
        cmocka_unit_test(namespaces),
        cmocka_unit_test(no_target_is_configured),
        cmocka_unit_test(the_target_stays),
        cmocka_unit_test(users),
        cmocka_unit_test(reserved_names),
        cmocka_unit_test(one_account_one_object),
        cmocka_unit_test(the_user_stays),
        cmocka_unit_test(passwords),
        cmocka_unit_test(hosts),
        cmocka_unit_test(grant_shapes),
        cmocka_unit_test(lengths),
        cmocka_unit_test(enormous_values),
        cmocka_unit_test(too_many_grants),
        cmocka_unit_test(grants_by_engine),
        cmocka_unit_test(what_belongs_to_the_server),
        cmocka_unit_test(nobody_becomes_admin),
        cmocka_unit_test(privileges_on_the_server),
        cmocka_unit_test(databases),
        cmocka_unit_test(what_can_never_work),
        cmocka_unit_test(tls),
        cmocka_unit_test(accounts_without_a_password),
        cmocka_unit_test(the_rest),
        cmocka_unit_test(what_is_said_of_the_secret),
        cmocka_unit_test(when_the_secret_is_looked_at),
        cmocka_unit_test(another_target_is_another_wish),
        cmocka_unit_test(deletions_are_commented_on),
        cmocka_unit_test(leaving_objects_pass),
        cmocka_unit_test(what_is_defaulted),
        cmocka_unit_test(valid_until),
        cmocka_unit_test(settings),
        cmocka_unit_test(sequences),
        cmocka_unit_test(generated_passwords),
        cmocka_unit_test(connection_secrets),
        cmocka_unit_test(rotations),
        cmocka_unit_test(logins_of_twins),
        cmocka_unit_test(rotations_by_the_clock),
        cmocka_unit_test(the_finalizer),
        cmocka_unit_test(no_label_is_the_default_target),
        cmocka_unit_test(the_label_is_added),
        cmocka_unit_test(decoded),
        cmocka_unit_test(a_plain_password_is_not_repeated),
        cmocka_unit_test(account_keys),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
