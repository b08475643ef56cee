/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/queue/guard.h"

#include "base/table.h"
#include "base/thread.h"

#include <pthread.h>

struct guard_record {
    uint64_t asked, since_ms, closed_until_ms;
    uint32_t writes;
    bool accepted;
    struct stw_hash wanted, live;
    char what[];
};

struct stw_guard {
    pthread_mutex_t lock;
    struct stw_table records;
    uint64_t swept_ms;
};

static const char *record_key(const void *record)
{
    return ((const struct guard_record *)record)->what;
}

struct stw_guard *stw_guard_create(void)
{
    struct stw_guard *g = calloc(1, sizeof(*g));
    if (!g)
        return NULL;
    if (pthread_mutex_init(&g->lock, NULL) != 0) {
        free(g);
        return NULL;
    }
    g->records = STW_TABLE_INIT(record_key);
    return g;
}

void stw_guard_destroy(struct stw_guard *g)
{
    if (!g)
        return;
    stw_table_release(&g->records, free);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

static struct guard_record *find_or_make(struct stw_guard *g, const char *what)
{
    struct guard_record *r = stw_table_get(&g->records, what);
    void *old;
    if (r)
        return r;
    size_t len = strlen(what) + 1;
    r = calloc(1, sizeof(*r) + len);
    if (!r)
        return NULL;
    memcpy(r->what, what, len);
    if (stw_table_put(&g->records, r, &old) != 0) {
        free(r);
        return NULL;
    }
    return r;
}

static bool is_stale(const struct guard_record *r, uint64_t now_ms)
{
    return !r->accepted && now_ms >= r->closed_until_ms &&
           now_ms - r->since_ms > STW_GUARD_WINDOW_MS;
}

/* Removes stale records; at most once a window. */
static void remove_stale_records(struct stw_guard *g, uint64_t now_ms)
{
    uint32_t pos = 0;
    struct guard_record *r;
    if (now_ms - g->swept_ms <= STW_GUARD_WINDOW_MS)
        return;
    g->swept_ms = now_ms;
    while ((r = stw_table_next(&g->records, &pos))) {
        if (is_stale(r, now_ms)) {
            stw_table_remove(&g->records, r->what);
            free(r);
        }
    }
}

static enum stw_guard_answer count_write(struct guard_record *r, uint64_t asked, uint64_t now_ms,
                                         uint64_t pause_ms)
{
    if (r->asked != asked) {
        r->asked = asked;
        r->writes = 0;
        r->closed_until_ms = 0;
    }
    if (now_ms < r->closed_until_ms)
        return STW_GUARD_CLOSED;
    if (r->writes == 0 || now_ms - r->since_ms > STW_GUARD_WINDOW_MS) {
        r->since_ms = now_ms;
        r->writes = 0;
    }
    if (++r->writes <= STW_GUARD_WRITES)
        return STW_GUARD_GO;
    r->writes = 0;
    r->closed_until_ms = now_ms + pause_ms;
    return STW_GUARD_TRIPPED;
}

enum stw_guard_answer stw_guard_write(struct stw_guard *g, const char *what, uint64_t asked,
                                      uint64_t now_ms, uint64_t pause_ms)
{
    STW_LOCKED(&g->lock);
    remove_stale_records(g, now_ms);
    struct guard_record *r = find_or_make(g, what);
    enum stw_guard_answer answer = r ? count_write(r, asked, now_ms, pause_ms) : STW_GUARD_GO;
    return answer;
}

void stw_guard_accept(struct stw_guard *g, const char *what, struct stw_hash wanted,
                      struct stw_hash live)
{
    STW_LOCKED(&g->lock);
    struct guard_record *r = find_or_make(g, what);
    if (r) {
        r->accepted = true;
        r->wanted = wanted;
        r->live = live;
    }
}

bool stw_guard_accepted(struct stw_guard *g, const char *what, struct stw_hash wanted,
                        struct stw_hash live)
{
    STW_LOCKED(&g->lock);
    const struct guard_record *r = stw_table_get(&g->records, what);
    bool yes =
        r && r->accepted && stw_hash_equal(r->wanted, wanted) && stw_hash_equal(r->live, live);
    return yes;
}

void stw_guard_forget(struct stw_guard *g, const char *what)
{
    STW_LOCKED(&g->lock);
    free(stw_table_remove(&g->records, what));
}
