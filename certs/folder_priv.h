/* SPDX-License-Identifier: Apache-2.0
 *
 * Folder mode: tls.crt and tls.key (and ca.crt, for its expiry only) in a folder that another
 * program fills.  A mounted Secret is swapped as a whole by its `..data` link.  People and scripts
 * replace one file after the other, so a pair that does not match has a grace period before it
 * counts as broken. */
#ifndef STW_CERTS_FOLDER_PRIV_H
#define STW_CERTS_FOLDER_PRIV_H

#include "base/clock.h"
#include "base/process/notify.h"
#include "base/util.h"
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

    struct stw_notify notify;                /* none: polling only */
    bool have;                               /* a pair was taken */
    unsigned char digest[STW_FOLDER_DIGEST]; /* of the pair taken last */

    bool broken, logged; /* the folder's pair cannot be used; and that was logged */
    unsigned char broken_digest[STW_FOLDER_DIGEST]; /* zero: not readable */
    uint64_t broken_since_ms;
    int64_t ca_not_after_us; /* of ca.crt; 0: none */
};

void stw_folder_init(struct stw_folder *f, const char *path, const struct stw_clock *clock);
void stw_folder_done(struct stw_folder *f);
/* Starts the watch, or restarts it after the folder was replaced.  A failure is not reported: the
 * folder is also polled. */
void stw_folder_watch(struct stw_folder *f);

/* Reads the pair and takes it into service if it is new.  0: the folder's pair is in service; -1:
 * it is not, and `err` has the reason. */
int stw_folder_load(struct stw_folder *f, struct stw_error *err) STW_MUST_CHECK;
/* The same with grace period, log and metrics.  Returns the time until the next check, in
 * milliseconds. */
uint64_t stw_folder_check(struct stw_folder *f);

#endif
