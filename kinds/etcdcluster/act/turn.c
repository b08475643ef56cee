/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdcluster/act/turn.h"

#include "base/table.h"
#include "base/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define FORGET_MS (2 * 3600 * 1000ULL) /* a namespace that had its turn before is like a new one */

/* The best of those that wait for a node, and have asked lately. */
struct waiter {
    char *cluster; /* NULL: no cluster */
    uint64_t served_ms, seen_ms;
    int64_t since;
};

struct node {
    char *name;
    char *holder; /* NULL: no cluster */
    uint64_t until_ms;
    struct waiter waiter;
};

struct served { /* a namespace */
    char *name;
    uint64_t at_ms;
};

struct ec_turns {
    pthread_mutex_t lock; /* guards all */
    struct stw_table nodes, namespaces;
    uint64_t term;
    bool has_term;
};

static const char *node_name(const void *entry)
{
    return ((const struct node *)entry)->name;
}

static const char *namespace_name(const void *entry)
{
    return ((const struct served *)entry)->name;
}

static void free_node(void *entry)
{
    struct node *n = entry;
    if (!n)
        return;
    free(n->name);
    free(n->holder);
    free(n->waiter.cluster);
    free(n);
}

static void free_served(void *entry)
{
    struct served *s = entry;
    if (!s)
        return;
    free(s->name);
    free(s);
}

struct ec_turns *ec_turns_create(void)
{
    struct ec_turns *t = calloc(1, sizeof(*t));
    if (!t)
        return NULL;
    t->nodes = STW_TABLE_INIT(node_name);
    t->namespaces = STW_TABLE_INIT(namespace_name);
    (void)pthread_mutex_init(&t->lock, NULL);
    return t;
}

void ec_turns_destroy(struct ec_turns *t)
{
    if (!t)
        return;
    stw_table_release(&t->nodes, free_node);
    stw_table_release(&t->namespaces, free_served);
    (void)pthread_mutex_destroy(&t->lock);
    free(t);
}

/* --- nodes */

static bool is_same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void expire(struct node *n, uint64_t now_ms)
{
    if (n->holder && now_ms >= n->until_ms)
        free(stw_take(n->holder));
    if (n->waiter.cluster && now_ms - n->waiter.seen_ms >= EC_TURN_STALE_MS)
        free(stw_take(n->waiter.cluster));
}

static void sweep_nodes(struct ec_turns *t, uint64_t now_ms)
{
    struct node *n;
    for (uint32_t pos = 0; (n = stw_table_next(&t->nodes, &pos));) {
        expire(n, now_ms);
        if (!n->holder && !n->waiter.cluster)
            free_node(stw_table_remove(&t->nodes, n->name));
    }
}

/* NULL: out of memory. */
static struct node *get_node(struct ec_turns *t, const char *name, uint64_t now_ms)
{
    struct node *n = stw_table_get(&t->nodes, name);
    void *old;
    if (n) {
        expire(n, now_ms);
        return n;
    }
    n = calloc(1, sizeof(*n));
    if (n)
        n->name = strdup(name);
    if (!n || !n->name || stw_table_put(&t->nodes, n, &old) != 0) {
        free_node(n);
        return NULL;
    }
    return n;
}

/* --- namespaces */

static uint64_t served_at(struct ec_turns *t, const char *ns, uint64_t now_ms)
{
    const struct served *s = stw_table_get(&t->namespaces, ns);
    return s && now_ms - s->at_ms < FORGET_MS ? s->at_ms : 0;
}

static void sweep_namespaces(struct ec_turns *t, uint64_t now_ms)
{
    struct served *s;
    for (uint32_t pos = 0; (s = stw_table_next(&t->namespaces, &pos));)
        if (now_ms - s->at_ms >= FORGET_MS)
            free_served(stw_table_remove(&t->namespaces, s->name));
}

static void note_served(struct ec_turns *t, const char *ns, uint64_t now_ms)
{
    struct served *s = stw_table_get(&t->namespaces, ns);
    void *old;
    if (s) {
        s->at_ms = now_ms;
        return;
    }
    sweep_namespaces(t, now_ms);
    s = calloc(1, sizeof(*s));
    if (s)
        s->name = strdup(ns);
    if (!s || !s->name || stw_table_put(&t->namespaces, s, &old) != 0)
        free_served(s);
    else
        s->at_ms = now_ms;
}

/* --- the turn */

static bool is_before(const struct waiter *a, const struct waiter *b)
{
    if (a->served_ms != b->served_ms)
        return a->served_ms < b->served_ms;
    if (a->since != b->since)
        return a->since < b->since;
    return strcmp(a->cluster, b->cluster) < 0;
}

/* Whether no cluster comes before it at this node.  If so, it takes the place of the one that waits. */
static bool wait_at(struct node *n, const struct waiter *me)
{
    bool mine = is_same(n->waiter.cluster, me->cluster);
    if (n->waiter.cluster && !mine && is_before(&n->waiter, me))
        return false;
    if (!mine) {
        char *name = strdup(me->cluster);
        if (!name)
            return false;
        free(n->waiter.cluster);
        n->waiter = *me;
        n->waiter.cluster = name;
    }
    n->waiter.served_ms = me->served_ms;
    n->waiter.since = me->since;
    n->waiter.seen_ms = me->seen_ms;
    return true;
}

/* It waits at each of its nodes, so that a free node does not go to a cluster that comes after it. */
static bool may_take(struct ec_turns *t, const struct ec_turn *turn)
{
    const struct waiter me = {.cluster = (char *)(uintptr_t)turn->cluster,
                              .served_ms = served_at(t, turn->ns, turn->now_ms),
                              .seen_ms = turn->now_ms,
                              .since = turn->since};
    bool mine = true;
    for (size_t i = 0; i < turn->count; i++) {
        struct node *n = get_node(t, turn->nodes[i], turn->now_ms);
        bool has = n && is_same(n->holder, turn->cluster);
        mine = n && (has || (wait_at(n, &me) && !n->holder)) && mine;
    }
    return mine;
}

/* False: out of memory. */
static bool hold(struct ec_turns *t, const struct ec_turn *turn)
{
    bool whole = true;
    sweep_nodes(t, turn->now_ms);
    for (size_t i = 0; i < turn->count; i++) {
        struct node *n = get_node(t, turn->nodes[i], turn->now_ms);
        if (n && is_same(n->waiter.cluster, turn->cluster))
            free(stw_take(n->waiter.cluster));
        if (n && !is_same(n->holder, turn->cluster)) {
            free(n->holder);
            n->holder = strdup(turn->cluster);
        }
        if (n)
            n->until_ms = turn->now_ms + turn->time_ms;
        whole = n && n->holder && whole;
    }
    note_served(t, turn->ns, turn->now_ms);
    return whole;
}

bool ec_turns_take(struct ec_turns *t, const struct ec_turn *turn)
{
    STW_LOCKED(&t->lock);
    return may_take(t, turn) && hold(t, turn);
}

void ec_turns_hold(struct ec_turns *t, const struct ec_turn *turn)
{
    STW_LOCKED(&t->lock);
    (void)hold(t, turn);
}

void ec_turns_end(struct ec_turns *t, const char *cluster)
{
    struct node *n;
    STW_LOCKED(&t->lock);
    for (uint32_t pos = 0; (n = stw_table_next(&t->nodes, &pos));) {
        if (is_same(n->holder, cluster))
            free(stw_take(n->holder));
        if (!n->holder && !n->waiter.cluster)
            free_node(stw_table_remove(&t->nodes, n->name));
    }
}

bool ec_turns_new_term(struct ec_turns *t, uint64_t term)
{
    STW_LOCKED(&t->lock);
    bool news = !t->has_term || t->term != term;
    t->has_term = true;
    t->term = term;
    return news;
}

size_t ec_turns_size(struct ec_turns *t)
{
    STW_LOCKED(&t->lock);
    return stw_table_size(&t->nodes);
}
