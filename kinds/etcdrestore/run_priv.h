/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over an EtcdRestore: the run and its steps (reconcile.c), which backup is restored
 * (source.c), the first member's volume and the EtcdCluster that adopts it
 * (claim.c), the pod that fills it (pod.c), the status
 * (status.c). */
#ifndef STW_KINDS_ETCDRESTORE_RUN_PRIV_H
#define STW_KINDS_ETCDRESTORE_RUN_PRIV_H

#include "base/util.h"
#include "controller/reconcile.h"
#include "kinds/etcdbackup/agent.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdrestore/spec.h"

#define ER_URI_MAX 2049
#define ER_BACKOFF_S 15
#define ER_BACKOFF_MAX_S 600
#define ER_LOOK_S 60 /* longest wait for a backup that does not exist yet */

enum er_phase {
    ER_PENDING,
    ER_FETCHING,
    ER_VERIFYING,
    ER_SEEDING,
    ER_JOINING,
    ER_SUCCEEDED,
    ER_FAILED,
    ER_PHASES
};
extern const char *const er_phase_names[ER_PHASES];

/* State in the status. */
struct er_state {
    enum er_phase phase;
    char uri[ER_URI_MAX], seed[EC_NAME_MAX];
    char reason[48], error[512];
    int64_t retry_at, failures;
    struct eb_snapshot snapshot; /* revision, sha256, size, version */
    char cluster_id[24];
};

/* Which backup: its key, and the store that it is in; borrowed from the spec or from `text`. */
struct er_source {
    bool volume;
    struct eb_spec_s3 s3;
    char claim[254], path[ER_URI_MAX]; /* path: bucket/key, or in the volume */
    char sha256[65];                   /* the expected one; "" if not known */
    char version[STW_SEMVER_LEN];
    uint64_t revision;
    struct stw_object object; /* the EtcdBackup */
    struct eb_spec backup;
};

struct er {
    STW_SUBJECT;
    struct er_spec spec;
    struct er_state state, was;
    struct er_source source;
    struct ec cluster; /* only what manifests need */
    int64_t now;
    const char *stalled;
    char text[512];                 /* of `stalled`, or of what the restore waits for */
    char stuck[STW_POD_REASON_MAX]; /* the reason if a user may have to provide that */
    struct eb_refusal refusal;      /* of an object that the restore needs */
    bool target_there, target_ours, target_ready;
    bool seeded; /* observed in this run */
    bool again;  /* the next step can run at once */
    bool own_ca; /* the store's Secret holds the CA of its endpoint */
    const char *agent_image;
    struct stw_error err;
};

/* --- source.c.  -1: e->stalled, or state.reason and state.error. */
int er_source_find(struct er *e);
void er_source_done(struct er_source *s);

/* --- pod.c */
int er_cluster_read(struct er *e); /* e->cluster, from the template */
int er_secret_look(struct er *e, struct stw_error *err) STW_MUST_CHECK;
int er_pod_create(struct er *e, struct stw_error *err);
void er_pod_name(const struct er *e, char out[EB_AGENT_NAME_MAX]);

/* --- claim.c: the claim; the EtcdRestore owns it until the EtcdCluster adopts it */
int er_claim_ensure(struct er *e, struct stw_error *err) STW_MUST_CHECK;
int er_claim_delete(struct er *e, struct stw_error *err) STW_MUST_CHECK;
/* Removes the owner of the claim and creates the EtcdCluster.  NOT_FOUND: the claim with the
 * restored data is gone.  CANCELLED: the EtcdRestore is gone. */
int er_target_create(struct er *e, struct stw_error *err) STW_MUST_CHECK;

/* --- status.c */
void er_state_read(const json_t *status, struct er_state *ret);
void er_judge(struct er *e, struct stw_verdict *v, json_t **ret_status);

#endif
