/* SPDX-License-Identifier: Apache-2.0
 *
 * The CA of the API server, read once and shared by all connections.  OpenSSL 3 needs two
 * million instructions to read one certificate, and libcurl would read it for every connection. */
#include "base/util.h"
#include "kube/client/client_priv.h"
#include "kube/config/kubeconfig_priv.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <stdio.h>

#define FOLDER_LEN 64

/* CURLOPT_SSL_CTX_FUNCTION passes the type of the TLS library that libcurl was built with. */
static bool uses_openssl(void)
{
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    return info->ssl_version && strncmp(info->ssl_version, "OpenSSL/", 8) == 0;
}

static STACK_OF(X509_INFO) * read_pem(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    STACK_OF(X509_INFO) *all = bio ? PEM_X509_INFO_read_bio(bio, NULL, NULL, NULL) : NULL;
    BIO_free(bio);
    return all;
}

/* A folder that does not exist, another one for each CA: libcurl shares a connection only between
 * handles with the same. */
static void name_folder(unsigned generation, char out[FOLDER_LEN])
{
    stw_format(out, FOLDER_LEN, "/nonexistent/ca-%u", generation);
}

/* With the flags that libcurl sets, and with the folder: libcurl adds it to the store in each
 * handshake, which is safe in several threads only if the store has it.  NULL: no certificate in it,
 * or out of memory. */
static X509_STORE *create_store(const char *pem, const char *folder)
{
    STACK_OF(X509_INFO) *all = read_pem(pem);
    X509_STORE *store = all ? X509_STORE_new() : NULL;
    int added = 0;
    for (int i = 0; store && i < sk_X509_INFO_num(all); i++) {
        X509 *cert = sk_X509_INFO_value(all, i)->x509;
        added += cert && X509_STORE_add_cert(store, cert) == 1;
    }
    sk_X509_INFO_pop_free(all, X509_INFO_free);
    ERR_clear_error();
    if (added > 0 && X509_STORE_load_path(store, folder) == 1 &&
        X509_STORE_set_flags(store, X509_V_FLAG_TRUSTED_FIRST | X509_V_FLAG_PARTIAL_CHAIN) == 1)
        return store;
    X509_STORE_free(store);
    return NULL;
}

static CURLcode set_store(CURL *easy, void *ssl_ctx, void *ctx)
{
    const struct stw_handle *h = ctx;
    (void)easy;
    SSL_CTX_set1_cert_store(ssl_ctx, h->trust);
    return CURLE_OK;
}

static void refresh_store(struct stw_client *c)
{
    if (c->trust_tried && c->trust_generation == c->auth.generation)
        return;
    char folder[FOLDER_LEN];
    name_folder(c->auth.generation, folder);
    X509_STORE_free(c->trust);
    c->trust = uses_openssl() ? create_store(c->auth.config->ca_pem, folder) : NULL;
    c->trust_tried = true;
    c->trust_generation = c->auth.generation;
}

bool stw_trust_share(struct stw_client *c, struct stw_handle *h)
{
    char folder[FOLDER_LEN];
    refresh_store(c);
    if (!c->trust || X509_STORE_up_ref(c->trust) != 1)
        return false;
    X509_STORE_free(h->trust);
    h->trust = c->trust;
    name_folder(c->trust_generation, folder);
    int bad = (int)curl_easy_setopt(h->easy, CURLOPT_CAPATH, folder);
    bad |= (int)curl_easy_setopt(h->easy, CURLOPT_CAINFO_BLOB, NULL);
    bad |= (int)curl_easy_setopt(h->easy, CURLOPT_SSL_CTX_DATA, h);
    return !(bad | (int)curl_easy_setopt(h->easy, CURLOPT_SSL_CTX_FUNCTION, set_store));
}

void stw_trust_drop(struct stw_handle *h)
{
    (void)curl_easy_setopt(h->easy, CURLOPT_SSL_CTX_FUNCTION, NULL);
    X509_STORE_free(h->trust);
    h->trust = NULL;
}
