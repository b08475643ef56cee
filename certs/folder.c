/* SPDX-License-Identifier: Apache-2.0 */
#include "folder_priv.h"

#include "base/log.h"
#include "base/util.h"
#include "certs/issue.h"
#include "ssl_priv.h"

#include <stdio.h>

#define READS_MAX 5 /* reads of one key_pair, until two in a row agree */

struct key_pair {
    char *cert, *key;
    unsigned char digest[STW_FOLDER_DIGEST];
};

static void pair_done(struct key_pair *p)
{
    stw_wipe_free(p->key);
    free(p->cert);
    *p = (struct key_pair){0};
}
#define stw_autopair __attribute__((cleanup(pair_done)))

static int read_one(const struct stw_folder *f, const char *name, char **ret, size_t *ret_len,
                    struct stw_error *err)
{
    char path[4096];
    if (stw_format_whole(path, sizeof(path), "%s/%s", f->path, name) != 0)
        return stw_fail(err, STW_ERR_INVALID, "the path of the certificate folder is too long");
    return stw_read_file(path, STW_PEM_MAX_BYTES, ret, ret_len, err);
}

/* SHA-256 of both, after the certificate's length, so that equal digests mean equal files. */
static int compute_pair_digest(struct key_pair *p, size_t cert_len, size_t key_len)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1 &&
             EVP_DigestUpdate(ctx, &cert_len, sizeof(cert_len)) == 1 &&
             EVP_DigestUpdate(ctx, p->cert, cert_len) == 1 &&
             EVP_DigestUpdate(ctx, p->key, key_len) == 1 &&
             EVP_DigestFinal_ex(ctx, p->digest, NULL) == 1;
    EVP_MD_CTX_free(ctx);
    return ok ? 0 : -1;
}

static int read_once(const struct stw_folder *f, struct key_pair *ret, struct stw_error *err)
{
    struct key_pair stw_autopair p = {0};
    size_t cert_len = 0, key_len = 0;
    stw_ssl_init();
    if (read_one(f, "tls.crt", &p.cert, &cert_len, err) != 0 ||
        read_one(f, "tls.key", &p.key, &key_len, err) != 0)
        return -1;
    if (compute_pair_digest(&p, cert_len, key_len) != 0)
        return stw_ssl_fail(err, STW_ERR_INTERNAL, "cannot hash the certificate");
    *ret = p;
    p = (struct key_pair){0};
    return 0;
}

/* The `..data` link may be swapped between the two reads: read until two results agree. */
static int read_pair(const struct stw_folder *f, struct key_pair *ret, struct stw_error *err)
{
    if (read_once(f, ret, err) != 0)
        return -1;
    for (unsigned i = 1; i < READS_MAX; i++) {
        struct key_pair stw_autopair again = {0};
        if (read_once(f, &again, err) != 0)
            return -1;
        if (memcmp(again.digest, ret->digest, sizeof(again.digest)) == 0)
            return 0;
        struct key_pair older = *ret;
        *ret = again;
        again = older;
    }
    return stw_fail(err, STW_ERR_UNAVAILABLE, "%s/tls.crt and tls.key keep changing", f->path);
}

static void note_ca(struct stw_folder *f)
{
    stw_autofree char *pem = NULL;
    struct stw_cert_info info;
    f->ca_not_after_us = 0;
    if (read_one(f, "ca.crt", &pem, NULL, NULL) == 0 && stw_cert_info(pem, &info, NULL) == 0)
        f->ca_not_after_us = info.not_after_us;
}

/* Loads any key_pair that differs from the one in service; `seen` becomes its digest once it was
 * read. */
static int load_changed_pair(struct stw_folder *f, unsigned char *seen, struct stw_error *err)
{
    struct key_pair stw_autopair p = {0};
    if (read_pair(f, &p, err) != 0)
        return -1;
    memcpy(seen, p.digest, sizeof(p.digest));
    note_ca(f);
    if (f->have && memcmp(f->digest, p.digest, sizeof(p.digest)) == 0)
        return 0;
    if (stw_pair_check(p.cert, p.key, stw_wall_us(f->clock), err) != 0)
        return stw_error_wrap(err, "%s/tls.crt and tls.key", f->path);
    if (f->use(f->ctx, p.cert, p.key, err) != 0)
        return stw_error_wrap(err, "%s/tls.crt and tls.key cannot be used", f->path);
    memcpy(f->digest, p.digest, sizeof(p.digest));
    f->have = true;
    stw_series_add(f->reads, 1);
    return 0;
}

int stw_folder_load(struct stw_folder *f, struct stw_error *err)
{
    unsigned char seen[STW_FOLDER_DIGEST] = {0};
    return load_changed_pair(f, seen, err);
}

/* Each invalid content is logged once; the counter is incremented at every check. */
static void report_refused_pair(struct stw_folder *f, const struct stw_error *err)
{
    stw_series_add(f->errors, 1);
    if (!f->logged)
        stw_log(STW_LOG_WARN, "certificate refused, the old one stays in service",
                STW_STR("error", err->text));
    f->logged = true;
}

/* The first check that finds a broken key_pair starts its grace period. */
static void note_broken(struct stw_folder *f, const unsigned char *seen, uint64_t now_ms)
{
    if (f->broken && memcmp(f->broken_digest, seen, sizeof(f->broken_digest)) == 0)
        return;
    f->broken = true;
    f->logged = false;
    f->broken_since_ms = now_ms;
    memcpy(f->broken_digest, seen, sizeof(f->broken_digest));
}

uint64_t stw_folder_check(struct stw_folder *f)
{
    unsigned char seen[STW_FOLDER_DIGEST] = {0};
    struct stw_error err = {0};
    uint64_t now = stw_now_ms(f->clock);
    if (load_changed_pair(f, seen, &err) == 0) {
        f->broken = f->logged = false;
        return STW_FOLDER_POLL_MS;
    }
    note_broken(f, seen, now);
    if (now - f->broken_since_ms < STW_FOLDER_GRACE_MS)
        return STW_FOLDER_RETRY_MS;
    report_refused_pair(f, &err);
    return STW_FOLDER_POLL_MS;
}

/* --- the watch */

void stw_folder_init(struct stw_folder *f, const char *path, const struct stw_clock *clock)
{
    *f = (struct stw_folder){.path = path, .clock = clock, .notify = STW_NOTIFY_INIT};
}

void stw_folder_done(struct stw_folder *f)
{
    stw_notify_done(&f->notify);
}

void stw_folder_watch(struct stw_folder *f)
{
    struct stw_error err = {0};
    if (stw_notify_folder(&f->notify, f->path, &err) != 0)
        stw_log(STW_LOG_DEBUG, "certificate folder is only looked at each minute",
                STW_STR("folder", f->path), STW_STR("error", err.text));
}
