/* SPDX-License-Identifier: Apache-2.0
 *
 * The objects whose condition Ready is not True, from the caches, for /debug/state and the metrics.
 * There is room for STW_UNREADY_MAX.  When it is used up, an object of a namespace that has fewer
 * takes the place of one of the namespace that has the most. */
#include "base/util.h"
#include "controller/condition.h"
#include "controller/manager/manager_priv.h"
#include "controller/object.h"

struct stw_unready *stw_unready_create(const struct stw_manager *m)
{
    struct stw_unready *u = calloc(1, sizeof(*u));
    if (!u)
        return NULL;
    u->all = calloc(STW_UNREADY_MAX, sizeof(*u->all));
    u->spaces = calloc(STW_UNREADY_MAX, sizeof(*u->spaces));
    u->left_out = calloc(STW_MAX(m->pool_count, 1U), sizeof(*u->left_out));
    if (u->all && u->spaces && u->left_out)
        return u;
    stw_unready_destroy(u);
    return NULL;
}

void stw_unready_destroy(struct stw_unready *u)
{
    if (!u)
        return;
    free(u->all);
    free(u->spaces);
    free(u->left_out);
    free(u);
}

/* The entry of this namespace, or a free one. */
static struct stw_unready_space *find_space(struct stw_unready *u, uint64_t ns)
{
    struct stw_unready_space *unused = NULL;
    for (uint32_t i = 0; i < STW_UNREADY_MAX; i++) {
        struct stw_unready_space *s = &u->spaces[i];
        if (s->count > 0 && s->ns == ns)
            return s;
        if (s->count == 0 && !unused)
            unused = s;
    }
    if (unused)
        unused->ns = ns;
    return unused;
}

static uint32_t find_largest_space(const struct stw_unready *u)
{
    uint32_t largest = 0;
    for (uint32_t i = 1; i < STW_UNREADY_MAX; i++)
        if (u->spaces[i].count > u->spaces[largest].count)
            largest = i;
    return largest;
}

/* A place for an object of this namespace; NULL: it has no less than the others. */
static struct stw_unready_object *take_place(struct stw_unready *u, uint64_t ns)
{
    struct stw_unready_space *s = find_space(u, ns);
    uint32_t largest = find_largest_space(u), i = u->count;
    if (i == STW_UNREADY_MAX && u->spaces[largest].count <= (s ? s->count : 0) + 1)
        return NULL;
    if (i == STW_UNREADY_MAX) {
        do
            i--;
        while (u->all[i].space != largest);
        u->left_out[u->all[i].pool]++;
        u->spaces[largest].count--;
        s = find_space(u, ns);
    } else {
        u->count++;
    }
    s->count++;
    u->all[i] = (struct stw_unready_object){.space = (uint32_t)(s - u->spaces)};
    return &u->all[i];
}

static struct stw_json find_ready(struct stw_json conditions)
{
    struct stw_json key, condition;
    stw_json_foreach (conditions, key, condition)
        if (stw_json_is(stw_json_at(condition, STW_CONDITION_TYPE), STW_READY))
            return condition;
    return STW_JSON_NONE;
}

static bool has_condition(struct stw_json conditions, const char *type)
{
    struct stw_json key, condition;
    stw_json_foreach (conditions, key, condition)
        if (stw_json_is(stw_json_at(condition, STW_CONDITION_TYPE), type) &&
            stw_json_is(stw_json_at(condition, STW_CONDITION_STATUS), "True"))
            return true;
    return false;
}

void stw_unready_look(struct stw_unready *u, uint32_t pool, const char *key, struct stw_json root)
{
    struct stw_json conditions = stw_json_path(root, "status.conditions");
    struct stw_json ready = find_ready(conditions);
    if (!u || stw_json_is(stw_json_at(ready, STW_CONDITION_STATUS), "True"))
        return;
    struct stw_unready_object *o = take_place(u, stw_hash_bytes(key, strcspn(key, "/")).lo);
    if (!o) {
        u->left_out[pool]++;
        return;
    }
    o->pool = pool;
    o->state = has_condition(conditions, STW_STALLED)       ? "Stalled"
               : has_condition(conditions, STW_RECONCILING) ? "Reconciling"
               : stw_json_there(ready)                      ? "NotReady"
                                                            : "New";
    stw_format(o->key, sizeof(o->key), "%s", key);
    stw_json_cut(stw_json_at(ready, STW_CONDITION_REASON), o->reason, sizeof(o->reason));
    stw_json_cut(stw_json_at(ready, STW_CONDITION_SINCE), o->since, sizeof(o->since));
    stw_json_cut(stw_json_at(ready, STW_CONDITION_MESSAGE), o->message, sizeof(o->message));
}

void stw_unready_publish(struct stw_manager *m, const struct stw_unready *now)
{
    struct stw_series *series[STW_UNREADY_MAX];
    uint32_t count = now ? now->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct stw_unready_object *o = &now->all[i];
        char ns[STW_KEY_LEN], name[STW_KEY_LEN];
        stw_key_split(o->key, ns, name);
        series[i] =
            STW_SERIES(m->unready, m->pools[o->pool].controller->kind->kind, ns, name, o->reason);
        stw_series_set(series[i], 1);
    }
    for (uint32_t i = 0; i < m->unready_count; i++) /* what is in both lists has two references */
        stw_series_remove(m->unready_series[i]);
    memcpy(m->unready_series, series, count * sizeof(struct stw_series *));
    m->unready_count = count;
    for (uint32_t i = 0; i < m->pool_count; i++)
        stw_series_set(STW_SERIES(m->unnamed, m->pools[i].controller->kind->kind),
                       now ? now->left_out[i] : 0);
}
