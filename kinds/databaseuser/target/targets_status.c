/* SPDX-License-Identifier: Apache-2.0
 *
 * The targets that the namespace of an object may use, for its status: tenants cannot read the
 * configuration.  It has no host, no account of an admin, and nothing that is for other namespaces
 * only. */
#include "kinds/databaseuser/target/targets_status.h"

#include "kinds/databaseuser/run_priv.h"
#include "kube/tree.h"

#define TARGETS_SHOWN DBU_TARGETS_SHOWN
#define PATTERNS_SHOWN DBU_PATTERNS_SHOWN
#define PATTERN_MAX_BYTES 128 /* a longer one is left out: no server has names of that length */

/* A list with the namespace in it.  Returns how many were left out. */
static json_int_t build_patterns(const char *const *patterns, const char *ns, json_t **ret)
{
    json_int_t left_out = 0;
    *ret = json_array();
    for (; patterns && *patterns; patterns++) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(PATTERN_MAX_BYTES);
        stw_target_put_pattern(*patterns, ns, &text);
        if (text.failed || json_array_size(*ret) == PATTERNS_SHOWN)
            left_out++;
        else
            (void)json_array_append_new(*ret, json_string(stw_buf_str(&text)));
    }
    return left_out;
}

static const char *old_state(const struct dbu *d, const char *name)
{
    size_t i;
    json_t *one;
    json_array_foreach (json_object_get(d->object.status, "targets"), i, one)
        if (stw_same(stw_tree_text(one, "name"), name))
            return stw_tree_text(one, "state");
    return NULL;
}

/* After a start, a server that was not used yet keeps its state: otherwise each start would write
 * each status twice. */
static const char *state_of(const struct dbu *d, const struct stw_target *t)
{
    const char *old = old_state(d, t->name);
    switch (dbu_pools_sight(d->state->pools, t->name)) {
    case DBU_POOLS_ANSWERS:
        return "Reachable";
    case DBU_POOLS_TROUBLED:
        return "Unreachable";
    case DBU_POOLS_NOT_YET:
        return old ? old : "Unknown";
    default:
        return "Unknown";
    }
}

static json_t *build_target(const struct dbu *d, const struct stw_target *t)
{
    json_t *databases, *create;
    json_int_t left_out = build_patterns(stw_target_databases(t), d->run->ns, &databases);
    left_out += build_patterns(t->allow_create, d->run->ns, &create);
    json_t *one =
        json_pack("{s:s,s:s,s:s,s:o}", "name", t->name, "engine", stw_engine_name(t->engine),
                  "state", state_of(d, t), "databases", databases);
    if (t->is_default)
        (void)json_object_set_new(one, "default", json_true());
    if (json_array_size(create) > 0)
        (void)json_object_set(one, "createDatabases", create);
    if (left_out > 0)
        (void)json_object_set_new(one, "leftOut", json_integer(left_out));
    json_decref(create);
    return one;
}

void dbu_targets_add_status(const struct dbu *d, json_t *status)
{
    json_t *list = json_array();
    json_int_t left_out = 0;
    for (size_t i = 0; i < stw_targets_count(d->targets); i++) {
        const struct stw_target *t = stw_targets_at(d->targets, i);
        if (!stw_target_accepts_namespace(t, d->run->ns))
            continue;
        if (json_array_size(list) < TARGETS_SHOWN)
            (void)json_array_append_new(list, build_target(d, t));
        else
            left_out++;
    }
    (void)json_object_del(status, "targetsLeftOut");
    if (left_out > 0)
        (void)json_object_set_new(status, "targetsLeftOut", json_integer(left_out));
    if (json_array_size(list) > 0)
        (void)json_object_set(status, "targets", list);
    else
        (void)json_object_del(status, "targets");
    json_decref(list);
}
