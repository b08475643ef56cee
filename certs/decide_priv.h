/* SPDX-License-Identifier: Apache-2.0
 *
 * What Secret mode does next: a pure function from the state read to one action.
 *
 * The Secret contains the CA that signs (ca).  During a rotation it also contains its successor
 * (ca-next, which signs nothing yet), and for some time afterwards the certificates of its
 * predecessors (ca-old, without keys).  The bundle, which must be in every webhook configuration,
 * is all of them:
 *
 *     STAGE    ca-next is made                          Secret: ca  ca-next  ca-old?
 *     WRITE    the bundle goes into the configurations
 *     PROMOTE  ca-next becomes ca and signs a leaf,     Secret: ca  ca-old+   tls
 *              the former ca goes to ca-old
 *     RETIRE   ca-old goes, after the overlap           Secret: ca
 *     WRITE    the bundle without it
 *
 * The first CA is created in the same way, and so is one for a Secret that was deleted or damaged:
 * STAGE then takes the CAs that are still in the configurations as former CAs, as another replica
 * may be serving a leaf signed by them.  Each step is one conditional write.  After a crash between
 * two steps, or when another replica does the same, a replica only decides again from the current
 * state.  PROMOTE waits until every existing configuration was read with the bundle in it. */
#ifndef STW_CERTS_DECIDE_PRIV_H
#define STW_CERTS_DECIDE_PRIV_H

#include "certs/certs.h"

#include <stdbool.h>
#include <stdint.h>

#define STW_ROTATION_CRDS STW_CERTS_CRDS_MAX /* of kinds with several versions */
/* The mutating and the validating configuration, then the CRDs, whose conversion webhooks have a
 * caBundle too. */
#define STW_ROTATION_HOOKS (2 + STW_ROTATION_CRDS)

enum stw_rotation_action {
    STW_ROTATION_NONE,
    STW_ROTATION_STAGE,   /* create a new CA in addition to the current one */
    STW_ROTATION_ISSUE,   /* issue a new leaf with the current CA */
    STW_ROTATION_WRITE,   /* write the bundle into the configurations that differ */
    STW_ROTATION_PROMOTE, /* the new CA signs from now on */
    STW_ROTATION_STAMP,   /* record until when the old CAs stay */
    STW_ROTATION_RETIRE,  /* remove the old CAs */
    STW_ROTATION_ACTIONS,
};
extern const char *const stw_rotation_action_names[STW_ROTATION_ACTIONS];

struct stw_rotation_ca {
    bool cert; /* present, a CA certificate, and valid now */
    bool key;  /* present and matches */
    int64_t not_before_us, not_after_us;
};

enum stw_hook_state {
    STW_HOOK_NONE,    /* not configured, or missing: nothing to keep in sync */
    STW_HOOK_UNKNOWN, /* could not be read */
    STW_HOOK_FOUND,
};

struct stw_rotation_hook {
    enum stw_hook_state state;
    bool exact; /* every webhook in it has exactly the bundle */
};

struct stw_rotation_facts {
    struct stw_rotation_ca ca, next;
    bool rescued;         /* ca is missing, and STAGE has recorded the CAs of the configurations */
    bool old;             /* ca-old has a certificate that has not expired */
    int64_t old_until_us; /* 0: not recorded */
    struct {
        bool pair;   /* present, matches its key, valid now */
        bool covers; /* has all requested names */
        bool by_ca;  /* signed by ca */
        int64_t not_before_us, not_after_us;
    } leaf;
    struct stw_rotation_hook hooks[STW_ROTATION_HOOKS];
    int64_t exact_for_us; /* how long this replica has seen all of them exact */
};

/* `settle`: API servers see a new bundle a moment after it was written.  `overlap`: all replicas
 * have loaded a new leaf by then. */
struct stw_rotation_times {
    int64_t settle_us, overlap_us;
};

enum stw_rotation_action stw_rotation_decide(const struct stw_rotation_facts *f, int64_t now_us,
                                             const struct stw_rotation_times *t);
/* The longest time until the decision may change by the passing of time alone, but at most
 * `max_us`. */
int64_t stw_rotation_wait_us(const struct stw_rotation_facts *f, const struct stw_rotation_times *t,
                             int64_t max_us);
/* A third of the lifetime or less is left. */
bool stw_rotation_due(int64_t not_before_us, int64_t not_after_us, int64_t now_us);
bool stw_rotation_signs(const struct stw_rotation_ca *ca);

#endif
