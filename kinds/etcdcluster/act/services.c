/* SPDX-License-Identifier: Apache-2.0
 *
 * How members and clients find each other, and how many pods a drain may evict: Services with the
 * names of the original etcd-operator API, and a disruption budget that follows the voters. */
#include "kinds/etcdcluster/act/services.h"
#include "kinds/etcdcluster/plan/facts.h"

#include "base/util.h"
#include "kinds/etcdcluster/labels.h"
#include "kinds/etcdcluster/names.h"
#include "kinds/etcdcluster/observe/pods.h"
#include "kinds/etcdcluster/run.h"

#include <stdio.h>

static json_t *build_child_metadata(const struct ec *e, const char *name)
{
    json_t *m = stw_manifest_metadata(e->run, &e->owner, &e->naming, name);
    json_t *labels = json_object_get(m, "labels");
    (void)json_object_set_new(labels, "app", json_string("etcd"));
    (void)json_object_set_new(labels, "etcd_cluster", json_string(e->owner.name));
    return m;
}

static json_t *build_service_port(const char *name, int number)
{
    return stw_tree_pack("{s:s,s:i,s:s,s:i}", "name", name, "port", number, "protocol", "TCP",
                         "targetPort", number);
}

/* publishNotReadyAddresses: members must find each other before they are ready. */
json_t *ec_service_headless(const struct ec *e)
{
    return stw_tree_pack("{s:s,s:s,s:o,s:{s:s,s:b,s:o,s:[o,o]}}", "apiVersion", "v1", "kind",
                         "Service", "metadata", build_child_metadata(e, e->owner.name), "spec",
                         "clusterIP", "None", "publishNotReadyAddresses", 1, "selector",
                         ec_selector(e), "ports", build_service_port("client", EC_CLIENT_PORT),
                         build_service_port("peer", EC_PEER_PORT));
}

/* Selects only voters: a learner reports itself ready, but rejects reads and writes of keys. */
json_t *ec_service_client(const struct ec *e)
{
    stw_autobuf struct stw_buf name = STW_BUF_INIT(512);
    json_t *selector = ec_selector(e);
    (void)json_object_set_new(selector, EC_ROLE, json_string(EC_VOTER));
    stw_buf_addf(&name, "%s-client", e->owner.name);
    return stw_tree_pack("{s:s,s:s,s:o,s:{s:s,s:o,s:[o]}}", "apiVersion", "v1", "kind", "Service",
                         "metadata", build_child_metadata(e, stw_buf_str(&name)), "spec", "type",
                         "ClusterIP", "selector", selector, "ports",
                         build_service_port("client", EC_CLIENT_PORT));
}

/* minAvailable is the quorum of the present voters, plus learners: the budget counts their pods,
 * too, but they do not help the quorum.  For a single voter there is no budget: 1 of 1 would block
 * a drain forever and save nothing. */
json_t *ec_budget(const struct ec *e, const struct stw_resource *r)
{
    stw_autobuf struct stw_buf version = STW_BUF_INIT(512);
    struct ec_quorum q = ec_quorum_of(&e->view);
    stw_resource_api_version(r, &version);
    return stw_tree_pack("{s:s,s:s,s:o,s:{s:i,s:{s:o}}}", "apiVersion", stw_buf_str(&version),
                         "kind", r->kind, "metadata", build_child_metadata(e, e->owner.name),
                         "spec", "minAvailable", q.needed + q.learners, "selector", "matchLabels",
                         ec_selector(e));
}

/* --- applying them */

static int64_t number_of(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* The budget follows the number of members: a difference caused by that is not drift. */
static bool was_applied(const struct ec *e, int child)
{
    const json_t *status = e->object.status;
    struct ec_quorum q = ec_quorum_of(&e->view);
    if (number_of(status, "observedGeneration") != e->object.generation)
        return false;
    return child != EC_BUDGET ||
           (number_of(status, "size") == q.voters + q.learners &&
            number_of(json_object_get(status, "quorum"), "voters") == q.voters);
}

static void begin_child(struct ec *e, int child, const struct stw_watch *watch, json_t *desired)
{
    json_decref(e->desired[child]);
    e->desired[child] = desired;
    e->children[child] = (struct stw_child){
        .watch = watch,
        .name = json_string_value(json_object_get(json_object_get(desired, "metadata"), "name")),
        .desired = desired,
        .applied_before = was_applied(e, child)};
}

static void ensure_child(struct ec *e, int child)
{
    stw_child_ensure(e->run, &e->owner, &e->children[child]);
}

/* A Service of a user keeps its pods until it would have others: the headless one a pod with an address,
 * ready or not, and the one for clients a quorum. */
static void hold_services(struct ec *e)
{
    unsigned quorum = (unsigned)e->spec.size / 2 + 1;
    struct ec_endpoints now = ec_count_endpoints(e);
    stw_format(e->quorum_text, sizeof(e->quorum_text), "%u %s ready", quorum,
               quorum == 1 ? "member is" : "members are");
    if (now.members == 0)
        e->children[EC_HEADLESS].adoption.until = "a member has an address";
    if (now.ready_voters < quorum)
        e->children[EC_CLIENT].adoption.until = e->quorum_text;
}

static void begin_budget(struct ec *e)
{
    const struct stw_resource *r =
        stw_informer_resource(stw_run_cache(e->run, &stw_watch_disruption_budgets));
    begin_child(e, EC_BUDGET, &stw_watch_disruption_budgets, ec_budget(e, r));
}

/* All children, also the budget, which is written only when there are voters. */
static void check_adoption(struct ec *e)
{
    const bool budget = e->spec.pdb.enabled && e->spec.size > 1;
    if (budget)
        begin_budget(e);
    stw_children_check_adoption(e->run, &e->owner, e->children, budget ? EC_CHILDREN : EC_BUDGET);
    hold_services(e);
}

void ec_ensure_services(struct ec *e)
{
    begin_child(e, EC_HEADLESS, &stw_watch_services, ec_service_headless(e));
    begin_child(e, EC_CLIENT, &stw_watch_services, ec_service_client(e));
    if (e->owner.adopt)
        check_adoption(e);
    ensure_child(e, EC_HEADLESS);
    ensure_child(e, EC_CLIENT);
}

void ec_ensure_budget(struct ec *e)
{
    struct stw_child *c = &e->children[EC_BUDGET];
    struct ec_quorum q = ec_quorum_of(&e->view);
    const struct stw_adoption adoption = c->adoption;
    const struct stw_error refusal = c->err;
    *c = (struct stw_child){
        .watch = &stw_watch_disruption_budgets, .name = e->owner.name, .state = STW_CHILD_ABSENT};
    if (e->spec.pdb.enabled && q.voters > 1) {
        begin_budget(e);
        c->adoption = adoption;
        c->err = refusal;
        ensure_child(e, EC_BUDGET);
    } else if (!e->spec.pdb.enabled || (e->view.listed && q.voters == 1)) {
        stw_child_remove(e->run, &e->owner, c);
    }
}
