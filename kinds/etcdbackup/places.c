/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/etcdbackup/places.h"

#include "base/util.h"
#include "store/store.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *place_key(const void *place)
{
    return ((const struct eb_place *)place)->key;
}

size_t eb_places_part_bytes(size_t share_bytes)
{
    size_t each = share_bytes / EB_TRANSFERS_MAX;
    size_t part = each > EB_TRANSFER_BYTES ? each - EB_TRANSFER_BYTES : 0;
    return STW_MIN(STW_MAX(part, (size_t)STW_STORE_PART_MIN_BYTES), (size_t)STW_STORE_PART_BYTES);
}

void eb_places_init(struct eb_places *p, size_t share_bytes)
{
    size_t most = share_bytes / (eb_places_part_bytes(share_bytes) + EB_TRANSFER_BYTES);
    *p = (struct eb_places){.keys = STW_TABLE_INIT(place_key)};
    p->max = (unsigned)STW_MIN(STW_MAX(most, (size_t)1), (size_t)EB_TRANSFERS_MAX);
    p->of_namespace = STW_MAX(p->max / 2, 1U);
    stw_turns_init(&p->turns, p->of_namespace);
}

void eb_places_done(struct eb_places *p)
{
    stw_table_release(&p->keys, free);
    stw_turns_done(&p->turns);
}

/* In the first slot that has `from`. */
static void set_slot(struct eb_places *p, const struct eb_place *from, struct eb_place *to)
{
    size_t i = 0;
    while (i < EB_TRANSFERS_MAX && p->at[i] != from)
        i++;
    assert(i < EB_TRANSFERS_MAX);
    p->at[i] = to;
}

static void free_place(struct eb_places *p, struct eb_place *place)
{
    if (place->turn.holds) {
        set_slot(p, place, NULL);
        p->taken--;
    }
    stw_turns_quit(&p->turns, &place->turn);
    free(place);
}

void eb_places_forget(struct eb_places *p, const char *key)
{
    struct eb_place *place = stw_table_remove(&p->keys, key);
    if (place)
        free_place(p, place);
}

struct eb_place *eb_places_find(const struct eb_places *p, const char *key)
{
    return stw_table_get(&p->keys, key);
}

static struct eb_place *add_place(struct eb_places *p, const char *key)
{
    size_t size = strlen(key) + 1;
    struct eb_place *place = calloc(1, sizeof(*place) + size);
    void *old = NULL;
    if (!place)
        return NULL;
    memcpy(place->key, key, size);
    if (stw_turns_join(&p->turns, &place->turn, key) != 0 ||
        stw_table_put(&p->keys, place, &old) != 0) {
        stw_turns_quit(&p->turns, &place->turn);
        free(place);
        return NULL;
    }
    stw_turns_wait(&p->turns, &place->turn);
    return place;
}

struct eb_place *eb_places_come(struct eb_places *p, const char *key, uint64_t now_ms)
{
    struct eb_place *place = eb_places_find(p, key);
    if (place && place->called)
        place->since_ms = now_ms;
    return place ? place : add_place(p, key);
}

/* One that was called and does not come, as its object is paused, loses its place. */
static void drop_absent(struct eb_places *p, uint64_t now_ms)
{
    for (size_t i = 0; i < EB_TRANSFERS_MAX; i++)
        if (p->at[i] && p->at[i]->called && now_ms - p->at[i]->since_ms > EB_CALLED_MS)
            eb_places_forget(p, p->at[i]->key);
}

struct eb_place *eb_places_call(struct eb_places *p, uint64_t now_ms)
{
    drop_absent(p, now_ms);
    struct eb_place *place = (struct eb_place *)stw_turns_first(&p->turns);
    if (!place || p->taken == p->max)
        return NULL;
    stw_turns_take(&p->turns, &place->turn);
    set_slot(p, NULL, place);
    p->taken++;
    place->called = true;
    place->since_ms = now_ms;
    return place;
}

struct eb_place *eb_places_use(struct eb_places *p, const char *key, uint64_t now_ms)
{
    struct eb_place *place = eb_places_find(p, key);
    if (!place || !place->called)
        return NULL;
    (void)stw_table_remove(&p->keys, key);
    place->called = false;
    place->used = true;
    place->since_ms = place->window_ms = now_ms;
    return place;
}

void eb_places_end(struct eb_places *p, struct eb_place *place)
{
    if (place)
        free_place(p, place);
}

/* --- places that are lost */

/* A window that was not looked at for long says nothing of the last minute. */
static bool is_too_slow(struct eb_place *place, uint64_t now_ms)
{
    uint64_t age_ms = now_ms - place->window_ms, moved = atomic_load(&place->moved);
    if (age_ms < EB_WINDOW_MS)
        return false;
    bool slow = (moved - place->window_bytes) / EB_SLOWEST_BYTES_PER_S < age_ms / 1000;
    place->window_ms = now_ms;
    place->window_bytes = moved;
    return slow && age_ms < 4 * (uint64_t)EB_WINDOW_MS;
}

static bool one_ends_already(const struct eb_places *p)
{
    for (size_t i = 0; i < EB_TRANSFERS_MAX; i++)
        if (p->at[i] && p->at[i]->ends)
            return true;
    return false;
}

static bool is_oldest(const struct eb_places *p, const struct eb_place *place)
{
    for (size_t i = 0; i < EB_TRANSFERS_MAX; i++)
        if (p->at[i] && p->at[i]->used && p->at[i]->since_ms < place->since_ms)
            return false;
    return true;
}

enum eb_verdict eb_places_judge(struct eb_places *p, struct eb_place *place, uint64_t now_ms)
{
    const struct stw_turn *waits = stw_turns_first(&p->turns);
    enum eb_verdict v = EB_GOES_ON;
    if (!waits || p->taken < p->max || place->ends)
        return v;
    if (is_too_slow(place, now_ms))
        v = EB_TOO_SLOW;
    else if (now_ms - place->since_ms >= EB_TURN_MS && stw_turns_held(waits) == 0 &&
             is_oldest(p, place) && !one_ends_already(p))
        v = EB_TURN_ENDED;
    place->ends = v != EB_GOES_ON;
    return v;
}
