/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the status of a MyWeb.  No I/O. */
#include "controller/status.h"
#include "base/util.h"
#include "controller/condition.h"
#include "kinds/myweb/run_priv.h"

#include <stdio.h>

#define PORT_AGAIN_MS 60000
#define PORT_SOON_MS 2000

#define REASON_COMPLETED "Completed"
#define REASON_PORT_TAKEN "NodePortUnavailable"
#define REASON_PORT_RANGE "OutOfRange"
#define REASON_ALLOCATED "Allocated"

/* The aspects of the children come first, in their order. */
enum { FIND_PORT = MYWEB_CHILDREN, ASPECTS };

static const char *const types[ASPECTS] = {
    [MYWEB_CONFIGMAP] = "ConfigMapSynced",
    [MYWEB_DEPLOYMENT] = "DeploymentAvailable",
    [MYWEB_SERVICE] = "ServiceSynced",
    [FIND_PORT] = "NodePortAllocated",
};

/* The API server releases a port a moment after the Service has visibly given it up: it may refuse
 * the port although no Service has it.  The next try is soon, unless the status has this message
 * already. */
static bool is_free_soon(const struct myweb *w, const char *message)
{
    const json_t *conditions = json_object_get(w->object.status, "conditions");
    const json_t *old = stw_condition_find(conditions, types[FIND_PORT]);
    const char *told = json_string_value(json_object_get(old, "message"));
    return stw_streq(w->holder, MYWEB_HOLDER_UNSEEN) && !(told && stw_streq(told, message));
}

static void find_port_trouble(const struct myweb *w, struct stw_aspect *f)
{
    long long port = (long long)w->spec.node_port;
    f->truth = STW_FALSE;
    f->level = STW_LEVEL_WAITING;
    f->reason = REASON_PORT_TAKEN;
    f->again_ms = PORT_AGAIN_MS;
    switch (w->port) {
    case MYWEB_PORT_TAKEN:
        STW_ASPECT_SAY(
            f, "node port %lld is in use by %s; free it, or choose another spec.nodePortNumber",
            port, w->holder);
        if (is_free_soon(w, f->message))
            f->again_ms = PORT_SOON_MS;
        break;
    case MYWEB_PORT_NONE_LEFT:
        STW_ASPECT_SAY(
            f, "all node ports of this cluster are in use; delete a Service that has one, or widen "
               "the API server's --service-node-port-range");
        break;
    default:
        f->level = STW_LEVEL_STALLED;
        f->reason = REASON_PORT_RANGE;
        f->again_ms = STW_STALLED_AGAIN_MS;
        STW_ASPECT_SAY(f,
                       "node port %lld is not in the range of this cluster; choose another "
                       "spec.nodePortNumber: %s",
                       port, w->children[MYWEB_SERVICE].err.text);
        break;
    }
}

static void find_port(const struct myweb *w, struct stw_aspect *f)
{
    const struct stw_child *c = &w->children[MYWEB_SERVICE];
    f->level = STW_LEVEL_FINE;
    f->truth = STW_TRUE;
    f->reason = REASON_ALLOCATED;
    STW_ASPECT_SAY(f, "node port %lld is allocated", (long long)c->live.node_port);
    if (w->port != MYWEB_PORT_FREE) {
        find_port_trouble(w, f);
    } else if (c->state > STW_CHILD_REPAIRED || c->live.node_port == 0) {
        f->truth = STW_FALSE;
        f->level = STW_LEVEL_PROGRESSING;
        f->reason = STW_REASON_PROGRESSING;
        STW_ASPECT_SAY(f, "Service \"%s\" has no node port yet", w->owner.name);
    }
}

static void find_all(const struct myweb *w, struct stw_aspect *all)
{
    for (int i = 0; i < MYWEB_CHILDREN; i++)
        stw_aspect_child(&all[i], &w->children[i]);
    struct stw_rollout rollout = stw_status_rollout(&w->object, &w->children[MYWEB_DEPLOYMENT]);
    if (w->port != MYWEB_PORT_FREE)
        find_port_trouble(w, &all[MYWEB_SERVICE]);
    if (all[MYWEB_DEPLOYMENT].level == STW_LEVEL_FINE)
        stw_aspect_rollout(&all[MYWEB_DEPLOYMENT], &rollout, w->spec.replicas);
    find_port(w, &all[FIND_PORT]);
    for (size_t i = 0; i < ASPECTS; i++)
        all[i].type = types[i];
}

static void add_numbers(const struct myweb *w, json_t *status, bool completed)
{
    int64_t port = w->children[MYWEB_SERVICE].live.node_port;
    char url[32];
    (void)snprintf(url, sizeof(url), ":%lld", (long long)port);
    (void)json_object_set_new(status, "completed", json_boolean(completed));
    (void)json_object_set_new(status, "contentHash", json_string(w->content_hash));
    (void)json_object_set_new(
        status, "availableReplicas",
        json_integer((json_int_t)w->children[MYWEB_DEPLOYMENT].live.rollout.available));
    if (port == 0)
        return;
    (void)json_object_set_new(status, "nodePort", json_integer((json_int_t)port));
    (void)json_object_set_new(status, "url", json_string(url));
}

void myweb_judge(struct myweb *w, struct stw_verdict *v, json_t **ret_status)
{
    static const char *const keep[] = {"repairs", "lastRepair", NULL};
    struct stw_aspect *all = calloc(ASPECTS, sizeof(*all));
    struct stw_status s;
    *ret_status = NULL;
    if (!all)
        return;
    stw_status_begin(&s, w->run, &w->object, keep);
    find_all(w, all);
    stw_verdict_of(all, ASPECTS, v);
    if (v->level == STW_LEVEL_FINE) {
        v->reason = REASON_COMPLETED;
        (void)snprintf(
            v->message, sizeof(v->message), "the page is served on node port %lld by %lld replicas",
            (long long)w->children[MYWEB_SERVICE].live.node_port, (long long)w->spec.replicas);
    }
    stw_verdict_conditions(v, &s.conditions);
    stw_aspect_conditions(all, ASPECTS, &s.conditions);
    free(all);
    stw_status_add_repairs(&s, w->children, MYWEB_CHILDREN);
    add_numbers(w, s.tree, v->level == STW_LEVEL_FINE);
    *ret_status = stw_status_end(&s);
}

json_t *myweb_status_invalid(struct myweb *w, const char *findings)
{
    json_t *status = stw_status_invalid(w->run, &w->object, findings);
    (void)json_object_set_new(status, "completed", json_false());
    return status;
}

bool myweb_was_applied(const struct myweb *w, int child)
{
    static const char *const not_applied[] = {REASON_PORT_TAKEN, REASON_PORT_RANGE, NULL};
    return stw_status_was_applied(&w->object, types[child], not_applied);
}
