/* SPDX-License-Identifier: Apache-2.0
 *
 * The connection gate in front of libmicrohttpd. It accepts connections, tracks them all, and cuts
 * those that take too long. At the limit, a new connection displaces one of the peer address with
 * the most: a client that opens many connections competes with itself, not with others.
 *
 * libmicrohttpd's own timeout is an inactivity timeout, which a client that sends one byte a second
 * never reaches. Its own limit refuses new connections; this gate cuts a connection that never
 * finished a request instead.
 *
 * The gate has its own thread. An entry is in the list from the library's "started" to its "closed"
 * notification. Both come on the library's threads, and "closed" comes before the descriptor is
 * closed: with the lock held, the descriptor of a listed entry belongs to that connection.
 *
 * It counts connections and what their requests hold against STW_SHARE_ADMISSION, for its metrics:
 * its own limits are what bounds them. */
#ifndef STW_WEBHOOK_GATE_PRIV_H
#define STW_WEBHOOK_GATE_PRIV_H

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct stw_gate;

/* Embedded in the owner's connection struct. */
struct stw_gate_entry {
    struct stw_gate_entry *prev, *next; /* by age; under the gate's lock, as is `cut` */
    int fd;
    uint64_t address;           /* of the peer; for IPv6 the /64 network; 0: unknown */
    struct stw_gate_peer *peer; /* all of that address; NULL: out of memory */
    bool cut;                   /* shut down; the library will close it */
    _Atomic bool busy;          /* from the first byte of a request to the last of its reply */
    _Atomic bool served;        /* has had a decision: not a slow-loris client */
    _Atomic bool spare;         /* handshake done, no request yet */
    _Atomic bool known;         /* presented a client certificate: not displaced while in use */
    _Atomic size_t held;        /* bytes charged to its request */
    _Atomic uint64_t deadline_ms;
};

/* Passes a connection to the library, which owns the descriptor in any case. 0 or -1. */
typedef int stw_gate_hand_fn(void *ctx, int fd, const struct sockaddr *addr, socklen_t len);

struct stw_gate_config {
    const char *what;    /* log message for cut connections; NULL: that of admission */
    const char *address; /* to listen on, see stw_listen; read by create only */
    const struct stw_clock *clock;
    uint32_t limit, request_timeout_ms, idle_timeout_ms;
    size_t connection_bytes; /* of a connection, for the share of memory */
    stw_gate_hand_fn *hand;
    void *ctx;
};

/* Listens and accepts from now on. `*ret` is set before the first connection; NULL on failure. */
int stw_gate_create(const struct stw_gate_config *config, struct stw_gate **ret,
                    struct stw_error *err) STW_MUST_CHECK;
/* How long its thread has owed an answer; asks and wakes it otherwise. */
uint64_t stw_gate_silent_ms(struct stw_gate *g);
uint16_t stw_gate_port(const struct stw_gate *g);
/* Accepts the pending connections, then closes the listening socket. Returns when that is done. */
void stw_gate_close(struct stw_gate *g);
/* All connections must be closed. */
void stw_gate_destroy(struct stw_gate *g);

void stw_gate_enter(struct stw_gate *g, struct stw_gate_entry *e, int fd);
void stw_gate_leave(struct stw_gate *g, struct stw_gate_entry *e);

/* The handshake is done: the connection may be kept, with or without a first request. */
void stw_gate_settle(struct stw_gate *g, struct stw_gate_entry *e, uint64_t now_ms);
/* At the start and end of a request. No lock. */
void stw_gate_begin(struct stw_gate *g, struct stw_gate_entry *e, uint64_t now_ms);
void stw_gate_end(struct stw_gate *g, struct stw_gate_entry *e, uint64_t now_ms, bool served);

/* Sets the bytes held by its current request, which are counted against the share of memory for
 * clients. No lock. */
void stw_gate_hold(struct stw_gate_entry *e, size_t bytes);
/* Cuts the largest request of the peer that holds the most bytes, provided that it is not the peer
 * of `e` and holds more than that peer would with `more` bytes. Returns whether it did; the memory
 * is freed shortly after. */
bool stw_gate_displace(struct stw_gate *g, const struct stw_gate_entry *e, size_t more);

/* Connections with a waiting client: in a handshake, or with an unfinished request. */
unsigned stw_gate_unfinished(struct stw_gate *g);
/* On connections without a request in progress, reads only what has arrived already. They close
 * once it is answered. Returns the number of open connections. */
unsigned stw_gate_hang_up(struct stw_gate *g);
unsigned stw_gate_count(struct stw_gate *g);
/* Whether the socket is listening, as reported by the kernel. */
bool stw_gate_listening(struct stw_gate *g);

#endif
