/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries etcd itself: the health of its members, the member list, and the alarms. */
#include "kinds/etcdcluster/observe/ask.h"

#include "base/util.h"
#include "kinds/etcdcluster/names.h"
#include "kinds/etcdcluster/plan/entries.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/status/state.h"

#include <stdio.h>

/* --- one health round */

void ec_endpoint(const struct ec *e, size_t index, char url[STW_ETCD_URL_MAX],
                 struct stw_etcd_endpoint *ret)
{
    ec_client_url(e, e->view.members[index].name, url);
    *ret = (struct stw_etcd_endpoint){.url = url, .address = e->details[index].pod.ip};
}

static bool can_be_asked(const struct ec_detail *d)
{
    return d->has_pod && !d->pod.going && !d->pod.ended && *d->pod.ip;
}

struct round {
    char urls[EC_MEMBERS_MAX][STW_ETCD_URL_MAX];
    struct stw_etcd_endpoint endpoints[EC_MEMBERS_MAX];
    size_t of[EC_MEMBERS_MAX]; /* index into the view */
    struct stw_etcd_health health[EC_MEMBERS_MAX];
    size_t count;
};

void ec_ask(struct ec *e)
{
    struct round *r = calloc(1, sizeof(*r));
    if (!r)
        return;
    for (size_t i = 0; i < e->view.count; i++) {
        if (!can_be_asked(&e->details[i]))
            continue;
        ec_endpoint(e, i, r->urls[r->count], &r->endpoints[r->count]);
        r->of[r->count++] = i;
    }
    if (r->count > 0 && e->etcd)
        stw_etcd_round(e->etcd, r->endpoints, r->count, r->health);
    for (size_t i = 0; e->etcd && i < r->count; i++) {
        e->details[r->of[i]].health = r->health[i];
        e->details[r->of[i]].asked = true;
        if (r->health[i].trouble != STW_ETCD_FINE)
            e->trouble = r->health[i].trouble;
    }
    free(r);
}

const struct ec_detail *ec_contact(const struct ec *e, size_t *ret_index)
{
    const struct ec_detail *best = NULL;
    for (size_t i = 0; i < e->view.count; i++) {
        const struct ec_detail *d = &e->details[i];
        const struct stw_etcd_health *h = &d->health;
        if (!d->asked || !h->linearizable ||
            (e->state.cluster_id && h->cluster_id != e->state.cluster_id))
            continue;
        if (best && h->member_id != h->leader_id)
            continue;
        best = d;
        *ret_index = i;
    }
    return best;
}

/* --- etcd's list */

/* The host of our members' peer URLs begins with the member's name; any other member is foreign. */
static struct ec_member *entry_for(struct ec *e, const struct stw_etcd_member *m,
                                   struct ec_detail **ret)
{
    char name[EC_NAME_MAX], url[STW_ETCD_URL_MAX];
    const char *host = strstr(m->peer_url, "://");
    host = host ? host + 3 : m->peer_url;
    stw_format(name, sizeof(name), "%.*s", (int)STW_MIN(strcspn(host, ".:/"), EC_NAME_MAX - 1),
               host);
    ec_peer_url(e, name, url);
    bool ours = stw_streq(url, m->peer_url);
    if (!ours && *m->name)
        stw_format(name, sizeof(name), "%.63s", m->name);
    struct ec_member *entry = ec_entry(e, name, ret);
    if (entry)
        entry->foreign = !ours;
    return entry;
}

static void take_list(struct ec *e, const struct stw_etcd_members *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct ec_detail *d;
        struct ec_member *m = entry_for(e, &list->all[i], &d);
        if (!m)
            continue;
        m->listed = true;
        m->id = list->all[i].id;
        m->learner = list->all[i].learner;
        m->started = *list->all[i].name != '\0' || !m->learner;
        stw_format(d->peer_url, sizeof(d->peer_url), "%s", list->all[i].peer_url);
    }
}

/* Uses the last list, from the status. */
static void take_remembered(struct ec *e)
{
    for (size_t i = 0; i < e->state.member_count; i++) {
        const struct ec_remembered *r = &e->state.members[i];
        struct ec_detail *d;
        struct ec_member *m = ec_entry(e, r->name, &d);
        if (!m)
            continue;
        m->listed = true;
        m->id = r->id;
        m->learner = r->learner;
        m->started = r->started;
    }
}

bool ec_ask_members(struct ec *e)
{
    struct stw_etcd_members *list = calloc(1, sizeof(*list));
    char url[STW_ETCD_URL_MAX];
    struct stw_etcd_endpoint at;
    enum stw_etcd_trouble trouble;
    size_t index;
    bool had = false;
    if (list && ec_contact(e, &index)) {
        ec_endpoint(e, index, url, &at);
        had = stw_etcd_member_list(e->etcd, &at, list, &trouble, &e->list_err) == 0 &&
              (!e->state.cluster_id || list->cluster_id == e->state.cluster_id);
    }
    if (had)
        take_list(e, list);
    else
        take_remembered(e);
    free(list);
    return had;
}

static bool is_listed(const struct ec *e, uint64_t id)
{
    for (size_t i = 0; i < e->view.count; i++)
        if (e->view.members[i].listed && e->view.members[i].id == id)
            return true;
    return false;
}

/* etcd keeps alarms of removed members, and they apply to all remaining members. */
static void take_strays(struct ec *e, const struct stw_etcd_alarms *alarms)
{
    struct ec_view *v = &e->view;
    for (size_t n = 0; n < alarms->count; n++) {
        if (is_listed(e, alarms->all[n].member_id))
            continue;
        if (!v->stray_id || (alarms->all[n].alarm & STW_ETCD_ALARM_CORRUPT))
            v->stray_id = alarms->all[n].member_id; /* report the worst first */
        v->stray_alarms |= alarms->all[n].alarm;
    }
}

void ec_take_alarms(struct ec *e, const struct stw_etcd_alarms *alarms)
{
    for (size_t i = 0; i < e->view.count; i++) {
        struct ec_member *m = &e->view.members[i];
        const struct ec_remembered *r = ec_state_find(&e->state, m->name);
        m->alarms = !alarms && r ? r->alarms : 0;
        for (size_t n = 0; alarms && n < alarms->count; n++)
            if (m->id && alarms->all[n].member_id == m->id)
                m->alarms |= alarms->all[n].alarm;
    }
    if (alarms && e->view.listed)
        take_strays(e, alarms);
}

void ec_ask_alarms(struct ec *e)
{
    struct stw_etcd_alarms *alarms = calloc(1, sizeof(*alarms));
    char url[STW_ETCD_URL_MAX];
    struct stw_etcd_endpoint at;
    enum stw_etcd_trouble trouble;
    struct stw_error err = {0};
    size_t index;
    bool had = false;
    if (alarms && ec_contact(e, &index)) {
        ec_endpoint(e, index, url, &at);
        had = stw_etcd_alarms(e->etcd, &at, alarms, &trouble, &err) == 0;
    }
    ec_take_alarms(e, had ? alarms : NULL);
    free(alarms);
}
