/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/password/password.h"
#include "sql/target/dialect.h"

#include "base/util.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct stw_sql_secret secret(const char *text)
{
    return (struct stw_sql_secret){text, strlen(text)};
}

static void makes(int (*make)(const struct stw_sql_secret *, struct stw_buf *),
                  const char *password, const char *expected)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(256);
    struct stw_sql_secret p = secret(password);
    assert_int_equal(make(&p, &out), 0);
    assert_string_equal(stw_buf_str(&out), expected);
}

/* Sources: MySQL's SELECT PASSWORD('password'); MariaDB's knowledge base on the plugin ed25519. */
static void test_known_verifiers_are_reproduced(void **state)
{
    (void)state;
    makes(stw_native_make, "password", "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
    makes(stw_ed25519_make, "secret", "ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY");
    makes(stw_ed25519_make, "p\xc3\xa4ssw\xc3\xb6rd \xe2\x82\xac",
          "ZUaFSQEfTWZtIKKEQQP66YLmIlnzfOTQfPLh1bPQM+c");
}

/* RFC 8032, section 7.1: a password of 32 bytes is a seed.  The third is longer than two blocks of
 * SHA-512. */
static void test_ed25519_matches_the_rfc(void **state)
{
    static const struct {
        const char *password;
        size_t len;
        const char *key;
    } rows[] = {
        {"\x9d\x61\xb1\x9d\xef\xfd\x5a\x60\xba\x84\x4a\xf4\x92\xec\x2c\xc4\x44\x49\xc5\x69\x7b\x32"
         "\x69\x19\x70\x3b\xac\x03\x1c\xae\x7f\x60",
         32, "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
        {"\x4c\xcd\x08\x9b\x28\xff\x96\xda\x9d\xb6\xc3\x46\xec\x11\x4e\x0f\x5b\x8a\x31\x9f\x35\xab"
         "\xa6\x24\xda\x8c\xf6\xed\x4f\xb8\xa6\xfb",
         32, "PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw"},
        {NULL, 300, "eSS9X/TO8Epmrf7qexlsx6nP5dk8sSW6CXWFEDaszhI"},
    };
    char longest[300];
    (void)state;
    memset(longest, 'x', sizeof(longest));
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(256);
        struct stw_sql_secret p = {rows[i].password ? rows[i].password : longest, rows[i].len};
        assert_int_equal(stw_ed25519_make(&p, &out), 0);
        assert_string_equal(stw_buf_str(&out), rows[i].key);
    }
}

/* From the specification, and from crypt(3). */
static void test_sha256_crypt_matches_the_specification(void **state)
{
    static const struct {
        const char *key, *salt;
        unsigned rounds;
        const char *digest;
    } rows[] = {
        {"Hello world!", "saltstring", 5000, "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"},
        {"p", "ab", 1000, "fp7PfLdieWpeZF6V2vcZbowEYlqCSHzwv8otnnj8FJ."},
        {"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
         "saltstringsaltst", 5000, "Pq9ov2Vo62COYoeHnXGny2arFfqFSynnfJ9xyjs7ZX7"},
        {"\xc3\xa9 \xe5\xaf\x86\xe7\xa0\x81", "z", 5000,
         "fLoiNbR.x9TRJ46R3ed76rqluVc4SmSlFOjyzDdETH5"},
    };
    char digest[44];
    (void)state;
    for (size_t i = 0; i < STW_COUNT(rows); i++) {
        assert_int_equal(stw_sha256_crypt(rows[i].key, strlen(rows[i].key), rows[i].salt,
                                          strlen(rows[i].salt), rows[i].rounds, digest),
                         0);
        assert_string_equal(digest, rows[i].digest);
    }
}

static enum stw_password_state mysql(const char *plugin, const char *verifier, const char *password)
{
    struct stw_sql_secret p = secret(password);
    return stw_mysql_password_state(plugin, verifier, strlen(verifier), &p);
}

static enum stw_password_state pg(const char *verifier, const char *password)
{
    struct stw_sql_secret p = secret(password);
    return stw_pg_password_state("alice", verifier, strlen(verifier), &p);
}

#define ONE_PARSEC "P0:nF8OzRLu8bzuJZs9y69MrUtx:jSMNALo1+eHkq6Au90mf2EWMtGAgc/TGfOYKiw6KYTA"

#define SALT_AND_DIGEST "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void test_mysql_verifiers_are_compared(void **state)
{
    static const char native[] = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";
    static const char crypt[] = "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5";
    (void)state;
    assert_int_equal(mysql("mysql_native_password", native, "password"), STW_PASSWORD_SAME);
    assert_int_equal(mysql("", native, "password"), STW_PASSWORD_SAME);
    assert_int_equal(mysql("mysql_native_password", native, "Password"), STW_PASSWORD_DIFFERS);
    assert_int_equal(mysql("mysql_native_password", "", "password"), STW_PASSWORD_DIFFERS);
    assert_int_equal(mysql("sha256_password", crypt, "Hello world!"), STW_PASSWORD_SAME);
    assert_int_equal(mysql("sha256_password", "$5$no", "Hello world!"), STW_PASSWORD_DIFFERS);
    assert_int_equal(mysql("sha256_password", "$5$saltstringsaltstringsalt$x", "a"),
                     STW_PASSWORD_DIFFERS);
    assert_int_equal(mysql("caching_sha2_password", "$A$005$", "a"), STW_PASSWORD_DIFFERS);
    /* A sign among the digits would be 4,294,966,296 rounds, an hour of CPU. */
    assert_int_equal(mysql("caching_sha2_password", "$A$-01$" SALT_AND_DIGEST, "a"),
                     STW_PASSWORD_DIFFERS);
    assert_int_equal(mysql("caching_sha2_password", "$A$ 05$" SALT_AND_DIGEST, "a"),
                     STW_PASSWORD_DIFFERS);
    assert_int_equal(mysql("caching_sha2_password", "$A$0x5$" SALT_AND_DIGEST, "a"),
                     STW_PASSWORD_DIFFERS);
    assert_int_equal(mysql("caching_sha2_password", "$A$0055" SALT_AND_DIGEST, "a"),
                     STW_PASSWORD_DIFFERS);
    assert_int_equal(mysql("unix_socket", "", "password"), STW_PASSWORD_DIFFERS);
    /* As MariaDB 11.8 stored PASSWORD('one'). */
    assert_int_equal(mysql("parsec", ONE_PARSEC, "one"), STW_PASSWORD_SAME);
    assert_int_equal(mysql("parsec", ONE_PARSEC, "two"), STW_PASSWORD_DIFFERS);
}

/* More iterations are another key; what has another form is another password. */
static void test_malformed_parsec_verifier_differs(void **state)
{
    static const size_t colons[] = {2, 27};
    char text[sizeof(ONE_PARSEC)];
    (void)state;
    for (const char *c = "12/:A"; *c; c++) {
        memcpy(text, ONE_PARSEC, sizeof(text));
        text[1] = *c;
        assert_int_equal(mysql("parsec", text, "one"), STW_PASSWORD_DIFFERS);
    }
    for (size_t i = 0; i < STW_COUNT(colons); i++) {
        memcpy(text, ONE_PARSEC, sizeof(text));
        text[colons[i]] = ';';
        assert_int_equal(mysql("parsec", text, "one"), STW_PASSWORD_DIFFERS);
    }
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        memcpy(text, ONE_PARSEC, len);
        text[len] = '\0';
        assert_int_equal(mysql("parsec", text, "one"), STW_PASSWORD_DIFFERS);
    }
}

/* For each plugin that a target may allow, one can be made and is recognized. */
static void test_each_plugin_is_checked_as_made(void **state)
{
    struct stw_sql_secret p = secret("s3cret");
    (void)state;
    for (enum stw_engine e = 0; e < STW_ENGINES; e++)
        for (const char *const *name = stw_engine_info(e)->auth_plugins; *name; name++) {
            stw_autobuf struct stw_buf out = STW_BUF_INIT(256), again = STW_BUF_INIT(256);
            assert_int_equal(stw_mysql_verifier_make(*name, &p, &out), 0);
            assert_int_equal(stw_mysql_verifier_make(*name, &p, &again), 0);
            assert_int_equal(stw_mysql_verifier_is_salted(*name), !stw_streq(out.data, again.data));
            assert_int_equal(mysql(*name, out.data, "s3cret"), STW_PASSWORD_SAME);
            assert_int_equal(mysql(*name, out.data, "s3cre"), STW_PASSWORD_DIFFERS);
        }
    stw_autobuf struct stw_buf out = STW_BUF_INIT(256);
    assert_int_equal(stw_mysql_verifier_make("unix_socket", &p, &out), -1);
    assert_int_equal(out.len, 0);
}

static void test_caching_sha2_is_checked_as_made(void **state)
{
    stw_autobuf struct stw_buf out = STW_BUF_INIT(256), again = STW_BUF_INIT(256);
    struct stw_sql_secret p = secret("s3cret");
    (void)state;
    assert_int_equal(stw_caching_sha2_make(&p, &out), 0);
    assert_int_equal(stw_caching_sha2_make(&p, &again), 0);
    assert_int_equal(out.len, 70);
    assert_string_not_equal(out.data, again.data);
    assert_int_equal(mysql("caching_sha2_password", out.data, "s3cret"), STW_PASSWORD_SAME);
    assert_int_equal(mysql("caching_sha2_password", out.data, "s3cre"), STW_PASSWORD_DIFFERS);
}

/* RFC 7677, section 3, and SELECT 'md5' || md5('secretalice'). */
static void test_postgresql_verifiers_are_compared(void **state)
{
    static const char scram[] =
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
        "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";
    static const char *const broken[] = {"",
                                         "SCRAM-SHA-256$",
                                         "SCRAM-SHA-256$0:AAAA$AAAA:AAAA",
                                         "SCRAM-SHA-256$4096:$AAAA:AAAA",
                                         "SCRAM-SHA-256$4096:W22Z",
                                         "SCRAM-SHA-256$99999999999:W22Z$AAAA:AAAA",
                                         "plain",
                                         "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$AAAA:AAAA"};
    struct stw_sql_secret p = secret("pencil");
    (void)state;
    assert_int_equal(pg(scram, "pencil"), STW_PASSWORD_SAME);
    assert_int_equal(pg(scram, "pencils"), STW_PASSWORD_DIFFERS);
    /* A password that is not ASCII may have been normalised: only a login can check it. */
    assert_int_equal(pg(scram, "p\xc3\xa9ncil"), STW_PASSWORD_UNKNOWN);
    assert_int_equal(pg("md54a0a68b43b6cd5cf266fa02f196e2371", "secret"), STW_PASSWORD_SAME);
    assert_int_equal(pg("md54a0a68b43b6cd5cf266fa02f196e2371", "Secret"), STW_PASSWORD_DIFFERS);
    assert_int_equal(stw_pg_password_state("alice", NULL, 0, &p), STW_PASSWORD_DIFFERS);
    for (size_t i = 0; i < STW_COUNT(broken); i++)
        assert_int_equal(pg(broken[i], "pencil"), STW_PASSWORD_DIFFERS);
}

/* D10: no verifier is made from an unknown password. */
static void test_empty_password_makes_no_verifier(void **state)
{
    static const struct stw_sql_secret none[] = {{NULL, 0}, {"", 0}};
    (void)state;
    for (size_t i = 0; i < STW_COUNT(none); i++) {
        stw_autobuf struct stw_buf out = STW_BUF_INIT(256);
        assert_int_equal(stw_native_make(&none[i], &out), -1);
        assert_int_equal(stw_caching_sha2_make(&none[i], &out), -1);
        assert_int_equal(stw_ed25519_make(&none[i], &out), -1);
        assert_int_equal(stw_sha256_make(&none[i], &out), -1);
        assert_int_equal(stw_parsec_make(&none[i], &out), -1);
        assert_int_equal(out.len, 0);
        assert_int_equal(stw_mysql_password_state("", "", 0, &none[i]), STW_PASSWORD_UNKNOWN);
        assert_int_equal(stw_pg_password_state("a", NULL, 0, &none[i]), STW_PASSWORD_UNKNOWN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_verifiers_are_reproduced),
        cmocka_unit_test(test_ed25519_matches_the_rfc),
        cmocka_unit_test(test_sha256_crypt_matches_the_specification),
        cmocka_unit_test(test_mysql_verifiers_are_compared),
        cmocka_unit_test(test_malformed_parsec_verifier_differs),
        cmocka_unit_test(test_each_plugin_is_checked_as_made),
        cmocka_unit_test(test_caching_sha2_is_checked_as_made),
        cmocka_unit_test(test_postgresql_verifiers_are_compared),
        cmocka_unit_test(test_empty_password_makes_no_verifier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
