/* SPDX-License-Identifier: Apache-2.0
 *
 * Bind addresses in Go's syntax: ":9443" (all addresses, both families), "host:port", "[v6]:port".
 * Port 0: the kernel chooses. */
#ifndef STW_WEBHOOK_LISTEN_PRIV_H
#define STW_WEBHOOK_LISTEN_PRIV_H

#include "base/error.h"
#include "base/util.h"

#include <stdbool.h>
#include <stdint.h>

/* A non-blocking listening socket; the caller closes it. */
int stw_listen(const char *address, int *ret_fd, uint16_t *ret_port,
               struct stw_error *err) STW_MUST_CHECK;

/* Splits into host ("" for all addresses) and port. Returns 0, or -1 with a message. */
int stw_address_split(const char *address, char host[256], char port[6],
                      struct stw_error *err) STW_MUST_CHECK;

#endif
