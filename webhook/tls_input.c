/* SPDX-License-Identifier: Apache-2.0 */
#include "webhook/tls_input_priv.h"

#include "base/util.h"

#include <errno.h>
#include <sys/socket.h>

/* gnutls_pull_func */
static ssize_t read_within_limit(gnutls_transport_ptr_t ptr, void *data, size_t size)
{
    struct stw_tls_input *in = ptr;
    if (in->left == 0) {
        errno = ECONNABORTED;
        return -1;
    }
    ssize_t got = recv(in->fd, data, STW_MIN(size, in->left), 0);
    if (got > 0)
        in->left -= (size_t)got;
    return got;
}

void stw_tls_input_limit(struct stw_tls_input *in, gnutls_session_t session, int fd,
                         size_t handshake_max)
{
    gnutls_transport_ptr_t reads, writes;
    *in = (struct stw_tls_input){.fd = fd, .left = handshake_max};
    gnutls_transport_get_ptr2(session, &reads, &writes);
    gnutls_transport_set_ptr2(session, in, writes);
    gnutls_transport_set_pull_function(session, read_within_limit);
}
