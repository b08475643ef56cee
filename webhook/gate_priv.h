/* SPDX-License-Identifier: Apache-2.0
 *
 * The gate in front of libmicrohttpd: accepts, knows every open connection, and cuts those that
 * take too long.  When all are in use a newcomer displaces one of the peer address that has most:
 * a client that opens many gets in its own way, not in that of others.  The library's own timeout
 * is one of inactivity, which a client that sends a byte a second never meets; and its limit turns
 * newcomers away, where here a connection goes that has never finished a request.
 *
 * One thread of its own.  An entry is in the list from the library's "started" to its "closed",
 * which come on the library's threads, before it closes the descriptor: with the lock held, the
 * descriptor of an entry in the list is that connection's and no other's. */
#ifndef STW_WEBHOOK_GATE_PRIV_H
#define STW_WEBHOOK_GATE_PRIV_H

#include "base/clock.h"
#include "base/error.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct stw_gate;

/* Embedded in what the owner keeps for a connection. */
struct stw_gate_entry {
    struct stw_gate_entry *prev, *next; /* by age; under the gate's lock, as is `cut` */
    int fd;
    struct stw_gate_peer *peer; /* whose it is; NULL: no memory to tell */
    bool cut;                   /* shut down; the library is about to close it */
    _Atomic bool busy;          /* between the first byte of a request and the last of its reply */
    _Atomic bool served;        /* was given a decision: no slow-loris */
    _Atomic bool spare;         /* behind its handshake, before its first request */
    _Atomic bool known;         /* has shown a client certificate: not displaced while in use */
    _Atomic size_t held;        /* bytes that its request is charged with */
    _Atomic uint64_t deadline_ms;
};

/* Gives a connection to the library, which then owns the descriptor in any case.  0 or -1. */
typedef int stw_gate_hand_fn(void *ctx, int fd, const struct sockaddr *addr, socklen_t len);

struct stw_gate_config {
    const char *what;    /* the log's words for a flood; NULL: those for admission */
    const char *address; /* to listen on, see stw_listen; read by create only */
    const struct stw_clock *clock;
    uint32_t limit, request_timeout_ms, idle_timeout_ms;
    stw_gate_hand_fn *hand;
    void *ctx;
};

/* Listens, and lets in from now on: `*ret` is set before the first comes, and NULL on failure. */
int stw_gate_create(const struct stw_gate_config *config, struct stw_gate **ret,
                    struct stw_error *err);
uint16_t stw_gate_port(const struct stw_gate *g);
/* Accepts what waits already, then closes the listening socket; returns when that is done. */
void stw_gate_close(struct stw_gate *g);
/* No connection may be open any more. */
void stw_gate_destroy(struct stw_gate *g);

void stw_gate_enter(struct stw_gate *g, struct stw_gate_entry *e, int fd);
void stw_gate_leave(struct stw_gate *g, struct stw_gate_entry *e);

/* The handshake is over: with or without a request at once, a connection that may be kept. */
void stw_gate_settle(struct stw_gate *g, struct stw_gate_entry *e, uint64_t now_ms);
/* A request begins and ends: no lock. */
void stw_gate_begin(struct stw_gate *g, struct stw_gate_entry *e, uint64_t now_ms);
void stw_gate_end(struct stw_gate *g, struct stw_gate_entry *e, uint64_t now_ms, bool served);

/* What a request of it holds now.  No lock. */
static inline void stw_gate_hold(struct stw_gate_entry *e, size_t bytes)
{
    atomic_store_explicit(&e->held, bytes, memory_order_relaxed);
}
/* Cuts the largest request of the peer that holds most, if that is another than the one of `e` and
 * it holds more than that one would with `more` bytes.  Whether it did: they are free in a moment.
 */
bool stw_gate_displace(struct stw_gate *g, const struct stw_gate_entry *e, size_t more);

/* Connections that somebody waits at: in a handshake, or with a request not answered to its end. */
unsigned stw_gate_unfinished(struct stw_gate *g);
/* Of those that nobody waits at no more is read than what is there already; they close once that is
 * answered.  Returns how many connections are open. */
unsigned stw_gate_hang_up(struct stw_gate *g);
unsigned stw_gate_count(struct stw_gate *g);
/* The socket takes connections still: what the kernel says of it, not what we remember. */
bool stw_gate_listening(struct stw_gate *g);

#endif
