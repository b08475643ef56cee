/* SPDX-License-Identifier: Apache-2.0
 *
 * etcd's own API by its JSON gateway (POST /v3/...), over libcurl.  Knows etcd and no Kubernetes.
 *
 * Members are asked by address: a pod's IP, while the name that a certificate must bear stands
 * beside it, so that no resolver is needed.  Every call is bounded in time and size.  Keys, values
 * and credentials are in no error text.
 *
 * Facts: etcd's api/etcdserverpb/rpc.proto and the gateway's mapping: 64-bit numbers are strings,
 * bytes are base64, absent members are zero. */
#ifndef STW_CONTROLLER_ETCD_ETCD_H
#define STW_CONTROLLER_ETCD_ETCD_H

#include "base/buf.h"
#include "base/error.h"
#include "base/reach.h"
#include "kinds/semver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STW_ETCD_MEMBERS_MAX 32
#define STW_ETCD_NAME_MAX 64
#define STW_ETCD_URL_MAX 512

/* PEM texts, borrowed; NULL ca: plain HTTP. */
struct stw_etcd_tls {
    const char *ca, *cert, *key; /* cert and key: or both NULL */
};

/* Whom to ask. */
struct stw_etcd_endpoint {
    const char *url;     /* "https://a-0.a.ns.svc:2379" */
    const char *address; /* IP to connect to instead of resolving the URL's host; NULL: resolve */
};

enum stw_etcd_trouble {
    STW_ETCD_FINE,
    STW_ETCD_UNREACHABLE, /* nobody there, or not in time */
    STW_ETCD_TLS,         /* a certificate that is not trusted, either way */
    STW_ETCD_AUTH,        /* user or password refused, or missing */
    STW_ETCD_NO_LEADER,   /* it answers, but there is no quorum behind it; a timeout of raft */
    STW_ETCD_NOT_READY,   /* promote: the learner has not caught up yet; downgrade: it has begun */
    STW_ETCD_UNHEALTHY,   /* the strict check refused: quorum would be at risk */
    STW_ETCD_EXISTS,      /* peer URL or member is there already; promote: it is a voter already */
    STW_ETCD_NOT_FOUND,   /* no such member */
    STW_ETCD_TOO_MANY_LEARNERS,
    STW_ETCD_NO_SPACE,
    STW_ETCD_CORRUPT,
    STW_ETCD_UNSUPPORTED, /* this server does not know the call; a learner does not answer it */
    STW_ETCD_NOT_ALLOWED, /* an address that users may not name */
    STW_ETCD_FAILED,      /* anything else; the text is the server's */
};

struct stw_etcd; /* a way to members: TLS, user, limits, cancel; any thread, each call on its own */

struct stw_etcd_config {
    struct stw_etcd_tls tls;     /* copied */
    const char *user, *password; /* copied and wiped; or NULL */
    uint32_t timeout_ms;         /* of one call; 0: 5000 */
    /* Where URLs without an `address` may lead to, borrowed; NULL: anywhere. */
    const struct stw_reach *reach;
};
int stw_etcd_create(const struct stw_etcd_config *config, struct stw_etcd **ret,
                    struct stw_error *err);
/* What may be shown to who named the endpoint: with `reach`, and at a URL without an `address`, our
 * own words instead of what answers there. */
const char *stw_etcd_words(const struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                           enum stw_etcd_trouble trouble, const struct stw_error *err);
void stw_etcd_cancel(struct stw_etcd *e);  /* cuts what is under way and refuses more; any thread */
void stw_etcd_destroy(struct stw_etcd *e); /* NULL is fine */

/* --- a health round: all endpoints at the same time, each in at most timeout_ms */

enum { STW_ETCD_ALARM_NOSPACE = 1, STW_ETCD_ALARM_CORRUPT = 2 };

struct stw_etcd_health {
    enum stw_etcd_trouble trouble; /* of the status call */
    struct stw_error err;          /* of that, or why the read after it failed */
    bool answers;                  /* the status call was answered */
    bool linearizable; /* and so was a linearizable read through it (never through a learner) */
    uint64_t cluster_id, member_id, leader_id;
    uint64_t raft_term, raft_index, raft_applied_index;
    int64_t db_size, db_size_in_use;
    bool learner;
    struct stw_semver version;
    struct stw_semver storage_version; /* that its data is written for; 0.0.0: before 3.6 */
    struct stw_semver downgrade_to;    /* a downgrade is enabled; 0.0.0: none is, or before 3.6 */
};
/* POST /v3/maintenance/status and, where that is answered by a voter, a linearizable range of one
 * key that nobody has.  Always fills all of `ret`. */
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
/* The membership as of now, told by a member that proved by a linearizable read, made before, that
 * it has all of it (3.4 lists what it has; later ones are asked for a linearizable list). */
int stw_etcd_member_list(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                         struct stw_etcd_members *ret, enum stw_etcd_trouble *trouble,
                         struct stw_error *err);
/* Adds a learner; `ret_id` gets its ID. */
int stw_etcd_member_add(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                        const char *peer_url, uint64_t *ret_id, enum stw_etcd_trouble *trouble,
                        struct stw_error *err);
int stw_etcd_member_promote(struct stw_etcd *e, const struct stw_etcd_endpoint *at, uint64_t id,
                            enum stw_etcd_trouble *trouble, struct stw_error *err);
int stw_etcd_member_remove(struct stw_etcd *e, const struct stw_etcd_endpoint *at, uint64_t id,
                           enum stw_etcd_trouble *trouble, struct stw_error *err);
/* To be asked of the leader itself. */
int stw_etcd_move_leader(struct stw_etcd *e, const struct stw_etcd_endpoint *leader, uint64_t to,
                         enum stw_etcd_trouble *trouble, struct stw_error *err);

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
                    struct stw_error *err);
int stw_etcd_alarm_disarm(struct stw_etcd *e, const struct stw_etcd_endpoint *at,
                          uint64_t member_id, unsigned alarm, enum stw_etcd_trouble *trouble,
                          struct stw_error *err);

/* --- downgrade, from 3.6 on */

/* From now on the cluster as a whole is of the line of `to`, and each member writes its data so
 * that `to` can read it; members may then be started as `to` one by one.  0.0.0: not any more. */
int stw_etcd_downgrade(struct stw_etcd *e, const struct stw_etcd_endpoint *at, struct stw_semver to,
                       enum stw_etcd_trouble *trouble, struct stw_error *err);

/* --- snapshot */

/* Takes a piece of the database file; -1 with `err` ends the stream. */
typedef int stw_etcd_sink_fn(void *ctx, const void *data, size_t len, struct stw_error *err);

struct stw_etcd_snapshot {
    uint64_t size_bytes; /* of all that went to the sink: database and the 32 bytes of the hash */
    char sha256[65];     /* of all of it, hex: what a store can be held to */
    uint64_t revision;   /* of the server, asked just before: the snapshot holds at least that */
    struct stw_semver version;
};
/* Streams a snapshot.  Done only when the SHA-256 that the server appends fits what came before it:
 * anything else (cut, a bit flipped, no hash) is an error, and what the sink got is worthless.
 * `timeout_ms` is of the whole; a stream that stands still for 30 s is given up before.  Trouble is
 * STW_ETCD_FINE when it was the sink that failed; `err` is the sink's then. */
int stw_etcd_snapshot(struct stw_etcd *e, const struct stw_etcd_endpoint *at, uint32_t timeout_ms,
                      stw_etcd_sink_fn *sink, void *ctx, struct stw_etcd_snapshot *ret,
                      enum stw_etcd_trouble *trouble, struct stw_error *err);

/* The same check over bytes that come from anywhere: a store, a file. */
struct stw_etcd_check; /* opaque */
struct stw_etcd_check *stw_etcd_check_create(void);
int stw_etcd_check_add(struct stw_etcd_check *c, const void *data, size_t len);
/* 0: the last 32 bytes are the SHA-256 of all before them. */
int stw_etcd_check_end(struct stw_etcd_check *c, uint64_t *ret_size, char ret_sha256[65],
                       struct stw_error *err);
void stw_etcd_check_destroy(struct stw_etcd_check *c);

#endif
