/* SPDX-License-Identifier: Apache-2.0
 *
 * Agents: bare pods that do one task with a volume that steward itself cannot mount, and report the
 * result in their termination message.  Each is controlled by the object that it works for. */
#ifndef STW_KINDS_ETCDBACKUP_AGENT_H
#define STW_KINDS_ETCDBACKUP_AGENT_H

#include "base/util.h"
#include "controller/child.h"
#include "controller/verdict.h"
#include "kinds/common/pod.h"
#include "kinds/etcdbackup/snapshot.h"
#include "kinds/etcdcluster/spec.h"

/* Pods with the label app.kubernetes.io/component=agent; their changes wake the objects that
 * control them. */
extern const struct stw_watch eb_watch_agents;

/* A right of the kinds that start agents: their image is that of steward's own pod
 * (src/cmd/own_image.h). */
#define EB_RULE_OWN_POD                                                                            \
    {                                                                                              \
        .resource = &stw_res_pod, .verbs = "get", .own_namespace = true                            \
    }

#define EB_AGENT_NAME_MAX 64
#define EB_AGENT_RESULT "/dev/termination-log"

enum eb_agent_phase {
    EB_AGENT_NONE,
    EB_AGENT_RUNNING,
    EB_AGENT_SUCCEEDED,
    EB_AGENT_FAILED, /* also: deadline exceeded */
    EB_AGENT_STUCK,  /* waits for something that a user may have to provide; see `text` */
};

/* The containers of agents.  Others in the pod, such as the proxies of a mesh, neither end it nor
 * report anything. */
#define EB_AGENT_FETCH "fetch"       /* an init container */
#define EB_AGENT_SNAPSHOT "snapshot" /* the main container */
#define EB_AGENT_RESTORE "restore"   /* the main container */

struct eb_agent_live {
    enum eb_agent_phase phase;
    bool going; /* is being deleted */
    bool runs;  /* its main container runs */
    char uid[64], owner_uid[64];
    char message[4097];              /* of the first of its containers that ended */
    char reason[STW_POD_REASON_MAX]; /* with STUCK */
    char text[300]; /* why it makes no progress, or the error of another container */
};

/* Part of the owner's name, `what`, and a hash of the owner's UID; deterministic. */
void eb_agent_name(const struct stw_owner *owner, const char *what, char out[EB_AGENT_NAME_MAX]);
/* -1: there is none. */
int eb_agent_find(const struct stw_run *run, const char *name, struct eb_agent_live *ret);

/* All agents get metadata, restricted permissions and a deadline; from `pod` labels, annotations, and
 * what decides on the node. */
struct eb_agent {
    const struct stw_owner *owner;
    const char *name, *app; /* "etcdbackup" */
    int64_t deadline_s;
    int64_t user;                                   /* runAsUser and fsGroup */
    json_t *init_containers, *containers, *volumes; /* ownership is taken; init may be NULL */
    const struct ec_spec_pod *pod;
    struct stw_json object;           /* the owner */
    const struct stw_origin *origins; /* from which of its fields the pod comes */
};
/* A restricted container with little CPU and memory.  Takes ownership of `command`, `args` and
 * `mounts`. */
json_t *eb_agent_container(const char *name, const char *image, json_t *command, json_t *args,
                           json_t *mounts);
json_t *eb_agent_secret_volume(const char *name, const char *secret);
json_t *eb_agent_mount(const char *name, const char *path, bool read_only);
/* ResourceRequirements with what is absent in `given`, where it does not contradict that. */
json_t *eb_agent_resources(struct stw_json given);
/* The error names the pod, and has the server's text. */
int eb_agent_create(struct stw_run *run, const struct eb_agent *a,
                    struct stw_error *err) STW_MUST_CHECK;
int eb_agent_delete(const struct stw_run *run, const char *name, const char *uid,
                    struct stw_error *err);

/* What it means for the owner that the API server refuses an agent, or another object that the owner
 * needs: a quota, Pod Security, a LimitRange, a webhook. */
struct eb_refusal {
    const char *reason; /* NULL: nothing was refused */
    enum stw_level level;
    uint64_t again_ms;
    struct stw_error err;
};
/* False: the run has ended for another reason, such as a conflict, that no status reports. */
bool eb_refusal_of(const struct stw_error *err, struct eb_refusal *ret);
void eb_refusal_verdict(const struct eb_refusal *r, struct stw_verdict *v);

#endif
