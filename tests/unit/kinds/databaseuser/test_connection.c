/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "kinds/databaseuser/secret/owned_secret.h"

#include "base/base64.h"
#include "base/util.h"
#include "kinds/databaseuser/secret/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct stw_target maria = {
    .name = "main", .engine = STW_ENGINE_MARIADB, .host = "db.example", .port = 3306};
static const struct stw_target pg = {
    .name = "pg", .engine = STW_ENGINE_POSTGRESQL, .host = "fd00::1", .port = 5433};

/* "key=value" lines, decoded, in the order of the keys. */
static char *data_text(const struct dbu_connection_values *c, const char *wanted)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_buf out = STW_BUF_INIT(1 << 20);
    struct stw_error err = {0};
    assert_int_equal(stw_json_scan(&doc, wanted, strlen(wanted), NULL), 0);
    const struct dbu_spec_connection w = {.name = "c",
                                          .keys = stw_json_get(stw_json_root(&doc), "keys"),
                                          .template =
                                              stw_json_get(stw_json_root(&doc), "template")};
    json_auto_t *data = dbu_connection_data(c, &w, &err);
    const char *key;
    json_t *value;
    if (!data) {
        stw_buf_addf(&out, "error: %s", err.text);
        return stw_buf_take(&out);
    }
    stw_autofree char *text = json_dumps(data, JSON_SORT_KEYS);
    assert_non_null(text);
    json_auto_t *sorted = json_loads(text, 0, NULL);
    json_object_foreach (sorted, key, value) {
        stw_autofree char *one = NULL;
        stw_autojson struct stw_json_doc list = {0};
        assert_true(asprintf(&one, "[\"%s\"]", json_string_value(value)) > 0);
        assert_int_equal(stw_json_scan(&list, one, strlen(one), NULL), 0);
        stw_buf_addf(&out, "%s=", key);
        assert_int_equal(stw_base64_json(stw_json_at(stw_json_root(&list), 0), &out), 0);
        stw_buf_addc(&out, '\n');
    }
    (void)stw_buf_str(&out);
    return stw_buf_take(&out);
}

static void assert_data(const struct dbu_connection_values *c, const char *wanted, const char *want)
{
    stw_autofree char *got = data_text(c, wanted);
    assert_string_equal(got, want);
}

static void test_secret_without_keys_has_all_values(void **state)
{
    const struct dbu_connection_values c = {
        .target = &maria, .user = "app", .password = "p@ss/w", .database = "shop", .ca = ""};
    const struct dbu_connection_values six = {
        .target = &pg, .user = "a b", .password = "x", .database = "", .ca = "PEM"};
    (void)state;
    assert_data(&c, "{}",
                "database=shop\nengine=mariadb\nhost=db.example\n"
                "jdbcUrl=jdbc:mariadb://db.example:3306/shop?user=app&password=p%40ss%2Fw\n"
                "password=p@ss/w\nport=3306\n"
                "uri=mysql://app:p%40ss%2Fw@db.example:3306/shop\nuser=app\n");
    assert_data(&six, "{}",
                "ca.crt=PEM\ndatabase=\nengine=postgresql\nhost=fd00::1\n"
                "jdbcUrl=jdbc:postgresql://[fd00::1]:5433/?user=a%20b&password=x\n"
                "password=x\nport=5433\nuri=postgresql://a%20b:x@[fd00::1]:5433/\nuser=a b\n");
}

static void test_chosen_keys_and_templates_are_written(void **state)
{
    const struct dbu_connection_values c = {
        .target = &maria, .user = "app", .password = "{{host}}", .database = "shop", .ca = ""};
    (void)state;
    /* a password is never read as a template */
    assert_data(&c,
                "{\"keys\":{\"DB_HOST\":\"host\",\"DB_CA\":\"ca\"},\"template\":{\"a.json\":"
                "\"{\\\"p\\\": \\\"{{password}}\\\", \\\"n\\\": {{port}}}\"}}",
                "DB_CA=\nDB_HOST=db.example\na.json={\"p\": \"{{host}}\", \"n\": 3306}\n");
    assert_data(&c, "{\"template\":{\"a\":\"{{nothing}}\"}}",
                "error: spec.connectionSecret.template[a]: there is no such value");
}

/* Twenty templates of 4 KiB may each name a password of 680 KiB 300 times. */
static void test_repeated_password_is_refused_before_it_is_rendered(void **state)
{
    enum { PASSWORD = 680 << 10 };
    stw_autofree char *password = malloc(PASSWORD + 1);
    stw_autobuf struct stw_buf wanted = STW_BUF_INIT(1 << 20);
    assert_non_null(password);
    memset(password, 'x', PASSWORD);
    password[PASSWORD] = '\0';
    const struct dbu_connection_values c = {
        .target = &maria, .user = "app", .password = password, .database = "shop", .ca = ""};
    (void)state;
    stw_buf_adds(&wanted, "{\"template\":{\"a0\":\"{{password}}\"");
    for (int i = 1; i < 20; i++)
        stw_buf_addf(&wanted, ",\"a%d\":\"{{password}}\"", i);
    stw_buf_adds(&wanted, "}}");
    assert_data(&c, stw_buf_str(&wanted),
                "error: spec.connectionSecret.template[a1]: with this key the connection Secret "
                "would have more than 921600 bytes");
    assert_data(&c, "{\"template\":{\"a\":\"{{password}}{{password}}\"}}",
                "error: spec.connectionSecret.template[a]: with this key the connection Secret "
                "would have more than 921600 bytes");
    assert_data(&c, "{\"keys\":{\"a\":\"password\",\"b\":\"uri\"}}",
                "error: spec.connectionSecret.keys[b]: with this key the connection Secret would "
                "have more than 921600 bytes");
    assert_data(&c, "{}",
                "error: spec.connectionSecret[uri]: with this key the connection Secret would have "
                "more than 921600 bytes");
    stw_autofree char *once = data_text(&c, "{\"template\":{\"a\":\"{{password}}\"}}");
    assert_int_equal(strlen(once), strlen("a=\n") + PASSWORD);
}

static void test_only_known_values_are_accepted_in_templates(void **state)
{
    static const char *const good[] = {"",         "a",          "{}",
                                       "{{host}}", "{ {{ca}} }", "}}{{uri}}{{jdbcUrl}}"};
    static const char *const bad[] = {
        "{{", "{{host", "{{}}", "{{Host}}", "{{ host }}", "{{admin}}", "{{host}} {{token}}"};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(good); i++)
        assert_null(dbu_connection_check_template(good[i]));
    for (size_t i = 0; i < STW_COUNT(bad); i++)
        assert_non_null(dbu_connection_check_template(bad[i]));
}

static void test_generated_passwords_have_the_length_and_the_alphabet(void **state)
{
    const struct dbu_spec_generate g = {.length = 16, .alphabet = DBU_ALPHABET};
    char before[17] = "";
    (void)state;
    for (int i = 0; i < 200; i++) {
        stw_autobuf struct stw_buf password = {.max = 256, .secret = true};
        struct stw_error err = {0};
        assert_int_equal(dbu_password_draw(&g, &password, &err), 0);
        const char *text = stw_buf_str(&password);
        assert_int_equal(strlen(text), 16);
        assert_int_equal(strspn(text, DBU_ALPHABET), 16);
        assert_non_null(strpbrk(text, "0123456789")); /* as password policies ask for */
        assert_non_null(strpbrk(text, "-_.~"));
        assert_non_null(strpbrk(text, "abcdefghijklmnopqrstuvwxyz"));
        assert_non_null(strpbrk(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"));
        assert_string_not_equal(text, before);
        memcpy(before, text, sizeof(before));
    }
    const struct dbu_spec_generate none = {.length = 16, .alphabet = ""};
    const struct dbu_spec_generate wide = {.length = 4096, .alphabet = "ab"};
    stw_autobuf struct stw_buf password = {.max = 256, .secret = true};
    struct stw_error err = {0};
    assert_int_equal(dbu_password_draw(&none, &password, &err), -1);
    assert_int_equal(dbu_password_draw(&wide, &password, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_secret_without_keys_has_all_values),
        cmocka_unit_test(test_chosen_keys_and_templates_are_written),
        cmocka_unit_test(test_repeated_password_is_refused_before_it_is_rendered),
        cmocka_unit_test(test_only_known_values_are_accepted_in_templates),
        cmocka_unit_test(test_generated_passwords_have_the_length_and_the_alphabet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
