/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether a client certificate and a key belong together. */
#include "kube/client/client_priv.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

bool stw_auth_is_pair(const char *cert_pem, const char *key_pem)
{
    BIO *cert_bio = BIO_new_mem_buf(cert_pem, -1), *key_bio = BIO_new_mem_buf(key_pem, -1);
    X509 *cert = cert_bio ? PEM_read_bio_X509(cert_bio, NULL, NULL, NULL) : NULL;
    EVP_PKEY *key = key_bio ? PEM_read_bio_PrivateKey(key_bio, NULL, NULL, NULL) : NULL;
    bool fits = cert && key && X509_check_private_key(cert, key) == 1;
    EVP_PKEY_free(key);
    X509_free(cert);
    BIO_free(key_bio);
    BIO_free(cert_bio);
    ERR_clear_error();
    return fits;
}
