/* SPDX-License-Identifier: Apache-2.0
 *
 * Folder mode: tls.crt and tls.key (and ca.crt, for its expiry only) in a folder that somebody else
 * fills.  A mounted Secret is swapped as a whole by its `..data` link; people and scripts replace
 * one file after the other, so a pair that does not fit is given a moment before it counts as
 * broken. */
#ifndef STW_CERTS_FOLDER_PRIV_H
#define STW_CERTS_FOLDER_PRIV_H

#include "base/clock.h"
#include "base/notify.h"
#include "certs/certs.h"

#define STW_FOLDER_GRACE_MS 2000 /* between the two files of a pair */
#define STW_FOLDER_RETRY_MS 100
#define STW_FOLDER_POLL_MS 60000

#define STW_FOLDER_DIGEST 32

struct stw_folder {
    const char *path; /* borrowed */
    const struct stw_clock *clock;
    stw_certs_use_fn *use;
    void *ctx;
    struct stw_series *reads, *errors; /* certwatcher_read_certificate_total and _errors_total */

    struct stw_notify notify;                /* none: only the poll is left */
    bool have;                               /* some pair was taken */
    unsigned char digest[STW_FOLDER_DIGEST]; /* of the pair taken last */

    bool broken, said; /* what the folder holds now cannot be used; and that was logged */
    unsigned char broken_digest[STW_FOLDER_DIGEST]; /* zero: not even readable */
    uint64_t broken_since_ms;
    int64_t ca_not_after_us; /* of ca.crt; 0: none */
};

void stw_folder_init(struct stw_folder *f, const char *path, const struct stw_clock *clock);
void stw_folder_done(struct stw_folder *f);
/* Begins to watch, or again after the folder was replaced.  Cannot fail: there is the poll. */
void stw_folder_watch(struct stw_folder *f);

/* Reads the pair and takes it into service if it is new.  0: what is in service is what the folder
 * holds; -1: it is not, and `err` says why. */
int stw_folder_load(struct stw_folder *f, struct stw_error *err);
/* The same with patience, log and metrics.  Returns when to look again, in milliseconds. */
uint64_t stw_folder_check(struct stw_folder *f);

#endif
