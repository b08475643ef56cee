/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STW_KUBE_CLIENT_PULSE_H
#define STW_KUBE_CLIENT_PULSE_H

#include <stdint.h>

struct stw_client;

/* How long the client's thread has owed an answer; asks and wakes it otherwise.  Any thread.  It is
 * away while a credential plugin runs, which may take a minute. */
uint64_t stw_client_silent_ms(struct stw_client *c);

#endif
