/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/queue/reservation.h"

#include "base/process/memory_budget.h"
#include "base/table.h"
#include "base/thread.h"
#include "base/turns.h"

#include <pthread.h>

#define SEARCHED_MAX 64 /* namespaces whose first request is looked at */

struct request {
    struct stw_turn turn; /* first */
    struct request *next; /* of those that are granted */
    size_t bytes;
    bool granted, overtook;
    char id[];
};

struct stw_reservations {
    pthread_mutex_t lock;
    struct stw_table all; /* struct request */
    struct stw_turns turns;
    struct request *granted; /* few: each has a part of the share */
    size_t overtaking;       /* bytes of those that did not wait for their turn */
    void (*ready)(void *ctx, const char *id);
    void *ctx;
};

static const char *request_id(const void *request)
{
    return ((const struct request *)request)->id;
}

struct stw_reservations *stw_reservations_create(void (*ready)(void *ctx, const char *id),
                                                 void *ctx)
{
    struct stw_reservations *r = calloc(1, sizeof(*r));
    if (!r)
        return NULL;
    r->all = STW_TABLE_INIT(request_id);
    stw_turns_init(&r->turns, STW_TURNS_NO_LIMIT); /* by bytes, below */
    r->ready = ready;
    r->ctx = ctx;
    (void)pthread_mutex_init(&r->lock, NULL);
    return r;
}

void stw_reservations_destroy(struct stw_reservations *r)
{
    uint32_t pos = 0;
    if (!r)
        return;
    for (const struct request *q; (q = stw_table_next(&r->all, &pos));)
        if (q->granted)
            stw_share_give_back(STW_SHARE_RECONCILES, q->bytes);
    stw_table_release(&r->all, free);
    stw_turns_done(&r->turns);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

static bool fits(size_t bytes)
{
    struct stw_share_facts f = stw_share_facts(STW_SHARE_RECONCILES);
    return bytes <= f.limit && f.used <= f.limit - bytes;
}

/* Only under the lock, and only here: what fits still fits when it is added. */
static void grant(struct stw_reservations *r, struct request *q, bool overtakes)
{
    q->granted = true;
    q->overtook = overtakes;
    r->overtaking += overtakes ? q->bytes : 0;
    q->next = r->granted;
    r->granted = q;
    stw_share_add(STW_SHARE_RECONCILES, q->bytes);
}

static void take_back(struct stw_reservations *r, struct request *q)
{
    struct request **at = &r->granted;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    q->next = NULL;
    q->granted = false;
    r->overtaking -= q->overtook ? q->bytes : 0;
    stw_turns_give_back(&r->turns, &q->turn);
    stw_share_give_back(STW_SHARE_RECONCILES, q->bytes);
}

/* "NAMESPACE/NAME" of "KIND NAMESPACE/NAME"; without a namespace there is no slash. */
static const char *key_in(const char *id)
{
    const char *space = strchr(id, ' ');
    return space ? space + 1 : id;
}

/* What runs of one namespace may have beside each other, and what is left for those of others. */
static size_t quarter(void)
{
    return stw_share_limit(STW_SHARE_RECONCILES) / 4;
}

static bool has_namespace(const struct request *q)
{
    return strchr(key_in(q->id), '/');
}

static size_t granted_to_namespace(const struct stw_reservations *r, const struct request *q)
{
    size_t bytes = 0;
    for (const struct request *other = r->granted; other; other = other->next)
        bytes += other->turn.group == q->turn.group ? other->bytes : 0;
    return bytes;
}

/* Its runs may wait for a slow server, and keep what they have meanwhile. */
static bool has_its_part(const struct stw_reservations *r, const struct request *q)
{
    size_t has = has_namespace(q) ? granted_to_namespace(r, q) : 0;
    return has > 0 && has + q->bytes > stw_share_limit(STW_SHARE_RECONCILES) - quarter();
}

/* One that needs little, of a namespace that has nothing, does not wait behind a large one, for which
 * the rest is enough: beside all that have overtaken. */
static bool may_overtake(const struct stw_reservations *r, const struct request *q,
                         const struct request *blocked)
{
    size_t limit = stw_share_limit(STW_SHARE_RECONCILES);
    return q->bytes <= quarter() && has_namespace(q) && granted_to_namespace(r, q) == 0 &&
           blocked->bytes <= limit - quarter() &&
           r->overtaking + q->bytes <= limit - blocked->bytes;
}

static struct request *first_waiting(const struct stw_reservations *r)
{
    return (struct request *)stw_turns_first(&r->turns);
}

/* The next that is granted: the first of its namespace, or NULL. */
static struct request *find_next(struct stw_reservations *r, bool *ret_overtakes)
{
    const struct request *blocked = NULL;
    struct request *q = first_waiting(r);
    for (int i = 0; q && i < SEARCHED_MAX;
         i++, q = (struct request *)stw_turns_after(&r->turns, &q->turn)) {
        if (has_its_part(r, q) || (blocked && !may_overtake(r, q, blocked)))
            continue;
        *ret_overtakes = blocked != NULL;
        if (fits(q->bytes))
            return q;
        blocked = blocked ? blocked : q;
    }
    return NULL;
}

/* Reserves for the next of those that wait, if it fits.  The caller calls `ready` with the copy of its
 * id, which it owns; NULL: none.  Out of memory: it is granted, and its key runs at its safety net. */
static bool grant_next(struct stw_reservations *r, char **ret_id)
{
    bool overtakes = false;
    struct request *q = find_next(r, &overtakes);
    *ret_id = NULL;
    if (!q)
        return false;
    stw_turns_take(&r->turns, &q->turn);
    grant(r, q, overtakes);
    *ret_id = strdup(q->id);
    return true;
}

static void tell_ready(struct stw_reservations *r)
{
    for (bool more = true; more;) {
        char *id;
        pthread_mutex_lock(&r->lock);
        more = grant_next(r, &id);
        pthread_mutex_unlock(&r->lock);
        if (id)
            r->ready(r->ctx, id);
        free(id);
    }
}

static struct request *find_or_add(struct stw_reservations *r, const char *id, bool *ret_new)
{
    struct request *q = stw_table_get(&r->all, id);
    size_t size = strlen(id) + 1;
    void *old = NULL;
    *ret_new = !q;
    if (q || !(q = calloc(1, sizeof(*q) + size)))
        return q;
    memcpy(q->id, id, size);
    if (stw_turns_join(&r->turns, &q->turn, key_in(q->id)) == 0 &&
        stw_table_put(&r->all, q, &old) == 0)
        return q;
    stw_turns_quit(&r->turns, &q->turn);
    free(q);
    return NULL;
}

static enum stw_reserve take(struct stw_reservations *r, const char *id, size_t bytes)
{
    bool is_new;
    struct request *q = find_or_add(r, id, &is_new);
    if (!q)
        return STW_RESERVE_NO_MEMORY;
    if (q->granted && bytes <= q->bytes)
        return STW_RESERVED;
    bool waits = !is_new && !q->granted;
    if (q->granted)
        take_back(r, q);
    q->bytes = bytes;
    if (waits)
        return STW_RESERVE_WAITS;
    const struct request *blocked = first_waiting(r);
    bool now = !has_its_part(r, q) && fits(bytes) && (!blocked || may_overtake(r, q, blocked));
    if (!now) {
        stw_turns_wait(&r->turns, &q->turn);
        stw_share_note_wait(STW_SHARE_RECONCILES);
        return STW_RESERVE_WAITS;
    }
    stw_turns_hold(&r->turns, &q->turn);
    grant(r, q, blocked != NULL);
    return STW_RESERVED;
}

enum stw_reserve stw_reservations_take(struct stw_reservations *r, const char *id, size_t bytes)
{
    if (bytes > stw_share_limit(STW_SHARE_RECONCILES)) {
        stw_share_note_refusal(STW_SHARE_RECONCILES);
        return STW_RESERVE_TOO_LARGE;
    }
    pthread_mutex_lock(&r->lock);
    enum stw_reserve answer = take(r, id, bytes);
    pthread_mutex_unlock(&r->lock);
    if (answer == STW_RESERVE_WAITS)
        tell_ready(r); /* its former reservation may be enough for another */
    return answer;
}

size_t stw_reservations_granted(struct stw_reservations *r, const char *id)
{
    STW_LOCKED(&r->lock);
    const struct request *q = stw_table_get(&r->all, id);
    return q && q->granted ? q->bytes : 0;
}

void stw_reservations_end(struct stw_reservations *r, const char *id)
{
    pthread_mutex_lock(&r->lock);
    struct request *q = stw_table_get(&r->all, id);
    bool granted = q && q->granted;
    if (granted) {
        take_back(r, q);
        stw_turns_quit(&r->turns, &q->turn);
        free(stw_table_remove(&r->all, id));
    }
    pthread_mutex_unlock(&r->lock);
    if (granted)
        tell_ready(r);
}

size_t stw_reservations_waiting(struct stw_reservations *r)
{
    STW_LOCKED(&r->lock);
    return r->turns.waiting;
}
