/* SPDX-License-Identifier: Apache-2.0
 *
 * Events as kubectl describe shows them (events.k8s.io/v1).  The same (object, type, reason,
 * action, note) within 6 minutes becomes one series: the first is created, repeats are counted and
 * patched at most once in 30 s.  A token bucket per object (25 tokens, one refilled in 5 min) keeps
 * a fault from flooding the server.  Recording never blocks. */
#ifndef STW_KUBE_EVENTS_H
#define STW_KUBE_EVENTS_H

#include "base/util.h"
#include "kube/client.h"

struct stw_events;

/* `component` such as "steward-myweb" is the reportingController; the host name the instance. */
int stw_events_create(struct stw_client *client, const struct stw_clock *clock,
                      const char *component, struct stw_events **ret,
                      struct stw_error *err) STW_MUST_CHECK;
void stw_events_destroy(struct stw_events *e);

struct stw_event_object {
    const struct stw_resource *resource;
    const char *ns, *name, *uid, *resource_version;
};
/* `reason` and `action` are CamelCase, `note` is a sentence of at most 1024 bytes; what acts on a
 * terminal is written as an escape. */
void stw_events_record(struct stw_events *e, const struct stw_event_object *regarding, bool warning,
                       const char *reason, const char *action, const char *note);

#endif
