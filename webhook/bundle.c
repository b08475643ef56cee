/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/bundle_priv.h"

#include "base/thread.h"
#include "base/util.h"

#include <assert.h>
#include <gnutls/x509.h>
#include <stdatomic.h>
#include <time.h>

#define CHAIN_MAX 16U

struct stw_bundle {
    _Atomic unsigned refs;
    unsigned count;
    gnutls_pcert_st chain[CHAIN_MAX]; /* leaf first */
    gnutls_privkey_t key;
    gnutls_datum_t ticket_key;
};

/* The parsed chain while a bundle is being made. */
struct chain {
    gnutls_x509_crt_t *crts;
    unsigned count;
};

static void chain_done(struct chain *c)
{
    for (unsigned i = 0; i < c->count; i++)
        gnutls_x509_crt_deinit(c->crts[i]);
    gnutls_free(c->crts);
}

static int fail_with_gnutls(struct stw_error *err, const char *what, int code)
{
    return stw_fail(err, STW_ERR_INVALID, "%s: %s", what, gnutls_strerror(code));
}

static gnutls_datum_t make_pem_datum(const char *pem)
{
    /* GnuTLS declares data that it only reads as writable. */
    union {
        const char *in;
        unsigned char *out;
    } text = {.in = pem};
    return (gnutls_datum_t){.data = text.out, .size = (unsigned)strlen(pem)};
}

static int load_chain(const char *cert_pem, struct chain *c, struct stw_error *err)
{
    gnutls_datum_t pem = make_pem_datum(cert_pem);
    int code = gnutls_x509_crt_list_import2(&c->crts, &c->count, &pem, GNUTLS_X509_FMT_PEM,
                                            GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
    if (code < 0)
        return fail_with_gnutls(
            err, "the certificate is not a PEM chain with the server's own first", code);
    if (c->count > CHAIN_MAX)
        return stw_fail(err, STW_ERR_TOO_LARGE,
                        "the certificate chain has %u links, %u at most are used", c->count,
                        CHAIN_MAX);
    return 0;
}

static int check_expiry(const struct chain *c, int64_t now_us, struct stw_error *err)
{
    time_t end = gnutls_x509_crt_get_expiration_time(c->crts[0]);
    char when[32];
    struct tm tm;
    if ((int64_t)end > now_us / 1000000)
        return 0;
    (void)strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &tm));
    return stw_fail(err, STW_ERR_INVALID, "the certificate has expired at %s; renew it", when);
}

static int load_key(struct stw_bundle *b, const char *key_pem, struct stw_error *err)
{
    gnutls_datum_t pem = make_pem_datum(key_pem);
    int code = gnutls_privkey_init(&b->key);
    if (code == 0)
        code = gnutls_privkey_import_x509_raw(b->key, &pem, GNUTLS_X509_FMT_PEM, NULL, 0);
    return code < 0
               ? fail_with_gnutls(
                     err, "the private key cannot be used; it must be PEM without a password", code)
               : 0;
}

static int key_id(gnutls_privkey_t key, unsigned char *out, size_t *size)
{
    gnutls_pubkey_t pub = NULL;
    int code = gnutls_pubkey_init(&pub);
    if (code == 0)
        code = gnutls_pubkey_import_privkey(pub, key, 0, 0);
    if (code == 0)
        code = gnutls_pubkey_get_key_id(pub, GNUTLS_KEYID_USE_SHA256, out, size);
    gnutls_pubkey_deinit(pub);
    return code;
}

static int check_pair(const struct stw_bundle *b, const struct chain *c, struct stw_error *err)
{
    unsigned char of_key[64] = {0}, of_cert[64] = {0};
    size_t key_size = sizeof(of_key), cert_size = sizeof(of_cert);
    int code = key_id(b->key, of_key, &key_size);
    if (code == 0)
        code = gnutls_x509_crt_get_key_id(c->crts[0], GNUTLS_KEYID_USE_SHA256, of_cert, &cert_size);
    if (code < 0)
        return fail_with_gnutls(err, "the certificate cannot be compared with its key", code);
    if (key_size != cert_size || memcmp(of_key, of_cert, key_size) != 0)
        return stw_fail(
            err, STW_ERR_INVALID,
            "the private key does not belong to the certificate; put both of one pair in place");
    return 0;
}

static int fill_bundle(struct stw_bundle *b, const struct chain *c, struct stw_error *err)
{
    for (unsigned i = 0; i < c->count; i++, b->count++) {
        int code = gnutls_pcert_import_x509(&b->chain[i], c->crts[i], 0);
        if (code < 0)
            return fail_with_gnutls(err, "the certificate cannot be served", code);
    }
    int code = gnutls_session_ticket_key_generate(&b->ticket_key);
    return code < 0 ? fail_with_gnutls(err, "no key for session tickets", code) : 0;
}

int stw_bundle_load(const char *cert_pem, const char *key_pem, int64_t now_us,
                    struct stw_bundle **ret, struct stw_error *err)
{
    struct chain chain = {0};
    struct stw_bundle *b = calloc(1, sizeof(*b));
    if (!b)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the certificate");
    b->refs = 1;
    int status = load_chain(cert_pem, &chain, err);
    if (status == 0)
        status = check_expiry(&chain, now_us, err);
    if (status == 0)
        status = load_key(b, key_pem, err);
    if (status == 0)
        status = check_pair(b, &chain, err);
    if (status == 0)
        status = fill_bundle(b, &chain, err);
    chain_done(&chain);
    if (status == 0)
        *ret = b;
    else
        stw_bundle_unref(b);
    return status;
}

struct stw_bundle *stw_bundle_ref(struct stw_bundle *b)
{
    assert(atomic_load_explicit(&b->refs, memory_order_relaxed) > 0);
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void stw_bundle_unref(struct stw_bundle *b)
{
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (unsigned i = 0; i < b->count; i++)
        gnutls_pcert_deinit(&b->chain[i]);
    if (b->key)
        gnutls_privkey_deinit(b->key);
    if (b->ticket_key.data)
        stw_wipe(b->ticket_key.data, b->ticket_key.size);
    gnutls_free(b->ticket_key.data);
    free(b);
}

void stw_bundle_enable_tickets(const struct stw_bundle *b, gnutls_session_t session)
{
    /* If this fails, the session cannot be resumed. */
    (void)gnutls_session_ticket_enable_server(session, &b->ticket_key);
}

int stw_bundle_retrieve(const struct stw_bundle *b, gnutls_pcert_st **pcert, unsigned *pcert_length,
                        gnutls_ocsp_data_st **ocsp, unsigned *ocsp_length, gnutls_privkey_t *key,
                        unsigned *flags)
{
    union {
        const gnutls_pcert_st *in;
        gnutls_pcert_st *out;
    } chain = {.in = b->chain};
    *pcert = chain.out;
    *pcert_length = b->count;
    *ocsp = NULL;
    *ocsp_length = 0;
    *key = b->key;
    *flags = 0; /* not GNUTLS_CERT_RETR_DEINIT_ALL: all of it stays the bundle's */
    return 0;
}

int stw_bundle_missing(gnutls_session_t session)
{
    (void)gnutls_alert_send(session, GNUTLS_AL_FATAL, GNUTLS_A_INTERNAL_ERROR);
    return -1;
}

/* --- the slot */

void stw_bundle_slot_init(struct stw_bundle_slot *s)
{
    (void)pthread_mutex_init(&s->lock, NULL);
}

void stw_bundle_slot_done(struct stw_bundle_slot *s)
{
    stw_bundle_unref(s->bundle);
    (void)pthread_mutex_destroy(&s->lock);
}

struct stw_bundle *stw_bundle_slot_ref(struct stw_bundle_slot *s)
{
    STW_LOCKED(&s->lock);
    return s->bundle ? stw_bundle_ref(s->bundle) : NULL;
}

int stw_bundle_slot_load(struct stw_bundle_slot *s, const char *cert_pem, const char *key_pem,
                         int64_t now_us, struct stw_error *err)
{
    struct stw_bundle *fresh = NULL;
    if (stw_bundle_load(cert_pem, key_pem, now_us, &fresh, err) != 0)
        return -1;
    (void)pthread_mutex_lock(&s->lock);
    struct stw_bundle *old = s->bundle;
    s->bundle = fresh;
    (void)pthread_mutex_unlock(&s->lock);
    stw_bundle_unref(old);
    return 0;
}
