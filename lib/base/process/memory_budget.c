/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/memory_budget.h"

#include <assert.h>
#include <stdatomic.h>

#define UNKNOWN_LIMIT (UINT64_C(256) << 20)
#define HELD_FREE_BYTES ((size_t)64 << 10)
#define LIMIT_MAX (UINT64_C(4) << 30) /* more memory makes no share larger */

/* In sixteenths of the limit. */
static const struct {
    const char *name;
    unsigned sixteenths;
} shares[] = {
    [STW_SHARE_BASE] = {"base", 2},           [STW_SHARE_CACHES] = {"caches", 4},
    [STW_SHARE_ADMISSION] = {"admission", 6}, [STW_SHARE_RECONCILES] = {"reconciles", 2},
    [STW_SHARE_ANSWERS] = {"answers", 1},     [STW_SHARE_TRANSFERS] = {"transfers", 1},
};
static_assert(STW_COUNT(shares) == STW_SHARES, "one row for each share");

static struct {
    atomic_size_t limit, used, peak;
    atomic_ullong refused, waited;
} state[STW_SHARES];

void stw_memory_budget_set(uint64_t limit)
{
    limit = limit == 0 ? UNKNOWN_LIMIT : STW_MIN(limit, LIMIT_MAX);
    for (int i = 0; i < STW_SHARES; i++)
        atomic_store(&state[i].limit, (size_t)(limit / 16 * shares[i].sixteenths));
}

void stw_memory_budget_set_share(enum stw_share share, size_t bytes)
{
    atomic_store(&state[share].limit, bytes);
}

const char *stw_share_name(enum stw_share share)
{
    return shares[share].name;
}

size_t stw_share_limit(enum stw_share share)
{
    size_t set = atomic_load(&state[share].limit);
    return set > 0 ? set : (size_t)(UNKNOWN_LIMIT / 16 * shares[share].sixteenths);
}

static void note_peak(enum stw_share share, size_t used)
{
    size_t peak = atomic_load(&state[share].peak);
    while (used > peak && !atomic_compare_exchange_weak(&state[share].peak, &peak, used))
        ;
}

bool stw_share_take(enum stw_share share, size_t bytes)
{
    size_t limit = stw_share_limit(share), used = atomic_load(&state[share].used);
    do {
        if (bytes > limit || used > limit - bytes) {
            stw_share_note_refusal(share);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&state[share].used, &used, used + bytes));
    note_peak(share, used + bytes);
    return true;
}

void stw_share_add(enum stw_share share, size_t bytes)
{
    note_peak(share, atomic_fetch_add(&state[share].used, bytes) + bytes);
}

void stw_share_give_back(enum stw_share share, size_t bytes)
{
    size_t used = atomic_fetch_sub(&state[share].used, bytes);
    assert(used >= bytes);
}

/* --- spare memory of a reconcile */

static _Thread_local struct {
    size_t all, used, wanted;
} spare_of_run;

void stw_spare_set(size_t bytes)
{
    spare_of_run.all = bytes;
}

static size_t spare_left(void)
{
    return spare_of_run.all - STW_MIN(spare_of_run.used, spare_of_run.all);
}

bool stw_spare_has(size_t bytes)
{
    return bytes <= spare_left();
}

void stw_spare_want(size_t bytes)
{
    spare_of_run.wanted = STW_MAX(spare_of_run.wanted, spare_of_run.used + bytes);
}

size_t stw_spare_end(void)
{
    size_t wanted = spare_of_run.wanted;
    spare_of_run.all = spare_of_run.used = spare_of_run.wanted = 0;
    return wanted;
}

/* --- answers of databases and stores */

static atomic_size_t held_by_all;

static size_t held_most(void)
{
    return stw_share_limit(STW_SHARE_ANSWERS) / 4 * 3;
}

bool stw_kept_has_room(size_t bytes)
{
    return atomic_load(&held_by_all) + bytes <= held_most();
}

void stw_kept_note(size_t bytes)
{
    atomic_fetch_add(&held_by_all, bytes);
}

void stw_kept_forget(size_t bytes)
{
    atomic_fetch_sub(&held_by_all, bytes);
}

static bool hold_more(size_t bytes)
{
    if (atomic_fetch_add(&held_by_all, bytes) + bytes > held_most()) {
        stw_share_note_refusal(STW_SHARE_ANSWERS);
        atomic_fetch_sub(&held_by_all, bytes);
        return false;
    }
    if (stw_share_take(STW_SHARE_ANSWERS, bytes))
        return true;
    atomic_fetch_sub(&held_by_all, bytes);
    return false;
}

static void hold_less(size_t bytes)
{
    stw_share_give_back(STW_SHARE_ANSWERS, bytes);
    atomic_fetch_sub(&held_by_all, bytes);
}

bool stw_kept_set(struct stw_kept *h, size_t bytes)
{
    bytes = bytes > HELD_FREE_BYTES ? bytes : 0;
    size_t spare = STW_MIN(bytes, h->spare + spare_left()), counted = bytes - spare;
    if (counted > h->bytes && !hold_more(counted - h->bytes)) {
        if (bytes <= held_most())
            stw_spare_want(held_most());
        return false;
    }
    if (counted < h->bytes)
        hold_less(h->bytes - counted);
    spare_of_run.used += spare - h->spare;
    *h = (struct stw_kept){.bytes = counted, .spare = spare};
    return true;
}

void stw_kept_done(struct stw_kept *h)
{
    hold_less(h->bytes);
    spare_of_run.used -= h->spare;
    *h = (struct stw_kept){0};
}

void stw_share_note_wait(enum stw_share share)
{
    atomic_fetch_add(&state[share].waited, 1);
}

void stw_share_note_refusal(enum stw_share share)
{
    atomic_fetch_add(&state[share].refused, 1);
}

struct stw_share_facts stw_share_facts(enum stw_share share)
{
    return (struct stw_share_facts){.limit = stw_share_limit(share),
                                    .used = atomic_load(&state[share].used),
                                    .peak = atomic_load(&state[share].peak),
                                    .refused = atomic_load(&state[share].refused),
                                    .waited = atomic_load(&state[share].waited)};
}

/* --- metrics */

static const struct {
    enum stw_metric_type type;
    const char *name, *help;
} families[] = {
    {STW_GAUGE, "_memory_share_bytes", "Memory that is counted against a share of the budget."},
    {STW_GAUGE, "_memory_share_limit_bytes", "Size of a share of the memory budget."},
    {STW_GAUGE, "_memory_share_peak_bytes", "Most memory that a share has had in use."},
    {STW_COUNTER, "_memory_share_refused_total", "What did not fit into a share."},
    {STW_COUNTER, "_memory_share_waits_total", "What had to wait for memory of a share."},
};

static void set_counter(struct stw_series *s, uint64_t now)
{
    stw_series_add(s, (double)now - stw_series_value(s));
}

static void collect(void *ctx)
{
    static const char *const labels[] = {"share", NULL};
    struct stw_metrics *m = ctx;
    for (int i = 0; i < STW_SHARES; i++) {
        struct stw_share_facts f = stw_share_facts((enum stw_share)i);
        const double values[] = {(double)f.used, (double)f.limit, (double)f.peak, (double)f.refused,
                                 (double)f.waited};
        static_assert(STW_COUNT(values) == STW_COUNT(families), "one value for each family");
        bool counted = i != STW_SHARE_BASE; /* the base is what is left */
        for (size_t k = 0; k < STW_COUNT(families); k++) {
            if (!counted && k != 1)
                continue;
            struct stw_series *s =
                STW_SERIES(stw_metrics_family(m, families[k].type, families[k].name,
                                              families[k].help, labels, NULL),
                           shares[i].name);
            if (families[k].type == STW_COUNTER)
                set_counter(s, (uint64_t)values[k]);
            else
                stw_series_set(s, values[k]);
        }
    }
}

void stw_memory_budget_add_metrics(struct stw_metrics *m)
{
    if (!m)
        return;
    collect(m);
    (void)stw_metrics_on_collect(m, collect, m);
}
