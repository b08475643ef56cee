/* SPDX-License-Identifier: Apache-2.0
 *
 * The certificate thread and its two modes. */
#ifndef STW_CERTS_CERTS_PRIV_H
#define STW_CERTS_CERTS_PRIV_H

#include "base/util.h"
#include "certs/certs.h"
#include "folder_priv.h"
#include "rotation_priv.h"

#include <pthread.h>
#include <stdatomic.h>

#define STW_CERTS_TICK_MS 60000

struct stw_informer;

/* The functions of a mode.  `step` and `fd` run on the certificate thread. */
struct stw_certs_mode {
    int (*open)(struct stw_certs *c, struct stw_error *err); /* before the thread runs */
    /* `woken`: something was reported, else a timeout.  Returns the time until the next call at the
     * latest, in milliseconds. */
    uint64_t (*step)(struct stw_certs *c, bool woken);
    void (*close)(
        struct stw_certs *c); /* after the thread has ended; open may have failed or not run */
    int (*fd)(const struct stw_certs *c); /* to wait on too, or -1 */
};
extern const struct stw_certs_mode stw_certs_folder_mode, stw_certs_secret_mode;

#define STW_CERTS_WATCHES (1 + STW_ROTATION_HOOKS)

struct stw_certs {
    /* Set by create. */
    const struct stw_certs_mode *mode;
    struct stw_certs_config config; /* strings are our copies */
    const struct stw_clock *clock;
    struct stw_metrics *metrics;
    struct stw_series *serving_end, *ca_end, *reads, *errors;

    pthread_t thread;
    bool running;
    atomic_bool stop;
    int wake; /* eventfd */

    /* Used by the certificate thread only. */
    struct stw_folder folder;
    struct stw_rotation rotation;
    struct stw_informer *watches[STW_CERTS_WATCHES];
    char selectors[STW_CERTS_WATCHES][300];
    const char *namespaces[2];
    uint64_t synced_ms; /* 0: never */
    unsigned failures;  /* in a row */
    bool expired_said;

    pthread_mutex_t lock;
    int64_t not_after_us; /* lock: of the served certificate; 0: none */
    char problem[640];    /* lock: what else is missing; "": nothing */
};

/* Takes a pair into service and records it; the use function of both modes. */
int stw_certs_take(void *ctx, const char *cert_pem, const char *key_pem,
                   struct stw_error *err) STW_MUST_CHECK;
void stw_certs_set_problem(struct stw_certs *c, const char *text);

#endif
