/* SPDX-License-Identifier: Apache-2.0
 *
 * The turn of a cluster to be defragmented, on the nodes of its members. */
#include "kinds/etcdcluster/act/turn.h"

#include "base/fence.h"
#include "base/util.h"
#include "kinds/etcdcluster/act/maintenance_turn.h"
#include "kinds/etcdcluster/plan/maintenance_limits.h"
#include "kinds/etcdcluster/run.h"
#include "kinds/etcdcluster/runtime.h"

#include <stdio.h>

#define KEYS_MAX (1u << 20)
#define TEXT_MAX (64u << 10)

struct nodes {
    char names[EC_TURN_NODES][254];
    size_t count;
};

static void add_node(struct nodes *n, const char *name)
{
    for (size_t i = 0; i < n->count; i++)
        if (stw_streq(n->names[i], name))
            return;
    if (*name && n->count < EC_TURN_NODES)
        stw_format(n->names[n->count++], sizeof(n->names[0]), "%s", name);
}

static struct ec_turn turn_of(const struct stw_run *run, const char *ns, const char *cluster,
                              const struct nodes *n)
{
    struct ec_turn turn = {.ns = ns,
                           .cluster = cluster,
                           .count = n->count,
                           .now_ms = stw_now_ms(run->clock),
                           .time_ms = EC_DEFRAGMENT_MAX_S * 1000};
    for (size_t i = 0; i < n->count; i++)
        turn.nodes[i] = n->names[i];
    return turn;
}

/* --- what an earlier leader has left under way */

void ec_index_defragmenting(struct stw_json root, struct stw_buf *out)
{
    if (stw_json_is(stw_json_path(root, "status.currentAction.kind"), ec_kind_names[EC_DEFRAGMENT]))
        stw_index_add(out, EC_DEFRAGMENTING, "yes");
}

static void collect_nodes(const struct stw_run *run, const char *cluster, struct nodes *ret)
{
    struct stw_informer *cache = stw_run_cache(run, &ec_watch_pods);
    stw_autobuf struct stw_buf index = STW_BUF_INIT(2 * STW_KEY_LEN), keys = STW_BUF_INIT(KEYS_MAX);
    size_t at = 0;
    stw_buf_addf(&index, "cluster:%s", cluster);
    stw_informer_keys(cache, stw_buf_str(&index), &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        stw_autobuf struct stw_buf text = STW_BUF_INIT(TEXT_MAX);
        struct ec_pod_live pod;
        if (stw_informer_get(cache, key, &text, NULL) == 0 &&
            ec_pod_read(stw_buf_str(&text), text.len, &pod) == 0)
            add_node(ret, pod.node);
    }
}

static void adopt(const struct stw_run *run, struct ec_turns *turns)
{
    stw_autobuf struct stw_buf keys = STW_BUF_INIT(16 * KEYS_MAX);
    size_t at = 0;
    stw_informer_keys(stw_run_cache(run, run->controller->own), EC_DEFRAGMENTING ":yes", &keys);
    for (const char *key; (key = stw_keys_next(&keys, &at));) {
        struct nodes nodes = {.count = 0};
        char ns[254];
        stw_format(ns, sizeof(ns), "%.*s", (int)strcspn(key, "/"), key);
        collect_nodes(run, key, &nodes);
        const struct ec_turn turn = turn_of(run, ns, key, &nodes);
        ec_turns_hold(turns, &turn);
    }
}

/* --- its own */

bool ec_take_turn(struct ec *e)
{
    struct ec_turns *turns = ec_runtime_turns(e->runtime);
    struct ec_kept *kept = ec_runtime_get(e->runtime, e->run);
    struct nodes nodes = {.count = 0};
    if (!kept)
        return false;
    if (ec_turns_new_term(turns, stw_fence_current().term))
        adopt(e->run, turns);
    for (size_t i = 0; i < e->view.count; i++)
        if (e->view.members[i].listed)
            add_node(&nodes, e->details[i].pod.node);
    struct ec_turn turn = turn_of(e->run, e->owner.ns, e->run->key, &nodes);
    turn.since = e->state.pass.begun;
    kept->turn = true;
    return ec_turns_take(turns, &turn);
}

void ec_end_turn(struct ec *e)
{
    struct ec_kept *kept = ec_runtime_get(e->runtime, e->run);
    bool under_way = e->state.action.kind == EC_DEFRAGMENT;
    if (!kept)
        return;
    if (kept->turn && !under_way)
        ec_turns_end(ec_runtime_turns(e->runtime), e->run->key);
    kept->turn = under_way;
}
