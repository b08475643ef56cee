/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of `steward doctor`, in the order in which one depends on another.  Each adds what it
 * sees to the report; one that has nothing to look at says so or stays silent. */
#ifndef STW_CMD_DOCTOR_PRIV_H
#define STW_CMD_DOCTOR_PRIV_H

#include "cmd/checkup.h"
#include "cmd/remote.h"

#include <stdint.h>

struct doctor {
    const char *ns;    /* where steward is installed */
    char **namespaces; /* that it looks after, ended by NULL; NULL: all */
    struct stw_remote remote;
    struct stw_checkup report;
    int64_t ahead_us; /* the API server's clock, of ours */

    struct stw_answer deployment; /* root absent: there is none */
    /* What the API server calls, by the webhook configurations; "" when by URL or not known. */
    char service[254], service_ns[254];
    char advice[1024]; /* scratch, by doctor_advice */
};

/* Formats into d->advice. */
const char *doctor_advice(struct doctor *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Something could not be read: a warning when we may not, else a failure. */
void doctor_unread(struct doctor *d, const char *check, const struct stw_error *err);
/* steward's container, or absent. */
struct stw_json doctor_container(const struct doctor *d);
/* An argument of steward's as the Deployment gives it ("--namespaces=..."): its value; NULL: not
 * given.  To be freed. */
char *doctor_argument(const struct doctor *d, const char *flag);

/* -1: the API server does not answer, so that nothing can be seen. */
int doctor_server(struct doctor *d); /* doctor_server.c */
/* What a Kubernetes 1.`minor` lacks of what steward makes use of, and what it does without. */
void doctor_features(struct stw_checkup *report, int minor);
void doctor_crds(struct doctor *d);
void doctor_deployment(struct doctor *d); /* doctor_run.c */
void doctor_rights(struct doctor *d);
void doctor_leader(struct doctor *d);
void doctor_targets(struct doctor *d);
struct stw_targets;
/* DatabaseUsers that the rules refuse, with these targets.  doctor_users.c */
void doctor_users(struct doctor *d, struct stw_targets *targets);
void doctor_webhooks(struct doctor *d); /* doctor_door.c */
void doctor_service(struct doctor *d);  /* doctor_net.c */
void doctor_network_policy(struct doctor *d);

/* --- pure parts */

/* Whether `theirs` has all that `ours` says; the first place where it does not goes to `path`. What
 * a server adds (defaults, status) is no difference, but properties of a schema are. */
bool doctor_covers(struct stw_json ours, struct stw_json theirs, struct stw_buf *path);

/* Whether a NetworkPolicy selects pods of these labels for traffic that comes in, and whether it
 * then lets anybody in to the port (`name` of the container's, or NULL). */
bool doctor_policy_selects(struct stw_json policy, struct stw_json labels);
bool doctor_policy_admits(struct stw_json policy, const char *name, int64_t port);

#endif
