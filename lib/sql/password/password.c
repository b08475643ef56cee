/* SPDX-License-Identifier: Apache-2.0 */
#include "sql/password/password.h"

#include "base/base64.h"
#include "base/hex.h"
#include "base/util.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>

#define ROUNDS 5000
#define SALT_LEN 20
#define SCRAM_KEY_LEN 32

static bool is_known_password(const struct stw_sql_secret *p)
{
    return p->data && p->len > 0;
}

void stw_sha256_hex(const char *data, size_t len, char out[STW_MARK_MADE_LEN])
{
    unsigned char digest[SHA256_DIGEST_LENGTH];
    out[0] = '\0';
    if (EVP_Digest(data, len, digest, NULL, EVP_sha256(), NULL) == 1)
        stw_hex_encode(digest, sizeof(digest), STW_HEX_LOWER, out);
}

/* MySQL since 4.1: "*" and the SHA-1 of the SHA-1 of the password, in capitals. */
int stw_native_make(const struct stw_sql_secret *p, struct stw_buf *out)
{
    unsigned char once[SHA_DIGEST_LENGTH], twice[SHA_DIGEST_LENGTH];
    char hex[2 * SHA_DIGEST_LENGTH + 1];
    if (!is_known_password(p) || EVP_Digest(p->data, p->len, once, NULL, EVP_sha1(), NULL) != 1 ||
        EVP_Digest(once, sizeof(once), twice, NULL, EVP_sha1(), NULL) != 1)
        return -1;
    stw_hex_encode(twice, sizeof(twice), STW_HEX_UPPER, hex);
    stw_buf_addf(out, "*%s", hex);
    stw_wipe(once, sizeof(once));
    stw_wipe(hex, sizeof(hex));
    return out->failed ? -1 : 0;
}

static int draw_salt(char salt[SALT_LEN])
{
    static const char letters[] =
        "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    if (RAND_bytes((unsigned char *)salt, SALT_LEN) != 1)
        return -1;
    for (size_t i = 0; i < SALT_LEN; i++)
        salt[i] = letters[(unsigned char)salt[i] & 63];
    return 0;
}

int stw_caching_sha2_make(const struct stw_sql_secret *p, struct stw_buf *out)
{
    char salt[SALT_LEN], digest[44];
    if (!is_known_password(p) || draw_salt(salt) < 0 ||
        stw_sha256_crypt(p->data, p->len, salt, SALT_LEN, ROUNDS, digest) < 0)
        return -1;
    stw_buf_adds(out, "$A$005$");
    stw_buf_add(out, salt, SALT_LEN);
    stw_buf_adds(out, digest);
    return out->failed ? -1 : 0;
}

int stw_sha256_make(const struct stw_sql_secret *p, struct stw_buf *out)
{
    char salt[SALT_LEN], digest[44];
    if (!is_known_password(p) || draw_salt(salt) < 0 ||
        stw_sha256_crypt(p->data, p->len, salt, SALT_LEN, ROUNDS, digest) < 0)
        return -1;
    stw_buf_adds(out, "$5$");
    stw_buf_add(out, salt, SALT_LEN);
    stw_buf_addc(out, '$');
    stw_buf_adds(out, digest);
    return out->failed ? -1 : 0;
}

static bool is_same_digest(const void *a, const void *b, size_t len)
{
    return CRYPTO_memcmp(a, b, len) == 0;
}

static enum stw_password_state convert_match_to_state(bool same)
{
    return same ? STW_PASSWORD_SAME : STW_PASSWORD_DIFFERS;
}

/* For the forms without a salt. */
static enum stw_password_state
check_made(int (*make)(const struct stw_sql_secret *, struct stw_buf *), const char *verifier,
           size_t len, const struct stw_sql_secret *p)
{
    struct stw_buf made = STW_BUF_INIT(256);
    made.secret = true;
    if (make(p, &made) < 0) {
        stw_buf_done(&made);
        return STW_PASSWORD_UNKNOWN;
    }
    bool same = made.len == len && is_same_digest(made.data, verifier, len);
    stw_buf_done(&made);
    return convert_match_to_state(same);
}

/* `rest`: salt and digest after the head of the verifier. */
static enum stw_password_state check_crypt(const char *rest, size_t len, size_t salt_len,
                                           unsigned rounds, const struct stw_sql_secret *p)
{
    char digest[44];
    const char *theirs = rest + salt_len;
    if (len < salt_len + 43)
        return STW_PASSWORD_DIFFERS;
    theirs += theirs[0] == '$' && len > salt_len + 43;
    if (stw_sha256_crypt(p->data, p->len, rest, salt_len, rounds, digest) < 0)
        return STW_PASSWORD_UNKNOWN;
    return convert_match_to_state(is_same_digest(digest, theirs, 43));
}

/* "$A$005$": three hexadecimal digits of thousands of rounds, a salt of 20 bytes, the digest.  No sign
 * and no blank is among the digits: the server may be hostile, and the rounds cost our time. */
static enum stw_password_state check_caching_sha2(const char *v, size_t len,
                                                  const struct stw_sql_secret *p)
{
    char digits[4];
    if (len != 7 + SALT_LEN + 43 || memcmp(v, "$A$", 3) != 0 || v[6] != '$')
        return STW_PASSWORD_DIFFERS;
    stw_format(digits, sizeof(digits), "%.3s", v + 3);
    if (strspn(digits, "0123456789abcdefABCDEF") != 3)
        return STW_PASSWORD_DIFFERS;
    unsigned long thousands = strtoul(digits, NULL, 16);
    return check_crypt(v + 7, len - 7, SALT_LEN, (unsigned)thousands * 1000, p);
}

/* "$5$" salt "$" digest */
static enum stw_password_state check_sha256(const char *v, size_t len,
                                            const struct stw_sql_secret *p)
{
    const char *dollar;
    if (len < 4 || memcmp(v, "$5$", 3) != 0 || !(dollar = memchr(v + 3, '$', len - 3)))
        return STW_PASSWORD_DIFFERS;
    size_t salt_len = (size_t)(dollar - v) - 3;
    if (salt_len > SALT_LEN)
        return STW_PASSWORD_DIFFERS;
    return check_crypt(v + 3, len - 3, salt_len, ROUNDS, p);
}

static enum stw_password_state check_native(const char *v, size_t len,
                                            const struct stw_sql_secret *p)
{
    return check_made(stw_native_make, v, len, p);
}

static enum stw_password_state check_ed25519(const char *v, size_t len,
                                             const struct stw_sql_secret *p)
{
    return check_made(stw_ed25519_make, v, len, p);
}

static const struct plugin {
    const char *name;
    enum stw_password_state (*check)(const char *v, size_t len, const struct stw_sql_secret *p);
    int (*make)(const struct stw_sql_secret *p, struct stw_buf *out);
    bool salted;
} plugins[] = {
    {"", check_native, stw_native_make, false},
    {"mysql_native_password", check_native, stw_native_make, false},
    {"caching_sha2_password", check_caching_sha2, stw_caching_sha2_make, true},
    {"sha256_password", check_sha256, stw_sha256_make, true},
    {"ed25519", check_ed25519, stw_ed25519_make, false},
    {"parsec", stw_parsec_check, stw_parsec_make, true},
};

static const struct plugin *find_plugin(const char *name)
{
    for (size_t i = 0; i < STW_COUNT(plugins); i++)
        if (stw_streq(plugins[i].name, name))
            return &plugins[i];
    return NULL;
}

enum stw_password_state stw_mysql_password_state(const char *plugin, const char *verifier,
                                                 size_t len, const struct stw_sql_secret *p)
{
    if (!is_known_password(p))
        return STW_PASSWORD_UNKNOWN;
    const struct plugin *found = find_plugin(plugin);
    return verifier && found ? found->check(verifier, len, p)
                             : STW_PASSWORD_DIFFERS; /* the login does not use a password */
}

int stw_mysql_verifier_make(const char *plugin, const struct stw_sql_secret *p, struct stw_buf *out)
{
    const struct plugin *found = find_plugin(plugin);
    return found ? found->make(p, out) : -1;
}

bool stw_mysql_verifier_is_salted(const char *plugin)
{
    const struct plugin *found = find_plugin(plugin);
    return found && found->salted;
}

static bool is_ascii(const struct stw_sql_secret *p)
{
    for (size_t i = 0; i < p->len; i++)
        if ((unsigned char)p->data[i] >= 0x80)
            return false;
    return true;
}

/* "md5" and the MD5 of password and user name. */
static enum stw_password_state check_md5(const char *user, const char *v, size_t len,
                                         const struct stw_sql_secret *p)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    char hex[2 * EVP_MAX_MD_SIZE + 1];
    struct stw_buf text = STW_BUF_INIT(1u << 20);
    text.secret = true;
    stw_buf_add(&text, p->data, p->len);
    stw_buf_adds(&text, user);
    bool done = !text.failed && EVP_Digest(text.data, text.len, digest, NULL, EVP_md5(), NULL) == 1;
    stw_buf_done(&text);
    stw_hex_encode(digest, done ? 16 : 0, STW_HEX_LOWER, hex);
    bool same = done && len == 35 && is_same_digest(hex, v + 3, 32);
    return done ? convert_match_to_state(same) : STW_PASSWORD_UNKNOWN;
}

/* RFC 5803: SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>, where StoredKey is the
 * SHA-256 of ClientKey, and ClientKey is the HMAC of "Client Key" by the salted password. */
static int split_scram(const char *v, size_t len, int *iterations, struct stw_buf *salt,
                       struct stw_buf *stored)
{
    static const char head[] = "SCRAM-SHA-256$";
    stw_autofree char *copy = strndup(v, len);
    char *rest, *end;
    if (!copy || strncmp(copy, head, sizeof(head) - 1) != 0)
        return -1;
    long count = strtol(copy + sizeof(head) - 1, &rest, 10);
    if (count < 1 || count > 1000000 || *rest != ':' || !(end = strchr(++rest, '$')))
        return -1;
    *iterations = (int)count;
    char *colon = strchr(end + 1, ':');
    if (!colon || stw_base64_decode(rest, (size_t)(end - rest), salt) < 0 ||
        stw_base64_decode(end + 1, (size_t)(colon - end - 1), stored) < 0)
        return -1;
    return salt->len > 0 && stored->len == SCRAM_KEY_LEN ? 0 : -1;
}

static int stored_key(const struct stw_sql_secret *p, int iterations, const struct stw_buf *salt,
                      unsigned char out[SCRAM_KEY_LEN])
{
    unsigned char salted[SCRAM_KEY_LEN], client[SCRAM_KEY_LEN];
    size_t n = 0;
    int ok =
        p->len < INT32_MAX &&
        PKCS5_PBKDF2_HMAC(p->data, (int)p->len, (const unsigned char *)salt->data, (int)salt->len,
                          iterations, EVP_sha256(), sizeof(salted), salted) == 1 &&
        EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, salted, sizeof(salted),
                  (const unsigned char *)"Client Key", 10, client, sizeof(client), &n) &&
        EVP_Digest(client, sizeof(client), out, NULL, EVP_sha256(), NULL) == 1;
    stw_wipe(salted, sizeof(salted));
    stw_wipe(client, sizeof(client));
    return ok ? 0 : -1;
}

static enum stw_password_state check_scram(const char *v, size_t len,
                                           const struct stw_sql_secret *p)
{
    unsigned char key[SCRAM_KEY_LEN];
    int iterations = 0;
    enum stw_password_state state = STW_PASSWORD_DIFFERS;
    struct stw_buf salt = STW_BUF_INIT(1024), stored = STW_BUF_INIT(1024);
    if (split_scram(v, len, &iterations, &salt, &stored) == 0)
        state = stored_key(p, iterations, &salt, key) < 0
                    ? STW_PASSWORD_UNKNOWN
                    : convert_match_to_state(is_same_digest(key, stored.data, sizeof(key)));
    stw_buf_done(&salt);
    stw_buf_done(&stored);
    return state == STW_PASSWORD_DIFFERS && !is_ascii(p) ? STW_PASSWORD_UNKNOWN : state;
}

enum stw_password_state stw_pg_password_state(const char *user, const char *verifier, size_t len,
                                              const struct stw_sql_secret *p)
{
    if (!is_known_password(p))
        return STW_PASSWORD_UNKNOWN;
    if (!verifier)
        return STW_PASSWORD_DIFFERS;
    if (len == 35 && memcmp(verifier, "md5", 3) == 0)
        return check_md5(user, verifier, len, p);
    return check_scram(verifier, len, p);
}
