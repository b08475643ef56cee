/* SPDX-License-Identifier: Apache-2.0
 *
 * The checks of `steward doctor`, in order of dependency. Each adds its result to the report. A
 * check that does not apply reports that or nothing. */
#ifndef STW_OPERATOR_DOCTOR_H
#define STW_OPERATOR_DOCTOR_H

#include "base/operator.h"
#include "operator/doctor/checkup.h"
#include "operator/installed/kind_choice.h"
#include "operator/installed/remote.h"

#include <stdint.h>

struct doctor {
    const struct stw_operator *op; /* with the kinds that are managed */
    const struct stw_command *command;
    const void *extra;             /* options of the extension */
    struct stw_kind_choice choice; /* what `op` points to, if the Deployment has --kinds */
    const char *ns;                /* where steward is installed */
    char **namespaces;             /* that it manages, ended by NULL; NULL: all */
    struct stw_remote remote;
    struct stw_checkup report;
    int64_t ahead_us; /* API server's clock minus ours */
    int minor;        /* of the server, 24 for Kubernetes 1.24; 0: unknown */

    struct stw_answer deployment; /* root absent: not found */
    /* The target of the webhook configurations; "" if by URL or unknown. */
    char service[254], service_ns[254];
    char advice[1024]; /* scratch of doctor_advice */
    /* What may not be read: names, each with a newline at its end; and the text of the first refusal. */
    char unread[1024], refusal[512];
};

/* report.c: formats into d->advice. */
const char *doctor_advice(struct doctor *d, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* How to get back an object of the installation, in d->advice: from the release if Helm has installed
 * it, else by `command`. */
const char *doctor_reinstall(struct doctor *d, const char *command);
/* Reports a failed read.  What is forbidden is collected for doctor_refused(). */
void doctor_unread(struct doctor *d, const char *check, const struct stw_error *err);
/* Reports all that this account may not read as one warning, and counts it. */
void doctor_refused(struct doctor *d);
/* steward's container, or absent. */
struct stw_json doctor_container(const struct doctor *d);
/* The value of one of steward's arguments in the Deployment ("--namespaces=..."). NULL: not set.
 * The caller frees it. */
char *doctor_argument(const struct doctor *d, const char *flag);

/* -1: the API server cannot be reached, so no check is possible. */
int doctor_server(struct doctor *d); /* server.c */
/* Reports the features that Kubernetes 1.`minor` lacks, and what steward does without them. */
void doctor_features(struct stw_checkup *report, int minor);
void doctor_crds(struct doctor *d);
void doctor_kinds(struct doctor *d);      /* kinds.c: those that are left out */
void doctor_deployment(struct doctor *d); /* run.c */
void doctor_rights(struct doctor *d);
void doctor_leader(struct doctor *d);
void doctor_webhooks(struct doctor *d); /* webhook.c */
void doctor_service(struct doctor *d);  /* net.c */
void doctor_network_policy(struct doctor *d);
void doctor_unreadable(struct doctor *d); /* unreadable.c */
void doctor_upgrade(struct doctor *d);    /* upgrade.c: with --upgrade */

/* --- functions without I/O */

/* Whether `theirs` contains all of `ours`; the path of the first difference goes to `path`.
 * Additions by the server (defaults, status) do not count as differences, additional properties of
 * a schema do. */
bool doctor_covers(struct stw_json ours, struct stw_json theirs, struct stw_buf *path);

/* Whether a NetworkPolicy selects pods of these labels for ingress, and whether it then admits all
 * peers, or an ipBlock, to the port (`name` of the container port, or NULL). */
bool doctor_policy_selects(struct stw_json policy, struct stw_json labels);
bool doctor_policy_admits(struct stw_json policy, const char *name, int64_t port);

#endif
