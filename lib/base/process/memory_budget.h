/* SPDX-License-Identifier: Apache-2.0
 *
 * One budget for the memory of the process, with a fixed share for each purpose.  What others can make
 * grow is counted against its share.  A share that is full refuses, waits or keeps less; it never takes
 * from another share.  One budget for each process; every function may be called on any thread. */
#ifndef STW_BASE_MEMORY_BUDGET_H
#define STW_BASE_MEMORY_BUDGET_H

#include "base/metrics.h"
#include "base/util.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stw_share {
    STW_SHARE_BASE,       /* code, threads, queues, and memory that the allocator cannot release */
    STW_SHARE_CACHES,     /* kept texts of objects */
    STW_SHARE_ADMISSION,  /* connections and requests of clients; the webhook bounds them */
    STW_SHARE_RECONCILES, /* reconciles of large objects */
    STW_SHARE_ANSWERS,    /* large answers of all servers, while they are read and used */
    STW_SHARE_TRANSFERS,  /* parts of uploads to stores, and what else a transfer keeps */
    STW_SHARES
};

/* Before other threads start.  `limit` is the memory of the process; 0: unknown, the shares are then
 * those of 256 MiB. */
void stw_memory_budget_set(uint64_t limit);
/* Overrides one share: what an operator has set with a flag. */
void stw_memory_budget_set_share(enum stw_share share, size_t bytes);

const char *stw_share_name(enum stw_share share);
size_t stw_share_limit(enum stw_share share);
/* True: the bytes fit and are counted.  False: they do not, and that is counted as a refusal. */
bool stw_share_take(enum stw_share share, size_t bytes) STW_MUST_CHECK;
/* Counts bytes that cannot be refused any more. */
void stw_share_add(enum stw_share share, size_t bytes);
void stw_share_give_back(enum stw_share share, size_t bytes);
/* What one owner keeps of answers of databases and stores, counted against STW_SHARE_ANSWERS;
 * zero-initialised: nothing.  Up to 64 KiB are not counted, so that short answers are never refused.
 * All together have three quarters of the share: users choose these servers, which may be slow, and
 * objects of the API server must be read meanwhile. */
struct stw_kept {
    size_t bytes, spare; /* counted against the share; of the thread's spare memory */
};
/* Changes it to `bytes` in all.  False: they do not fit, and it keeps what it had. */
bool stw_kept_set(struct stw_kept *h, size_t bytes) STW_MUST_CHECK;
void stw_kept_done(struct stw_kept *h);
/* What runs keep of the API server's answers, which the share has counted already, is a part of the three
 * quarters, too. */
bool stw_kept_has_room(size_t bytes);
void stw_kept_note(size_t bytes);
void stw_kept_forget(size_t bytes);

/* The spare memory of a thread: what its reconcile has reserved in STW_SHARE_RECONCILES, because
 * answers did not fit into STW_SHARE_ANSWERS the last time.  They need no room there any more. */
void stw_spare_set(size_t bytes); /* of all answers */
bool stw_spare_has(size_t bytes); /* of one more */
/* An answer was refused for which `bytes` would have been enough. */
void stw_spare_want(size_t bytes);
/* The reconcile has ended.  Returns how much spare memory would have been enough; 0: nothing was refused. */
size_t stw_spare_end(void);

/* Something waits for a part of the share. */
void stw_share_note_wait(enum stw_share share);
void stw_share_note_refusal(enum stw_share share);

struct stw_share_facts {
    size_t limit, used, peak;
    uint64_t refused, waited;
};
struct stw_share_facts stw_share_facts(enum stw_share share);
/* PREFIX_memory_share_bytes and others. */
void stw_memory_budget_add_metrics(struct stw_metrics *m);

#endif
