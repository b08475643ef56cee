/* SPDX-License-Identifier: Apache-2.0
 *
 * One run over an EtcdCluster, shared by these files: watches of pods and claims
 * (watch.c), state in the status (state.c), observation of the members
 * (observe.c, entries.c, pods.c, ask.c), manifests of pods, claims, Services and the budget
 * (names.c, pod.c, claims.c, services.c), certificates
 * (tls.c, tls_state.c, secrets.c, authority.c, probe.c), checks
 * and waits before a move (check.c), carrying it out (act.c), conditions
 * and events (status.c, conditions.c), state besides the caches
 * (runtime.c), and the run itself (reconcile.c). */
#ifndef STW_KINDS_ETCDCLUSTER_RUN_H
#define STW_KINDS_ETCDCLUSTER_RUN_H

#include "base/hex.h"
#include "certs/issue.h"
#include "controller/child.h"
#include "controller/manifest.h"
#include "controller/object.h"
#include "controller/reconcile.h"
#include "controller/template_status.h"
#include "controller/verdict.h"
#include "etcd/etcd.h"
#include "kinds/etcdcluster/plan.h"
#include "kinds/etcdcluster/spec.h"

#define EC_PREFIX "etcd.database.coreos.com/"
/* Annotations of pods. */
#define EC_HASH EC_PREFIX "template-hash"     /* of the pod, as that version of steward made it */
#define EC_INPUTS EC_PREFIX "template-inputs" /* of what it was made from */
#define EC_VERSION "etcd.version"
#define EC_INITIAL_CLUSTER EC_PREFIX "initial-cluster"
#define EC_INITIAL_STATE EC_PREFIX "initial-cluster-state"
#define EC_FORCED EC_PREFIX "forced"
#define EC_TRIMMED EC_PREFIX "trimmed"

/* Label of pods and claims: the name of the cluster. */
#define EC_CLUSTER "etcd_cluster"
/* Label of pods: the client Service selects only voters, because a learner does not serve clients.
 */
#define EC_ROLE "etcd_role"
#define EC_VOTER "voter"

#define EC_ROUND_MS 10000  /* between two health rounds of a settled cluster */
#define EC_SOON_MS 1000    /* while an action is in progress */
#define EC_UNSURE_MS 10000 /* after a lost answer: etcd abandons a proposal after 7 s */
#define EC_DOUBT_S 30      /* a promotion may take that long to reach all members */
#define EC_FAILOVER_WINDOW 3600
#define EC_FAILOVERS_MAX 10 /* maxPerHour allows no more */
/* Until a StorageClass, or a refused expansion, is looked at again. */
#define EC_VOLUME_RETRY_MS 30000
#define EC_LAG 5000 /* entries: a member that lags more is lagging */

/* --- what a cache keeps of a pod and of a claim */

struct ec_pod_live {
    char cluster[STW_KEY_LEN]; /* "namespace/name", from its labels */
    char uid[64], resource_version[STW_RV_LEN], owner_uid[64];
    char ip[64], hash[40], inputs[40], version[STW_SEMVER_LEN];
    int64_t created; /* seconds since the epoch */
    bool going;      /* is being deleted */
    bool ended;      /* phase Failed or Succeeded */
    bool ran;        /* its container runs, or has */
    bool ready;      /* its condition Ready: false when its node is lost */
    bool guarded, forced, trimmed;
    bool voter;   /* from its label */
    bool refused; /* etcd ends because its data folder is empty, and not for the first time */
    bool full;    /* etcd ended because its volume was full; only for `text` */
    enum ec_trouble trouble;
    char text[256]; /* of the trouble */
};
struct ec_claim_live {
    char cluster[STW_KEY_LEN];
    char uid[64], resource_version[STW_RV_LEN], cluster_uid[64];
    bool going, bound;
    char requested[64], capacity[64], class[254]; /* as the API server has them, such as "8Gi" */
    char resize[192];                             /* what a resize waits for, or why it failed */
    bool resize_failed;
};

extern const struct stw_watch ec_watch_pods, ec_watch_claims;
extern const struct stw_resource ec_res_claim, ec_res_storage_class;
/* Parse texts from the caches of these watches.  -1: not such a text. */
int ec_pod_read(const char *text, size_t len, struct ec_pod_live *ret);
int ec_claim_read(const char *text, size_t len, struct ec_claim_live *ret);

/* --- state in the status */

struct ec_remembered { /* an entry of status.memberList */
    char name[EC_NAME_MAX];
    uint64_t id;
    bool learner, healthy, started, leader;
    bool promoted; /* it has voted, even if it is a learner now */
    char version[STW_SEMVER_LEN], storage_version[STW_SEMVER_LEN];
    int64_t since; /* when `healthy` last changed */
    unsigned alarms;
};
struct ec_state {
    uint64_t cluster_id;
    bool never_ran; /* no member has run; false if not known */
    struct {
        bool latched, durable;
        char class[254], size[64]; /* of new volumes */
        bool grown;
        char initial_size[64]; /* if it has grown: the size at the beginning */
    } storage;
    struct ec_action action;
    enum ec_force_step force_step;
    char force_member[EC_NAME_MAX];
    int64_t failovers[EC_FAILOVERS_MAX]; /* of the last hour */
    size_t failover_count;
    int64_t failovers_total;
    int64_t quorum_lost_since, last_rolled;
    int64_t quorum_since; /* read from the condition QuorumLost; 0: not known */
    char current_version[STW_SEMVER_LEN], oldest_version[STW_SEMVER_LEN];
    struct ec_remembered members[EC_MEMBERS_MAX];
    size_t member_count;
};
void ec_state_read(const json_t *status, struct ec_state *ret);
/* Writes all except memberList, which each observation rebuilds; replaces what `status` has. */
void ec_state_write(const struct ec_state *s, json_t *status);
/* Ignores members, versions and the times of the quorum. */
bool ec_state_same(const struct ec_state *a, const struct ec_state *b);
/* An etcd ID, as etcdctl prints it; the caller owns it. */
json_t *ec_id_json(uint64_t id);
const struct ec_remembered *ec_state_find(const struct ec_state *s, const char *name);
int64_t ec_state_failovers(const struct ec_state *s, int64_t now); /* in the last hour */
void ec_state_count_failover(struct ec_state *s, int64_t now);

/* --- what else is known of the entries of the view; same index */

struct ec_detail {
    struct ec_pod_live pod;
    struct ec_claim_live claim;
    bool has_pod, has_claim;
    bool asked;
    struct stw_etcd_health health;
    char peer_url[STW_ETCD_URL_MAX];
    char volume_text[300]; /* why its volume is not as large as the spec asks for; "" if it is */
    bool stale; /* still serves an old certificate after STALE_S; its pod must be recreated */
};

enum { EC_HEADLESS, EC_CLIENT, EC_BUDGET, EC_CHILDREN };

enum ec_tls_state {
    EC_TLS_NONE, /* no TLS */
    EC_TLS_READY,
    EC_TLS_MISSING,  /* a Secret, or a key in it, is missing */
    EC_TLS_BAD,      /* does not parse, or key and certificate do not match */
    EC_TLS_SAN,      /* does not cover the names of the members */
    EC_TLS_EXPIRING, /* soon */
    EC_TLS_EXPIRED,
    EC_TLS_OLD,    /* a member still serves another certificate */
    EC_TLS_LOST,   /* our authority, and a certificate in use that it had signed */
    EC_TLS_FAILED, /* see `err` */
    EC_TLS_STATES
};

struct ec_tls {
    bool peer, client; /* TLS wanted: between members; for clients, including steward */
    bool own;          /* certificates from steward's CA */
    char ca_secret[300], peer_secret[300], server_secret[300], operator_secret[300];
    char trust_hash[STW_HASH_LEN]; /* of the CA bundles, which etcd reads only at its start */
    enum ec_tls_state state;
    char text[400];
    char served[65];    /* fingerprint of the certificate that members should serve; or "" */
    int64_t not_after;  /* seconds since the epoch, of the first that expires; 0: not known */
    int64_t look_again; /* when one of our authorities or certificates needs a step */
    int64_t changed_at; /* when `served` was found changed */
    struct stw_error err;
};

struct ec_runtime;

struct ec {
    STW_SUBJECT;             /* object: as of our last write */
    struct stw_object first; /* as before it: the spec points into this one */
    struct ec_runtime *runtime;
    struct stw_etcdcluster spec;
    struct stw_semver version;
    struct stw_naming naming;
    char force[EC_NAME_MAX], restored[EC_NAME_MAX]; /* from the annotations; "" for none */
    char replace_volumes[EC_NAME_MAX];              /* a size, from the annotation; "" for none */
    char template_hash[STW_HASH_LEN], input_hash[STW_HASH_LEN];
    struct ec_tls tls;
    struct stw_etcd *etcd; /* owned by `runtime` */
    struct ec_state was, state;
    struct ec_view view;
    struct ec_detail details[EC_MEMBERS_MAX];
    json_t *desired[EC_CHILDREN];
    char quorum_text[40]; /* what the adoption of the client Service waits for */
    struct ec_move move;
    enum stw_etcd_trouble trouble; /* of the last member that failed in this round */
    struct stw_error list_err;     /* why there is no member list */
    struct stw_error err;          /* why the run failed; STW_OK: it did not */
    struct {
        bool quorum_lost, quorum_restored, upgrade_started, upgrade_finished, member_upgraded;
        bool replacing, expanded, not_expanded;
    } news;
    bool mismatch; /* a member is in another cluster */
    bool acted;
};

/* --- observe.c: fills e->view and e->details */
void ec_observe(struct ec *e);
/* Call after ec_observe: updates e->state.never_ran. */
void ec_note_never_ran(struct ec *e);
/* Every member in the status has a ready pod of the wanted template, according to the caches. */
bool ec_has_template_everywhere(struct ec *e);
/* A pod of the cluster runs or may run, according to the cache. */
bool ec_has_running_pod(struct ec *e);
/* What the Services would select, according to the cache. */
struct ec_endpoints {
    unsigned members, ready_voters; /* pods with an address; those for clients */
};
struct ec_endpoints ec_count_endpoints(struct ec *e);
/* The pod was made by another version of steward from the same inputs.  It is not recreated for that
 * without consent. */
bool ec_is_outdated(const struct ec *e, const struct ec_pod_live *pod);
/* The pod was made from the wanted template, or is outdated in this sense. */
bool ec_has_template(const struct ec *e, const struct ec_pod_live *pod);
/* The keys of the cluster's objects in the cache of a watch. */
void ec_cached_keys(const struct ec *e, struct stw_informer *cache, struct stw_buf *ret);
size_t ec_index(const struct ec *e, const char *name); /* EC_MEMBERS_MAX: not there */
/* Returns the entry of that name, or adds one; NULL: there are too many. */
struct ec_member *ec_entry(struct ec *e, const char *name, struct ec_detail **ret);
void ec_fresh_name(const struct ec *e, char out[EC_NAME_MAX]);

/* Pure functions, exported for tests. */
struct ec_seen {
    const struct ec_state *state;
    bool durable;
    int64_t now;
};
void ec_judge_member(const struct ec_seen *s, const struct ec_detail *d, struct ec_member *m);
/* Call after ec_judge_member of each: sets the facts about the cluster as a whole.  e->mismatch,
 * the leader, whose database has space, versions, and whether the quorum is lost. */
void ec_judge_members(struct ec *e);
/* Call after that: no member counts as unhealthy from before the quorum was restored. */
void ec_forgive(struct ec_view *v, int64_t quorum_since);

/* --- ask.c: queries to etcd, within an observation */
/* Queries the health of all members in parallel. */
void ec_ask(struct ec *e);
/* Call after ec_ask: reads the member list, or, if no member returns one (false), takes the last.
 */
bool ec_ask_members(struct ec *e);
/* Call after ec_ask_members. */
void ec_ask_alarms(struct ec *e);
/* Without I/O: takes alarms of members and of removed ones.  NULL: not known, keeps the last. */
void ec_take_alarms(struct ec *e, const struct stw_etcd_alarms *alarms);
/* The member to query for the cluster: the leader if possible, never a member of another cluster.
 * NULL: none. */
const struct ec_detail *ec_contact(const struct ec *e, size_t *ret_index);
void ec_endpoint(const struct ec *e, size_t index, char url[STW_ETCD_URL_MAX],
                 struct stw_etcd_endpoint *ret);

/* --- manifests; each returns a new tree, or NULL if out of memory */
void ec_host(const struct ec *e, const char *member, char out[STW_ETCD_URL_MAX]);
void ec_peer_url(const struct ec *e, const char *member, char out[STW_ETCD_URL_MAX]);
void ec_client_url(const struct ec *e, const char *member, char out[STW_ETCD_URL_MAX]);
void ec_hash_template(struct ec *e); /* and its inputs */
json_t *ec_pod_manifest(const struct ec *e, const struct ec_move *move);
json_t *ec_claim_manifest(const struct ec *e, const char *member);
json_t *ec_service_headless(const struct ec *e);
json_t *ec_service_client(const struct ec *e);
json_t *ec_budget(const struct ec *e, const struct stw_resource *r);
json_t *ec_labels(const struct ec *e, const char *member);
json_t *ec_selector(const struct ec *e);
/* "a=url,b=url" of all listed members and of `member`. */
void ec_initial_cluster(const struct ec *e, const char *member, bool alone, struct stw_buf *out);
void ec_ensure_services(struct ec *e);
void ec_ensure_budget(struct ec *e);

/* --- claims.c */
/* Decides e->state.storage, once; later only its size changes, to a larger one. */
int ec_latch_storage(struct ec *e, struct stw_error *err);
/* Compares a claim with the wanted size.  Never FIXED or REFUSED. */
enum ec_volume ec_judge_volume(const struct ec_claim_live *claim, const char *wanted);
/* Sets the volumes of the members, with their texts, and whether their replacement is agreed to. */
void ec_judge_volumes(struct ec *e);
/* A size as it is in a spec, a text or a number; "" if it is not a quantity. */
void ec_size_text(struct stw_json size, char out[64]);
/* The size that the spec asks for, such as "8Gi".  Volumes are expanded only to this one; the size in
 * the status is only for new claims, which are never smaller than those before. */
void ec_wanted_size(const struct ec *e, char out[64]);

/* --- tls.c */
void ec_tls_set_state(struct ec_tls *t, enum ec_tls_state state, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Reads the Secrets, or creates them, and sets e->tls and e->etcd.  -1: members can neither be
 * created nor queried; e->tls has the reason. */
int ec_tls_prepare(struct ec *e);
/* Adds an authority bundle to t->trust_hash. */
void ec_tls_trust(struct ec_tls *t, const char *bundle);
/* Call after ec_judge_member: checks that members that answer serve the right certificate. */
void ec_tls_prove(struct ec *e);

/* --- secrets.c */

/* Certificate, key and CA bundle of a Secret, in PEM.  ec_pem_done wipes them. */
struct ec_pem {
    char *cert, *key, *ca;
};
void ec_pem_done(struct ec_pem *p);
/* Reads "<prefix>.crt", "<prefix>.key", "<prefix>-ca.crt" of a Secret; absent ones are NULL.
 * 1: read, 0: there is no such Secret, -1. */
int ec_secret_read(struct ec *e, const char *name, const char *prefix, struct ec_pem *ret,
                   struct stw_error *err);
/* Creates the Secrets of steward's own authority, and renews them when due.  -1: `err`, or e->tls
 * is EC_TLS_LOST and nothing was written. */
int ec_secrets_ensure(struct ec *e, struct stw_error *err);
/* The generation, and the resourceVersions of all Secrets in use, from the cache. */
void ec_secrets_versions(struct ec *e, char *out, size_t size);

/* --- authority.c */

struct ec_authority {
    struct stw_pem_pair now, next; /* key and certificate; next: NULLs while there is none */
    char *previous;                /* certificates, or NULL */
    struct stw_buf bundle;         /* certificates of all that are trusted */
    /* A certificate of the members, and what they trust; NULL: no member runs.  Borrowed. */
    const struct ec_pem *in_use;
};
void ec_authority_done(struct ec_authority *a);
/* `now` is missing or damaged, and has not merely expired. */
bool ec_authority_lost(const struct ec_authority *a, int64_t now_us);
/* Whether every member has been started with this bundle. */
typedef bool ec_trusted_fn(void *ctx, const char *bundle);
/* Takes the next step of its life cycle, if one is due, and sets its bundle.  1: it changed and
 * must be written, 0: unchanged, -1. */
int ec_authority_advance(struct ec_authority *a, const char *name, int64_t now_us,
                         ec_trusted_fn *trusted, void *ctx, struct stw_error *err);
/* Seconds since the epoch at which a step may be due; INT64_MAX: not known. */
int64_t ec_authority_look(const struct ec_authority *a, int64_t now_us);
/* End of the certificate, in seconds since the epoch; INT64_MAX: NULL, or it cannot be read. */
int64_t ec_cert_end(const char *cert);
/* Key, names and signature are right, and it does not expire within `early_s` seconds. */
bool ec_leaf_is_good(const struct ec_pem *p, const char *ca, const char *const *names,
                     int64_t early_s, int64_t now_us);

/* --- probe.c */
/* Fingerprint of the certificate that address:port presents.  -1: none. */
int ec_probe(const char *address, int port, const char *host, char ret_fingerprint[65]);

/* --- check.c */
/* Sets e->move to the plan's move, or to a wait for calls that may still be in flight.  -1: e->err.
 */
int ec_decide(struct ec *e);
/* Checks that no pod of the cluster is left.  -1: e->err; STW_ERR_CONFLICT: there is one. */
int ec_check_cleared(struct ec *e);

/* --- act.c */
/* Carries out e->move.  -1: e->err; a wait that etcd requires is not an error. */
int ec_act(struct ec *e, uint64_t *ret_again_ms);
/* What the answer to a change means.  1: done; 0: retry later, not an error; -1: e->err, and `kept`
 * records whether the change may have been made anyway. */
struct ec_kept;
int ec_answer(struct ec *e, int rc, enum stw_etcd_trouble trouble, struct ec_kept *kept);

/* Labels the pods of voters, for the client Service, and removes the label from pods of members
 * that turned out to be in another cluster.  -1: e->err. */
int ec_label_voters(struct ec *e);
/* Annotates pods of the wanted template with its inputs, if an earlier steward has not. */
int ec_record_inputs(struct ec *e);

/* --- conditions.c */
/* A pod has a problem that a user can fix, or the current step takes too long. */
bool ec_is_degraded(const struct ec *e, const char **ret_reason, char *text, size_t size);
void ec_conditions(const struct ec *e, struct stw_conditions *c); /* those specific to the kind */
bool ec_all_healthy(const struct ec *e);
unsigned ec_alarms(const struct ec *e);  /* of all members */
bool ec_quorum_lost(const struct ec *e); /* for at least EC_QUORUM_GRACE_S */
/* Some member runs, or ran last, another version than the wanted one. */
bool ec_upgrading(const struct ec *e);
const char *ec_tls_reason(const struct ec *e);
/* The reason of the condition Resizing, and its message; NULL: no volume is too small. */
const char *ec_resizing(const struct ec *e);
void ec_resizing_text(const struct ec *e, char *out, size_t size);

/* --- status.c */
void ec_judge(struct ec *e, struct stw_verdict *v, json_t **ret_status);
json_t *ec_status_paused(json_t *status, bool paused);
bool ec_children_failed(const struct ec *e); /* one of the Services, which members need */
/* ec_note_news: before the status is written, notes what deserves an event.  ec_tell: emits it. */
void ec_note_news(struct ec *e);
void ec_tell(struct ec *e);

/* --- runtime.c: the state of the controller */
int ec_runtime_open(struct stw_manager *m, const struct stw_manager_config *config,
                    void **ret_state, struct stw_error *err);
void ec_runtime_cancel(void *state);
void ec_runtime_close(void *state);
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
    struct stw_series *margin;
    struct stw_series *cert_end; /* NULL: no certificate has been seen */
};
struct ec_kept *ec_runtime_get(struct ec_runtime *k,
                               const struct stw_run *run); /* NULL: no memory */
/* Replaces the client for the members. */
int ec_runtime_use(struct ec_runtime *k, struct ec_kept *kept, const struct stw_etcd_config *config,
                   struct stw_error *err);
/* The run of `key` has ended: its client is dropped if there is no memory to keep it, and is made again
 * from the Secrets by the next one. */
void ec_runtime_rest(struct ec_runtime *k, const char *key);
/* Sets the gauge of when the first of its certificates expires; 0: leaves it unchanged. */
void ec_runtime_report_end(struct ec_runtime *k, const struct stw_run *run, struct ec_kept *kept,
                           int64_t not_after);
void ec_runtime_forget(struct ec_runtime *k, const char *key);

#endif
