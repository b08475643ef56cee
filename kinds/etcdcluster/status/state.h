/* SPDX-License-Identifier: Apache-2.0
 *
 * State in the status. */
#ifndef STW_KINDS_ETCDCLUSTER_STATE_H
#define STW_KINDS_ETCDCLUSTER_STATE_H

#include "base/util.h"
#include "kinds/etcdcluster/plan/view.h"
#include "kinds/etcdcluster/status/pass.h"

#include <jansson.h>

#define EC_FAILOVER_WINDOW 3600
#define EC_FAILOVERS_MAX 10 /* maxPerHour allows no more */

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
    struct ec_pass pass;
    struct ec_remembered members[EC_MEMBERS_MAX];
    size_t member_count;
};
void ec_state_read(const json_t *status, struct ec_state *ret);
/* Times more than an hour after `now` are of a clock that was ahead: until then there would be no failover,
 * no restart of the next member, and nothing would count as stuck. */
void ec_state_forget_future(struct ec_state *s, int64_t now);
/* Writes all except memberList, which each observation rebuilds; replaces what `status` has. */
void ec_state_write(const struct ec_state *s, json_t *status);
/* Ignores members, versions and the times of the quorum. */
bool ec_state_same(const struct ec_state *a, const struct ec_state *b);
/* An etcd ID, as etcdctl prints it; the caller owns it. */
json_t *ec_id_json(uint64_t id);
const struct ec_remembered *ec_state_find(const struct ec_state *s, const char *name);
int64_t ec_state_failovers(const struct ec_state *s, int64_t now); /* in the last hour */
void ec_state_count_failover(struct ec_state *s, int64_t now);

#endif
