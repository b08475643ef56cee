/* SPDX-License-Identifier: Apache-2.0
 *
 * Client for etcd's API, through its JSON gateway (POST /v3/...), with libcurl.  Does not depend on
 * Kubernetes.
 *
 * A call connects to an address, a pod's IP, and verifies the certificate against the host of the
 * URL, so that no resolver is needed.  Every call is bounded in time and size.  Error texts never
 * contain keys, values or credentials.
 *
 * Source: etcd's api/etcdserverpb/rpc.proto and the gateway's mapping: 64-bit numbers are strings,
 * bytes are base64, absent members are zero. */
#ifndef STW_ETCD_ETCD_H
#define STW_ETCD_ETCD_H

#include "base/buf.h"
#include "base/error.h"
#include "base/operator.h"
#include "base/process/reach.h"
#include "base/util.h"
#include "schema/field/semver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STW_ETCD_MEMBERS_MAX 32
#define STW_ETCD_NAME_MAX 64
#define STW_ETCD_URL_MAX 512

/* PEM texts, borrowed.  `ca` NULL: plain HTTP. */
struct stw_etcd_tls {
    const char *ca, *cert, *key; /* cert and key may both be NULL */
};

/* The member to call. */
struct stw_etcd_endpoint {
    const char *url;     /* "https://a-0.a.ns.svc:2379" */
    const char *address; /* IP to connect to instead of resolving the URL's host; NULL: resolve */
};

enum stw_etcd_trouble {
    STW_ETCD_FINE,
    STW_ETCD_UNREACHABLE, /* no connection, or no answer in time */
    STW_ETCD_TLS,         /* a certificate of either side is not trusted */
    STW_ETCD_AUTH,        /* user or password refused, or missing */
    STW_ETCD_NO_LEADER,   /* it answers, but has no quorum; a raft timeout */
    STW_ETCD_NOT_READY,   /* promote: the learner has not caught up yet; downgrade: it has begun */
    STW_ETCD_UNHEALTHY,   /* the strict check refused: quorum would be at risk */
    STW_ETCD_EXISTS,      /* peer URL or member exists already; promote: it is a voter already;
                           * compact: that revision has been removed already */
    STW_ETCD_NOT_FOUND,   /* no such member */
    STW_ETCD_TOO_MANY_LEARNERS,
    STW_ETCD_NO_SPACE,
    STW_ETCD_CORRUPT,
    STW_ETCD_UNSUPPORTED, /* this server does not know the call, or is a learner */
    STW_ETCD_NOT_ALLOWED, /* an address that users may not name */
    STW_ETCD_FAILED,      /* any other error; the text is from the server */
    STW_ETCD_TROUBLES
};

struct stw_etcd; /* a client: TLS, user, limits, cancel; calls may come from any thread */

struct stw_etcd_config {
    const struct stw_operator *op; /* whose user agent it sends; NULL: none */
    struct stw_etcd_tls tls;       /* copied */
    const char *user, *password;   /* copied and wiped; or NULL */
    uint32_t timeout_ms;           /* of one call; 0: 5000 */
    /* Allowed addresses of URLs without an `address`, borrowed; NULL: any. */
    const struct stw_reach *reach;
};
int stw_etcd_create(const struct stw_etcd_config *config, struct stw_etcd **ret,
                    struct stw_error *err) STW_MUST_CHECK;
/* The error text that the user who chose the endpoint may see: with `reach`, and for a URL without
 * an `address`, our own text instead of the server's. */
const char *stw_etcd_words(const struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                           enum stw_etcd_trouble trouble, const struct stw_error *err);
/* What a client takes beside what it was given, and its connections. */
size_t stw_etcd_client_bytes(void);
void stw_etcd_cancel(struct stw_etcd *e);  /* aborts running calls, refuses new ones; any thread */
void stw_etcd_destroy(struct stw_etcd *e); /* NULL is allowed */

/* --- a health round: all endpoints in parallel, each in at most timeout_ms */

enum { STW_ETCD_ALARM_NOSPACE = 1, STW_ETCD_ALARM_CORRUPT = 2 };

struct stw_etcd_health {
    enum stw_etcd_trouble trouble; /* of the status call */
    struct stw_error err;          /* of that call, or of the read after it */
    bool answers;                  /* the status call was answered */
    bool linearizable;             /* and a linearizable read, too (never from a learner) */
    uint64_t cluster_id, member_id, leader_id;
    uint64_t raft_term, raft_index, raft_applied_index;
    uint64_t revision; /* of the data, as this member has it */
    int64_t db_size, db_size_in_use;
    bool learner;
    struct stw_semver version;
    struct stw_semver storage_version; /* version that its data is written for; 0.0.0: before 3.6 */
    struct stw_semver downgrade_to;    /* of an enabled downgrade; 0.0.0: none, or before 3.6 */
};
/* POST /v3/maintenance/status and, if a voter answers that, a linearizable range of one key that
 * does not exist.  Always fills all of `ret`. */
void stw_etcd_round(struct stw_etcd *e, const struct stw_etcd_endpoint *endpoints, size_t count,
                    struct stw_etcd_health *ret);

/* --- membership */

struct stw_etcd_member {
    uint64_t id;
    char name[STW_ETCD_NAME_MAX]; /* "" until it has started */
    char peer_url[STW_ETCD_URL_MAX];
    bool learner;
};
struct stw_etcd_members {
    uint64_t cluster_id, revision;
    size_t count;
    struct stw_etcd_member all[STW_ETCD_MEMBERS_MAX];
};
/* The current membership.  A linearizable read before it proves that the member is up to date: 3.4
 * lists its local state.  Later versions get a request for a linearizable list. */
int stw_etcd_member_list(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                         struct stw_etcd_members *ret, enum stw_etcd_trouble *trouble,
                         struct stw_error *err) STW_MUST_CHECK;
/* Adds a learner; `ret_id` gets its ID. */
int stw_etcd_member_add(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                        const char *peer_url, uint64_t *ret_id, enum stw_etcd_trouble *trouble,
                        struct stw_error *err) STW_MUST_CHECK;
int stw_etcd_member_promote(struct stw_etcd *e, const struct stw_etcd_endpoint *at, uint64_t id,
                            enum stw_etcd_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;
int stw_etcd_member_remove(struct stw_etcd *e, const struct stw_etcd_endpoint *at, uint64_t id,
                           enum stw_etcd_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;
/* Must be sent to the leader itself. */
int stw_etcd_move_leader(struct stw_etcd *e, const struct stw_etcd_endpoint *leader, uint64_t to,
                         enum stw_etcd_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;

/* --- alarms */

struct stw_etcd_alarms {
    size_t count;
    struct {
        uint64_t member_id;
        unsigned alarm; /* STW_ETCD_ALARM_... */
    } all[STW_ETCD_MEMBERS_MAX];
};
int stw_etcd_alarms(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                    struct stw_etcd_alarms *ret, enum stw_etcd_trouble *trouble,
                    struct stw_error *err) STW_MUST_CHECK;
int stw_etcd_alarm_disarm(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                          uint64_t member_id, unsigned alarm, enum stw_etcd_trouble *trouble,
                          struct stw_error *err) STW_MUST_CHECK;

/* --- upkeep of the database */

/* Rewrites the database of that member without its free pages.  The member serves nothing meanwhile.
 * It goes on if the caller stops waiting: only the member's status shows when it has ended. */
int stw_etcd_defragment(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                        enum stw_etcd_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;
/* Removes the revisions before this one, in all members, and waits until the member asked has done so.
 * STW_ETCD_EXISTS: they were removed before. */
int stw_etcd_compact(struct stw_etcd *e, const struct stw_etcd_endpoint *at, uint64_t revision,
                     enum stw_etcd_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;

/* --- downgrade, from 3.6 on */

/* Enables a downgrade: the cluster version becomes the minor version of `to`, and each member
 * writes its data so that `to` can read it.  Members may then be restarted with `to` one by one.
 * 0.0.0: cancels the downgrade. */
int stw_etcd_downgrade(struct stw_etcd *e, const struct stw_etcd_endpoint *at, struct stw_semver to,
                       enum stw_etcd_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;

/* --- snapshot */

/* Receives a piece of the database file; -1 with `err` ends the stream. */
typedef int stw_etcd_sink_fn(void *ctx, const void *data, size_t len, struct stw_error *err);

struct stw_etcd_snapshot {
    uint64_t size_bytes; /* of all data passed to the sink: database and the 32 bytes of the hash */
    char sha256[65];     /* of all that data, in hex: to verify what a store returns */
    uint64_t revision;   /* of the server just before: the snapshot includes at least that */
    struct stw_semver version;
};
struct stw_etcd_sink {
    stw_etcd_sink_fn *fn;
    void *ctx;
    uint32_t timeout_ms; /* of the whole snapshot */
};
/* Streams a snapshot.  Succeeds only if the SHA-256 that the server appends matches the data before
 * it.  Anything else (truncated, a flipped bit, no hash) is an error, and the data passed to the
 * sink is worthless.  `timeout_ms` applies to the whole stream; a stream without data for 30 s is
 * aborted earlier.  If the sink failed, trouble is STW_ETCD_FINE and `err` is the sink's. */
int stw_etcd_snapshot(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                      const struct stw_etcd_sink *sink, struct stw_etcd_snapshot *ret,
                      enum stw_etcd_trouble *trouble, struct stw_error *err) STW_MUST_CHECK;

/* The same check for data from another source, such as a store or a file. */
struct stw_etcd_check; /* opaque */
struct stw_etcd_check *stw_etcd_check_create(void) STW_MUST_CHECK;
int stw_etcd_check_add(struct stw_etcd_check *c, const void *data, size_t len);
/* 0: the last 32 bytes are the SHA-256 of all bytes before them. */
int stw_etcd_check_end(struct stw_etcd_check *c, uint64_t *ret_size, char ret_sha256[65],
                       struct stw_error *err) STW_MUST_CHECK;
void stw_etcd_check_destroy(struct stw_etcd_check *c);

#endif
