/* SPDX-License-Identifier: Apache-2.0
 *
 * What Secret mode does next: a pure function from what was read to one action.
 *
 * The Secret holds the CA that signs (ca), during a rotation its successor (ca-next, which signs
 * nothing yet) and for a while afterwards the certificates of its predecessors (ca-old, without
 * keys). The bundle, which belongs into every webhook configuration, is all of them:
 *
 *     STAGE    ca-next is made                          Secret: ca  ca-next  ca-old?
 *     WRITE    the bundle goes into the configurations
 *     PROMOTE  ca-next becomes ca and signs a leaf,     Secret: ca  ca-old+   tls
 *              the former ca goes to ca-old
 *     RETIRE   ca-old goes, after the overlap           Secret: ca
 *     WRITE    the bundle without it
 *
 * The first CA of all takes the same way, and so does a Secret that was deleted or spoiled: STAGE
 * then takes what the configurations still hold for former CAs, as somebody may be serving a leaf
 * of them.  Each step is one conditional write, so a crash between two of them, or another replica
 * doing the same, only means that somebody decides again from what is there.  PROMOTE waits until
 * every configuration that exists was read holding the bundle. */
#ifndef STW_CERTS_DECIDE_PRIV_H
#define STW_CERTS_DECIDE_PRIV_H

#include <stdbool.h>
#include <stdint.h>

#define STW_ROTA_HOOKS 2 /* the mutating and the validating configuration */

enum stw_rota_action {
    STW_ROTA_NONE,
    STW_ROTA_STAGE,   /* make a new CA beside the one there is */
    STW_ROTA_ISSUE,   /* a new leaf by the CA there is */
    STW_ROTA_WRITE,   /* the bundle into the configurations that differ */
    STW_ROTA_PROMOTE, /* the new CA signs from now on */
    STW_ROTA_STAMP,   /* note until when the old CAs stay */
    STW_ROTA_RETIRE,  /* the old CAs leave */
    STW_ROTA_ACTIONS,
};
extern const char *const stw_rota_action_names[STW_ROTA_ACTIONS];

struct stw_rota_ca {
    bool cert; /* there, an authority, and valid now */
    bool key;  /* there and fits */
    int64_t not_before_us, not_after_us;
};

enum stw_hook_state {
    STW_HOOK_NONE,    /* not configured, or not there: nothing to keep in step with */
    STW_HOOK_UNKNOWN, /* could not be read */
    STW_HOOK_FOUND,
};

struct stw_rota_hook {
    enum stw_hook_state state;
    bool exact; /* every webhook in it holds the bundle, and nothing else */
};

struct stw_rota_facts {
    struct stw_rota_ca ca, next;
    bool rescued;         /* there is no ca, and STAGE has noted what the configurations held */
    bool old;             /* ca-old holds a certificate that has not expired */
    int64_t old_until_us; /* 0: not noted */
    struct {
        bool pair;   /* there, fits its key, valid now */
        bool covers; /* has all names asked for */
        bool by_ca;  /* signed by ca */
        int64_t not_before_us, not_after_us;
    } leaf;
    struct stw_rota_hook hooks[STW_ROTA_HOOKS];
    int64_t exact_for_us; /* how long this replica has seen all of them exact */
};

/* `settle`: API servers hear of a new bundle a moment after it was written.  `overlap`: all
 * replicas have taken up a new leaf by then. */
struct stw_rota_times {
    int64_t settle_us, overlap_us;
};

enum stw_rota_action stw_rota_decide(const struct stw_rota_facts *f, int64_t now_us,
                                     const struct stw_rota_times *t);
/* How long at most until it may decide otherwise, by the passing of time alone; only as far as this
 * is less than `max_us`. */
int64_t stw_rota_wait_us(const struct stw_rota_facts *f, const struct stw_rota_times *t,
                         int64_t max_us);
/* A third of its life or less is left. */
bool stw_rota_due(int64_t not_before_us, int64_t not_after_us, int64_t now_us);
bool stw_rota_signs(const struct stw_rota_ca *ca);

#endif
