/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds/databaseuser/end/sweep.h"

#include "base/log.h"
#include "base/table.h"
#include "base/thread.h"
#include "base/util.h"
#include "controller/packed.h"
#include "controller/status.h"
#include "kinds/common/product.h"
#include "kinds/databaseuser/end/stray.h"
#include "kinds/databaseuser/run_priv.h"
#include "kinds/databaseuser/target/ping.h"

#include <stdio.h>

#define KEY_NS "sweep:" /* no namespace has a colon in its name */
#define EVERY_MS (10u * 60000)
/* Between the lookup of marks and that of objects either may change: what is told was seen twice. */
#define AGAIN_MS 10000
#define STRAYS_MAX 1000   /* that are counted for a target */
#define TOLD_MAX 20       /* of them in one sweep */
#define NOTE_NAME_LEN 200 /* of names in a message */
#define GONE_MAX 1000     /* objects that are remembered */

struct stray {
    struct stw_hash id;
    bool told;
};

/* What the last sweep of a target has found. */
struct swept {
    struct stray *strays;
    size_t count;
    struct stw_series *accounts, *databases;
    char target[];
};

struct dbu_sweeps {
    pthread_mutex_t lock;
    struct stw_table all;
    struct stw_family *family;
    const char *const *namespaces;
    struct stw_hash gone[GONE_MAX]; /* the last ones */
    size_t gone_count;
};

static const char *target_of(const void *entry)
{
    return ((const struct swept *)entry)->target;
}

struct dbu_sweeps *dbu_sweeps_create(struct stw_metrics *metrics, const char *const *namespaces)
{
    struct dbu_sweeps *s = calloc(1, sizeof(*s));
    if (!s)
        return NULL;
    (void)pthread_mutex_init(&s->lock, NULL);
    s->all = STW_TABLE_INIT(target_of);
    s->namespaces = namespaces;
    s->family = stw_metrics_family(metrics, STW_GAUGE, "_database_orphans",
                                   "Accounts and databases on a target with a mark of this cluster "
                                   "whose object no longer exists, or does not want them.",
                                   (const char *const[]){"target", "type", NULL}, NULL);
    return s;
}

static void free_swept(void *entry)
{
    struct swept *one = entry;
    free(one->strays);
    free(one);
}

static void remove_gauges(struct swept *one)
{
    stw_series_remove(stw_take(one->accounts));
    stw_series_remove(stw_take(one->databases));
}

void dbu_sweeps_pause(struct dbu_sweeps *s)
{
    uint32_t pos = 0;
    STW_LOCKED(&s->lock);
    for (struct swept *one; (one = stw_table_next(&s->all, &pos));)
        remove_gauges(one);
}

void dbu_sweeps_destroy(struct dbu_sweeps *s)
{
    if (!s)
        return;
    stw_table_release(&s->all, free_swept);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

void dbu_sweep_wake(struct stw_manager *m, const char *target)
{
    dbu_target_wake(m, KEY_NS, target);
}

static struct stw_hash identify_object(const char *key, const char *uid)
{
    const struct stw_hash parts[] = {stw_hash_bytes(key, strlen(key)),
                                     stw_hash_bytes(uid, strlen(uid))};
    return stw_hash_bytes(parts, sizeof(parts));
}

void dbu_sweep_note_gone(struct dbu_sweeps *s, const char *key, const char *uid)
{
    STW_LOCKED(&s->lock);
    s->gone[s->gone_count++ % GONE_MAX] = identify_object(key, uid);
}

static bool was_seen_gone(struct dbu_sweeps *s, const struct stw_found_mark *m)
{
    struct stw_hash one = identify_object(m->owner, m->uid);
    STW_LOCKED(&s->lock);
    for (size_t i = 0; i < STW_MIN(s->gone_count, (size_t)GONE_MAX); i++)
        if (stw_hash_equal(s->gone[i], one))
            return true;
    return false;
}

/* --- one sweep */

struct sweep {
    struct stw_run *run;
    struct dbu_sweeps *all;
    struct stw_targets *targets;
    const struct stw_target *target;
    const struct swept *before;
    struct stray *strays; /* STRAYS_MAX */
    size_t count, told;
    unsigned accounts, databases; /* that were seen twice */
    bool again;
};

static bool is_managed(const struct dbu_sweeps *s, const char *ns)
{
    for (const char *const *n = s->namespaces; n && *n; n++)
        if (stw_streq(*n, ns))
            return true;
    return !s->namespaces;
}

static struct stw_hash identify(const struct stw_found_mark *m)
{
    const struct stw_hash parts[] = {stw_hash_bytes(m->name, strlen(m->name)),
                                     stw_hash_bytes(m->host, strlen(m->host)),
                                     stw_hash_bytes(m->uid, strlen(m->uid)),
                                     {.hi = m->database, .lo = 1}};
    return stw_hash_bytes(parts, sizeof(parts));
}

static const struct stray *find_before(const struct sweep *w, struct stw_hash id)
{
    for (size_t i = 0; i < w->before->count; i++)
        if (stw_hash_equal(w->before->strays[i].id, id))
            return &w->before->strays[i];
    return NULL;
}

/* An object that the cache cannot hold is there. */
static enum dbu_stray judge(const struct sweep *w, const struct stw_found_mark *m)
{
    stw_autobuf struct stw_buf text = STW_BUF_INIT(STW_RESPONSE_MAX_BYTES), unpacked = {0};
    stw_autojson struct stw_json_doc doc = {0};
    struct stw_informer *cache = stw_run_cache(w->run, w->run->controller->own);
    char why[64];
    struct stw_json none = {0};
    if (stw_informer_unreadable(cache, m->owner, why, sizeof(why)))
        return DBU_STRAY_NOT;
    if (stw_informer_get(cache, m->owner, &text, NULL) != 0)
        return dbu_stray_judge(m, none, w->targets, w->target);
    if (text.failed || stw_unpack_scan(stw_buf_str(&text), text.len, &unpacked, &doc) != 0)
        return DBU_STRAY_NOT;
    return dbu_stray_judge(m, stw_json_root(&doc), w->targets, w->target);
}

/* Whether the namespace has a DatabaseUser on the target. */
static bool uses_target(const struct sweep *w, const char *ns)
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(DBU_TARGET_USERS_MAX_BYTES);
    size_t at = 0, len = strlen(ns);
    dbu_target_users(w->run, &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));)
        if (strncmp(key, ns, len) == 0 && key[len] == '/')
            return true;
    return false;
}

/* A server can hold marks that name any owner.  What is not GONE names an object by its UID. */
static bool is_credible(const struct sweep *w, const struct stw_found_mark *m, const char *ns,
                        enum dbu_stray why)
{
    return stw_target_accepts_namespace(w->target, ns) &&
           (why != DBU_STRAY_GONE || was_seen_gone(w->all, m) || uses_target(w, ns));
}

/* The event is about the object that the mark names, in its namespace. */
static void tell(const struct sweep *w, const struct stw_found_mark *m, enum dbu_stray why)
{
    char ns[STW_KEY_LEN], name[STW_KEY_LEN], note[STW_CONDITION_MESSAGE_MAX + 8];
    stw_key_split(m->owner, ns, name);
    bool credible = is_credible(w, m, ns, why);
    struct stw_event_object regarding = {.resource = w->run->controller->resource,
                                         .ns = ns,
                                         .name = name,
                                         .uid = m->uid,
                                         .resource_version = ""};
    stw_format(note, sizeof(note),
               "%s \"%.*s%s%.*s\" on target \"%s\" %s: have it dropped there; steward doctor names "
               "the statement",
               m->database ? "database" : "account", NOTE_NAME_LEN, m->name, *m->host ? "@" : "",
               NOTE_NAME_LEN, m->host, w->target->name, dbu_stray_text(why));
    stw_message_clean(note, STW_CONDITION_MESSAGE_MAX);
    if (credible)
        stw_events_record(w->run->events, &regarding, true, "Orphaned", "Sweep", note);
    stw_log(STW_LOG_WARN, "an account or a database has no object any more",
            STW_STR("object", m->owner), STW_STR("what", note));
}

static int look_at_mark(void *ctx, const struct stw_found_mark *m)
{
    struct sweep *w = ctx;
    char ns[STW_KEY_LEN], name[STW_KEY_LEN];
    stw_key_split(m->owner, ns, name);
    if (w->count == STRAYS_MAX || strlen(m->owner) >= STW_KEY_LEN || !*ns ||
        !is_managed(w->all, ns))
        return 0;
    enum dbu_stray why = judge(w, m);
    if (why == DBU_STRAY_NOT)
        return 0;
    struct stray *one = &w->strays[w->count++];
    *one = (struct stray){.id = identify(m)};
    const struct stray *before = find_before(w, one->id);
    w->again |= !before;
    if (!before)
        return 0;
    w->accounts += !m->database;
    w->databases += m->database;
    one->told = before->told;
    if (!one->told && w->told < TOLD_MAX) {
        w->told++;
        one->told = true;
        tell(w, m, why);
    }
    return 0;
}

static int find_or_make(struct dbu_sweeps *s, const char *target, struct swept **ret)
{
    void *old;
    size_t size = strlen(target) + 1;
    STW_LOCKED(&s->lock);
    *ret = stw_table_get(&s->all, target);
    if (*ret)
        return 0;
    struct swept *one = calloc(1, sizeof(*one) + size);
    if (!one)
        return -1;
    memcpy(one->target, target, size);
    if (stw_table_put(&s->all, one, &old) != 0) {
        free(one);
        return -1;
    }
    *ret = one;
    return 0;
}

/* A key has one run at a time, and so has an entry. */
static void forget(struct dbu_sweeps *s, const char *target)
{
    STW_LOCKED(&s->lock);
    struct swept *one = stw_table_remove(&s->all, target);
    if (!one)
        return;
    remove_gauges(one);
    free_swept(one);
}

/* The fence is closed before dbu_sweeps_pause: a sweep that goes on after it sets no gauge. */
static void set_gauges(struct dbu_sweeps *s, struct swept *one, const struct sweep *w)
{
    STW_LOCKED(&s->lock);
    if (!stw_run_may_write(w->run))
        return;
    if (!one->accounts)
        one->accounts = STW_SERIES(s->family, w->target->name, "account");
    if (!one->databases)
        one->databases = STW_SERIES(s->family, w->target->name, "database");
    stw_series_set(one->accounts, w->accounts);
    stw_series_set(one->databases, w->databases);
}

static void keep(struct dbu_sweeps *s, struct swept *one, struct sweep *w)
{
    free(one->strays);
    one->strays = stw_take(w->strays);
    one->count = w->count;
    set_gauges(s, one, w);
}

static void visit(struct sweep *w, struct swept *one, const char *cluster, struct stw_pool *pool,
                  enum stw_sql_trouble *ret_trouble, struct stw_result *result)
{
    struct stw_marks_report report = {0};
    int rc = stw_marks_list(pool, cluster, look_at_mark, w, &report);
    *ret_trouble = report.trouble;
    if (rc != 0) {
        stw_log(STW_LOG_DEBUG, "the marks on a target cannot be listed",
                STW_STR("target", w->target->name), STW_STR("error", report.err.text));
        return;
    }
    if (report.more || w->count == STRAYS_MAX)
        stw_log(STW_LOG_WARN, "a target has more marks than are compared with their objects",
                STW_STR("target", w->target->name));
    keep(w->all, one, w);
    result->after_ms = w->again ? AGAIN_MS : EVERY_MS;
}

static void sweep_target(struct sweep *w, const char *name, struct stw_result *result)
{
    struct dbu_state *state = w->run->state;
    struct dbu_visit at;
    struct stw_error err = {0};
    struct swept *one;
    enum stw_sql_trouble trouble = STW_SQL_FINE;
    const char *cluster;
    if (dbu_cluster_id_get(state->cluster, w->run->client, &cluster, &err) != 0 ||
        find_or_make(state->sweeps, name, &one) != 0 ||
        !(w->strays = calloc(STRAYS_MAX, sizeof(*w->strays))))
        return;
    w->before = one;
    switch (dbu_pools_enter(state->pools, w->targets, w->target, w->run->key, &at, &err)) {
    case DBU_POOLS_LATER:
        result->after_ms = at.again_ms;
        break;
    case DBU_POOLS_FAILED:
        break;
    case DBU_POOLS_IN:
        visit(w, one, cluster, at.pool, &trouble, result);
        dbu_pools_leave(state->pools, &at, trouble);
        break;
    }
    free(w->strays);
}

void dbu_sweep(struct stw_run *run, struct stw_result *result)
{
    struct dbu_state *state = run->state;
    if (!stw_streq(run->ns, KEY_NS) || !state->sweeps_targets)
        return;
    struct stw_targets *targets = stw_product_targets(run->env);
    struct sweep w = {.run = run,
                      .all = state->sweeps,
                      .targets = targets,
                      .target = stw_targets_find(targets, run->name)};
    if (w.target) {
        result->outcome = STW_RUN_AFTER;
        result->after_ms = EVERY_MS;
        sweep_target(&w, run->name, result);
    } else {
        forget(state->sweeps, run->name);
    }
    stw_targets_unref(targets);
}
