/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/secret/fingerprint.h"

#include "base/base64.h"
#include "base/hex.h"
#include "base/thread.h"
#include "base/util.h"
#include "kube/secret.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdio.h>

#define KEY_NAME "key"

struct dbu_fingerprints {
    const char *ns;
    pthread_mutex_t lock;
    bool loaded;
    unsigned char key[DBU_FINGERPRINT_KEY_BYTES];
};

struct dbu_fingerprints *dbu_fingerprints_create(const char *ns)
{
    struct dbu_fingerprints *f = calloc(1, sizeof(*f));
    if (!f)
        return NULL;
    if (pthread_mutex_init(&f->lock, NULL) != 0) {
        free(f);
        return NULL;
    }
    f->ns = ns;
    return f;
}

void dbu_fingerprints_destroy(struct dbu_fingerprints *f)
{
    if (!f)
        return;
    pthread_mutex_destroy(&f->lock);
    stw_wipe(f, sizeof(*f));
    free(f);
}

int dbu_fingerprint_under(const unsigned char key[DBU_FINGERPRINT_KEY_BYTES], const char *uid,
                          const char *password, size_t len, char ret[DBU_FINGERPRINT_LEN])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned int mac_len = 0;
    struct stw_buf stw_autobuf text = {.max = SIZE_MAX, .secret = true};
    stw_buf_add(&text, uid, strlen(uid) + 1); /* the same password gives another fingerprint for
                                                 another object */
    stw_buf_add(&text, password, len);
    if (text.failed || !HMAC(EVP_sha256(), key, DBU_FINGERPRINT_KEY_BYTES,
                             (const unsigned char *)text.data, text.len, mac, &mac_len))
        return -1;
    stw_hex_encode(mac, (DBU_FINGERPRINT_LEN - 1) / 2, STW_HEX_LOWER, ret);
    return 0;
}

/* --- the key */

static int take_key(struct dbu_fingerprints *f, const struct stw_buf *secret, struct stw_error *err)
{
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_buf stw_autobuf key = {.max = 256, .secret = true};
    if (stw_json_scan(&doc, stw_buf_str(secret), secret->len, NULL) != 0 ||
        stw_base64_json(stw_secret_entry(stw_json_root(&doc), KEY_NAME), &key) != 0 ||
        key.len != sizeof(f->key))
        return stw_fail(err, STW_ERR_INVALID,
                        "Secret %s/%s does not hold %d bytes under \"%s\"; delete it, and steward "
                        "makes a new one",
                        f->ns, DBU_FINGERPRINT_SECRET, DBU_FINGERPRINT_KEY_BYTES, KEY_NAME);
    memcpy(f->key, key.data, sizeof(f->key));
    f->loaded = true;
    return 0;
}

static int read_key(struct dbu_fingerprints *f, const struct stw_run *run, struct stw_error *err)
{
    stw_autobuf struct stw_buf answer = {.max = STW_RESPONSE_MAX_BYTES, .secret = true};
    if (stw_kube_get(run->client, &stw_res_secret, f->ns, DBU_FINGERPRINT_SECRET, &answer, err) !=
        0)
        return -1;
    return take_key(f, &answer, err);
}

static int create_key(struct dbu_fingerprints *f, const struct stw_run *run, struct stw_error *err)
{
    unsigned char key[DBU_FINGERPRINT_KEY_BYTES];
    struct stw_buf stw_autobuf text = {.max = 256, .secret = true};
    stw_autobuf struct stw_buf answer = {.max = STW_RESPONSE_MAX_BYTES, .secret = true};
    if (stw_run_check_write(run, err) != 0)
        return -1;
    if (RAND_bytes(key, sizeof(key)) != 1)
        return stw_fail(err, STW_ERR_INTERNAL, "no random bytes for a key");
    stw_base64_encode(key, sizeof(key), &text);
    stw_wipe(key, sizeof(key));
    json_auto_t *secret =
        json_pack("{s:s,s:s,s:s,s:{s:s,s:s,s:{s:s,s:s}},s:{s:s}}", "apiVersion", "v1", "kind",
                  "Secret", "type", "Opaque", "metadata", "name", DBU_FINGERPRINT_SECRET,
                  "namespace", f->ns, "labels", "app.kubernetes.io/name", run->op->name,
                  "app.kubernetes.io/part-of", run->op->name, "data", KEY_NAME, stw_buf_str(&text));
    if (!secret)
        return stw_fail_memory(err);
    if (stw_kube_create(run->client, &stw_res_secret, f->ns, secret, &answer, err) != 0)
        return -1;
    return take_key(f, &answer, err);
}

static int load_key(struct dbu_fingerprints *f, const struct stw_run *run, struct stw_error *err)
{
    struct stw_error e = {0};
    int rc = read_key(f, run, &e);
    if (rc != 0 && e.code == STW_ERR_NOT_FOUND) {
        e = (struct stw_error){0};
        rc = create_key(f, run, &e);
    }
    if (rc != 0 && e.code == STW_ERR_EXISTS) { /* another replica created it first */
        e = (struct stw_error){0};
        rc = read_key(f, run, &e);
    }
    if (rc != 0)
        *err = e;
    return rc;
}

int dbu_fingerprint(struct dbu_fingerprints *f, const struct stw_run *run, const char *uid,
                    const char *password, size_t len, char ret[DBU_FINGERPRINT_LEN],
                    struct stw_error *err)
{
    STW_LOCKED(&f->lock);
    int rc = f->loaded ? 0 : load_key(f, run, err);
    if (rc == 0 && dbu_fingerprint_under(f->key, uid, password, len, ret) != 0)
        rc = stw_fail(err, STW_ERR_INTERNAL, "cannot compute a fingerprint");
    return rc;
}
