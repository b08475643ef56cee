/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/client_auth.h"

#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"

#include <gnutls/x509.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#define CA_MAX ((size_t)1 << 20)
#define LOOK_EVERY_MS 1000U
#define TELL_EVERY_MS 10000U

struct stamp {
    struct timespec changed;
    off_t size;
    ino_t inode;
};

/* Not changed once it is there, so that threads verify with it at the same time: a client whose
 * certificate takes long to verify does not make others wait. */
struct trust {
    _Atomic unsigned refs;
    gnutls_x509_trust_list_t list;
};

struct stw_client_auth {
    struct stw_client_auth_config c;
    pthread_mutex_t lock;
    struct trust *trust;
    struct stamp stamp;
    uint64_t looked_ms, logged_ms;
};

/* --- the CA */

static struct stamp read_ca_stamp(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return (struct stamp){0};
    return (struct stamp){.changed = st.st_mtim, .size = st.st_size, .inode = st.st_ino};
}

static bool is_same_stamp(const struct stamp *a, const struct stamp *b)
{
    return a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec &&
           a->size == b->size && a->inode == b->inode;
}

static void unref_trust(struct trust *t)
{
    if (!t || atomic_fetch_sub(&t->refs, 1) != 1)
        return;
    if (t->list)
        gnutls_x509_trust_list_deinit(t->list, 1);
    free(t);
}

static int load_client_ca(struct stw_client_auth *c, struct stw_error *err)
{
    char *pem = NULL;
    size_t len = 0;
    if (stw_read_file(c->c.ca_file, CA_MAX, &pem, &len, err) != 0)
        return -1;
    gnutls_datum_t text = {.data = (unsigned char *)pem, .size = (unsigned)len};
    struct trust *fresh = calloc(1, sizeof(*fresh));
    int count = -1;
    if (fresh) {
        fresh->refs = 1;
        count = gnutls_x509_trust_list_init(&fresh->list, 0);
    }
    if (count == 0)
        count = gnutls_x509_trust_list_add_trust_mem(fresh->list, &text, NULL, GNUTLS_X509_FMT_PEM,
                                                     0, 0);
    free(pem);
    if (count <= 0) {
        unref_trust(fresh);
        return stw_fail(err, STW_ERR_INVALID, "%s holds no CA in PEM that can be used",
                        c->c.ca_file);
    }
    unref_trust(c->trust);
    c->trust = fresh;
    return 0;
}

/* With the lock held. */
static void reload_changed_ca(struct stw_client_auth *c)
{
    struct stw_error err = {0};
    uint64_t now = stw_now_ms(c->c.clock);
    if (now - c->looked_ms < LOOK_EVERY_MS)
        return;
    c->looked_ms = now;
    struct stamp stamp = read_ca_stamp(c->c.ca_file);
    if (is_same_stamp(&stamp, &c->stamp))
        return;
    c->stamp = stamp;
    if (load_client_ca(c, &err) != 0)
        stw_log(STW_LOG_WARN, "the CA for callers is refused, the old one stays in use",
                STW_STR("error", err.text));
    else
        stw_log(STW_LOG_INFO, "the CA for callers was read again", STW_STR("file", c->c.ca_file));
}

static struct trust *ref_trust(struct stw_client_auth *c)
{
    STW_LOCKED(&c->lock);
    reload_changed_ca(c);
    atomic_fetch_add(&c->trust->refs, 1);
    return c->trust;
}

/* --- a certificate */

static bool is_listed(const struct stw_client_auth *c, const char *name, size_t len)
{
    for (const char *const *n = c->c.names; *n; n++)
        if (strlen(*n) == len && memcmp(*n, name, len) == 0)
            return true;
    return false;
}

static bool has_name(const struct stw_client_auth *c, gnutls_x509_crt_t crt)
{
    char name[256];
    size_t size = sizeof(name);
    if (!c->c.names)
        return true;
    if (gnutls_x509_crt_get_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &size) == 0 &&
        is_listed(c, name, size))
        return true;
    for (unsigned i = 0;; i++) {
        size = sizeof(name);
        int kind = gnutls_x509_crt_get_subject_alt_name(crt, i, name, &size, NULL);
        if (kind == GNUTLS_E_SHORT_MEMORY_BUFFER)
            continue; /* longer than any configured name */
        if (kind < 0)
            return false;
        if (kind == GNUTLS_SAN_DNSNAME && is_listed(c, name, size))
            return true;
    }
}

#define CHAIN_MAX 8U

/* NULL, or the reason for a refusal. */
static const char *verify_chain(struct stw_client_auth *c, gnutls_x509_crt_t *chain, unsigned count)
{
    char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
    gnutls_typed_vdata_st data = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                  .data = (unsigned char *)purpose};
    unsigned status = 0;
    struct trust *trust = ref_trust(c);
    int code =
        gnutls_x509_trust_list_verify_crt2(trust->list, chain, count, &data, 1, 0, &status, NULL);
    unref_trust(trust);
    if (code < 0 || status != 0)
        return "its certificate is not one of the CA for clients, or has expired";
    return has_name(c, chain[0]) ? NULL : "its certificate is for none of the names";
}

static const char *judge_session(struct stw_client_auth *c, gnutls_session_t session)
{
    gnutls_x509_crt_t chain[CHAIN_MAX];
    unsigned count = 0, used = 0;
    const gnutls_datum_t *der = gnutls_certificate_get_peers(session, &count);
    const char *why = "it shows no certificate";
    bool bad = !der || count == 0 || count > CHAIN_MAX;
    for (; !bad && used < count; used++) {
        bad = gnutls_x509_crt_init(&chain[used]) < 0;
        if (!bad && gnutls_x509_crt_import(chain[used], &der[used], GNUTLS_X509_FMT_DER) < 0) {
            gnutls_x509_crt_deinit(chain[used]);
            bad = true;
        }
        if (bad)
            break;
    }
    if (!bad)
        why = verify_chain(c, chain, count);
    while (used > 0)
        gnutls_x509_crt_deinit(chain[--used]);
    return why;
}

static void log_refused_caller(struct stw_client_auth *c, const char *why)
{
    uint64_t now = stw_now_ms(c->c.clock);
    (void)pthread_mutex_lock(&c->lock);
    bool due = !c->logged_ms || now - c->logged_ms >= TELL_EVERY_MS;
    c->logged_ms = due ? now : c->logged_ms;
    (void)pthread_mutex_unlock(&c->lock);
    if (due)
        stw_log(STW_LOG_WARN, "refused a client of the webhook", STW_STR("reason", why));
}

/* gnutls_certificate_verify_function: anything but 0 ends the handshake. */
static int verify_caller(gnutls_session_t session)
{
    struct stw_client_auth *c = gnutls_db_get_ptr(session);
    const char *why = judge_session(c, session);
    if (why) {
        log_refused_caller(c, why);
        (void)gnutls_alert_send(session, GNUTLS_AL_FATAL, GNUTLS_A_BAD_CERTIFICATE);
    }
    return why ? GNUTLS_E_CERTIFICATE_ERROR : 0;
}

void stw_client_auth_require(struct stw_client_auth *c, gnutls_session_t session)
{
    gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
    /* The only place in a session for our pointer: libmicrohttpd uses the other one, and there is
     * no session database. */
    gnutls_db_set_ptr(session, c);
    gnutls_session_set_verify_function(session, verify_caller);
}

/* --- create and destroy */

int stw_client_auth_create(const struct stw_client_auth_config *config,
                           struct stw_client_auth **ret, struct stw_error *err)
{
    struct stw_client_auth *c = calloc(1, sizeof(*c));
    if (!c)
        return stw_fail(err, STW_ERR_INTERNAL, "no memory for the CA of callers");
    c->c = *config;
    (void)pthread_mutex_init(&c->lock, NULL);
    c->looked_ms = stw_now_ms(config->clock);
    c->stamp = read_ca_stamp(config->ca_file);
    if (load_client_ca(c, err) != 0) {
        stw_client_auth_destroy(c);
        return -1;
    }
    *ret = c;
    return 0;
}

void stw_client_auth_destroy(struct stw_client_auth *c)
{
    if (!c)
        return;
    unref_trust(c->trust);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}
