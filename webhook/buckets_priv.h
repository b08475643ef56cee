/* SPDX-License-Identifier: Apache-2.0
 *
 * A limit of something that clients cause: of each address, and of all together. The more of its own
 * an address has used, the earlier it is refused from the sum, so that an address with few requests
 * is served before those with many. The table of addresses is bounded: one that has used nothing
 * needs no entry. Not thread-safe. */
#ifndef STW_WEBHOOK_BUCKETS_PRIV_H
#define STW_WEBHOOK_BUCKETS_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#define STW_BUCKETS_PEERS 256U

struct stw_bucket {
    uint64_t tokens, refilled_ms;
};

struct stw_bucket_peer {
    uint64_t address; /* as in stw_gate_entry; 0: free */
    struct stw_bucket bucket;
    bool trusted;       /* set by the owner: may use the reserve, and its entry is replaced last */
    uint64_t failed_ms; /* of the owner */
};

struct stw_buckets {
    uint64_t peer_burst, peer_refill_ms;
    uint64_t sum_burst, sum_refill_ms;
    uint64_t reserve; /* of the sum, for trusted addresses only */
    struct stw_bucket sum;
    struct stw_bucket_peer peers[STW_BUCKETS_PEERS];
};

/* With the limits set: all buckets are full. */
void stw_buckets_begin(struct stw_buckets *b, uint64_t now_ms);
/* The entry of an address; valid until the next call. */
struct stw_bucket_peer *stw_buckets_enter(struct stw_buckets *b, uint64_t address, uint64_t now_ms);
/* Whether this address may cause one more. */
bool stw_buckets_take(struct stw_buckets *b, struct stw_bucket_peer *p, uint64_t now_ms);
/* It has turned out to cost as much as `more` others. */
void stw_buckets_charge(struct stw_buckets *b, struct stw_bucket_peer *p, uint64_t more);

#endif
