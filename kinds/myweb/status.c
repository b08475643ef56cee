/* SPDX-License-Identifier: Apache-2.0
 *
 * Computes the status of a MyWeb.  No I/O. */
#include "base/util.h"
#include "kinds/myweb/run_priv.h"

#include <stdio.h>

#define PORT_AGAIN_MS 60000
#define PORT_SOON_MS 2000

#define REASON_COMPLETED "Completed"
#define REASON_PORT_TAKEN "NodePortUnavailable"
#define REASON_PORT_RANGE "OutOfRange"
#define REASON_ALLOCATED "Allocated"

const char *const myweb_port_reasons[] = {REASON_PORT_TAKEN, REASON_PORT_RANGE, NULL};

/* The API server releases a port a moment after the Service has visibly given it up: it may refuse
 * the port although no Service has it.  The next try is soon, unless the status has this message
 * already. */
static bool is_free_soon(const struct myweb *w, const char *message)
{
    const json_t *conditions = json_object_get(w->object.status, "conditions");
    const json_t *old = stw_condition_find(conditions, MYWEB_PORT_CONDITION);
    const char *reported = json_string_value(json_object_get(old, "message"));
    return stw_streq(w->holder, MYWEB_HOLDER_UNSEEN) && !(reported && stw_streq(reported, message));
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

/* The condition has what the pods suffer from only while replicas are missing. */
static void find_pods(const struct myweb *w, struct stw_aspect *f)
{
    bool lacks =
        w->children[MYWEB_DEPLOYMENT].state <= STW_CHILD_REPAIRED && f->level != STW_LEVEL_FINE;
    if (!lacks || !w->trouble.found)
        return;
    if (f->level == STW_LEVEL_PROGRESSING && !w->trouble.passing)
        f->reason = w->trouble.reason;
    stw_aspect_append(f, w->trouble.message);
}

void myweb_find(const struct stw_subject *subject, struct stw_aspect *all)
{
    const struct myweb *w = (const struct myweb *)subject;
    find_pods(w, &all[MYWEB_DEPLOYMENT]);
    if (w->port != MYWEB_PORT_FREE)
        find_port_trouble(w, &all[MYWEB_SERVICE]);
    all[MYWEB_CHILDREN].level = STW_LEVEL_FINE;
    if (myweb_is_inside(&w->spec))
        return;
    find_port(w, &all[MYWEB_CHILDREN]);
    all[MYWEB_CHILDREN].type = MYWEB_PORT_CONDITION;
}

void myweb_summarize(const struct stw_subject *subject, struct stw_verdict *v)
{
    const struct myweb *w = (const struct myweb *)subject;
    v->reason = REASON_COMPLETED;
    if (myweb_is_inside(&w->spec))
        stw_format(v->message, sizeof(v->message), "the page is served by %lld replicas",
                   (long long)w->spec.replicas);
    else
        stw_format(
            v->message, sizeof(v->message), "the page is served on node port %lld by %lld replicas",
            (long long)w->children[MYWEB_SERVICE].live.node_port, (long long)w->spec.replicas);
}

static void set_url(const struct myweb *w, int64_t port, json_t *status)
{
    const struct stw_ingress *i = &w->spec.ingress;
    stw_autobuf struct stw_buf url = STW_BUF_INIT(1024);
    if (i->host)
        stw_buf_addf(&url, "http%s://%s/", i->tls_secret ? "s" : "", i->host);
    else if (port != 0)
        stw_buf_addf(&url, ":%lld", (long long)port);
    else if (myweb_is_inside(&w->spec))
        stw_buf_addf(&url, "http://%s.%s.svc", w->owner.name, w->owner.ns);
    if (url.len > 0)
        (void)json_object_set_new(status, "url", json_string(stw_buf_str(&url)));
}

void myweb_report(const struct stw_subject *subject, const struct stw_verdict *v, json_t *status)
{
    const struct myweb *w = (const struct myweb *)subject;
    int64_t port = w->children[MYWEB_SERVICE].live.node_port;
    (void)json_object_set_new(status, "completed", json_boolean(v->level == STW_LEVEL_FINE));
    (void)json_object_set_new(status, "contentHash", json_string(w->content_hash));
    (void)json_object_set_new(
        status, "availableReplicas",
        json_integer((json_int_t)w->children[MYWEB_DEPLOYMENT].live.rollout.available));
    set_url(w, port, status);
    if (port != 0)
        (void)json_object_set_new(status, "nodePort", json_integer((json_int_t)port));
}
