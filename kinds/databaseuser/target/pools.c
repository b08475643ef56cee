/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/target/pools.h"

#include "base/fence.h"
#include "base/log.h"
#include "base/table.h"
#include "base/thread.h"
#include "base/turns.h"
#include "base/util.h"
#include "kube/resource.h"
#include "sql/core/mark.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define NAME_MAX_BYTES 256
#define SLOW_MS 1000    /* without a sign for this long a new visit may only wait */
#define FULL_MS 10000   /* without a free connection for so long, a server cannot be used */
#define LATER_MS 20000  /* at the latest: a visit that ends wakes the next key */
#define LOCKED_MS 60000 /* so long a namespace that waited for a lock has fewer places */

/* A key that was turned away. */
struct waiting {
    struct stw_turn turn; /* first */
    struct waiting *next; /* of those that are woken */
    struct dbu_pools_tenant *tenant;
    char key[];
};

/* The objects of one namespace at one target. */
struct dbu_pools_tenant {
    uint32_t inside, waiting;
    uint64_t slow_until_ms; /* one of its visits has waited for a lock */
    uint64_t again_ms;      /* when a key of it that was turned away comes by itself */
    char ns[];
};

struct dbu_pools_entry {
    struct stw_pool *pool;
    struct stw_targets *targets; /* holds `target` */
    const struct stw_target *target;
    uint32_t inside, suspects; /* suspects: those of them that are suspicious */
    uint64_t last_sign_ms;     /* when a visit last ended, or began with no other one open */
    bool troubled, seen;       /* seen: a visit with a result has ended, at */
    uint64_t seen_ms;
    bool read_only;         /* the trouble: it answers, and what only reads has none */
    uint64_t down_since_ms; /* 0: it answers */
    uint32_t told;          /* objects, since then */
    struct stw_series *up;
    struct stw_turns turns;
    struct stw_table tenants;
    struct stw_table waiting; /* the keys that wait, each once */
    char name[];              /* in lower case */
};

struct dbu_pools {
    struct dbu_pools_config config;
    pthread_mutex_t lock;
    struct stw_table entries;
    struct stw_family *up;
    uint32_t suspects; /* open visits to suspect targets */
    uint64_t made_ms;
    bool cancelled, paused;
};

static const char *waiting_key(const void *waiting)
{
    return ((const struct waiting *)waiting)->key;
}

static const char *tenant_ns(const void *tenant)
{
    return ((const struct dbu_pools_tenant *)tenant)->ns;
}

static const char *entry_name(const void *entry)
{
    return ((const struct dbu_pools_entry *)entry)->name;
}

struct dbu_pools *dbu_pools_create(const struct dbu_pools_config *config)
{
    struct dbu_pools *p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    if (pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p);
        return NULL;
    }
    p->config = *config;
    p->config.workers = STW_MAX(p->config.workers, 1U);
    p->entries = STW_TABLE_INIT(entry_name);
    if (config->metrics)
        p->up = stw_metrics_family(
            config->metrics, STW_GAUGE, "_database_up",
            "1 while the server of a target answers and takes the admin's login.",
            (const char *const[]){"target", NULL}, NULL);
    p->made_ms = stw_now_ms(config->clock);
    return p;
}

void dbu_pools_cancel(struct dbu_pools *p)
{
    uint32_t pos = 0;
    STW_LOCKED(&p->lock);
    p->cancelled = true;
    for (struct dbu_pools_entry *e; (e = stw_table_next(&p->entries, &pos));)
        if (e->pool)
            stw_pool_cancel(e->pool);
}

/* --- namespaces, and keys that wait */

/* NULL: no memory. */
static struct dbu_pools_tenant *find_or_add_tenant(struct dbu_pools_entry *e, const char *key)
{
    char ns[STW_KEY_LEN];
    void *old;
    stw_format(ns, sizeof(ns), "%.*s", (int)strcspn(key, "/"), key);
    struct dbu_pools_tenant *t = stw_table_get(&e->tenants, ns);
    size_t size = strlen(ns) + 1;
    if (t || !(t = calloc(1, sizeof(*t) + size)))
        return t;
    memcpy(t->ns, ns, size);
    if (stw_table_put(&e->tenants, t, &old) == 0)
        return t;
    free(t);
    return NULL;
}

static void push_waiting(struct dbu_pools_entry *e, struct dbu_pools_tenant *t, const char *key)
{
    size_t len = strlen(key) + 1;
    void *old;
    if (stw_table_get(&e->waiting, key))
        return;
    struct waiting *w = calloc(1, sizeof(*w) + len);
    if (!w)
        return; /* its own retry brings it back */
    memcpy(w->key, key, len);
    if (stw_turns_join(&e->turns, &w->turn, key) != 0 || stw_table_put(&e->waiting, w, &old) != 0) {
        stw_turns_quit(&e->turns, &w->turn);
        free(w);
        return;
    }
    w->tenant = t;
    t->waiting++;
    stw_turns_wait(&e->turns, &w->turn);
}

/* What waits for a lock holds a connection meanwhile: half of them stay for the other namespaces. */
static bool has_half_room(const struct dbu_pools_entry *e, const struct dbu_pools_tenant *t)
{
    return t->inside < STW_MAX(e->target->max_connections / 2, 1);
}

static bool has_tenant_room(const struct dbu_pools_entry *e, const struct dbu_pools_tenant *t,
                            uint64_t now_ms)
{
    return t->slow_until_ms <= now_ms || has_half_room(e, t);
}

static void remove_waiting(struct dbu_pools_entry *e, struct waiting *w)
{
    (void)stw_table_remove(&e->waiting, w->key);
    w->tenant->waiting--;
    stw_turns_quit(&e->turns, &w->turn);
}

/* NULL: none waits, of the namespaces that have room. */
static struct waiting *pop_waiting(struct dbu_pools_entry *e, uint64_t now_ms)
{
    struct stw_turn *turn = stw_turns_first(&e->turns);
    while (turn && !has_tenant_room(e, ((struct waiting *)turn)->tenant, now_ms))
        turn = stw_turns_after(&e->turns, turn);
    if (!turn)
        return NULL;
    stw_turns_take(&e->turns, turn);
    remove_waiting(e, (struct waiting *)turn);
    return (struct waiting *)turn;
}

/* The key came by itself. */
static void stop_waiting(struct dbu_pools_entry *e, const char *key)
{
    struct waiting *w = stw_table_get(&e->waiting, key);
    if (w)
        remove_waiting(e, w);
    free(w);
}

static void free_entry(void *entry)
{
    struct dbu_pools_entry *e = entry;
    for (struct waiting *w; (w = pop_waiting(e, UINT64_MAX));)
        free(w);
    stw_table_done(&e->waiting);
    stw_turns_done(&e->turns);
    stw_table_release(&e->tenants, free);
    stw_series_remove(e->up);
    stw_pool_unref(e->pool);
    stw_targets_unref(e->targets);
    free(e);
}

void dbu_pools_destroy(struct dbu_pools *p)
{
    if (!p)
        return;
    stw_table_release(&p->entries, free_entry);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* --- pools; these require the lock */

static struct dbu_pools_entry *find_entry(const struct dbu_pools *p, const char *target)
{
    char name[NAME_MAX_BYTES];
    stw_lower(target, name, sizeof(name));
    return stw_table_get(&p->entries, name);
}

static struct dbu_pools_entry *find_or_make(struct dbu_pools *p, const char *target)
{
    char name[NAME_MAX_BYTES];
    void *old;
    stw_lower(target, name, sizeof(name));
    struct dbu_pools_entry *e = stw_table_get(&p->entries, name);
    if (e)
        return e;
    size_t len = strlen(name) + 1;
    e = calloc(1, sizeof(*e) + len);
    if (!e)
        return NULL;
    memcpy(e->name, name, len);
    e->waiting = STW_TABLE_INIT(waiting_key);
    e->tenants = STW_TABLE_INIT(tenant_ns);
    stw_turns_init(&e->turns, 0); /* has_tenant_room limits them */
    if (stw_table_put(&p->entries, e, &old) != 0) {
        free(e);
        return NULL;
    }
    return e;
}

/* Open visits hold a reference to the old pool, so its connections close when they end.  The caller
 * must release *ret_old without the lock: that may close connections. */
static int ensure_pool(struct dbu_pools *p, struct dbu_pools_entry *e, struct stw_targets *targets,
                       const struct stw_target *target, struct stw_pool **ret_old,
                       struct stw_error *err)
{
    struct stw_pool *pool;
    struct stw_pool_config config = {.target = target,
                                     .targets = targets,
                                     .cluster = p->config.cluster(p->config.ctx),
                                     .password = p->config.password,
                                     .ctx = p->config.ctx,
                                     .clock = p->config.clock,
                                     .metrics = p->config.metrics};
    if (e->pool && stw_target_same_login(e->target, target))
        return 0;
    if (!config.cluster)
        return stw_fail(err, STW_ERR_UNAVAILABLE, STW_MARK_NO_ID);
    if (stw_pool_create(&config, &pool, err) != 0)
        return -1;
    if (e->pool)
        stw_log(STW_LOG_INFO, "a database target has changed, connecting again",
                STW_STR("target", target->name));
    *ret_old = e->pool;
    stw_targets_unref(e->targets);
    e->pool = pool;
    if (p->paused)
        stw_pool_rest(pool, true);
    e->targets = stw_targets_ref(targets);
    e->target = target;
    e->troubled = e->seen = e->read_only = false;
    e->down_since_ms = 0;
    e->last_sign_ms = stw_now_ms(p->config.clock);
    return 0;
}

/* --- entering and leaving */

static bool is_slow(const struct dbu_pools_entry *e, uint64_t now_ms)
{
    return !e->troubled && e->inside > 0 && now_ms - e->last_sign_ms > SLOW_MS;
}

/* The maximum number of visits: half of them may wait for Kubernetes while the others have the
 * connections.  If there is another target, one worker always stays free for it. */
static uint32_t room_of(const struct dbu_pools *p, const struct dbu_pools_entry *e, size_t targets)
{
    uint32_t workers = p->config.workers;
    uint32_t most = (uint32_t)STW_MAX(e->target->max_connections, (int64_t)1) * 2;
    return STW_MIN(most, targets > 1 && workers > 1 ? workers - 1 : workers);
}

/* Without a sign, either the server is slow or the visits are: with thousands of locks on their way, say.  One
 * more is let in for each SLOW_MS, as long as there may be a connection for it. */
static bool has_slow_room(const struct dbu_pools_entry *e, const struct dbu_pools_tenant *t,
                          uint64_t now_ms)
{
    return e->suspects < (now_ms - e->last_sign_ms) / SLOW_MS &&
           e->inside < e->target->max_connections && has_half_room(e, t);
}

static bool has_room(const struct dbu_pools *p, const struct dbu_pools_entry *e,
                     const struct dbu_pools_tenant *t, size_t targets)
{
    uint64_t now = stw_now_ms(p->config.clock);
    bool slow = is_slow(e, now);
    if ((slow || e->troubled) && p->suspects >= STW_MAX(p->config.workers / 2, 1U))
        return false;
    if (e->troubled)
        return e->inside == 0;
    if (e->inside >= room_of(p, e, targets))
        return false;
    return slow ? has_slow_room(e, t, now) : has_tenant_room(e, t, now);
}

/* While no visit ends, none wakes a key: of each namespace one comes again soon. */
static uint64_t find_again_ms(const struct dbu_pools_entry *e, struct dbu_pools_tenant *t,
                              uint64_t now_ms)
{
    if (!is_slow(e, now_ms) || !has_half_room(e, t) || now_ms < t->again_ms)
        return LATER_MS;
    t->again_ms = now_ms + SLOW_MS;
    return SLOW_MS;
}

static void end_pause(struct dbu_pools *p)
{
    uint32_t pos = 0;
    p->paused = false;
    for (struct dbu_pools_entry *e; (e = stw_table_next(&p->entries, &pos));)
        if (e->pool)
            stw_pool_rest(e->pool, false);
}

static enum dbu_pools_answer start_visit(struct dbu_pools *p, struct stw_targets *targets,
                                         const struct stw_target *target, const char *key,
                                         struct dbu_visit *ret, struct stw_pool **ret_old,
                                         struct stw_error *err)
{
    STW_ASSERT_LOCKED(&p->lock);
    struct dbu_pools_entry *e = find_or_make(p, target->name);
    uint64_t now = stw_now_ms(p->config.clock);
    if (!e || p->cancelled) {
        (void)stw_fail(err, e ? STW_ERR_CANCELLED : STW_ERR_INTERNAL,
                       e ? "steward is stopping" : "out of memory");
        return DBU_POOLS_FAILED;
    }
    if (p->paused && stw_fence_may_write())
        end_pause(p);
    if (ensure_pool(p, e, targets, target, ret_old, err) != 0)
        return DBU_POOLS_FAILED;
    struct dbu_pools_tenant *t = find_or_add_tenant(e, key);
    if (!t) {
        (void)stw_fail_memory(err);
        return DBU_POOLS_FAILED;
    }
    if (!has_room(p, e, t, stw_targets_count(targets))) {
        push_waiting(e, t, key);
        *ret = (struct dbu_visit){.again_ms = find_again_ms(e, t, now)};
        return DBU_POOLS_LATER;
    }
    bool suspicious = e->troubled || is_slow(e, now);
    stop_waiting(e, key);
    t->inside++;
    if (e->inside++ == 0)
        e->last_sign_ms = now;
    p->suspects += suspicious;
    e->suspects += suspicious;
    *ret = (struct dbu_visit){
        .entry = e, .tenant = t, .pool = stw_pool_ref(e->pool), .suspicious = suspicious};
    return DBU_POOLS_IN;
}

enum dbu_pools_answer dbu_pools_enter(struct dbu_pools *p, struct stw_targets *targets,
                                      const struct stw_target *target, const char *key,
                                      struct dbu_visit *ret, struct stw_error *err)
{
    struct stw_pool *old = NULL;
    pthread_mutex_lock(&p->lock);
    enum dbu_pools_answer answer = start_visit(p, targets, target, key, ret, &old, err);
    pthread_mutex_unlock(&p->lock);
    stw_pool_unref(old);
    return answer;
}

/* True if the server itself could not be used for any request. */
static bool is_of_server(enum stw_sql_trouble t)
{
    return t == STW_SQL_CONNECT || t == STW_SQL_CIRCUIT_OPEN || t == STW_SQL_AUTH ||
           t == STW_SQL_TLS || t == STW_SQL_READ_ONLY;
}

/* `full`: no login gets in.  Visits may go on, on connections that are open. */
static void note_sign(struct dbu_pools *p, struct dbu_pools_entry *e, enum stw_sql_trouble trouble,
                      bool full)
{
    if (trouble == STW_SQL_BUSY && !full)
        return;
    e->troubled = is_of_server(trouble);
    e->read_only = trouble == STW_SQL_READ_ONLY;
    e->seen = true;
    e->seen_ms = e->last_sign_ms;
    bool down = full || (e->troubled && !e->read_only);
    if (!down)
        e->down_since_ms = 0;
    else if (e->down_since_ms == 0) {
        e->down_since_ms = e->last_sign_ms;
        e->told = 0;
    }
    if (p->paused)
        return;
    if (!e->up)
        e->up = STW_SERIES(p->up, e->target->name);
    stw_series_set(e->up, !down);
}

/* One key for the place that has become free.  A woken key need not come back: if no visit is left
 * that would wake the next key, several are taken. */
static struct waiting *take_waiting(const struct dbu_pools *p, struct dbu_pools_entry *e)
{
    assert(p->config.workers > 0);
    struct waiting *all = NULL;
    uint32_t count = e->inside > 0 || e->troubled ? 1 : p->config.workers;
    for (struct waiting *w; count-- > 0 && (w = pop_waiting(e, stw_now_ms(p->config.clock)));) {
        w->next = all;
        all = w;
    }
    return all;
}

static void wake_all(const struct dbu_pools *p, struct waiting *all)
{
    while (all) {
        struct waiting *next = all->next;
        p->config.wake(p->config.ctx, all->key);
        free(all);
        all = next;
    }
}

void dbu_pools_leave(struct dbu_pools *p, struct dbu_visit *v, enum stw_sql_trouble trouble)
{
    struct dbu_pools_entry *e = v->entry;
    char name[NAME_MAX_BYTES];
    bool full = stw_pool_full_ms(v->pool) > FULL_MS;
    pthread_mutex_lock(&p->lock);
    assert(e->inside > 0 && v->tenant->inside > 0 && p->suspects >= v->suspicious);
    bool was_down = e->down_since_ms > 0;
    e->inside--;
    v->tenant->inside--;
    p->suspects -= v->suspicious;
    e->suspects -= v->suspicious;
    e->last_sign_ms = stw_now_ms(p->config.clock);
    if (trouble == STW_SQL_LOCKED)
        v->tenant->slow_until_ms = e->last_sign_ms + LOCKED_MS;
    note_sign(p, e, trouble, full && v->pool == e->pool);
    bool recovered = was_down && e->down_since_ms == 0;
    stw_format(name, sizeof(name), "%s", e->name);
    struct waiting *next = take_waiting(p, e);
    pthread_mutex_unlock(&p->lock);
    stw_pool_unref(stw_take(v->pool));
    wake_all(p, next);
    if (recovered)
        p->config.recovered(p->config.ctx, name);
}

void dbu_pools_poke(struct dbu_pools *p, const char *target)
{
    STW_LOCKED(&p->lock);
    const struct dbu_pools_entry *e = find_entry(p, target);
    if (e && e->pool)
        stw_pool_poke(e->pool);
}

uint64_t dbu_pools_down_ms(struct dbu_pools *p, const char *target)
{
    STW_LOCKED(&p->lock);
    const struct dbu_pools_entry *e = find_entry(p, target);
    return e && e->down_since_ms > 0 ? stw_now_ms(p->config.clock) - e->down_since_ms + 1 : 0;
}

uint32_t dbu_pools_tell(struct dbu_pools *p, const char *target, uint32_t count)
{
    STW_LOCKED(&p->lock);
    struct dbu_pools_entry *e = find_entry(p, target);
    uint32_t before = e ? e->told : 0;
    if (e)
        e->told += count;
    return before;
}

void dbu_pools_pause(struct dbu_pools *p)
{
    uint32_t pos = 0;
    STW_LOCKED(&p->lock);
    p->paused = true;
    for (struct dbu_pools_entry *e; (e = stw_table_next(&p->entries, &pos));) {
        stw_series_remove(stw_take(e->up));
        if (e->pool)
            stw_pool_rest(e->pool, true);
    }
}

bool dbu_pools_troubled(struct dbu_pools *p, const char *target)
{
    STW_LOCKED(&p->lock);
    const struct dbu_pools_entry *e = find_entry(p, target);
    return e && e->troubled;
}

enum dbu_pools_sight dbu_pools_sight(struct dbu_pools *p, const char *target)
{
    uint64_t now = stw_now_ms(p->config.clock);
    STW_LOCKED(&p->lock);
    const struct dbu_pools_entry *e = find_entry(p, target);
    if (e && e->seen && now - e->seen_ms < DBU_POOLS_FRESH_MS)
        return e->troubled || e->down_since_ms > 0 ? DBU_POOLS_TROUBLED : DBU_POOLS_ANSWERS;
    return now - p->made_ms < DBU_POOLS_FRESH_MS ? DBU_POOLS_NOT_YET : DBU_POOLS_UNSEEN;
}

/* The pool of the next entry from *pos on, with a reference; NULL at the end. */
static struct stw_pool *next_pool(struct dbu_pools *p, uint32_t *pos)
{
    struct stw_pool *found = NULL;
    STW_LOCKED(&p->lock);
    for (struct dbu_pools_entry *e; !found && (e = stw_table_next(&p->entries, pos));)
        if (e->pool)
            found = stw_pool_ref(e->pool);
    return found;
}

static void forget_tenants(struct dbu_pools *p)
{
    uint64_t now = stw_now_ms(p->config.clock);
    uint32_t at = 0;
    STW_LOCKED(&p->lock);
    for (struct dbu_pools_entry *e; (e = stw_table_next(&p->entries, &at));) {
        uint32_t pos = 0;
        for (struct dbu_pools_tenant *t; (t = stw_table_next(&e->tenants, &pos));)
            if (t->inside == 0 && t->waiting == 0 && t->slow_until_ms <= now)
                free(stw_table_remove(&e->tenants, t->ns));
    }
}

/* Tidies without the lock, because closing may take a moment.  An entry that moves in the table
 * meanwhile is tidied the next time. */
void dbu_pools_tidy(struct dbu_pools *p)
{
    uint32_t pos = 0;
    forget_tenants(p);
    for (struct stw_pool *pool; (pool = next_pool(p, &pos));) {
        stw_pool_tidy(pool);
        stw_pool_unref(pool);
    }
}

void dbu_pools_prune(struct dbu_pools *p, const struct stw_targets *targets)
{
    uint32_t pos = 0;
    STW_LOCKED(&p->lock);
    for (struct dbu_pools_entry *e; (e = stw_table_next(&p->entries, &pos));) {
        if (e->inside > 0 || stw_targets_find(targets, e->name))
            continue;
        (void)stw_table_remove(&p->entries, e->name);
        free_entry(e);
    }
}
