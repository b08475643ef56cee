/* SPDX-License-Identifier: Apache-2.0
 *
 * State of the controller in addition to the caches. */
#ifndef STW_KINDS_ETCDCLUSTER_RUNTIME_H
#define STW_KINDS_ETCDCLUSTER_RUNTIME_H

#include "base/hex.h"
#include "controller/manager.h"
#include "etcd/etcd.h"
#include "kinds/etcdcluster/plan/view.h"
#include "kinds/etcdcluster/tls/tls_state.h"
#include "kube/informer.h"

struct stw_run;
struct ec_runtime;
struct ec_turns;

int ec_runtime_open(struct stw_manager *m, const struct stw_manager_config *config,
                    void **ret_state, struct stw_error *err);
void ec_runtime_cancel(void *state);
void ec_runtime_close(void *state);
void ec_runtime_pause(void *state); /* another process leads: no gauges */
/* What is kept for one cluster between runs; used only by the one run of its key. */
struct ec_kept {
    char *key;
    struct stw_etcd *etcd;
    size_t etcd_bytes;                    /* of its certificates and key */
    size_t counted_bytes;                 /* of the rest, in the share of the caches */
    char secret_versions[6 * STW_RV_LEN]; /* of the Secrets that `etcd` was created from */
    struct ec_tls tls;                    /* as found then */
    bool seen;                            /* since this process started, last in `term` */
    uint64_t term;                        /* of the fence */
    bool turn;                            /* it may have the turn to be defragmented */
    uint64_t unsure_until_ms; /* monotonic: an answer of etcd was lost, and it may still act */
    struct {
        char uid[64], fingerprint[65];
    } proven[EC_MEMBERS_MAX]; /* pods that were seen serving this certificate */
    struct {
        struct stw_hash name; /* of the class that was read last */
        uint64_t until_ms;    /* what was read counts until then, monotonic */
        bool expands;
    } class;
    struct {
        uint64_t until_ms; /* no volume is expanded before */
        char text[192];    /* the message of the API server */
    } refused;
    struct {
        uint64_t count;    /* of times, since a round in which no member was full */
        uint64_t until_ms; /* NOSPACE is not disarmed before, monotonic */
    } disarmed;
    struct {
        struct ec_action action; /* the intent that the answer below belongs to */
        enum ec_result result;
        bool others;    /* what it asked for was done before, by another client */
        char text[160]; /* why it failed */
    } upkeep;
    struct stw_series *defragmented[EC_RESULTS], *reclaimed; /* NULL: none yet */
    struct stw_series *margin,
        *cert_end; /* guarded by the lock; NULL: not known, or another process leads */
};
struct ec_turns *ec_runtime_turns(struct ec_runtime *k);
struct ec_kept *ec_runtime_get(struct ec_runtime *k,
                               const struct stw_run *run); /* NULL: no memory */
/* Replaces the client for the members. */
int ec_runtime_use(struct ec_runtime *k, struct ec_kept *kept, const struct stw_etcd_config *config,
                   struct stw_error *err);
/* The run of `key` has ended: its client is dropped if there is no memory to keep it, and is made again
 * from the Secrets by the next one. */
void ec_runtime_rest(struct ec_runtime *k, const char *key);
/* Sets the gauge of how many voters may fail. */
void ec_runtime_report_margin(struct ec_runtime *k, const struct stw_run *run, struct ec_kept *kept,
                              int margin);
/* Sets the gauge of when the first of its certificates expires; 0: leaves it unchanged. */
void ec_runtime_report_end(struct ec_runtime *k, const struct stw_run *run, struct ec_kept *kept,
                           int64_t not_after);
/* Counts a defragmentation of a member, and by how many bytes its database became smaller. */
void ec_runtime_count_defragmented(struct ec_runtime *k, const struct stw_run *run,
                                   enum ec_result result, int64_t reclaimed);
void ec_runtime_forget(struct ec_runtime *k, const char *key); /* removes the gauges, too */

#endif
