/* SPDX-License-Identifier: Apache-2.0
 *
 * Agents: bare pods that do one thing, with a volume that steward itself has not, and tell what
 * came of it in their termination message.  Each is controlled by the object that it works for. */
#ifndef STW_CONTROLLER_AGENT_H
#define STW_CONTROLLER_AGENT_H

#include "controller/child.h"
#include "controller/snapshot.h"

/* Pods with the label app.kubernetes.io/component=agent; their changes wake the objects that
 * control them. */
extern const struct stw_watch stw_watch_agents;

#define STW_AGENT_NAME_MAX 64
#define STW_AGENT_RESULT "/dev/termination-log"

enum stw_agent_phase {
    STW_AGENT_NONE,
    STW_AGENT_RUNNING,
    STW_AGENT_SUCCEEDED,
    STW_AGENT_FAILED, /* also: over its deadline */
    STW_AGENT_STUCK,  /* waits for something that a person may have to give; `text` */
};

struct stw_agent_live {
    enum stw_agent_phase phase;
    bool going; /* is being deleted */
    char uid[64], owner_uid[64];
    char message[4097]; /* of the first container that ended */
    char text[300];     /* why it does not get on, or what another container failed with */
};

/* Letters and digits of the owner's UID behind a part of its name; the same each time. */
void stw_agent_name(const struct stw_owner *owner, const char *what, char out[STW_AGENT_NAME_MAX]);
/* 0, or -1: there is none. */
int stw_agent_find(const struct stw_run *run, const char *name, struct stw_agent_live *ret);

/* What all agents have: metadata, restricted rights, a deadline; `containers` are taken over. */
struct stw_agent {
    const struct stw_owner *owner;
    const char *name, *app; /* "etcdbackup" */
    int64_t deadline_s;
    int64_t user;                                   /* runAsUser and fsGroup */
    json_t *init_containers, *containers, *volumes; /* taken over; init may be NULL */
    const json_t *pull_secrets;                     /* or NULL */
};
/* A container of ours: restricted, little CPU and memory.  `mounts` and `args` are taken over. */
json_t *stw_agent_container(const char *name, const char *image, json_t *command, json_t *args,
                            json_t *mounts);
json_t *stw_agent_secret_volume(const char *name, const char *secret);
json_t *stw_agent_mount(const char *name, const char *path, bool read_only);
int stw_agent_create(struct stw_run *run, const struct stw_agent *a, struct stw_error *err);
int stw_agent_delete(const struct stw_run *run, const char *name, const char *uid,
                     struct stw_error *err);

#endif
