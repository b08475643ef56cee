/* SPDX-License-Identifier: Apache-2.0
 *
 * What a pass of upkeep keeps from one run to the next. */
#ifndef STW_KINDS_ETCDCLUSTER_PASS_H
#define STW_KINDS_ETCDCLUSTER_PASS_H

#include "kinds/etcdcluster/plan/view.h"

#include <jansson.h>

/* The last pass of upkeep, or the one under way: status.defragmentation. */
#define EC_PASS_MEMBERS 16
struct ec_pass {
    bool open;
    enum ec_why reason;
    enum ec_result result; /* once it has ended */
    int64_t begun, ended;
    int64_t vain;        /* when one for space ended that made none; 0: the last one made some */
    int64_t tick;        /* instant of the schedule that was honoured last */
    char request[64];    /* value of the annotation that was honoured last */
    bool compact;        /* old revisions are still to be removed */
    uint64_t compact_to; /* the oldest revision to keep, chosen with the intent EC_COMPACT */
    uint64_t compacted;  /* the oldest revision that was kept by the last compaction */
    struct {
        char name[EC_NAME_MAX];
        int64_t before, after; /* size of its database; after: -1 until it is done */
        int64_t tries;
    } members[EC_PASS_MEMBERS]; /* oldest first */
    size_t count;
    int64_t reclaimed_total; /* in all passes so far */
    char message[200];       /* why it failed, or stopped */
};

void ec_pass_read(const json_t *o, struct ec_pass *ret);
json_t *ec_pass_json(const struct ec_pass *p);      /* NULL: there has been none */
int64_t ec_pass_reclaimed(const struct ec_pass *p); /* bytes */
bool ec_pass_same(const struct ec_pass *a, const struct ec_pass *b);

#endif
