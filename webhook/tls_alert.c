/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/tls_alert_priv.h"

#include "base/util.h"

#include <stdint.h>

#define TLS_1_2 0x0303U
#define TLS_1_3 0x0304U
#define SUPPORTED_VERSIONS 43U

/* What is left of a message. A read beyond its end makes it `bad`. */
struct rest {
    const unsigned char *at;
    size_t left;
    bool bad;
};

static struct rest take(struct rest *r, size_t size)
{
    if (r->bad || size > r->left) {
        r->bad = true;
        return (struct rest){.bad = true};
    }
    struct rest part = {.at = r->at, .left = size};
    r->at += size;
    r->left -= size;
    return part;
}

static size_t take_number(struct rest *r, size_t bytes)
{
    struct rest part = take(r, bytes);
    size_t n = 0;
    for (size_t i = 0; i < part.left; i++)
        n = n << 8 | part.at[i];
    return n;
}

/* A vector after its length, a number of `length_bytes`. */
static struct rest take_vector(struct rest *r, size_t length_bytes)
{
    return take(r, take_number(r, length_bytes));
}

static bool lists_served_version(struct rest versions)
{
    struct rest list = take_vector(&versions, 1);
    while (!list.bad && list.left > 0) {
        size_t version = take_number(&list, 2);
        if (version == TLS_1_2 || version == TLS_1_3)
            return true;
    }
    return list.bad; /* for GnuTLS to refuse */
}

bool stw_tls_offers_version(const unsigned char *text, size_t size)
{
    struct rest hello = {.at = text, .left = size};
    size_t version = take_number(&hello, 2);
    (void)take(&hello, 32);
    (void)take_vector(&hello, 1); /* session */
    (void)take_vector(&hello, 2); /* cipher suites */
    (void)take_vector(&hello, 1); /* compression */
    struct rest extensions = {0};
    if (hello.left > 0)
        extensions = take_vector(&hello, 2);
    while (!extensions.bad && extensions.left > 0) {
        size_t type = take_number(&extensions, 2);
        struct rest content = take_vector(&extensions, 2);
        if (type == SUPPORTED_VERSIONS)
            return lists_served_version(content);
    }
    return hello.bad || extensions.bad || version >= TLS_1_2;
}

static bool shows_certificate(gnutls_session_t session, const gnutls_datum_t *message)
{
    struct rest r = {.at = message->data, .left = message->size};
    if (gnutls_protocol_get_version(session) == GNUTLS_TLS1_3)
        (void)take_vector(&r, 1); /* context */
    return take_number(&r, 3) > 0;
}

static int refuse(gnutls_session_t session, gnutls_alert_description_t alert, int code)
{
    (void)gnutls_alert_send(session, GNUTLS_AL_FATAL, alert);
    return code;
}

int stw_tls_check_message(gnutls_session_t session, unsigned type, const gnutls_datum_t *message,
                          bool certificate_required)
{
    if (type == GNUTLS_HANDSHAKE_CLIENT_HELLO &&
        !stw_tls_offers_version(message->data, message->size))
        return refuse(session, GNUTLS_A_PROTOCOL_VERSION, GNUTLS_E_UNSUPPORTED_VERSION_PACKET);
    if (type == GNUTLS_HANDSHAKE_CERTIFICATE_PKT && certificate_required &&
        !shows_certificate(session, message))
        return refuse(session,
                      gnutls_protocol_get_version(session) == GNUTLS_TLS1_3
                          ? GNUTLS_A_CERTIFICATE_REQUIRED
                          : GNUTLS_A_HANDSHAKE_FAILURE,
                      GNUTLS_E_NO_CERTIFICATE_FOUND);
    return 0;
}
